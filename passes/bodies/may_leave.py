"""Decides what may leave a loop: run elsewhere, also if that runs no iteration, or be removed."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from onnx import NodeProto

from passes.analysis.safety.may_fail import may_go, may_run_on_nothing, may_run_unreached
from passes.analysis.safety.randomness import first_random, is_pure
from passes.bodies.time_body import TimeBody
from passes.choices import Assumption
from passes.ir import scope as scoping
from passes.ir.attributes import attribute, has_references
from passes.ir.operators import called_key, op_of
from passes.ir.site import Refused, Site
from passes.operators.table import traits_of
from passes.types.value_types import Dims, dims_of, is_static


def may_move(body: TimeBody, node: NodeProto) -> bool:
    """Return whether the outputs of a node depend only on its inputs, at any location."""
    pending = [node]
    while pending:
        current = pending.pop()
        refers = has_references(current)
        if refers or called_key(current) in body.functions:
            return False
        pending.extend(scoping.inner_nodes(current))
    return is_pure(node)


def may_run_once(body: TimeBody, node: NodeProto) -> bool:
    """Return whether an invariant node may run where there is no iteration.

    As for nodes with a time axis, sizes of one symbol are assumed to be equal.
    """
    known = body.rows.known(body.site.target)
    return not body.may_be_empty or may_run_unreached(node, known)


def may_run_at_once(body: TimeBody, node: NodeProto, carrying: Collection[str]) -> bool:
    """Return whether a node may run over all iterations at once, even where there is none."""
    known = body.rows.known(body.site.target)
    return not body.may_be_empty or may_run_on_nothing(node, known, carrying)


def tolerates_unknown_sizes(body: TimeBody, node: NodeProto, sees: Sequence[str]) -> bool:
    """Return whether a node may run on what a loop collected, even if that ran no iteration.

    Unknown sizes are 0 then, so nothing may have to fit to them; and they may change
    between iterations, so the loop can collect only what it collects anyway, or
    what has the same sizes. `sees` are the values of the loop that the node reads.
    """
    rows = [dims_of(body.rows.types.get(name)) for name in sees]
    if all(is_static(row) for row in rows):
        return True
    others = [
        dims_of(body.rows.types.get(name)) for name in scoping.free_names(node) if name not in sees
    ]
    if scoping.holds_graphs(node):
        return False
    if op_of(node) in ("MatMul", "Gemm"):
        return list(node.input[:1]) == list(sees) and _fits_matrix(node, rows[0], others)
    if op_of(node) in ("Softmax", "LogSoftmax"):
        axis = attribute(node, "axis", -1)
        return bool(rows[0]) and isinstance((rows[0] or ())[axis], int)
    if not traits_of(node).by_element:
        return False
    if len(sees) > 1 and (rows[0] is None or None in rows[0]):
        return False
    return all(row == rows[0] for row in rows) and all(
        _fits_under(other, rows[0]) for other in others
    )


def _fits_matrix(node: NodeProto, row: Dims | None, others: Sequence[Dims | None]) -> bool:
    """Return whether a product with a matrix needs no unknown size of the row."""
    if attribute(node, "transA", 0):
        return False
    if not row or not isinstance(row[-1], int) or not all(map(is_static, others)):
        return False
    matrix, *addend = [dims or () for dims in others]
    return len(matrix) <= 2 and all(len(dims) < 2 or dims[0] == 1 for dims in addend)


def _fits_under(other: Dims | None, row: Dims | None) -> bool:
    """Return whether an operand broadcasts to a row, whatever the unknown sizes."""
    if other is None or row is None or len(other) > len(row):
        return False
    pairs = zip(reversed(other), reversed(row), strict=False)
    return all(own == 1 or (isinstance(size, int) and own == size) for own, size in pairs)


def check_dropped(body: TimeBody, positions: Iterable[int]) -> None:
    """Check that the unused nodes at these positions may go with the loop.

    Raises:
        Refused: `random` or `may-fail` where one may not.
    """
    assumed = body.site.assumes("valid-inputs")
    known = body.rows.known(body.site.target, trusted=False)
    for position in positions:
        node = body.nodes[position]
        if first_random(body.site.model, [node]) is not None:
            raise random_node(body.site, node)
        if not assumed and not may_go(node, known):
            what = f"nothing reads {list(node.output)}, but {op_of(node)} could fail"
            promise = (Assumption.valid_inputs,)
            raise body.site.refused("may-fail", what, *node.output, assume=promise)


def random_node(site: Site, node: NodeProto) -> Refused:
    """The refusal of a node that draws random numbers."""
    sentence = f"{op_of(node)} {list(node.output)} draws random numbers in every iteration"
    return site.refused("random", sentence, *node.output)
