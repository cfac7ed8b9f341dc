"""The location of nodes: the graphs they hold, the scopes around them, and the paths of both; what
a model imports and calls."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from onnx import (
    AttributeProto,
    FunctionProto,
    GraphProto,
    ModelProto,
    NodeProto,
    OperatorSetIdProto,
)

from passes.ir.operators import FunctionKey, bare_op, called_key, function_key, op_of

Owner = GraphProto | FunctionProto
_GRAPH = AttributeProto.GRAPH
_GRAPHS = AttributeProto.GRAPHS
MAIN = "main"


def subgraphs(node: NodeProto) -> list[tuple[str, GraphProto]]:
    """The graphs a node holds, with the part of the path that leads to each (`body`)."""
    found = []
    for attribute in node.attribute[:]:  # a list: protobuf hands them out one by one slowly
        if attribute.type == _GRAPH:
            found.append((attribute.name, attribute.g))
        elif attribute.type == _GRAPHS:
            graphs = enumerate(attribute.graphs)
            found += [(f"{attribute.name}[{index}]", graph) for index, graph in graphs]
    return found


def holds_graphs(node: NodeProto) -> bool:
    """Return whether a node has bodies; quicker than to ask for them."""
    if not node.attribute:
        return False
    for attribute in node.attribute[:]:
        if attribute.type == _GRAPH or attribute.type == _GRAPHS:
            return True
    return False


def inner_nodes(node: NodeProto) -> list[NodeProto]:
    """Return the nodes of the bodies of a node, without those in bodies of these nodes."""
    return [inner for _, graph in subgraphs(node) for inner in graph.node]


def label(node: NodeProto, index: int) -> str:
    """The name of a node in a path: its own, else its op and place (`scan_3`)."""
    return node.name or f"{bare_op(node).lower()}_{index}"


def function_label(function: FunctionProto) -> str:
    """The name of a model-local function in a path."""
    overload = f":{function.overload}" if function.overload else ""
    return f"{function.domain}.{function.name}{overload}"


def owners(model: ModelProto) -> Iterator[tuple[str, Owner]]:
    """The main graph and every model-local function, with their paths."""
    yield MAIN, model.graph
    for function in model.functions:
        yield function_label(function), function


def imports_of(model: ModelProto, owner: Owner | None) -> Sequence[OperatorSetIdProto]:
    """The opsets that a function, or the main graph, imports."""
    return owner.opset_import if isinstance(owner, FunctionProto) else model.opset_import


#: Distinguishes a graph or function of a model from all others, even where names repeat.
Key = tuple[str | int, ...]


@dataclass(frozen=True)
class Scope:
    """A graph or function with its location: its path for people, its key for look-ups."""

    path: str
    key: Key
    owner: Owner
    outer: Scope | None = None

    def inner(self, index: int) -> list[Scope]:
        """The bodies of the node at `index`."""
        node = self.owner.node[index]
        graphs = subgraphs(node)
        path = path_of(self, node, index) if graphs else ""
        return [
            Scope(f"{path}.{name}", (*self.key, index, name), graph, self) for name, graph in graphs
        ]

    def chain(self) -> Iterator[Scope]:
        """This scope and what encloses it, innermost first."""
        scope: Scope | None = self
        while scope is not None:
            yield scope
            scope = scope.outer

    @property
    def holder(self) -> Place | None:
        """The node whose body it is; None for a main graph or function."""
        if self.outer is None:
            return None
        index = int(self.key[-2])
        return Place(self.outer.owner.node[index], index, self.outer)

    def holders(self) -> Iterator[Place]:
        """The nodes in whose bodies it lies, innermost first."""
        return (scope.holder for scope in self.chain() if scope.holder is not None)

    @property
    def outermost(self) -> Scope:
        """The main graph or function that it is or lies in."""
        return self if self.outer is None else self.outer.outermost


def path_of(scope: Scope, node: NodeProto, index: int) -> str:
    """The path of a node of a scope: `main/scan_3.body/if_0`."""
    return f"{scope.path}/{label(node, index)}"


@dataclass(frozen=True)
class Place:
    """A node with its location."""

    node: NodeProto
    index: int
    scope: Scope

    @property
    def path(self) -> str:
        """Its path."""
        return path_of(self.scope, self.node, self.index)


def is_loop(node: NodeProto) -> bool:
    """Return whether a node is a Scan or a Loop."""
    return op_of(node) in ("Scan", "Loop")


def loop_of(place: Place) -> tuple[str, str]:
    """The path of the innermost loop that a place is or lies in, and its first output; else the
    path of the main graph or function, and nothing."""
    while not is_loop(place.node) and (holder := place.scope.holder):
        place = holder
    if not is_loop(place.node):
        return place.scope.path, ""
    return place.path, next(filter(None, place.node.output), "")


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
        if not node.attribute:  # three times as quick as to find none in it
            continue
        for attribute in node.attribute[:]:  # not `subgraphs`: a generator a node takes the time
            if attribute.type == _GRAPH:
                yield from graphs_below(attribute.g)
            elif attribute.type == _GRAPHS:
                for graph in attribute.graphs:
                    yield from graphs_below(graph)


def calls(owner: Owner) -> set[FunctionKey]:
    """Return the functions that a graph or function may call, at any depth of its bodies."""
    return {called_key(node) for graph in graphs_below(owner) for node in graph.node[:]}


def called_functions(model: ModelProto, callers: Iterable[Owner]) -> list[FunctionProto]:
    """The functions that these graphs call, or that are called there, in the model's order."""
    functions = {function_key(one): one for one in model.functions}
    if not functions:
        return []
    pending = [key for owner in callers for key in calls(owner)]
    found: set[FunctionKey] = set()
    while pending:
        key = pending.pop()
        if key in functions and key not in found:
            found.add(key)
            pending += calls(functions[key])
    return [one for key, one in functions.items() if key in found]


#: A domain of which there is one version, known to onnxruntime without an import.
CONTRIB = "com.microsoft"
_ONLY_VERSION = 1


def all_imports(model: ModelProto) -> list[OperatorSetIdProto]:
    """The opsets that a model imports, and those that its functions do."""
    return [*model.opset_import, *(one for each in model.functions for one in each.opset_import)]


def import_contrib(model: ModelProto) -> bool:
    """Add the import that operators of the main graph, or of its bodies, lack; whether they do."""
    if any(entry.domain == CONTRIB for entry in model.opset_import):
        return False
    graphs = graphs_below(model.graph)
    if not any(node.domain == CONTRIB for graph in graphs for node in graph.node):
        return False
    model.opset_import.add(domain=CONTRIB, version=_ONLY_VERSION)
    return True
