"""Takes nodes and constants out of a body and its branches, which capture them from then on."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from onnx import GraphProto, NodeProto, TensorAnnotation, TensorProto, ValueInfoProto

from passes.analysis.bodies.nested_graphs import NestedGraph
from passes.ir import scope as scoping
from passes.ir.constant_nodes import sparse_constant
from passes.ir.repeated import replace_all
from passes.rule import Site
from passes.rules.hoist.hoisted_names import HoistedNames
from passes.rules.hoist.invariants import Candidate
from passes.rules.unroll.iteration import retyped
from passes.types.value_types import is_known

_Mapping = ChainMap[str, str]


@dataclass(frozen=True)
class Twin:
    """A node or constant that goes because the candidate of that number does its work."""

    level: NestedGraph
    position: int
    outputs: tuple[str, ...]
    number: int


@dataclass
class Moved:
    """Nodes in order, with what is said of their values."""

    nodes: list[NodeProto] = field(default_factory=list)
    value_info: list[ValueInfoProto] = field(default_factory=list)
    annotations: list[TensorAnnotation] = field(default_factory=list)


@dataclass
class Hoisting:
    """Moves candidates, by number, out of the graphs that hold them, in place.

    What comes out is `plain` or `guarded`. What a graph returns is computed in it by an
    Identity, for onnxruntime cannot return an outer value.
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
        for number, one in self.moving.items():
            self._here.setdefault(id(one.level), []).append(number)
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
        """`outside` and `inside` say what values that moved are called by those who read them:
        who stays, and who moves too."""
        here = self._here.get(id(level), [])
        makers = {name: at for at in here for name in self.moving[at].outputs}
        read = self.names.outside
        own = {name: read[at, name] for name, at in makers.items() if (at, name) in read}
        own |= self._names_of_twins(level)
        outside = outside.new_child(own)
        inside = inside.new_child(
            {name: self.names.inside[at, name] for name, at in makers.items()}
        )
        places = {self.moving[at].position: at for at in here if self.moving[at].node is not None}
        gone = {twin.position for twin in self._gone.get(id(level), [])}
        kept = []
        for position, node in enumerate(level.graph.node):
            if position in places:
                self._nodes[places[position]] = _renamed(node, inside)
            elif position not in gone:
                self._stay(level, position, outside, inside)
                kept.append(node)
        self._take_constants(level, makers, own)
        self._take_descriptions(level, makers, own, outside, inside)
        replace_all(level.graph.node, kept)
        _return_as_own(level.graph, own)

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
        self, level: NestedGraph, makers: Mapping[str, int], own: Mapping[str, str]
    ) -> None:
        """Initializers that moved, or that twins of them make needless, leave the graph."""
        graph = level.graph
        for tensor in graph.initializer:
            if tensor.name in makers:
                copy = TensorProto()
                copy.CopyFrom(tensor)
                copy.name = self.names.inside[makers[tensor.name], tensor.name]
                self.initializers.append(copy)
        for sparse in graph.sparse_initializer:
            name = sparse.values.name
            if name in makers:
                number = makers[name]
                self._nodes[number] = sparse_constant(sparse, self.names.inside[number, name])
        gone = {*makers, *own}
        replace_all(graph.initializer, [one for one in graph.initializer if one.name not in gone])
        kept = [one for one in graph.sparse_initializer if one.values.name not in gone]
        replace_all(graph.sparse_initializer, kept)
        replace_all(graph.input, [one for one in graph.input if one.name not in gone])

    def _take_descriptions(
        self,
        level: NestedGraph,
        makers: Mapping[str, int],
        own: Mapping[str, str],
        outside: _Mapping,
        inside: _Mapping,
    ) -> None:
        """Types, and how values are quantized, go with them."""
        graph, symbols = level.graph, level.symbols
        types = {one.name: one for one in (*graph.output, *graph.value_info)}
        for name, at in makers.items():
            if name in types and is_known(types[name].type):
                self._home(at).value_info.append(retyped(types[name], inside, symbols))
        gone = {*makers, *own}
        replace_all(graph.value_info, [one for one in graph.value_info if one.name not in gone])
        kept: list[TensorAnnotation] = []
        for one in graph.quantization_annotation:
            moves = one.tensor_name in makers
            home = self._home(makers[one.tensor_name]).annotations if moves else kept
            if moves or one.tensor_name not in gone or one.tensor_name in level.returned:
                home.append(_annotation(one, inside if moves else outside, moves))
        replace_all(graph.quantization_annotation, kept)


def _of(mapping: _Mapping, names: Sequence[str]) -> dict[str, str]:
    return {name: mapping[name] for name in names if mapping.get(name, name) != name}


def _renamed(node: NodeProto, inside: _Mapping) -> NodeProto:
    copy = NodeProto()
    copy.CopyFrom(node)
    scoping.rename_free(copy, _of(inside, scoping.free_names(node)))
    for position, name in enumerate(node.output):
        copy.output[position] = inside.get(name, name)
    return copy


def _annotation(one: TensorAnnotation, mapping: Mapping[str, str], moves: bool) -> TensorAnnotation:
    copy = TensorAnnotation()
    copy.CopyFrom(one)
    if moves:
        copy.tensor_name = mapping[one.tensor_name]
    for entry in copy.quant_parameter_tensor_names:
        entry.value = mapping.get(entry.value, entry.value)
    return copy


def _return_as_own(graph: GraphProto, moved: Mapping[str, str]) -> None:
    """Nodes for the outputs that are outer values now."""
    returned = dict.fromkeys(scoping.output_names(graph))
    graph.node.extend(
        NodeProto(op_type="Identity", input=[moved[name]], output=[name])
        for name in returned
        if name in moved
    )
