"""The values of a main graph and of all bodies in it, their readers, and how loops and branches
pass them on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple, TypeVar

from onnx import GraphProto, NodeProto, TensorProto, TypeProto

from passes.ir import scope as scoping
from passes.ir.constants import constant_tensor
from passes.ir.model import Model
from passes.ir.operators import HOLDERS, op_of
from passes.ir.places import Place, Scope, is_loop
from passes.ir.versions import FREE_INITIALIZERS
from passes.loops.form import LoopForm
from passes.operators.table import TRAITS, UNKNOWN
from passes.operators.traits import Traits
from passes.types.value_types import Dims, dims_of

_T = TypeVar("_T")
#: The number of an omitted value.
OMITTED = -1


@dataclass(frozen=True, slots=True, eq=False)
class Value:
    """A value: its name, the number of the graph that defines it, its type, and its element type;
    that of the elements if it is a sequence or optional (`nested`), 0 where it is unknown.
    `constant`: no caller, node or training changes it. `fed`: it is an input of the main graph."""

    number: int
    name: str
    graph: int
    elem_type: int
    nested: bool
    constant: bool
    fed: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """A node: its graph, its position there, and the numbers of its inputs and outputs."""

    number: int
    node: NodeProto
    op: str
    graph: int
    index: int
    inputs: Sequence[int]
    outputs: Sequence[int]

    @property
    def row(self) -> Traits:
        """The row of its operator."""
        return TRAITS.get(self.op, UNKNOWN)


@dataclass(frozen=True, slots=True)
class Read:
    """A read of a value: the input of a step at a position, or, with `step` None, the output of a
    graph at one."""

    value: int
    position: int
    step: int | None = None
    graph: int = 0


@dataclass(frozen=True, slots=True)
class Border:
    """Values that cross the border of a body: the reads there, and the values that they become.

    A state has two of both, the initial and the returned value, the entering and the final one. A
    scanned tensor becomes its slice, a returned value what collects it, and what the branches of an
    If return its output. `enters`: the first value that is made is an input of the body.
    """

    reads: tuple[Read, ...]
    made: tuple[int, ...]
    enters: bool = False


class State(NamedTuple):
    """The values of a state, by number."""

    initial: int
    returned: int
    entering: int
    final: int


@dataclass
class Flow:
    """All values and nodes of the main graph of a model; functions are not looked into.

    `scopes` are the graphs, the outermost first; `producers` has the step that computes a value,
    None for inputs and initializers. `loops` are those by the number of their body. `deciding` are
    conditions and trip counts: those of loops (`True`) and of Ifs.
    """

    model: Model
    scopes: list[Scope] = field(default_factory=list)
    values: list[Value] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    producers: list[int | None] = field(default_factory=list)
    inputs: list[list[int]] = field(default_factory=list)
    returned: list[list[int]] = field(default_factory=list)
    borders: list[Border] = field(default_factory=list)
    loops: dict[int, Step] = field(default_factory=dict)
    deciding: list[tuple[int, bool]] = field(default_factory=list)

    @classmethod
    def of(cls, model: Model) -> Flow:
        """The flow of a valid model."""
        flow = cls(model)
        flow._graph(next(scoping.scopes(model.proto)), {})
        return flow

    @property
    def opset(self) -> int:
        """The opset of the nodes."""
        return self.model.opset()

    def place(self, step: Step) -> Place:
        """The location of a node."""
        return Place(step.node, step.index, self.scopes[step.graph])

    def elem_type(self, number: int) -> int:
        """The element type of a value; 0 if it is unknown or omitted."""
        return 0 if number == OMITTED else self.values[number].elem_type

    def dims(self, number: int) -> Dims | None:
        """The declared dims of a value."""
        value = self.values[number]
        return dims_of(self.model.types.within(self.scopes[value.graph], value.name))

    def tensor(self, value: Value) -> TensorProto | None:
        """The tensor of an initializer or a Constant; None where it is not dense. That of an
        initializer, or of the `value` of a Constant, is part of the model."""
        step = self.producers[value.number]
        if step is None:
            owner = self.scopes[value.graph].owner
            return self.model.index(owner).initializers.get(value.name)
        (attribute,) = self.steps[step].node.attribute
        named = attribute.name == "value"
        return attribute.t if named else constant_tensor(self.steps[step].node)

    @cached_property
    def readers(self) -> Mapping[int, Sequence[Read]]:
        """The reads of each value that is read."""
        return _grouped((read.value, read) for read in self.reads())

    def reads(self) -> Iterator[Read]:
        """Yield all reads, by nodes and by outputs of graphs."""
        for step in self.steps:
            for position, value in enumerate(step.inputs):
                if value != OMITTED:
                    yield Read(value, position, step.number)
        for graph, returned in enumerate(self.returned):
            for position, value in enumerate(returned):
                yield Read(value, position, None, graph)

    @cached_property
    def crossings(self) -> Sequence[tuple[int, int]]:
        """The pairs of values of which the second one is made of the first one across the border of
        a body."""
        found = [(read.value, one) for at in self.borders for one in at.made for read in at.reads]
        return [pair for pair in found if OMITTED not in pair]

    @cached_property
    def sources(self) -> Mapping[int, Sequence[int]]:
        """The values that a value of a loop or If is made of, across the border of a body."""
        return _grouped((made, value) for value, made in self.crossings)

    @cached_property
    def targets(self) -> Mapping[int, Sequence[int]]:
        """The values of loops and Ifs that are made of a value, across the border of a body."""
        return _grouped(self.crossings)

    @property
    def states(self) -> Iterator[State]:
        """Yield the carried values."""
        for border in self.borders:
            if len(border.made) > 1:
                yield State(*(read.value for read in border.reads), *border.made)

    # -- reading ------------------------------------------------------------------------------

    def _graph(self, scope: Scope, around: Mapping[str, int]) -> int:
        """Add a graph, in which names mean what they do around it; return its number."""
        graph, number = scope.owner, len(self.scopes)
        assert isinstance(graph, GraphProto)
        self.scopes.append(scope)
        self.inputs.append([])
        self.returned.append([])
        names = dict(around)
        main = scope.outer is None
        held = scoping.initializer_names(graph)
        free = main and self.model.proto.ir_version >= FREE_INITIALIZERS
        for name in scoping.input_names(graph):
            fed = name not in held or free
            if fed:
                names[name] = self._value(scope, number, name, fed=fed and main)
                self.inputs[number].append(names[name])
        constant = not self.model.proto.training_info
        for name in sorted(held.difference(scoping.input_names(graph) if free else ())):
            names[name] = self._value(scope, number, name, constant=constant)
        for index, node in enumerate(graph.node[:]):
            self._step(scope, number, index, node, names)
        self.returned[number] += [names[name] for name in scoping.output_names(graph)]
        return number

    def _value(
        self, scope: Scope, graph: int, name: str, *, constant: bool = False, fed: bool = False
    ) -> int:
        elem_type, nested = _element(self.model.types.within(scope, name))
        number = len(self.values)
        self.values.append(Value(number, name, graph, elem_type, nested, constant, fed))
        self.producers.append(None)
        return number

    def _step(
        self, scope: Scope, graph: int, index: int, node: NodeProto, names: dict[str, int]
    ) -> None:
        op = op_of(node)
        bodies: list[int] = []
        if op in HOLDERS or scoping.holds_graphs(node):
            bodies = [self._graph(inner, names) for inner in scope.inner(index)]
        number, constant = len(self.steps), op == "Constant"
        inputs = tuple(names[name] if name else OMITTED for name in node.input)
        outputs = []
        for name in node.output:
            if name:
                names[name] = self._value(scope, graph, name, constant=constant)
                self.producers[-1] = number
            outputs.append(names[name] if name else OMITTED)
        step = Step(number, node, op, graph, index, inputs, tuple(outputs))
        self.steps.append(step)
        if op == "If":
            self.deciding.append((inputs[0], False))
            for position, output in enumerate(outputs):
                reads = (self._returned(body, position) for body in bodies)
                self.borders.append(Border(tuple(reads), (output,)))
        elif is_loop(node):
            self._loop(step, bodies[0])

    def _loop(self, step: Step, body: int) -> None:
        """Add what a loop carries, scans and collects, and what decides when it ends."""
        form = LoopForm.from_node(step.node, self.opset)
        self.loops[body] = step
        carried, scanned = len(form.carried), len(form.scanned)
        head = len(step.inputs) - carried - scanned
        first = 1 if form.condition is not None else 0
        fed = [Read(value, at, step.number) for at, value in enumerate(step.inputs)][head:]
        entering = self.inputs[body][2 * first :]
        returned = [self._returned(body, first + at) for at in range(len(step.outputs))]
        for position, made in enumerate(zip(entering, step.outputs[:carried], strict=False)):
            self.borders.append(Border((fed[position], returned[position]), made, enters=True))
        for read, value in zip(fed[carried:], entering[carried:], strict=True):
            self.borders.append(Border((read,), (value,), enters=True))
        for read, value in zip(returned[carried:], step.outputs[carried:], strict=True):
            self.borders.append(Border((read,), (value,)))
        if form.condition is not None:
            ends = (*step.inputs[:2], self.returned[body][0])
            self.deciding += [(value, True) for value in ends if value != OMITTED]

    def _returned(self, graph: int, position: int) -> Read:
        return Read(self.returned[graph][position], position, None, graph)


def _grouped(pairs: Iterable[tuple[int, _T]]) -> Mapping[int, Sequence[_T]]:
    """What is paired with each number."""
    found: dict[int, list[_T]] = {}
    for number, one in pairs:
        found.setdefault(number, []).append(one)
    return found


def _element(kind: TypeProto | None) -> tuple[int, bool]:
    """The element type of a tensor, or of the tensors in a sequence or optional, and whether it is
    one of these; 0 where it is unknown."""
    nested = False
    while kind is not None:
        which = kind.WhichOneof("value")
        if which == "tensor_type":
            return kind.tensor_type.elem_type, nested
        if which not in ("sequence_type", "optional_type"):
            return 0, nested
        kind, nested = getattr(kind, which).elem_type, True
    return 0, nested
