"""Takes nodes and constants out of a body and its branches, which then capture them."""

from __future__ import annotations

from collections import ChainMap, Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from onnx import NodeProto, TensorAnnotation, TensorProto, ValueInfoProto

from passes.analysis.bodies.nested_graphs import NestedGraph, remember
from passes.bodies.iteration import retyped
from passes.ir import scope as scoping
from passes.ir.boundary import keep_outputs
from passes.ir.constants import sparse_constant
from passes.ir.protos import copied, named, replace_all
from passes.ir.scope import Owner
from passes.rule import Site, Slot
from passes.rules.hoist.invariants import Candidate
from passes.types.value_types import is_known

_Mapping = ChainMap[str, str]


@dataclass(frozen=True)
class Twin:
    """A node or constant that is removed because the candidate of that number computes the same."""

    level: NestedGraph
    position: int
    outputs: tuple[str, ...]
    number: int


@dataclass
class Moved:
    """Nodes in order, with the types and annotations of their values."""

    nodes: list[NodeProto] = field(default_factory=list)
    value_info: list[ValueInfoProto] = field(default_factory=list)
    annotations: list[TensorAnnotation] = field(default_factory=list)


@dataclass
class Hoisting:
    """Moves candidates, by number, out of the graphs that hold them, in place.

    What comes out is `plain` or `guarded`. What a graph returns is computed in it by an
    Identity, since onnxruntime cannot return an outer value.
    """

    site: Site
    moving: Mapping[int, Candidate]
    names: HoistedNames
    twins: Sequence[Twin] = ()
    plain: Moved = field(default_factory=Moved)
    guarded: Moved = field(default_factory=Moved)
    initializers: list[TensorProto] = field(default_factory=list)

    def run(self, *levels: NestedGraph) -> None:
        """Move out of these graphs and of the branches in them that were looked into."""
        self._here: dict[int, list[int]] = {}
        for number, candidate in self.moving.items():
            self._here.setdefault(id(candidate.level), []).append(number)
        self._gone: dict[int, list[Twin]] = {}
        for twin in self.twins:
            self._gone.setdefault(id(twin.level), []).append(twin)
        self._nodes: dict[int, NodeProto] = {}
        for level in levels:
            self._take(level, ChainMap(), ChainMap())
        for number in sorted(self._nodes):
            self._home(number).nodes.append(self._nodes[number])

    def _home(self, number: int) -> Moved:
        return self.guarded if self.moving[number].guarded else self.plain

    def _take(self, level: NestedGraph, outside: _Mapping, inside: _Mapping) -> None:
        """Move out of one graph. `outside` and `inside` map values that moved to their names for
        readers that stay, and for readers that move too."""
        here = self._here.get(id(level), [])
        producers = {name: number for number in here for name in self.moving[number].outputs}
        read = self.names.outside
        own = {
            name: read[number, name] for name, number in producers.items() if (number, name) in read
        }
        own |= self._names_of_twins(level)
        outside = outside.new_child(own)
        inside = inside.new_child(
            {name: self.names.inside[number, name] for name, number in producers.items()}
        )
        places = {
            self.moving[number].position: number
            for number in here
            if self.moving[number].node is not None
        }
        gone = {twin.position for twin in self._gone.get(id(level), [])}
        kept = []
        for position, node in enumerate(level.graph.node):
            if position in places:
                self._nodes[places[position]] = _renamed(node, inside)
            elif position not in gone:
                self._stay(level, position, outside, inside)
                kept.append(node)
        self._take_constants(level, producers, own)
        self._take_descriptions(level, producers, own, outside, inside)
        replace_all(level.graph.node, kept)
        keep_outputs(level.graph, own)

    def _names_of_twins(self, level: NestedGraph) -> dict[str, str]:
        found = {}
        for twin in self._gone.get(id(level), []):
            originals = self.moving[twin.number].outputs
            for name, original in zip(twin.outputs, originals, strict=True):
                found[name] = self.names.inside[twin.number, original]
        return found

    def _stay(self, level: NestedGraph, position: int, outside: _Mapping, inside: _Mapping) -> None:
        node = level.graph.node[position]
        if position not in level.inner:
            scoping.rename_free(node, _of(outside, scoping.free_names(node)))
            return
        replace_all(node.input, [outside.get(name, name) for name in node.input])
        for branch in level.inner[position]:
            self._take(branch, outside, inside)

    def _take_constants(
        self, level: NestedGraph, producers: Mapping[str, int], own: Mapping[str, str]
    ) -> None:
        """Remove initializers that moved, or that twins make redundant."""
        graph = level.graph
        for tensor in graph.initializer:
            if tensor.name in producers:
                name = self.names.inside[producers[tensor.name], tensor.name]
                self.initializers.append(named(tensor, name))
        for sparse in graph.sparse_initializer:
            name = sparse.values.name
            if name in producers:
                number = producers[name]
                self._nodes[number] = sparse_constant(sparse, self.names.inside[number, name])
        scoping.drop_constants(graph, {*producers, *own})

    def _take_descriptions(
        self,
        level: NestedGraph,
        producers: Mapping[str, int],
        own: Mapping[str, str],
        outside: _Mapping,
        inside: _Mapping,
    ) -> None:
        """Move their types and quantization annotations."""
        graph, symbols = level.graph, level.symbols
        types = {value.name: value for value in (*graph.output, *graph.value_info)}
        for name, number in producers.items():
            if name in types and is_known(types[name].type):
                self._home(number).value_info.append(retyped(types[name], inside, symbols))
        gone = {*producers, *own}
        replace_all(
            graph.value_info, [value for value in graph.value_info if value.name not in gone]
        )
        kept: list[TensorAnnotation] = []
        for annotation in graph.quantization_annotation:
            moves = annotation.tensor_name in producers
            home = self._home(producers[annotation.tensor_name]).annotations if moves else kept
            if (
                moves
                or annotation.tensor_name not in gone
                or annotation.tensor_name in level.returned
            ):
                home.append(_annotation(annotation, inside if moves else outside, moves))
        replace_all(graph.quantization_annotation, kept)


def _of(mapping: _Mapping, names: Sequence[str]) -> dict[str, str]:
    return {name: mapping[name] for name in names if mapping.get(name, name) != name}


def _renamed(node: NodeProto, inside: _Mapping) -> NodeProto:
    copy = copied(node)
    scoping.rename_free(copy, _of(inside, scoping.free_names(node)))
    for position, name in enumerate(node.output):
        copy.output[position] = inside.get(name, name)
    return copy


def _annotation(
    annotation: TensorAnnotation, mapping: Mapping[str, str], moves: bool
) -> TensorAnnotation:
    copy = copied(annotation)
    if moves:
        copy.tensor_name = mapping[annotation.tensor_name]
    for entry in copy.quant_parameter_tensor_names:
        entry.value = mapping.get(entry.value, entry.value)
    return copy


_DEFINING_GRAPHS: Slot[Counter[str]] = Slot()


class HoistedNames:
    """Names for the outputs of candidates, by number and old name.

    `inside` is the name of a value where it is computed, `outside` the one for readers that stay.
    They differ only for guarded values, which come out of an If. A name stays where no
    other graph of the model has it, and where the body does not return the value under it.
    """

    def __init__(self, site: Site, node: NodeProto) -> None:
        self.inside: dict[tuple[int, str], str] = {}
        self.outside: dict[tuple[int, str], str] = {}
        self._site = site
        graphs = [graph for _, graph in scoping.subgraphs(node)]
        self._now = _count(inner for graph in graphs for inner in scoping.graphs_below(graph))

    def give(self, number: int, candidate: Candidate, read: Collection[str]) -> None:
        """Name the outputs of a candidate; `read` are those with readers that stay."""
        for name in candidate.outputs:
            stays = self._is_unique(name) and name not in candidate.level.returned
            inside = name if stays else self._site.fresh(name)
            self.inside[number, name] = inside
            if name in read:
                outside = self._site.fresh(name) if candidate.guarded else inside
                self.outside[number, name] = outside
                remember(self._site, outside, candidate.level.type_of(name))

    def _is_unique(self, name: str) -> bool:
        owners = (owner for _, owner in scoping.owners(self._site.model.proto))
        below = (inner for owner in owners for inner in scoping.graphs_below(owner))
        as_read = self._site.memory.once(_DEFINING_GRAPHS, lambda: _count(below))
        return self._now[name] < 2 and as_read[name] < 2


def _count(owners: Iterable[Owner]) -> Counter[str]:
    """In how many of these graphs a name is defined or declared."""
    found: Counter[str] = Counter()
    for owner in owners:
        found.update(scoping.defined(owner).union(value.name for value in owner.value_info))
    return found
