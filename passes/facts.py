"""What analysis knows of a loop: trip count, recurrences, invariants, purity, speculation.

networkx does the graph work: a recurrence is a strongly connected component of the body in
which every carried value is tied from its output back to its input. It is imported where it is
used: that takes longer than the upgrade of a small model, which does without.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

import numpy.typing as npt
from onnx import GraphProto, NodeProto, TensorProto, TypeProto

from passes import scope as scoping
from passes.loop_form import Kind, LoopForm
from passes.rule import Constants, Site
from passes.scope import Scope
from passes.value_types import Dim, dims_of, elem_type_of

if TYPE_CHECKING:
    import networkx as nx

#: Ops whose result is drawn anew each time: never duplicated, dropped or reordered.
RANDOM = frozenset(
    {
        "RandomNormal",
        "RandomNormalLike",
        "RandomUniform",
        "RandomUniformLike",
        "Multinomial",
        "Bernoulli",
    }
)
_TRAINING = {"Dropout": 2}  # random where this input says so
_KNOWN_DOMAINS = frozenset({"", "ai.onnx", "ai.onnx.ml"})

#: Ops that cannot fail on any value of the right type and shape, and whose output size does not
#: depend on values: they may run on values that the original never saw.
# fmt: off
SPECULATABLE = frozenset(
    {
        "Abs", "Acos", "Acosh", "Add", "And", "Asin", "Asinh", "Atan", "Atanh", "AveragePool",
        "BatchNormalization", "BitShift", "BitwiseAnd", "BitwiseNot", "BitwiseOr", "BitwiseXor",
        "Cast", "CastLike", "Ceil", "Celu", "Clip", "Concat", "Constant", "Conv", "Cos", "Cosh",
        "Elu", "Equal", "Erf", "Exp", "Flatten", "Floor", "Gelu", "Gemm", "GlobalAveragePool",
        "GlobalLpPool", "GlobalMaxPool", "Greater", "GreaterOrEqual", "HardSigmoid", "HardSwish",
        "Hardmax", "Identity", "InstanceNormalization", "IsInf", "IsNaN", "LRN",
        "LayerNormalization", "LeakyRelu", "Less", "LessOrEqual", "Log", "LogSoftmax", "LpPool",
        "MatMul", "Max", "MaxPool", "Mean", "Min", "Mish", "Mul", "Neg", "Not", "Or", "PRelu",
        "Reciprocal", "Relu", "Round", "Selu", "Shape", "Sigmoid", "Sign", "Sin", "Sinh", "Size",
        "Softmax", "Softplus", "Softsign", "Sqrt", "Sub", "Sum", "Swish", "Tan", "Tanh",
        "ThresholdedRelu", "Transpose", "Where", "Xor",
    }
)
# fmt: on
#: Ops that cannot fail where these inputs (axes, sizes, lengths) are omitted, or fixed when the
#: model is rewritten.
_SPECULATABLE_IF_FIXED = {
    "CumSum": (1,),
    "Expand": (1,),
    "GRU": (4,),
    "LSTM": (4,),
    "Pad": (1, 3),
    "RNN": (4,),
    "ReduceL1": (1,),
    "ReduceL2": (1,),
    "ReduceLogSum": (1,),
    "ReduceLogSumExp": (1,),
    "ReduceMean": (1,),
    "ReduceProd": (1,),
    "ReduceSum": (1,),
    "ReduceSumSquare": (1,),
    "Reshape": (1,),
    "Slice": (1, 2, 3, 4),
    "Split": (1,),
    "Squeeze": (1,),
    "Tile": (1,),
    "Unsqueeze": (1,),
}


class Trip(StrEnum):
    """What is known of a trip count before the model runs."""

    STATIC = "static"
    SYMBOLIC = "symbolic"
    DYNAMIC = "dynamic"


@dataclass(frozen=True)
class TripCount:
    """How often a loop runs: `size` a number, a symbol, or None where only the run tells."""

    known: Trip
    size: Dim = None
    at_most: bool = False  # a condition or sequence_lens may end it earlier

    def __str__(self) -> str:
        shown = "dynamic" if self.size is None else str(self.size)
        return f"<= {shown}" if self.at_most and self.size is not None else shown


def trip_count(site: Site, form: LoopForm) -> TripCount:
    """The trip count of a loop, from the shapes of what it scans or from a constant M."""
    if form.kind is Kind.LOOP:
        return _loop_trips(site, form)
    known = [_scanned_size(site, one.tensor, one.axis) for one in form.scanned]
    told = sorted((dim for dim in known if dim is not None), key=lambda dim: isinstance(dim, str))
    return _trip_count(told[0] if told else None, at_most=bool(form.lengths))


def _trip_count(size: Dim, at_most: bool) -> TripCount:
    if size is None:
        return TripCount(Trip.DYNAMIC, None, at_most)
    known = Trip.STATIC if isinstance(size, int) and not at_most else Trip.SYMBOLIC
    return TripCount(known, size, at_most)


def _scanned_size(site: Site, tensor: str, axis: int) -> Dim:
    dims = dims_of(site.type_of(tensor))
    return dims[axis] if dims is not None and -len(dims) <= axis < len(dims) else None


def _loop_trips(site: Site, form: LoopForm) -> TripCount:
    conditional = not condition_always_true(site, form)
    maximum = site.constant(form.trip_count) if form.trip_count else None
    size = max(0, int(maximum.item())) if maximum is not None and maximum.size == 1 else None
    return _trip_count(size, at_most=conditional)


def condition_always_true(site: Site, form: LoopForm) -> bool:
    """Whether a Loop's condition never ends it: omitted, or true at first and passed through."""
    condition = form.condition
    if condition is None or not condition.initial:
        return True
    initial = site.constant(condition.initial)
    if not _is_true(initial):
        return False
    producers = {name: node for node in form.body.node for name in node.output}
    name = condition.body_output
    while (node := producers.get(name)) is not None and node.op_type == "Identity":
        name = node.input[0]
    if name == condition.body_input:
        return True
    return _is_true(Constants(site.model, _body_scope(site, form)).value(name))


def _is_true(value: npt.NDArray[Any] | None) -> bool:
    return value is not None and value.size == 1 and bool(value.item())


def _body_scope(site: Site, form: LoopForm) -> Scope:
    return Scope(f"{site.path}.body", (*site.scope.key, site.place.index), form.body, site.scope)


def dependencies(form: LoopForm) -> nx.DiGraph:
    """The body as a graph of values: an edge from each value to what is computed from it.

    Carried outputs lead back to their inputs, so that recurrences are cycles.
    """
    import networkx as nx

    graph = nx.DiGraph()
    graph.add_nodes_from(form.body_inputs)
    for node in form.body.node:
        for target in filter(None, node.output):
            graph.add_node(target)
            graph.add_edges_from((name, target) for name in scoping.free_names(node))
    graph.add_edges_from((one.body_output, one.body_input) for one in form.carried)
    return graph


def recurrences(form: LoopForm) -> list[frozenset[str]]:
    """The carried values (body inputs) that feed each other, each group once."""
    import networkx as nx

    inputs = {one.body_input for one in form.carried}
    graph = dependencies(form)
    found = [
        frozenset(part & inputs)
        for part in nx.strongly_connected_components(graph)
        if part & inputs and (len(part) > 1 or any(graph.has_edge(name, name) for name in part))
    ]
    return sorted(found, key=sorted)


def invariant_nodes(form: LoopForm) -> list[NodeProto]:
    """Nodes of the body that give the same in every iteration.

    Neither they nor what they are computed from see a carried or scanned value, the iteration
    number or the condition, or are impure.
    """
    reached = {form.iteration} | {one.body_input for one in form.carried}
    reached |= {one.body_input for one in form.scanned}
    if form.condition is not None:
        reached.add(form.condition.body_input)
    invariant = []
    for node in form.body.node:
        if is_pure(node) and reached.isdisjoint(scoping.free_names(node)):
            invariant.append(node)
        else:
            reached.update(node.output)
    return invariant


def is_pure(node: NodeProto) -> bool:
    """Whether a node gives the same result each time, at every depth.

    Of functions and operators of other domains nothing is known, so they do not.
    """
    if node.op_type in RANDOM or node.domain not in _KNOWN_DOMAINS:
        return False
    if node.op_type in _TRAINING and len(node.input) > _TRAINING[node.op_type]:
        return not node.input[_TRAINING[node.op_type]]
    return all(is_pure(inner) for _, graph in scoping.subgraphs(node) for inner in graph.node)


def speculatable(
    body: GraphProto,
    fixed: Iterable[str] = (),
    types: Mapping[str, TypeProto] | None = None,
) -> list[NodeProto]:
    """The nodes of a body that must not run on values that the original never saw.

    Empty where the whole body may be speculated. `fixed` are names of values that are constant;
    `types` of names that are unique at every depth let floats be divided and bodies be run.
    That a value is a string, which a Cast may fail on, is taken from the body's declarations.
    """
    types = types or {}
    known = {"", *fixed} | scoping.initializer_names(body)
    texts = _declared_texts(body)
    texts |= {name for name, one in types.items() if elem_type_of(one) == TensorProto.STRING}
    culprits = []
    for node in body.node:
        reads_text = not texts.isdisjoint(node.input)
        if node.op_type == "Constant" and scoping.is_onnx_domain(node.domain):
            known.update(node.output)
        elif (reads_text and node.op_type in _PARSERS) or not _may_run(node, known, types):
            culprits.append(node)
        if reads_text:  # by what it gives on: of ops on strings, most give strings
            texts.update(filter(None, node.output))
    return culprits


_PARSERS = ("Cast", "CastLike")


def _declared_texts(body: GraphProto) -> set[str]:
    values = (*body.input, *body.value_info, *body.output)
    texts = {one.name for one in values if elem_type_of(one.type) == TensorProto.STRING}
    return texts | {one.name for one in body.initializer if one.data_type == TensorProto.STRING}


def _may_run(node: NodeProto, known: set[str], types: Mapping[str, TypeProto]) -> bool:
    if not scoping.is_onnx_domain(node.domain):
        return False
    positions = _SPECULATABLE_IF_FIXED.get(node.op_type)
    if positions is not None:
        return all(node.input[at] in known for at in positions if at < len(node.input))
    if node.op_type in _FAIL_ON_INTEGERS:
        return elem_type_of(types.get(node.input[0])) in _FLOATS
    if node.op_type in ("If", "Loop", "Scan"):
        return _ends_in_one_shape(node, known, types) and not any(
            speculatable(graph, known, types) for _, graph in scoping.subgraphs(node)
        )
    return node.op_type in SPECULATABLE


_FAIL_ON_INTEGERS = ("Div", "Mod", "Pow")  # on 0, and on negative exponents
_FLOATS = (TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16, TensorProto.BFLOAT16)


def _ends_in_one_shape(node: NodeProto, known: set[str], types: Mapping[str, TypeProto]) -> bool:
    """Whether a node with bodies ends, and its outputs have the same shapes, whatever it reads."""
    if node.op_type == "If":
        shapes = [
            [dims_of(types.get(value.name)) for value in graph.output]
            for _, graph in scoping.subgraphs(node)
        ]
        fixed = all(dims is not None and None not in dims for dims in shapes[0])
        return fixed and all(one == shapes[0] for one in shapes)
    if node.op_type == "Loop":
        trips, condition = node.input[:2]
        return bool(trips) and trips in known and not condition
    return True


def keeps_shape(site: Site, form: LoopForm) -> dict[str, bool]:
    """For each carried value (body input) whether inference shows that its shape is stable."""
    stable = {}
    for one in form.carried:
        before = dims_of(site.body_type_of("body", one.body_input))
        after = dims_of(site.body_type_of("body", one.body_output))
        stable[one.body_input] = before is not None and None not in before and before == after
    return stable
