"""onnx's shape inference, kept from computing with what is not a shape."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set

import onnx
from onnx import (
    GraphProto,
    ModelProto,
    NodeProto,
    TensorShapeProto,
    TypeProto,
    ValueInfoProto,
)

from passes.ir import scope as scoping
from passes.ir.operators import is_onnx_domain, op_of, ops_of
from passes.ir.protos import copied, replace_all
from passes.ir.versions import SHAPES_MAY_DIFFER
from passes.types.value_types import dims_of, elem_type_of, tensor_type

_LONG = 1 << 22  # no vector of so many elements is a shape


def infer_shapes(model: ModelProto) -> ModelProto:
    """A copy of the model with every type that onnx can infer.

    onnx takes any vector that is added, subtracted or multiplied for a shape, and makes a dim of
    each element: for 2^31 of them it takes all memory. Where a vector is too long for a shape,
    it does not compute with shapes. A negative size, which some exporters write where it is not
    known, is left out: onnx would compute with it, and Slice would end the process. So is a symbol
    that only one value declares, which is no input or output of the model: it tells nothing, and
    onnx would prefer it to the one that it infers. Before opset 11 an If gets the known sizes of
    either branch: where the branches differ, as runtimes allow, they are left open.

    Raises:
        InferenceError, ValidationError, RuntimeError, ValueError: inference gives up.
    """
    found = _inferred(model)
    apart: dict[_Output, TypeProto] = {}
    while more := dict(_differing(found, apart)):
        apart |= more
        found = _inferred(_with_apart(model, apart))
        _join_again(found, apart)
    return found


#: An output of an If: the graph, as `graphs_below` counts them, the node and the output.
_Output = tuple[int, int, int]
#: Behind the name of such an output, so that what reads it has the type that is declared.
_APART = "/of-if"


def _differing(
    found: ModelProto, apart: Collection[_Output]
) -> Iterator[tuple[_Output, TypeProto]]:
    """Outputs of Ifs whose branches have different shapes, with the type that both have."""
    versions = (one.version for one in found.opset_import if is_onnx_domain(one.domain))
    if next(versions, SHAPES_MAY_DIFFER) >= SHAPES_MAY_DIFFER:
        return
    for number, graph in enumerate(scoping.graphs_below(found.graph)):
        for index, node in enumerate(graph.node):
            if op_of(node) != "If":
                continue
            branches = [branch.output for _, branch in scoping.subgraphs(node)]
            for place, (then, other) in enumerate(zip(*branches, strict=False)):
                output = number, index, place
                dims, others = dims_of(then.type), dims_of(other.type)
                if output in apart or dims == others or not node.output[place]:
                    continue
                united = None
                if dims is not None and others is not None and len(dims) == len(others):
                    pairs = zip(dims, others, strict=True)
                    united = tuple(one if one == two else None for one, two in pairs)
                yield output, tensor_type(elem_type_of(then.type), united)


def _with_apart(model: ModelProto, apart: Mapping[_Output, TypeProto]) -> ModelProto:
    """A copy in which nothing is inferred of these outputs: they have other names, and their own
    are declared."""
    copy = copied(model)
    graphs = [*scoping.graphs_below(copy.graph)]
    for (number, index, place), united in apart.items():
        graph, names = graphs[number], graphs[number].node[index].output
        assert isinstance(graph, GraphProto)
        name, names[place] = names[place], names[place] + _APART
        declared = [value for value in (*graph.value_info, *graph.output) if value.name == name]
        for value in declared or [graph.value_info.add(name=name)]:
            if dims_of(value.type) is None:
                value.type.CopyFrom(united)
    return copy


def _join_again(found: ModelProto, apart: Iterable[_Output]) -> None:
    """Give the outputs their own names again, in place."""
    graphs = [*scoping.graphs_below(found.graph)]
    for number, index, place in apart:
        graph, names = graphs[number], graphs[number].node[index].output
        kept = [value for value in graph.value_info if value.name != names[place]]
        replace_all(graph.value_info, kept)
        names[place] = names[place].removesuffix(_APART)


def _inferred(model: ModelProto) -> ModelProto:
    declared = _sizes(scoping.graphs_below(model.graph))
    if any(map(_negative, declared)):
        model = _without_negative(model)
    model = without_idle_symbols(model)
    if any(map(_large, declared)):
        plain: ModelProto = onnx.shape_inference.infer_shapes(model)
        if any(map(_long, _sizes(scoping.graphs_below(plain.graph)))):
            return plain
    found: ModelProto = onnx.shape_inference.infer_shapes(model, data_prop=True)
    return found


def objection(
    model: ModelProto, graphs: Sequence[scoping.Owner] = (), *, check_types: bool = False
) -> str:
    """The first error that onnx's inference finds in a model, as a runtime would when it loads it.

    "" where there is none. `graphs`: all graphs and functions of the model, if they are known.
    `check_types`: inputs must also have types that the operators accept.
    """
    tops: list[scoping.Owner] = [model.graph, *model.functions]
    graphs = graphs or [graph for top in tops for graph in scoping.graphs_below(top)]
    if any(map(_negative, _sizes(graphs))):
        model = _without_negative(model)
    splitting = (graph.node for graph in graphs if "Split" in ops_of(graph.node[:]))
    if any(_miscounts(node) for nodes in splitting for node in nodes):
        return "a Split has another number of outputs than its num_outputs"
    try:
        onnx.shape_inference.infer_shapes(model, check_types, strict_mode=True)
    except (onnx.shape_inference.InferenceError, RuntimeError, ValueError) as error:
        first, *_ = str(error).splitlines() or [""]  # what comes later may only follow from it
        return first.rpartition("] ")[2].strip().rstrip(".") or "it is not valid"
    return ""


def _miscounts(node: NodeProto) -> bool:
    """Return whether it is a Split at which onnx's inference would end the process."""
    counts = {one.i for one in node.attribute if one.name == "num_outputs"}
    return op_of(node) == "Split" and not counts <= {len(node.output)}


def _large(sizes: Sequence[int]) -> bool:
    return math.prod(max(size, 1) for size in sizes) > _LONG


def _long(sizes: Sequence[int]) -> bool:
    return len(sizes) == 1 and sizes[0] > _LONG


def _negative(sizes: Sequence[int]) -> bool:
    return min(sizes, default=0) < 0


def _sizes(graphs: Iterable[scoping.Owner]) -> list[list[int]]:
    """The static sizes of each tensor that is declared in graphs; other sizes count as 0."""
    return [[dim.dim_value for dim in shape.dim] for shape in _declared(graphs)]


def _without_negative(model: ModelProto) -> ModelProto:
    copy = copied(model)
    for shape in _declared(scoping.graphs_below(copy.graph)):
        for dim in shape.dim:
            if dim.dim_value < 0:
                dim.ClearField("dim_value")
    return copy


def without_idle_symbols(model: ModelProto) -> ModelProto:
    """A copy without the symbols that tell nothing; the model itself where there are none."""
    idle = idle_symbols(model)
    if not idle:
        return model
    copy = copied(model)
    for shape in _declared(scoping.graphs_below(copy.graph)):
        for dim in shape.dim:
            if dim.dim_param in idle:
                dim.ClearField("dim_param")
    return copy


def idle_symbols(model: ModelProto) -> Set[str]:
    """The symbols that one value declares alone, which is no input or output of the model."""
    ends = {value.name for value in (*model.graph.input, *model.graph.output)}
    values: dict[str, set[tuple[int, str]]] = {}
    for number, value in _values(scoping.graphs_below(model.graph)):
        for dim in value.type.tensor_type.shape.dim:
            if dim.dim_param:
                values.setdefault(dim.dim_param, set()).add((number, value.name))
    return {
        symbol
        for symbol, ((number, name), *more) in values.items()
        if not more and (number or name not in ends)
    }


def _values(graphs: Iterable[scoping.Owner]) -> Iterator[tuple[int, ValueInfoProto]]:
    """All values that are declared, but for functions, each with the number of its graph."""
    for number, graph in enumerate(graphs):
        if isinstance(graph, GraphProto):
            for value in (*graph.input, *graph.output, *graph.value_info):
                yield number, value


def _declared(graphs: Iterable[scoping.Owner]) -> Iterator[TensorShapeProto]:
    """The shapes of all tensors that are declared in graphs."""
    for _, value in _values(graphs):
        yield value.type.tensor_type.shape
