"""A list of nodes that grows: of the main graph, of a body, or of a function."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import GraphProto, NodeProto, TensorProto, TypeProto, ValueInfoProto, helper
from onnx.shape_inference import InferenceError, infer_node_outputs

from tests.instruments.generate import foreign
from tests.instruments.generate.choices import Choices
from tests.instruments.generate.exact import rounds
from tests.instruments.generate.program import Program
from tests.instruments.generate.values import (
    FLOAT,
    INNER,
    INT64,
    WHOLE,
    Dim,
    Shape,
    Value,
    array_of,
)


class NotHere(Exception):
    """What was to be written does not exist for these types, this opset or this place."""


@dataclass(frozen=True)
class Iteration:
    """The iteration number of the loop around a block, and the dims that it stays below."""

    number: Value
    below: tuple[Dim, ...]


@dataclass
class Block:
    """Nodes, and the values that nodes to come may read: own ones and captured ones."""

    program: Program
    depth: int = 0
    function: bool = False
    visible: list[Value] = field(default_factory=list)
    iteration: Iteration | None = None
    nodes: list[NodeProto] = field(default_factory=list)
    initializers: list[TensorProto] = field(default_factory=list)
    plain: bool = False  # operators of other domains would make loops endless here
    symbols: int = 0  # dims u0, u1, ... below this one are known outside, too
    names: int = 0
    taken: set[str] = field(default_factory=set)  # names of the inputs of this body

    @property
    def choices(self) -> Choices:
        return self.program.choices

    def inner(self, hidden: Sequence[str] = ()) -> Block:
        """A body of a node of this block, which captures all but the hidden values."""
        visible = [value for value in self.visible if value.name not in hidden]
        symbols = self.program.symbols
        inner = Block(self.program, self.depth + 1, self.function, visible, symbols=symbols)
        inner.iteration = self.iteration
        if self.iteration is not None and self.iteration.number.name in hidden:
            inner.iteration = None
        return inner

    def name(self) -> str:
        """A name that is free here; bodies side by side may use the same ones."""
        if not self.program.reuses_names:
            return self.program.name("v")
        self.names += 1
        place = "abcdefgh"[self.depth] if self.depth < 8 else f"i{self.depth}x"
        return f"{place}{self.names}"

    def odd(self, kind: str, count: int = 2) -> bool:
        """Whether something of this kind happens here: once in `count` times, if the model is to
        have any of it."""
        return kind in self.program.odd and self.choices.one_in(count)

    def attempt(self, write: Callable[[Block], None]) -> bool:
        """Write something, all of it or, where it is not possible here, nothing."""
        mark = len(self.nodes), len(self.visible), len(self.initializers)
        try:
            write(self)
        except NotHere:
            del self.nodes[mark[0] :], self.visible[mark[1] :], self.initializers[mark[2] :]
            return False
        return True

    # What there is to read.

    def pick(self, fits: Callable[[Value], bool]) -> Value:
        """A visible value that fits, a recent one by preference. Raises NotHere."""
        fitting = [value for value in reversed(self.visible) if fits(value)]
        if not fitting:
            raise NotHere
        return fitting[min(self.choices.below(len(fitting)), self.choices.below(len(fitting)))]

    def want(self, elem: int, shape: Shape, *, smooth: bool = False) -> Value:
        """A value of this type: one there is, a constant, or a new input of the model.

        `smooth`: not a rounded one. Raises NotHere where a function would need an input.
        """
        there = [one for one in self.visible if one.like(elem, shape) and not smooth * one.rough]
        if there and not self.choices.one_in(4):
            return self.pick(there.__contains__)
        fixed = all(isinstance(dim, int) for dim in shape)
        if fixed and (self.function or self.choices.one_in(3)):
            return self.drawn_constant(elem, shape)
        return self.input(elem, shape)

    def input(self, elem: int, shape: Shape, role: str = "", sequence: bool = False) -> Value:
        """A new input of the model. Raises NotHere in a function, and where a dim depends on
        what the model computes."""
        if self.function or any(isinstance(dim, str) and dim[0] == "u" for dim in shape):
            raise NotHere
        if elem in INNER:
            return self.narrowed(self.input(FLOAT, shape, role), elem)
        value = self.program.input(elem, shape, role, sequence)
        self.visible.append(value)
        return value

    def narrowed(self, value: Value, elem: int) -> Value:
        """A float tensor as one of few bits. To whole numbers it is quantized, for no document
        says how a Cast rounds, and what it does beyond their limits."""
        if elem not in WHOLE:
            return self.op("Cast", value, to=elem)
        scale, zero = self.scalar(4, FLOAT), self.scalar(0, elem)
        return self.op("QuantizeLinear", value, scale, zero)

    def drawn_constant(self, elem: int, shape: Shape) -> Value:
        sizes = [int(dim) for dim in shape]
        numbers = [self.choices.below(9) - 4 for _ in range(min(4, int(np.prod(sizes))))]
        return self.constant(array_of(elem, sizes, numbers))

    def ints(self, *numbers: int) -> Value:
        """A constant int64 vector."""
        return self.constant(np.array(numbers, np.int64))

    def scalar(self, number: int, elem: int = INT64) -> Value:
        return self.constant(array_of(elem, (), [number]) if elem != INT64 else np.int64(number))

    def constant(self, array: npt.NDArray[Any] | np.generic) -> Value:
        """A Constant node, an initializer here, or one of the main graph that others share."""
        tensor = onnx.numpy_helper.from_array(np.asarray(array))
        place = 0 if self.function else self._place(tensor)
        name = self.program.name("w") if place == 2 else self.name()
        if place == 0:
            self.nodes.append(helper.make_node("Constant", [], [name], value=tensor))
        named = TensorProto()
        named.CopyFrom(tensor)
        named.name = name
        if place == 1:
            self.initializers.append(named)
        elif place == 2:
            self.program.initializers.append(named)
        value = Value(name, tensor.data_type, tuple(tensor.dims), data=named)
        self.visible.append(value)
        return value

    def _place(self, tensor: TensorProto) -> int:
        """0: a node, 1: an initializer here, 2: one of the main graph."""
        place = self.choices.below(3)
        if place == 0 and self.program.opset < 9 and tensor.data_type != TensorProto.FLOAT:
            return 2  # Constant-1 holds floats only
        if place == 1 and self.program.ir < 4 and self.depth and not self.program.careless:
            return 2  # onnx's own checks do not count such initializers of bodies right
        return place

    # What is written.

    def version(self, op: str) -> int:
        """The version of an operator here. Raises NotHere where there is none."""
        return int(self._schema(op).since_version)

    def _schema(self, op: str) -> onnx.defs.OpSchema:
        try:
            schema = onnx.defs.get_schema(op, self.program.opset, "")
        except onnx.defs.SchemaError:
            raise NotHere from None
        if schema.deprecated:
            raise NotHere
        return schema

    def op(self, op: str, *inputs: Value | None, **attributes: Any) -> Value:
        """Write a node with one output, and see it. Raises NotHere where types do not fit."""
        (value,) = self.ops(op, 1, *inputs, **attributes)
        if inputs and inputs[0] is not None and foreign.may_be_estranged(op, inputs[0]):
            return self.estranged(value, 4)
        return value

    def estranged(self, value: Value, count: int = 2) -> Value:
        """The value that was just written; its node becomes, at times, one of another domain, of
        which only the name is ONNX's."""
        if not self.odd("foreign", count) or self.plain:
            return value
        if self.program.ir < foreign.SINCE_IR or self.program.opset < foreign.SINCE_OPSET:
            return value
        node = self.nodes[-1]
        known = {one.name: one for one in self.visible}
        inputs = [known[name] for name in node.input if name in known]
        function = self.program.foreign.get(node.op_type)
        if function is None:
            function = foreign.function(node, inputs, self.program.opset)
        if function is not None and foreign.fits(function, node, inputs):
            self.program.foreign[node.op_type] = function
            node.domain = foreign.DOMAIN
        return value

    def ops(self, op: str, count: int, *inputs: Value | None, **attributes: Any) -> list[Value]:
        """Write a node with `count` outputs; inference tells their types."""
        schema = self._schema(op)
        attributes = {name: value for name, value in attributes.items() if value is not None}
        if not set(attributes) <= set(schema.attributes):
            raise NotHere
        names = [self.name() for _ in range(count)]
        node = helper.make_node(op, [name.name if name else "" for name in inputs], names)
        node.attribute.extend(
            helper.make_attribute(*attribute) for attribute in sorted(attributes.items())
        )
        types = self._inferred(schema, node, [name for name in inputs if name])
        if any(name not in types for name in names) or not _are_allowed(
            schema, inputs, [types[name] for name in names]
        ):
            raise NotHere
        rough = rounds(node, [name for name in inputs if name])
        made = [replace(self.value_of(name, types[name]), rough=rough) for name in names]
        self.add(node, made)
        return made

    def _inferred(
        self, schema: onnx.defs.OpSchema, node: NodeProto, inputs: Sequence[Value]
    ) -> dict[str, TypeProto]:
        try:
            return infer_node_outputs(
                schema,
                node,
                {name.name: name.type() for name in inputs},
                {name.name: name.data for name in inputs if name.data is not None},
                opset_imports=[helper.make_opsetid("", self.program.opset)],
                ir_version=self.program.ir,
            )
        except (InferenceError, RuntimeError, onnx.checker.ValidationError):
            raise NotHere from None

    def value_of(self, name: str, said: TypeProto) -> Value:
        """A value as inference describes it; dims that it leaves open get a new symbol."""
        sequence = said.HasField("sequence_type")
        inner = said.sequence_type.elem_type if sequence else said
        if not inner.tensor_type.HasField("shape"):
            raise NotHere
        dims = [
            dim.dim_value if dim.HasField("dim_value") else dim.dim_param or self.program.symbol()
            for dim in inner.tensor_type.shape.dim
        ]
        return Value(name, inner.tensor_type.elem_type, tuple(dims), sequence)

    def add(self, node: NodeProto, made: Sequence[Value]) -> None:
        """Enter a node and what it makes."""
        self.program.decorate(node)
        self.nodes.append(node)
        self.visible.extend(made)

    def of_unknown_size(self, value: Value, axis: int, before: Dim) -> Value:
        """What was cut from a dim of unknown size: at opset 10, onnx infers that nothing was."""
        if isinstance(before, int):
            return value
        dims = list(value.shape)
        dims[axis] = self.program.symbol()
        return replace(value, shape=tuple(dims))

    def outside(self, dim: Dim) -> bool:
        """Whether a dim means the same outside of this body."""
        return isinstance(dim, int) or dim[0] != "u" or int(dim[1:]) < self.symbols

    def returned(self, value: Value) -> str:
        """The name under which a body returns a value: one of its own, as onnxruntime wants it,
        but in careless models."""
        if self.program.careless and value.name in self.own() and self.choices.one_in(3):
            return value.name
        return self.op("Identity", value).name

    def own(self) -> set[str]:
        """What this block takes and makes itself."""
        return self.taken | {name for node in self.nodes for name in node.output}

    def _hint(self, said: ValueInfoProto, *, shapeless: bool = False) -> None:
        """Declare less, or a symbol that is another one outside, as exporters do."""
        shape = said.type.tensor_type.shape
        if not shape.dim or not self.odd("hints", 3):
            return
        dim = shape.dim[self.choices.below(len(shape.dim))]
        kind = self.choices.below(4)
        if kind == 0 and shapeless and len(shape.dim) > 1:
            said.type.tensor_type.ClearField("shape")
        elif kind == 1:
            dim.Clear()
        else:
            dim.dim_param = self.choices.pick(("T", "B", "N", "Q"))

    def graph(self, name: str, inputs: Sequence[Value], outputs: Sequence[Value]) -> GraphProto:
        """The body; `outputs` under the names that they are returned by."""
        listed = [value.info() for value in inputs]
        if self.program.ir < 4:  # there, an initializer must be an input, too
            listed += [
                helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims)
                for tensor in self.initializers
            ]
        ends = [value.info() for value in outputs]
        for one in listed:
            self._hint(one, shapeless=True)
        for one in ends:
            self._hint(one)
        return helper.make_graph(self.nodes, name, listed, ends, self.initializers)


def _are_allowed(
    schema: onnx.defs.OpSchema, inputs: Sequence[Value | None], made: Sequence[TypeProto]
) -> bool:
    """Whether an operator takes inputs of these types, and gives such outputs; inference does not
    look."""
    taken = [name and name.type() for name in inputs]
    pairs = [*_paired(schema.inputs, taken), *_paired(schema.outputs, made)]
    return all(_spelled(said) in formal.types for formal, said in pairs if said)


def _paired(
    formal: Sequence[onnx.defs.OpSchema.FormalParameter], actual: Sequence[TypeProto | None]
) -> Iterator[tuple[onnx.defs.OpSchema.FormalParameter, TypeProto | None]]:
    """Each value with what the operator document says of its place; the last may be repeated."""
    return ((formal[min(i, len(formal) - 1)], one) for i, one in enumerate(actual))


def _spelled(said: TypeProto) -> str:
    """A type as operator documents spell it."""
    if said.HasField("sequence_type"):
        return f"seq({_spelled(said.sequence_type.elem_type)})"
    return f"tensor({TensorProto.DataType.Name(said.tensor_type.elem_type).lower()})"
