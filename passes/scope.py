"""Names and scopes: definitions, uses, captures.

The only place that knows how ONNX resolves names: a name means the innermost definition that
encloses it; a body's inputs may shadow outer names; sibling bodies may use a name each for
themselves; functions capture nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from onnx import AttributeProto, FunctionProto, GraphProto, ModelProto, NodeProto

from passes.repeated import replace_all

Owner = GraphProto | FunctionProto
_GRAPH = AttributeProto.GRAPH
_GRAPHS = AttributeProto.GRAPHS
MAIN = "main"


def is_onnx_domain(domain: str) -> bool:
    """Whether `domain` is the standard one, which has two spellings."""
    return domain in ("", "ai.onnx")


def subgraphs(node: NodeProto) -> Iterator[tuple[str, GraphProto]]:
    """The graphs a node holds, with the part of the path that leads to each (`body`)."""
    for attribute in node.attribute:
        if attribute.type == _GRAPH:
            yield attribute.name, attribute.g
        elif attribute.type == _GRAPHS:
            for index, graph in enumerate(attribute.graphs):
                yield f"{attribute.name}[{index}]", graph


def holds_graphs(node: NodeProto) -> bool:
    """Whether a node has bodies; quicker than to ask for them."""
    for attribute in node.attribute:
        if attribute.type == _GRAPH or attribute.type == _GRAPHS:
            return True
    return False


def label(node: NodeProto, index: int) -> str:
    """How a node is called in a path: its name, else its op and place (`scan_3`)."""
    return node.name or f"{node.op_type.lower()}_{index}"


def function_label(function: FunctionProto) -> str:
    """How a model-local function is called in a path."""
    overload = f":{function.overload}" if function.overload else ""
    return f"{function.domain}.{function.name}{overload}"


def owners(model: ModelProto) -> Iterator[tuple[str, Owner]]:
    """The main graph and every model-local function, with their paths."""
    yield MAIN, model.graph
    for function in model.functions:
        yield function_label(function), function


#: Tells a graph or function of a model from every other one, even where names repeat.
Key = tuple[str | int, ...]


@dataclass(frozen=True)
class Scope:
    """A graph or function where it stands: its path for people, its key for look-ups."""

    path: str
    key: Key
    owner: Owner
    outer: Scope | None = None

    def inner(self, index: int) -> Iterator[Scope]:
        """The bodies of the node at `index`."""
        node = self.owner.node[index]
        for name, graph in subgraphs(node):
            path = f"{self.path}/{label(node, index)}.{name}"
            yield Scope(path, (*self.key, index, name), graph, self)

    def chain(self) -> Iterator[Scope]:
        """This scope and what encloses it, innermost first."""
        scope: Scope | None = self
        while scope is not None:
            yield scope
            scope = scope.outer


@dataclass(frozen=True)
class Place:
    """A node where it stands."""

    node: NodeProto
    index: int
    scope: Scope

    @property
    def path(self) -> str:
        """What people call it: `main/scan_3.body/if_0`."""
        return f"{self.scope.path}/{label(self.node, self.index)}"


def scopes(model: ModelProto) -> Iterator[Scope]:
    """The outermost scopes: the main graph and every model-local function."""
    for position, (path, owner) in enumerate(owners(model)):
        yield Scope(path, (position,), owner)


def walk(scope: Scope) -> Iterator[Place]:
    """Every node below a scope, innermost first, in the order of the lists."""
    for index, node in enumerate(scope.owner.node):
        if holds_graphs(node):
            for inner in scope.inner(index):
                yield from walk(inner)
        yield Place(node, index, scope)


def walk_model(model: ModelProto) -> Iterator[Place]:
    """Every node of a model, functions included, innermost first."""
    for scope in scopes(model):
        yield from walk(scope)


def graphs_below(owner: Owner) -> Iterator[Owner]:
    """`owner` and every graph nested in it."""
    yield owner
    for node in owner.node:
        for attribute in node.attribute:  # not `subgraphs`: a generator a node takes the time
            if attribute.type == _GRAPH:
                yield from graphs_below(attribute.g)
            elif attribute.type == _GRAPHS:
                for graph in attribute.graphs:
                    yield from graphs_below(graph)


def input_names(owner: Owner) -> list[str]:
    """Names of the inputs of a graph or function."""
    if isinstance(owner, FunctionProto):
        return list(owner.input)
    return [value.name for value in owner.input]


def output_names(owner: Owner) -> list[str]:
    """Names of the outputs of a graph or function."""
    if isinstance(owner, FunctionProto):
        return list(owner.output)
    return [value.name for value in owner.output]


def initializer_names(owner: Owner) -> set[str]:
    """Names of the dense and sparse initializers; functions have none."""
    if isinstance(owner, FunctionProto):
        return set()
    names = {tensor.name for tensor in owner.initializer}
    return names | {sparse.values.name for sparse in owner.sparse_initializer}


def drop_constant_inputs(graph: GraphProto) -> None:
    """Drop the inputs that name an initializer, in place: up to IR 3 these are constants."""
    constants = initializer_names(graph)
    if constants:
        replace_all(graph.input, [one for one in graph.input if one.name not in constants])


def defined(owner: Owner) -> set[str]:
    """Every name that `owner` itself defines, not what its bodies define."""
    names = {name for node in owner.node for name in node.output if name}
    return names | set(input_names(owner)) | initializer_names(owner)


def _in_order(graph: GraphProto) -> list[str]:
    """What a graph defines, in an order that does not depend on the names."""
    names = dict.fromkeys(input_names(graph))
    names.update(dict.fromkeys(tensor.name for tensor in graph.initializer))
    names.update(dict.fromkeys(sparse.values.name for sparse in graph.sparse_initializer))
    names.update(dict.fromkeys(name for node in graph.node for name in node.output if name))
    return list(names)


def free_names(node: NodeProto) -> list[str]:
    """What a node reads from its surroundings: its inputs, then what its bodies capture.

    In order of first use, each name once, the empty name (an omitted input) left out.
    """
    names = dict.fromkeys(node.input)
    names.pop("", None)
    if holds_graphs(node):
        for _, graph in subgraphs(node):
            names.update(dict.fromkeys(captures(graph)))
    return list(names)


def all_reads(nodes: Iterable[NodeProto]) -> set[str]:
    """What these nodes read, in their bodies too; quicker than to ask each."""
    names: set[str] = set()
    for node in nodes:
        names.update(node.input)
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


def rename_all(graph: GraphProto, fresh: Callable[[str], str]) -> None:
    """Give every definition in a body, at any depth, a new name, in place.

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


def _rename_annotations(graph: GraphProto, mapping: Mapping[str, str]) -> None:
    """Quantization annotations name a value, and the values that hold its scale and zero point."""
    for annotation in graph.quantization_annotation:
        annotation.tensor_name = mapping.get(annotation.tensor_name, annotation.tensor_name)
        for entry in annotation.quant_parameter_tensor_names:
            entry.value = mapping.get(entry.value, entry.value)


def all_names(owners_: Iterable[Owner]) -> set[str]:
    """Every value name that occurs anywhere in these graphs, at any depth.

    Those that only a value_info knows count, too: a new value of that name would get its type.
    """
    names: set[str] = set()
    for top in owners_:
        for owner in graphs_below(top):
            names |= defined(owner)
            names.update(output_names(owner))
            names.update(value.name for value in owner.value_info)
            names.update(name for node in owner.node for name in node.input)
    names.discard("")
    return names
