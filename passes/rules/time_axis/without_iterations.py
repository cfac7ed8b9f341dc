"""What may be run outside of a loop, where the loop may run no iteration at all."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from onnx import GraphProto, NodeProto

from passes.analysis.safety.shape_checks import Reading
from passes.analysis.safety.shapes_fit import fits, is_known_to_need, leaves
from passes.analysis.safety.speculation import NEEDS_SEQUENCES, is_pure, speculatable
from passes.ir import scope as scoping
from passes.ir.operators import called_key, op_of
from passes.rules.time_axis.time_body import TimeBody
from passes.types.value_types import Dims, dims_of, has_elements

#: Ops that fail on elements alone: where there is none of those that carry time, they do not.
_FAIL_BY_ELEMENT = frozenset({"Div", "Mod", "Pow"})
#: The same of ops that look elements up, where what says which ones carries time.
_LOOK_UP = frozenset({"Gather", "GatherElements", "GatherND", "ScatterElements", "ScatterND"})
#: Ops that fail on a row of size 0, and on nothing else.
_FAIL_ON_EMPTY_ROWS = frozenset({"ArgMax", "ArgMin", "ReduceMax", "ReduceMin"})


def may_move(body: TimeBody, node: NodeProto) -> bool:
    """Whether nothing but its inputs decides what a node gives, wherever it stands."""
    pending = [node]
    while pending:
        one = pending.pop()
        refers = any(attribute.ref_attr_name for attribute in one.attribute)
        if refers or called_key(one) in body.functions:
            return False
        pending.extend(inner for _, graph in scoping.subgraphs(one) for inner in graph.node)
    return is_pure(node)


def may_run_once(body: TimeBody, node: NodeProto) -> bool:
    """Whether a node that is the same in every iteration may run where there is none.

    As for the nodes that do carry time, sizes of one symbol are taken for equal.
    """
    if not body.may_be_empty:
        return True
    return not may_fail(body, node) and not is_known_to_need(node, _reading(body, trusted=True))


def may_not_fit(body: TimeBody, node: NodeProto) -> bool:
    """Whether a node, or one in its bodies, may not fit the shapes that it reads."""
    reading = _reading(body, trusted=False)
    return not all(fits(one, reading) for one in leaves(node))


def _reading(body: TimeBody, *, trusted: bool) -> Reading:
    """What is known of shapes in the body; `trusted`: sizes of one symbol are equal."""
    types, constants = body.rows.types, body.rows.constants
    return Reading(body.site.target, lambda name: dims_of(types.get(name)), constants.get, trusted)


def may_run_on_nothing(body: TimeBody, node: NodeProto, carrying: Collection[str]) -> bool:
    """Whether a node may run over all iterations at once where there is none.

    It then sees no value of those that carry time, and all of those that do not.
    """
    if not body.may_be_empty:
        return True
    if any(op_of(one) in NEEDS_SEQUENCES for one in leaves(node)):
        return False  # each iteration becomes a row of the batch
    if not may_fail(body, node):
        return True
    if op_of(node) in _LOOK_UP:
        return node.input[1] in carrying or _reads_within(body, node)
    if op_of(node) in _FAIL_ON_EMPTY_ROWS:
        fixed = all(name in body.rows.constants for name in node.input[1:] if name)
        return fixed and has_elements(body.rows.types.get(node.input[0]))
    return op_of(node) in _FAIL_BY_ELEMENT


def stands_guessed_sizes(body: TimeBody, node: NodeProto, sees: Sequence[str]) -> bool:
    """Whether a node may run on what a loop collected, be it in no iteration.

    Sizes that nothing tells are 0 then, so nothing may have to fit to them; and they may change
    from one iteration to the next, so that the loop can collect only what it collects anyway, or
    what has the same sizes. `sees` are the values of the loop that the node reads.
    """
    rows = [dims_of(body.rows.types.get(name)) for name in sees]
    if all(_is_static(one) for one in rows):
        return True
    others = [
        dims_of(body.rows.types.get(name)) for name in scoping.free_names(node) if name not in sees
    ]
    if scoping.holds_graphs(node):
        return False
    if op_of(node) in ("MatMul", "Gemm"):
        return list(node.input[:1]) == list(sees) and _fits_matrix(node, rows[0], others)
    if op_of(node) in ("Softmax", "LogSoftmax"):
        axis = next((one.i for one in node.attribute if one.name == "axis"), -1)
        return bool(rows[0]) and isinstance((rows[0] or ())[axis], int)
    if op_of(node) not in _ELEMENTWISE:
        return False
    if len(sees) > 1 and (rows[0] is None or None in rows[0]):
        return False
    return all(one == rows[0] for one in rows) and all(_fits_under(one, rows[0]) for one in others)


_ELEMENTWISE = frozenset(
    {
        *("Abs", "Add", "Ceil", "Clip", "Cos", "Div", "Elu", "Erf", "Exp", "Floor", "Gelu"),
        *("HardSigmoid", "HardSwish", "Identity", "LeakyRelu", "Log", "Max", "Min", "Mish", "Mul"),
        *("Neg", "Not", "Pow", "Reciprocal", "Relu", "Round", "Selu", "Sigmoid", "Sign", "Sin"),
        *("Softplus", "Softsign", "Sqrt", "Sub", "Tan", "Tanh", "Where"),
    }
)


def _is_static(dims: Dims | None) -> bool:
    return dims is not None and all(isinstance(one, int) for one in dims)


def _fits_matrix(node: NodeProto, row: Dims | None, others: Sequence[Dims | None]) -> bool:
    """Whether a product with a matrix needs no size of the row that is not told."""
    if any(one.name == "transA" and one.i for one in node.attribute):
        return False
    if not row or not isinstance(row[-1], int) or not all(map(_is_static, others)):
        return False
    matrix, *addend = [one or () for one in others]
    return len(matrix) <= 2 and all(len(one) < 2 or one[0] == 1 for one in addend)


def _fits_under(other: Dims | None, row: Dims | None) -> bool:
    """Whether an operand broadcasts to a row, whatever the sizes that are not told."""
    if other is None or row is None or len(other) > len(row):
        return False
    pairs = zip(reversed(other), reversed(row), strict=False)
    return all(own == 1 or (isinstance(size, int) and own == size) for own, size in pairs)


def _reads_within(body: TimeBody, node: NodeProto) -> bool:
    """Whether a Gather reads at places that are known to be there."""
    places = body.rows.constants.get(node.input[1])
    dims = dims_of(body.rows.types.get(node.input[0]))
    axis = next((one.i for one in node.attribute if one.name == "axis"), 0)
    if op_of(node) != "Gather" or places is None or not dims:
        return False
    size = dims[axis]
    return isinstance(size, int) and bool(((places >= -size) & (places < size)).all())


def may_fail(body: TimeBody, node: NodeProto) -> bool:
    """Whether a node could fail on some value."""
    if op_of(node) in ("Div", "Mod"):
        divisor = body.rows.constants.get(node.input[1])
        if divisor is not None and bool(((divisor != 0) & (divisor != -1)).all()):
            return False  # the least integer by -1 overflows
    alone = GraphProto(node=[node])
    names = scoping.all_names([alone])
    types = {name: body.rows.types[name] for name in names if name in body.rows.types}
    return bool(speculatable(alone, names & body.rows.constants.keys(), types))
