"""A model in half precision as one that rounds after every node, executed in float32."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import onnx.inliner
import onnx.shape_inference
from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto, TypeProto, helper
from onnx.numpy_helper import from_array, to_array

from passes.check.as_meant import as_meant
from passes.ir import scope as scoping
from passes.ir.names import Names
from passes.ir.places import graphs_below, subgraphs
from passes.ir.protos import copied, replace_all

_HALF = (TensorProto.FLOAT16, TensorProto.BFLOAT16)
#: Operators that hand on values in the type that they have.
_UNROUNDED = ("Identity", "Constant", "Loop", "Scan", "If")
#: Attributes that name an element type.
_TYPES = ("dtype", "output_datatype")


def rounded(model: ModelProto) -> ModelProto:
    """A model that gives what a model in float16 or bfloat16 gives if each node rounds its result.

    onnxruntime executes nodes without a kernel for half precision in float32 and removes the Casts
    between them, so that nothing is rounded. Here each node with inputs or outputs in half becomes
    Casts to float32, the node in float32, a Cast to half, and an Identity in half, which keeps the
    next Cast apart. Products are summed in float32. It is to run without graph optimizations.

    The nodes of the main graph may be in any order. Nodes of sequences stay as they are.
    """
    made = onnx.inliner.inline_local_functions(model) if model.functions else copied(model)
    if (repaired := as_meant(made)) is not None:
        made, _ = repaired
    made = onnx.shape_inference.infer_shapes(made)
    taken = (name for graph in graphs_below(made.graph) for name in scoping.defined(graph))
    _round(made.graph, {}, Names(taken))
    for graph in graphs_below(made.graph):
        assert isinstance(graph, GraphProto)
        del graph.value_info[:]
    return made


def _round(graph: GraphProto, around: Mapping[str, TypeProto], names: Names) -> None:
    """Round the nodes of a graph and of its bodies; `around`: the types of outer values."""
    declared = (*graph.value_info, *graph.output, *graph.input)
    types = {**around, **{value.name: value.type for value in declared}}
    for one in graph.initializer:
        types[one.name] = helper.make_tensor_type_proto(one.data_type, one.dims)
    kinds = {name: _kind(type_) for name, type_ in types.items()}
    nodes: list[NodeProto] = []
    for node in graph.node:
        for _, body in subgraphs(node):
            _round(body, types, names)
        nodes += _rounding(node, kinds, names)
    replace_all(graph.node, nodes)


def _kind(type_: TypeProto) -> int:
    """The element type of a tensor, 0 of what is none."""
    return type_.tensor_type.elem_type


def _rounding(node: NodeProto, kinds: Mapping[str, int], names: Names) -> Iterator[NodeProto]:
    """Yield what takes the place of a node."""
    values = [kinds.get(name, -1) for name in (*node.input, *node.output)]
    if node.op_type in _UNROUNDED or 0 in values or not {*values} & {*_HALF}:
        yield node
        return
    made, casts = copied(node), node.op_type == "Cast"
    if not casts:
        _widen(made)
        for position, name in enumerate(node.input):
            if kinds.get(name) in _HALF:
                made.input[position] = names.fresh(name)
                yield _cast(name, made.input[position], TensorProto.FLOAT)
    narrow = []
    for position, name in enumerate(node.output):
        if (kind := kinds.get(name, -1)) in _HALF:
            half = made.output[position] = names.fresh(name)
            if not casts:
                made.output[position] = names.fresh(name)
                narrow.append(_cast(made.output[position], half, kind))
            narrow.append(helper.make_node("Identity", [half], [name]))
    yield made
    yield from narrow


def _cast(name: str, output: str, to: int) -> NodeProto:
    return helper.make_node("Cast", [name], [output], to=to)


def _widen(node: NodeProto) -> None:
    """Make float32 of attributes that are, or name, half precision."""
    for attribute in node.attribute:
        if attribute.name in _TYPES and attribute.i in _HALF:
            attribute.i = TensorProto.FLOAT
        if attribute.type == AttributeProto.TENSOR and attribute.t.data_type in _HALF:
            attribute.t.CopyFrom(from_array(to_array(attribute.t).astype("float32")))
