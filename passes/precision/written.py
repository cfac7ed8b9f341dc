"""Writes a model in which values have other element types: one Cast a value and type, where the
value is computed; constants in the type in which they are read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod

import numpy as np
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, TypeProto, helper, numpy_helper

from passes.ir import scope as scoping
from passes.ir.constants import constant_tensor
from passes.ir.external_data import byte_size
from passes.ir.names import Names
from passes.ir.protos import replace_all, with_initializers
from passes.ir.versions import FREE_INITIALIZERS
from passes.precision.flow import OMITTED, Flow, Read, Step, Value
from passes.precision.narrowing import Decision
from passes.precision.operands import choosing_attribute
from passes.types.dtypes import Array, numpy_dtype
from passes.types.value_types import element

#: A constant of so many elements that is read in both types is stored twice, and not cast.
_FEW = 64


@dataclass(frozen=True)
class Written:
    """A model in other types, the number of Casts that it got, of its values and of those that have
    the narrow type, and the bytes of weights of the wide type before, and of the same after."""

    proto: ModelProto
    casts: int
    values: tuple[int, int]
    weights: tuple[int, int]


def written(decision: Decision) -> Written:
    """Write the model of a flow with the types that were decided; the flow must be that of the
    model's main graph, and the model is not changed."""
    return _Writer(decision).written()


def narrowed(array: Array, elem_type: int) -> Array:
    """The elements in another type; whole numbers that are too large become the largest."""
    dtype = numpy_dtype(elem_type)
    if array.dtype.kind == "i":
        limits = np.iinfo(dtype)
        array = np.clip(array, limits.min, limits.max)
    with np.errstate(over="ignore"):  # what is too large is read in the wide type
        return array.astype(dtype)


@dataclass
class _Writer:
    decision: Decision
    casts: int = 0
    bytes: list[int] = field(default_factory=lambda: [0, 0])

    def __post_init__(self) -> None:
        self.flow: Flow = self.decision.flow
        self.names = Names(self.flow.model.names)
        self.known: dict[tuple[int, int], str] = {}  # the name of a value in each type
        self.types: dict[int, Sequence[int]] = {}  # the types in which a value exists
        self.steps = {(step.graph, step.index): step for step in self.flow.steps}
        self.own: list[list[Value]] = [[] for _ in self.flow.scopes]  # the values of each graph
        for value in filter(self.decision.concerns, self.flow.values):
            self.own[value.graph].append(value)

    def written(self) -> Written:
        """The model."""
        model = self.flow.model.proto
        concerned = [one for own in self.own for one in own]
        for value in concerned:
            self._name(value)
        proto = with_initializers(model, self._tensors(model.graph, 0))
        self._graph(proto.graph, iter(range(len(self.flow.scopes))))
        if proto.ir_version < FREE_INITIALIZERS:
            scoping.list_initializers(proto.graph)
        narrow = self.decision.change.narrow
        narrows = sum((one.number, narrow) in self.known for one in concerned)
        return Written(proto, self.casts, (narrows, len(concerned)), (self.bytes[0], self.bytes[1]))

    # -- names --------------------------------------------------------------------------------

    def _name(self, value: Value) -> None:
        """Choose the names of a value in the types in which it exists: it keeps its own in the type
        that the outputs of the model need, else in that in which it is computed."""
        exists = self.types[value.number] = self._types(value)
        first = exists[0]
        if len(exists) > 1:
            for read in self.flow.readers.get(value.number, ()):
                if read.step is None and read.graph == 0:
                    first = self.decision.wanted(read) or first
        for elem_type in exists:
            name = value.name
            if elem_type != first:
                name = self.names.fresh(f"{name}/{element(elem_type)}")
            self.known[value.number, elem_type] = name

    def _types(self, value: Value) -> Sequence[int]:
        """The types in which a value exists, first that in which it is computed or stored."""
        wide = self.decision.change.wide
        if value.constant:
            wanted = self.decision.wanted_of[value.number]
            if self.flow.tensor(value) is None and not self._spelled(value):
                return list(dict.fromkeys([wide, *wanted]))
            return sorted(wanted, key=lambda one: one != wide) or [wide]
        own = self.decision.own(value)
        wanted = [
            self.decision.wanted(read) or own for read in self.flow.readers.get(value.number, ())
        ]
        return list(dict.fromkeys([own, *wanted]))

    def _spelled(self, value: Value) -> bool:
        """Return whether a constant is a Constant node of some dense form."""
        step = self.flow.producers[value.number]
        return step is not None and constant_tensor(self.flow.steps[step].node) is not None

    def _read(self, read: Read) -> str:
        """The name of a value in the type in which it is read."""
        value = self.flow.values[read.value]
        concerned = self.decision.concerns(value)
        return self.known[value.number, self._read_as(read)] if concerned else value.name

    def _read_as(self, read: Read) -> int:
        """The type in which a value is read."""
        value = self.flow.values[read.value]
        if not self.decision.concerns(value):
            return value.elem_type
        return self.decision.wanted(read) or self.types[value.number][0]

    # -- graphs -------------------------------------------------------------------------------

    def _constants(self, graph: int) -> Iterator[Value]:
        """Yield the initializers of a graph that are concerned."""
        for value in self.own[graph]:
            if value.constant and self.flow.producers[value.number] is None:
                yield value

    def _tensors(self, graph: GraphProto, number: int) -> Iterator[TensorProto]:
        """Yield the initializers of a graph, in the types in which they are read."""
        own = {value.name: value for value in self._constants(number)}
        fed = self._defaults() if number == 0 else {}
        for tensor in graph.initializer:
            if tensor.name in own:
                yield from self._stored(own[tensor.name], tensor)
            elif fed.get(tensor.name, tensor.data_type) != tensor.data_type:
                yield self._converted(tensor, tensor.name, fed[tensor.name])
            else:
                yield tensor

    def _defaults(self) -> Mapping[str, int]:
        """The types of the inputs of the main graph, which may have defaults."""
        values = (self.flow.values[number] for number in self.flow.inputs[0])
        return {value.name: self.decision.own(value) for value in values}

    def _stored(self, value: Value, tensor: TensorProto) -> Iterator[TensorProto]:
        """Yield a constant in the type, or the types, in which it is stored."""
        stored = self.types[value.number]
        if len(stored) > 1 and prod(tensor.dims) > _FEW:
            stored = stored[:1]
        self.bytes[0] += byte_size(tensor)
        for elem_type in stored:
            name = self.known[value.number, elem_type]
            made = tensor
            if (elem_type, name) != (tensor.data_type, tensor.name):
                made = self._converted(tensor, name, elem_type)
            self.bytes[1] += byte_size(made)
            yield made

    def _converted(self, tensor: TensorProto, name: str, elem_type: int) -> TensorProto:
        data = narrowed(self.flow.model.read(tensor), elem_type).tobytes()
        return TensorProto(name=name, data_type=elem_type, dims=tensor.dims, raw_data=data)

    def _graph(self, graph: GraphProto, numbers: Iterator[int]) -> None:
        """Rewrite a copy of a graph, in place, and those of its bodies."""
        number = next(numbers)
        if number and graph.initializer:
            replace_all(graph.initializer, list(self._tensors(graph, number)))
        nodes = [*self._entering(number)]
        for index, node in enumerate(graph.node):
            step = self.steps[number, index]
            for _, inner in scoping.subgraphs(node) if scoping.holds_graphs(node) else ():
                self._graph(inner, numbers)
            if step.op == "Constant" and self.decision.concerns(self.flow.values[step.outputs[0]]):
                nodes += self._constant(step, node)
                continue
            self._retype(step, node)
            nodes.append(node)
            for output in step.outputs:
                if output != OMITTED:
                    nodes += self._casts(self.flow.values[output])
        replace_all(graph.node, nodes)
        self._declare(graph, number)

    def _entering(self, graph: int) -> Iterator[NodeProto]:
        """Yield the Casts of the inputs and initializers of a graph."""
        for number in self.flow.inputs[graph]:
            yield from self._casts(self.flow.values[number])
        for value in self._constants(graph):
            tensor = self.flow.tensor(value)
            if tensor is None or prod(tensor.dims) > _FEW:
                yield from self._casts(value)

    def _casts(self, value: Value) -> Iterator[NodeProto]:
        """Yield the Cast of a value to the other type in which it is read, if there is one."""
        if not self.decision.concerns(value):
            return
        own, *others = self.types[value.number]
        for elem_type in others:
            self.casts += 1
            name = self.known[value.number, elem_type]
            source = self.known[value.number, own]
            yield helper.make_node("Cast", [source], [name], name=name, to=elem_type)

    def _constant(self, step: Step, node: NodeProto) -> Iterator[NodeProto]:
        """Yield the Constants, and perhaps a Cast, that take the place of one."""
        value = self.flow.values[step.outputs[0]]
        tensor = constant_tensor(node)
        if tensor is None:
            yield node
            yield from self._casts(value)
            return
        made = list(self._stored(value, tensor))
        for one in made:
            if one is tensor:
                yield node
            else:
                yield helper.make_node("Constant", [], [one.name], name=node.name, value=one)
        if len(made) < len(self.types[value.number]):
            yield from self._casts(value)

    def _retype(self, step: Step, node: NodeProto) -> None:
        """Give a node, in place, the names and the attribute of its new types."""
        inputs = [
            self._read(Read(value, position, step.number)) if value != OMITTED else ""
            for position, value in enumerate(step.inputs)
        ]
        if inputs != node.input[:]:
            replace_all(node.input, inputs)
        values = [self.flow.values[one] for one in step.outputs if one != OMITTED]
        changed = [value for value in values if self.decision.concerns(value)]
        if not changed:
            return
        outputs = [
            self.known[one, self.decision.own(self.flow.values[one])]
            if one != OMITTED and self.decision.concerns(self.flow.values[one])
            else name
            for one, name in zip(step.outputs, node.output, strict=True)
        ]
        if outputs != node.output[:]:
            replace_all(node.output, outputs)
        chosen = "" if node.domain else choosing_attribute(step.op, self.flow.opset)
        if chosen:
            reads = [Read(value, place, step.number) for place, value in enumerate(step.inputs)]
            read = {self._read_as(one) for one in reads if one.value != OMITTED}
            self._choose(node, chosen, self.decision.own(changed[0]), read)

    def _choose(self, node: NodeProto, name: str, elem_type: int, read: set[int]) -> None:
        """Let the attribute of a node choose a type, in place; it has inputs of the types `read`.

        Without a `dtype`, the type is that of an input. onnxruntime does not load all nodes whose
        `output_dtype` tells what their inputs do.
        """
        old = next((one for one in node.attribute if one.name == name), None)
        change = self.decision.change
        if elem_type == change.wide and (old is not None or change.narrow not in read):
            return
        if name.endswith("dtype") and elem_type in read:
            replace_all(node.attribute, [one for one in node.attribute if one.name != name])
            return
        if name == "type":  # of an Optional, which has one only where it is empty
            if old is not None:
                _set_type(old.tp, elem_type)
            return
        if name == "output_dtype" and old is None:  # the type of the scale, by default
            return
        if name == "value":
            fill = np.zeros(1, np.float32) if old is None else numpy_helper.to_array(old.t)
            made = helper.make_attribute(name, numpy_helper.from_array(narrowed(fill, elem_type)))
        else:
            made = helper.make_attribute(name, elem_type)
        replace_all(node.attribute, [*(one for one in node.attribute if one.name != name), made])

    # -- declarations -------------------------------------------------------------------------

    def _declare(self, graph: GraphProto, number: int) -> None:
        """Give the declared values of a graph their new types and names, in place."""
        named = {
            self.known[one.number, elem_type]: elem_type
            for one in self.own[number]
            for elem_type in self.types[one.number]
        }
        for position, value in enumerate(self.flow.returned[number]):
            read = Read(value, position, None, number)
            if self.decision.concerns(self.flow.values[value]):
                declared = graph.output[position]
                declared.name = self._read(read)
                wanted = self.decision.wanted(read)
                if wanted is not None:
                    _set_type(declared.type, wanted)
        for one in (*graph.input, *graph.value_info):
            if one.name in named:
                _set_type(one.type, named[one.name])


def _set_type(kind: TypeProto, elem_type: int) -> None:
    """Give a declared type another element type, in place, also in a sequence or optional."""
    which = kind.WhichOneof("value")
    if which == "tensor_type":
        kind.tensor_type.elem_type = elem_type
    elif which in ("sequence_type", "optional_type"):
        _set_type(getattr(kind, which).elem_type, elem_type)
