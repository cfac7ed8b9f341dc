"""Writes a model in which values have other element types: one Cast a value and type, where the
value is computed; constants in the type in which they are read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod

import numpy as np
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, TypeProto, helper, numpy_helper

from passes.ir import scope as scoping
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
    """Write the model of a flow, which is not changed, with the types that were decided."""
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
        self.fresh = Names(self.flow.model.names)
        # the types in which a value exists, first that in which it is made, with its names
        self.names: dict[int, Mapping[int, str]] = {}
        self.steps = {(step.graph, step.index): step for step in self.flow.steps}
        self.own: list[list[Value]] = [[] for _ in self.flow.scopes]  # the values of each graph
        for value in filter(self.decision.concerns, self.flow.values):
            self.own[value.graph].append(value)

    def written(self) -> Written:
        """The model."""
        model = self.flow.model.proto
        concerned = [one for own in self.own for one in own]
        for value in concerned:
            self.names[value.number] = self._named(value)
        proto = with_initializers(model, self._tensors(model.graph, 0))
        self._graph(proto.graph, iter(range(len(self.flow.scopes))))
        if proto.ir_version < FREE_INITIALIZERS:
            scoping.list_initializers(proto.graph)
        narrow = self.decision.change.narrow
        narrows = sum(narrow in names for names in self.names.values())
        return Written(proto, self.casts, (narrows, len(concerned)), (self.bytes[0], self.bytes[1]))

    # -- names --------------------------------------------------------------------------------

    def _named(self, value: Value) -> Mapping[int, str]:
        """The names of a value in the types in which it exists: it keeps its own in the type that
        the outputs of the model need, else in that in which it is computed."""
        reads = self.flow.readers.get(value.number, ())
        types = self._types(value, [self.decision.wanted(read) for read in reads])
        outputs = [read for read in reads if read.step is None and read.graph == 0]
        kept = [self.decision.wanted(read) or types[0] for read in outputs] or [types[0]]
        names = {one: f"{value.name}/{element(one)}" for one in types if one != kept[-1]}
        return {one: self.fresh.fresh(names[one]) if one in names else value.name for one in types}

    def _types(self, value: Value, wanted: Sequence[int | None]) -> Sequence[int]:
        """The types in which a value exists, first that in which it is computed or stored."""
        wide = self.decision.change.wide
        first = [self.decision.own(value)]
        if value.constant and self.flow.tensor(value) is not None:
            # any type that is read will do, the wide one first
            first = [wide] if wide in wanted or not any(wanted) else []
        return list(dict.fromkeys([*first, *(one for one in wanted if one is not None)]))

    def _read(self, read: Read) -> tuple[int, str]:
        """The type in which a value is read, and its name in that."""
        value = self.flow.values[read.value]
        if not self.decision.concerns(value):
            return value.elem_type, value.name
        names = self.names[value.number]
        elem_type = self.decision.wanted(read) or next(iter(names))
        return elem_type, names[elem_type]

    # -- graphs -------------------------------------------------------------------------------

    def _tensors(self, graph: GraphProto, number: int) -> Iterator[TensorProto]:
        """Yield the initializers of a graph, in the types in which they are read."""
        own = {value.name: value for value in self._given(number)}
        for tensor in graph.initializer:
            value = own.get(tensor.name)
            yield from [tensor] if value is None else self._stored(value, tensor)

    def _given(self, graph: int) -> list[Value]:
        """The inputs of a graph, then its initializers."""
        return [one for one in self.own[graph] if self.flow.producers[one.number] is None]

    def _stored(self, value: Value, tensor: TensorProto) -> Iterator[TensorProto]:
        """Yield a constant in the type, or the types, in which it is stored; a default in one."""
        stored = list(self.names[value.number].items())
        for elem_type, name in stored if self._is_few(value) else stored[:1]:
            made = tensor
            if (elem_type, name) != (value.elem_type, value.name):
                data = narrowed(self.flow.model.read(tensor), elem_type).tobytes()
                made = TensorProto(name=name, data_type=elem_type, dims=tensor.dims, raw_data=data)
            self.bytes[1] += byte_size(made) if value.constant else 0
            yield made
        self.bytes[0] += byte_size(tensor) if value.constant else 0

    def _is_few(self, value: Value) -> bool:
        """Return whether a value is a constant of a few elements."""
        tensor = self.flow.tensor(value) if value.constant else None
        return tensor is not None and prod(tensor.dims) <= _FEW

    def _graph(self, graph: GraphProto, numbers: Iterator[int]) -> None:
        """Rewrite a copy of a graph, in place, and those of its bodies."""
        number = next(numbers)
        if number and graph.initializer:
            replace_all(graph.initializer, list(self._tensors(graph, number)))
        nodes = [cast for value in self._given(number) for cast in self._casts(value)]
        for index, node in enumerate(graph.node):
            step = self.steps[number, index]
            for _, inner in scoping.subgraphs(node) if scoping.holds_graphs(node) else ():
                self._graph(inner, numbers)
            made = [self.flow.values[one] for one in step.outputs if one in self.names]
            if made and step.op == "Constant":
                nodes += self._constants(made[0], node)
            else:
                self._retype(step, node)
                nodes.append(node)
            nodes += [cast for value in made for cast in self._casts(value)]
        replace_all(graph.node, nodes)
        self._declare(graph, number)

    def _casts(self, value: Value) -> Iterator[NodeProto]:
        """Yield the Cast of a value to the other type in which it is read, if there is one."""
        (_, source), *others = self.names[value.number].items()
        for elem_type, name in others if not self._is_few(value) else ():
            self.casts += 1
            yield helper.make_node("Cast", [source], [name], name=name, to=elem_type)

    def _constants(self, value: Value, node: NodeProto) -> Iterator[NodeProto]:
        """Yield the Constants that take the place of one."""
        tensor = self.flow.tensor(value)
        for one in [None] if tensor is None else self._stored(value, tensor):
            if one is None or one is tensor:
                yield node
            else:
                yield helper.make_node("Constant", [], [one.name], name=node.name, value=one)

    def _retype(self, step: Step, node: NodeProto) -> None:
        """Give a node, in place, the names and the attribute of its new types."""
        reads = [Read(value, place, step.number) for place, value in enumerate(step.inputs)]
        read = [(0, "") if one.value == OMITTED else self._read(one) for one in reads]
        replace_all(node.input, [name for _, name in read])
        own = {
            one: next(iter(self.names[one].items())) for one in step.outputs if one in self.names
        }
        if own:
            pairs = zip(step.outputs, node.output[:], strict=True)
            replace_all(node.output, [own[one][1] if one in own else name for one, name in pairs])
            chosen = choosing_attribute(step.op, self.flow.opset)
            if chosen:
                elem_type = next(iter(own.values()))[0]
                self._choose(node, chosen, elem_type, {kind for kind, _ in read})

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
            name: elem_type
            for one in self.own[number]
            for elem_type, name in self.names[one.number].items()
        }
        for position, value in enumerate(self.flow.returned[number]):
            if value in self.names:
                read = self._read(Read(value, position, None, number))
                _set_type(graph.output[position].type, read[0])
                graph.output[position].name = read[1]
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
