"""The body of a Scan that was a Loop: without the nodes whose work the Scan does itself."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from onnx import GraphProto, NodeProto, TypeProto, ValueInfoProto, helper

from passes.analysis.integers.integers import Integers
from passes.analysis.safety.randomness import is_pure
from passes.ir import scope as scoping
from passes.ir.live import Walk
from passes.ir.protos import copied, named, replace_all
from passes.loops.form import Carried, LoopForm
from passes.writing import spelling
from passes.writing.author import Author


@dataclass
class RaisedBody:
    """A copy of a Loop's body that is being edited.

    Nodes are kept in slots, one for each original node; a slot may become empty or hold new nodes.
    `doubts` are values whose computation may fail.
    """

    form: LoopForm
    integers: Integers
    author: Author
    doubts: AbstractSet[str] = frozenset()
    graph: GraphProto = field(default_factory=GraphProto)
    slots: list[list[NodeProto]] = field(default_factory=list)

    def __post_init__(self) -> None:
        assert self.form.condition is not None
        going = self.form.condition.body_input
        self.graph.CopyFrom(self.form.body)
        self.slots = [[node] for node in self.graph.node]
        constant = set(self.form.constant_inputs)
        kept = [value for value in self.graph.input if value.name not in constant]
        self._inputs = {value.name: value for value in kept}
        head = zip((self.form.iteration, going), self.form.head_types, strict=True)
        self._inputs.update((name, helper.make_value_info(name, kind)) for name, kind in head)
        self._outputs = {value.name: value for value in self.graph.output}

    def drop(self, position: int, *instead: NodeProto) -> None:
        """Replace a node by others, or by none."""
        self.slots[position] = list(instead)

    def append(self, node: NodeProto) -> None:
        """Add a node at the end."""
        self.slots.append([node])

    def settle_condition(self) -> None:
        """Replace the condition, which is true whenever the body runs, by a constant."""
        assert self.form.condition is not None
        name = self.form.condition.body_input
        if self.reads(name):  # under a name of its own: a constant must not hide an outer value
            self.rename(name, spelling.true(self.author, self.form.condition_rank))

    def reads(self, name: str) -> bool:
        """Return whether a node still reads a value."""
        return any(name in scoping.free_names(node) for slot in self.slots for node in slot)

    def rename(self, name: str, new: str) -> None:
        """Let all nodes and outputs read another value instead."""
        for slot in self.slots:
            for node in slot:
                scoping.rename_free(node, {name: new})
        for value in self.graph.output:
            if value.name == name:
                value.name = new

    def with_output(self, position: int, name: str, *, like: str) -> GraphProto:
        """Close the body with all its inputs and outputs, one output replaced by another value of
        the type of an input."""
        outputs = list(self.graph.output)
        outputs[position] = named(self._inputs[like], name)
        self._rebuild(list(self.graph.input), outputs)
        return self.graph

    def prune(
        self, results: Iterable[str], carried: Sequence[Carried], droppable: Iterable[str]
    ) -> list[Carried]:
        """Drop nodes that nothing needs any more; returns the carried values that stay.

        A droppable carried value (by body input) stays only where something besides itself
        needs it. Nodes that may fail stay in any case.
        """
        spare = set(droppable)
        needed = set(results)
        needed.update(state.body_output for state in carried if state.body_input not in spare)
        nodes = [node for slot in self.slots for node in slot]
        walk = Walk(nodes, {state.body_input: state.body_output for state in carried})
        walk.reach(
            needed, [position for position, node in enumerate(nodes) if not self._is_idle(node)]
        )
        kept = {id(nodes[position]) for position in walk.nodes}
        for slot in self.slots:
            slot[:] = [node for node in slot if id(node) in kept]
        stay = walk.names
        return [
            state for state in carried if state.body_input not in spare or state.body_input in stay
        ]

    def _is_idle(self, node: NodeProto) -> bool:
        if any(True for _ in scoping.subgraphs(node)):
            return False
        if self.integers.inside(node.output[0]) is not None:
            return True
        return is_pure(node) and self.doubts.isdisjoint(node.output)

    def finish(
        self,
        inputs: Sequence[tuple[str, TypeProto | None]],
        outputs: Sequence[tuple[str, TypeProto]],
    ) -> list[str]:
        """Close the body; returns the names of its outputs, each computed by a node of its own.

        onnxruntime returns uninitialised memory for an output that is directly an input, an
        initializer or an outer value, and for one value listed twice.
        """
        computed = {name for slot in self.slots for node in slot for name in node.output}
        listed: list[str] = []
        values: list[ValueInfoProto] = []
        for name, type_proto in outputs:
            value = copied(self._outputs.get(name, ValueInfoProto(name=name)))
            if not value.type.tensor_type.HasField("shape"):
                value.type.CopyFrom(type_proto)
            if name not in computed or name in listed:
                value.name = self.author.fresh(f"{name}/own")
                self.append(helper.make_node("Identity", [name], [value.name]))
            listed.append(value.name)
            values.append(value)
        self._rebuild([self._input(*pair) for pair in inputs], values)
        return listed

    def _input(self, name: str, type_proto: TypeProto | None) -> ValueInfoProto:
        value = copied(self._inputs.get(name, ValueInfoProto(name=name)))
        if type_proto is not None and not value.type.tensor_type.HasField("shape"):
            value.type.CopyFrom(type_proto)
        return value

    def _rebuild(self, inputs: Sequence[ValueInfoProto], outputs: Sequence[ValueInfoProto]) -> None:
        graph = self.graph
        replace_all(graph.node, [node for slot in self.slots for node in slot])
        replace_all(graph.input, inputs)
        replace_all(graph.output, outputs)
        read = {name for node in graph.node for name in scoping.free_names(node)}
        had = {name for node in self.form.body.node for name in scoping.free_names(node)}
        constants = [*graph.initializer, *self.author.constants]
        lost = had - read
        replace_all(graph.initializer, [tensor for tensor in constants if tensor.name not in lost])
        ends = {value.name for value in (*inputs, *outputs)}
        defined = scoping.defined(graph)
        kept = [
            value for value in graph.value_info if value.name in defined and value.name not in ends
        ]
        replace_all(graph.value_info, kept)
