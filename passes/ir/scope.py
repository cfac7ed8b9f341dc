"""Names and scopes: definitions, uses, captures.

The only place that knows how ONNX resolves names: a name means the innermost definition that
encloses it; a body's inputs may shadow outer names; sibling bodies may use a name each for
themselves; functions capture nothing. The location of nodes (`Scope`, `Place`, `walk`) is in
`places`, and imported here.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping

from onnx import FunctionProto, GraphProto, NodeProto, TensorAnnotation, helper

from passes.ir.places import MAIN as MAIN
from passes.ir.places import Key as Key
from passes.ir.places import Owner as Owner
from passes.ir.places import Place as Place
from passes.ir.places import Scope as Scope
from passes.ir.places import function_label as function_label
from passes.ir.places import graphs_below as graphs_below
from passes.ir.places import holds_graphs as holds_graphs
from passes.ir.places import inner_nodes as inner_nodes
from passes.ir.places import label as label
from passes.ir.places import owners as owners
from passes.ir.places import scopes as scopes
from passes.ir.places import subgraphs as subgraphs
from passes.ir.places import walk as walk
from passes.ir.places import walk_model as walk_model
from passes.ir.protos import copied, replace_all


def input_names(owner: Owner) -> list[str]:
    """Names of the inputs of a graph or function."""
    if isinstance(owner, FunctionProto):
        return list(owner.input)
    return [value.name for value in owner.input[:]]


def output_names(owner: Owner) -> list[str]:
    """Names of the outputs of a graph or function."""
    if isinstance(owner, FunctionProto):
        return list(owner.output)
    return [value.name for value in owner.output[:]]


def initializer_names(owner: Owner) -> set[str]:
    """Names of the dense and sparse initializers; functions have none."""
    if isinstance(owner, FunctionProto):
        return set()
    names = {tensor.name for tensor in owner.initializer[:]}
    names.update([sparse.values.name for sparse in owner.sparse_initializer[:]])
    return names


def drop_constant_inputs(graph: GraphProto) -> None:
    """Drop the inputs that name an initializer, in place: up to IR 3 these are constants."""
    constants = initializer_names(graph)
    if constants:
        replace_all(graph.input, [value for value in graph.input if value.name not in constants])


def list_initializers(owner: Owner) -> None:
    """Up to IR 3, every initializer must also be an input, in bodies too."""
    for graph in graphs_below(owner):
        if isinstance(graph, GraphProto):
            listed = set(input_names(graph))
            graph.input.extend(
                helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims)
                for tensor in graph.initializer
                if tensor.name not in listed
            )


def drop_constants(graph: GraphProto, names: Container[str]) -> None:
    """Drop these initializers, in place; up to IR 3 they are inputs too."""
    replace_all(graph.input, [value for value in graph.input if value.name not in names])
    replace_all(graph.initializer, [one for one in graph.initializer if one.name not in names])
    sparse = [one for one in graph.sparse_initializer if one.values.name not in names]
    replace_all(graph.sparse_initializer, sparse)


def ends(owner: Owner) -> set[str]:
    """Return the names that are read other than by nodes: the outputs, and quantization
    parameters."""
    declared = owner.quantization_annotation if isinstance(owner, GraphProto) else ()
    return {*output_names(owner), *parameters_of(declared)}


def parameters_of(annotations: Iterable[TensorAnnotation]) -> Iterator[str]:
    """The values that hold the scales and zero points in quantization annotations."""
    for annotation in annotations:
        for entry in annotation.quant_parameter_tensor_names:
            yield entry.value


def defined(owner: Owner) -> set[str]:
    """Every name that `owner` itself defines, not what its bodies define."""
    names = {name for node in owner.node for name in node.output if name}
    return names | set(input_names(owner)) | initializer_names(owner)


def _in_order(graph: GraphProto) -> list[str]:
    """Return the names that a graph defines, in an order that does not depend on the names."""
    names = dict.fromkeys(input_names(graph))
    names.update(dict.fromkeys(tensor.name for tensor in graph.initializer))
    names.update(dict.fromkeys(sparse.values.name for sparse in graph.sparse_initializer))
    names.update(dict.fromkeys(name for node in graph.node for name in node.output if name))
    return list(names)


def free_names(node: NodeProto) -> list[str]:
    """Return the names that a node reads from its surroundings: its inputs, then those that its
    bodies capture.

    In order of first use, each name once, the empty name (an omitted input) left out.
    """
    names = dict.fromkeys(node.input)
    names.pop("", None)
    if holds_graphs(node):
        for _, graph in subgraphs(node):
            names.update(dict.fromkeys(captures(graph)))
    return list(names)


def all_reads(nodes: Iterable[NodeProto]) -> set[str]:
    """Return the names that these nodes read, in their bodies too; faster than asking each."""
    names: set[str] = set()
    for node in nodes:
        names.update(node.input[:])  # a list: protobuf hands out names one by one slowly
        if holds_graphs(node):
            names.update(free_names(node))
    names.discard("")
    return names


def captures(graph: GraphProto) -> list[str]:
    """The outer names that a body reads, at any depth, in order of first use."""
    known = set(input_names(graph)) | initializer_names(graph)
    found: dict[str, None] = {}
    for node in graph.node:
        for name in free_names(node):
            if name not in known:
                found[name] = None
        known.update(node.output)
    for name in output_names(graph):
        if name and name not in known:
            found[name] = None
    return list(found)


def rename_free(node: NodeProto, mapping: Mapping[str, str]) -> None:
    """Rename in place what `node` reads from its surroundings, through every body.

    A name that a body defines itself is another value there and stays. A body definition that
    would collide with a new name is the caller's business: give fresh names.
    """
    if not mapping:
        return
    for position, name in enumerate(node.input):
        if name in mapping:
            node.input[position] = mapping[name]
    if holds_graphs(node):
        for _, graph in subgraphs(node):
            rename_captures(graph, mapping)


def rename_captures(graph: GraphProto, mapping: Mapping[str, str]) -> None:
    """Rename in place what a body captures."""
    own = defined(graph)
    visible = {old: new for old, new in mapping.items() if old not in own}
    if not visible:
        return
    for node in graph.node:
        rename_free(node, visible)
    for value in graph.output:
        if value.name in visible:
            value.name = visible[value.name]
    _rename_annotations(graph, visible)


def rename_all(graph: GraphProto, fresh: Callable[[str], str]) -> dict[str, str]:
    """Give every definition in a body, at any depth, a new name, in place; returns those of `graph`
    itself, by the old ones.

    Inputs and outputs of `graph` included; captured names stay.
    """
    mapping = {name: fresh(name) for name in _in_order(graph)}
    for node in graph.node:
        rename_free(node, mapping)
        for position, name in enumerate(node.output):
            node.output[position] = mapping.get(name, name)
        for _, inner in subgraphs(node):
            rename_all(inner, fresh)
    for value in (*graph.input, *graph.output, *graph.value_info):
        value.name = mapping.get(value.name, value.name)
    for tensor in graph.initializer:
        tensor.name = mapping[tensor.name]
    for sparse in graph.sparse_initializer:
        sparse.values.name = mapping[sparse.values.name]
    _rename_annotations(graph, mapping)
    return mapping


def uncover(
    graph: GraphProto, hides: Callable[[str], bool], fresh: Callable[[str], str]
) -> dict[str, str]:
    """Give the definitions in a body, at any depth, that would hide something a new name."""
    return rename_all(graph, lambda name: fresh(name) if hides(name) else name)


def _rename_annotations(graph: GraphProto, mapping: Mapping[str, str]) -> None:
    for annotation in graph.quantization_annotation:
        _rename_annotation(annotation, mapping)


def renamed_annotation(
    annotation: TensorAnnotation, mapping: Mapping[str, str]
) -> TensorAnnotation:
    """A copy of a quantization annotation with new names."""
    copy = copied(annotation)
    _rename_annotation(copy, mapping)
    return copy


def _rename_annotation(annotation: TensorAnnotation, mapping: Mapping[str, str]) -> None:
    """Rename the value that it describes, and the values that hold its scale and zero point."""
    annotation.tensor_name = mapping.get(annotation.tensor_name, annotation.tensor_name)
    for entry in annotation.quant_parameter_tensor_names:
        entry.value = mapping.get(entry.value, entry.value)


def all_names(owners_: Iterable[Owner]) -> set[str]:
    """Every value name that occurs anywhere in these graphs, at any depth.

    Those that occur only in a value_info count, too: a new value of that name would get its type.
    """
    names: set[str] = set()
    for graph in (graph for owner in owners_ for graph in graphs_below(owner)):
        names.update(declared_names(graph))
        for node in graph.node[:]:
            names.update(node.input[:], node.output[:])  # as lists, which are quicker to read
    names.discard("")
    return names


def declared_names(owner: Owner) -> set[str]:
    """Every value name that occurs in a graph other than in its nodes."""
    values = [value.name for value in owner.value_info[:]]
    return {*input_names(owner), *output_names(owner), *initializer_names(owner), *values}
