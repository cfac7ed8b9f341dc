"""Operators in the form of the writer's opset, and the small idioms that rewrites share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np
from onnx import TensorProto, TypeProto, helper, numpy_helper

from passes.ir.versions import (
    AXES_ARE_INPUTS,
    REDUCED_AXES_ARE_INPUTS,
    SLICE_HAS_INPUTS,
    SPLIT_COUNTS_OUTPUTS,
    ZERO_IS_A_SIZE,
)
from passes.operators.element_types import runs
from passes.operators.exactness import Array as Array
from passes.types.value_types import FLOATS, Dims, dims_of


def content(array: Array) -> Hashable:
    """Equal for arrays of the same dtype, shape and bytes, or strings."""
    elements = tuple(array.ravel()) if array.dtype.kind == "O" else array.tobytes()
    # by name: the small float and int types all have the str '<V1'
    return array.dtype.name, array.shape, elements


class Writer(ABC):
    """Writes nodes of one opset, front to back. Values are known by their names.

    Operators whose spelling changes with the opset are in `spelling.py`.
    """

    @property
    @abstractmethod
    def opset(self) -> int:
        """The opset that the nodes are written in."""

    @abstractmethod
    def fresh(self, hint: str) -> str:
        """A value name that occurs nowhere else."""

    @abstractmethod
    def op(self, op_type: str, *inputs: str, outputs: Sequence[str] = (), **attributes: Any) -> str:
        """Write a node; returns the name of its first output.

        `outputs` are the names of its outputs; one fresh name where none is given. An input of
        "" is omitted.
        """

    @abstractmethod
    def value(self, array: Array, hint: str = "constant") -> str:
        """The name of a fixed value; equal values are shared."""

    @abstractmethod
    def constant(self, name: str) -> Array | None:
        """The value of a name where it is fixed, as far as the writer knows, else None."""

    @abstractmethod
    def once(self, key: Hashable, write: Callable[[], str]) -> str:
        """The result of `write`, which is called for the first one of equal keys.

        For sizes and numbers: a value that a body returns needs a node of its own.
        """

    def ints(self, *values: int) -> str:
        """The name of a fixed int64 vector."""
        return self.value(np.array(values, np.int64), "ints")

    def int(self, value: int) -> str:
        """The name of a fixed int64 scalar."""
        return self.value(np.array(value, np.int64), "int")


def takes_axes_as_input(op: str, opset: int) -> bool:
    """Return whether a reducer, Squeeze or Unsqueeze takes its axes as an input, not as an
    attribute."""
    early = op in ("ReduceSum", "Squeeze", "Unsqueeze")
    return opset >= (AXES_ARE_INPUTS if early else REDUCED_AXES_ARE_INPUTS)


def along(
    writer: Writer,
    op: str,
    value: str,
    axes: Sequence[int],
    outputs: Sequence[str] = (),
    **attributes: Any,
) -> str:
    """A reducer, Squeeze or Unsqueeze of `value` along some axes."""
    if takes_axes_as_input(op, writer.opset):
        return writer.op(op, value, writer.ints(*axes), outputs=outputs, **attributes)
    return writer.op(op, value, outputs=outputs, axes=list(axes), **attributes)


def squeeze(writer: Writer, value: str, axis: int, outputs: Sequence[str] = ()) -> str:
    """`value` without an axis of size 1."""
    return along(writer, "Squeeze", value, [axis], outputs)


def unsqueeze(writer: Writer, value: str, axis: int, outputs: Sequence[str] = ()) -> str:
    """`value` with a new axis of size 1."""
    return along(writer, "Unsqueeze", value, [axis], outputs)


def unsqueeze_axes(writer: Writer, value: str, axes: Sequence[int]) -> str:
    """`value` with new axes of size 1, if any; `axes` count in the result."""
    return along(writer, "Unsqueeze", value, axes) if axes else value


def axis_moved(
    writer: Writer, value: str, source: int, target: int, rank: int, outputs: Sequence[str] = ()
) -> str:
    """`value` with one of its axes at another place; a node is written for `outputs` in any
    case."""
    if source == target and not outputs:
        return value
    order = [axis for axis in range(rank) if axis != source]
    order.insert(target, source)
    return writer.op("Transpose", value, outputs=outputs, perm=order)


def reshaped(writer: Writer, value: str, shape: str, outputs: Sequence[str] = ()) -> str:
    """`value` in a computed shape, some of whose sizes may be 0; before opset 14 none may be."""
    plain = {} if writer.opset < ZERO_IS_A_SIZE else {"allowzero": 1}
    return writer.op("Reshape", value, shape, outputs=outputs, **plain)


def with_front(
    writer: Writer, value: str, front: Sequence[int | str], axes: int, rest: Dims
) -> str:
    """`value` with axes of the sizes `front` in place of its first `axes`; the others have the
    sizes `rest`. A size in `front` is positive; a name is that of an int64 [1]."""
    sizes = [one if isinstance(one, int) else -1 for one in (*front, *rest)]
    if 0 not in sizes and sizes.count(-1) <= 1:
        return writer.op("Reshape", value, writer.ints(*sizes))
    given = [writer.ints(one) if isinstance(one, int) else one for one in front]
    return reshaped(writer, value, joined(writer, [*given, rest_of_shape(writer, value, axes)]))


def joined(writer: Writer, parts: Sequence[str], axis: int = 0) -> str:
    """The parts one after the other along an axis; a single one as it is."""
    return writer.op("Concat", *parts, axis=axis) if len(parts) > 1 else parts[0]


def of_rank(writer: Writer, scalar: str, rank: int) -> str:
    """A scalar as a tensor of one element, of rank 0 or 1."""
    if not rank:
        return scalar
    fixed = writer.constant(scalar)
    return unsqueeze(writer, scalar, 0) if fixed is None else writer.value(fixed.reshape(1))


def true(writer: Writer, rank: int = 0) -> str:
    """A condition that holds, of rank 0 or 1."""
    return writer.value(np.ones((1,) * rank, np.bool_), "true")


def total(writer: Writer, value: str) -> str:
    """The sum of all elements, a scalar; 0 for none."""
    return writer.op("ReduceSum", value, keepdims=0)


def shape_of(writer: Writer, value: str) -> str:
    """The sizes of all axes, int64 vector."""
    return writer.once(("Shape", value), lambda: writer.op("Shape", value))


def scalar(writer: Writer, value: str, known: TypeProto | None) -> str:
    """A number or condition of this type, which may be a vector of one; "" where there is none."""
    if not value or dims_of(known) == ():
        return value
    return writer.op("Reshape", value, writer.ints())


def size_of_axis(writer: Writer, value: str, axis: int) -> str:
    """The size of one axis (0 or more), int64 [1]."""

    def measured() -> str:
        return writer.op("Gather", shape_of(writer, value), writer.ints(axis), axis=0)

    return writer.once(("size", value, axis), measured)


def scalar_size(writer: Writer, value: str, axis: int) -> str:
    """The size of one axis (0 or more), a scalar."""

    def measured() -> str:
        return writer.op("Gather", shape_of(writer, value), writer.int(axis), axis=0)

    return writer.once(("scalar size", value, axis), measured)


def rest_of_shape(writer: Writer, value: str, first: int) -> str:
    """The sizes of the axes from `first` on, int64 vector."""
    shape = shape_of(writer, value)
    if writer.opset < SLICE_HAS_INPUTS:
        return writer.op("Slice", shape, starts=[first], ends=[_END], axes=[0])
    return writer.op("Slice", shape, writer.ints(first), writer.ints(_END))


_END = (1 << 31) - 1
LAST = (1 << 63) - 1  # the end of a Slice that goes on to the last element


def row(writer: Writer, value: str, index: str, elem_type: int) -> str:
    """The element at `index` (int64 scalar, in range) along axis 0, without that axis."""
    if elem_type != TensorProto.STRING:
        return writer.op("Gather", value, index, axis=0)
    # onnxruntime's Gather copies only the first string of a row.
    everyone = arange(writer, size_of_axis(writer, value, 0))
    chosen = writer.op("Compress", value, writer.op("Equal", everyone, index), axis=0)
    return squeeze(writer, chosen, 0)


def prefix(writer: Writer, value: str, length: str, elem_type: int) -> str:
    """The first `length` (int64 [1], at most the size) elements along axis 0."""
    if writer.opset >= SLICE_HAS_INPUTS:
        return writer.op("Slice", value, writer.ints(0), length, writer.ints(0))
    if elem_type != TensorProto.STRING:
        return writer.op("Gather", value, arange(writer, length), axis=0)
    everyone = arange(writer, size_of_axis(writer, value, 0))
    return writer.op("Compress", value, writer.op("Less", everyone, length), axis=0)


def part(
    writer: Writer,
    value: str,
    axis: int,
    start: int,
    end: int | None,
    outputs: Sequence[str] = (),
) -> str:
    """The elements from `start` to `end` (None for all that follow) along an axis; both may count
    from the end."""
    end = _END if end is None else end
    if writer.opset < SLICE_HAS_INPUTS:
        fixed = {"starts": [start], "ends": [end], "axes": [axis]}
        return writer.op("Slice", value, outputs=outputs, **fixed)
    limits = map(writer.ints, (start, end, axis))
    return writer.op("Slice", value, *limits, outputs=outputs)


def reversed_rows(writer: Writer, value: str, outputs: Sequence[str] = (), *, axis: int = 0) -> str:
    """The elements along an axis, last first; before opset 10, along axis 0."""
    if writer.opset >= SLICE_HAS_INPUTS:
        last, beyond = writer.ints(-1), writer.ints(-(1 << 31))
        return writer.op("Slice", value, last, beyond, writer.ints(axis), last, outputs=outputs)
    size = size_of_axis(writer, value, 0)
    index = writer.op("Sub", writer.op("Sub", size, writer.ints(1)), arange(writer, size))
    return writer.op("Gather", value, index, outputs=outputs, axis=0)


def arange(writer: Writer, length: str) -> str:
    """0, 1, ..., length - 1 as an int64 vector; `length` is int64 [1]."""

    def counted() -> str:
        ones = filled(writer, length, TensorProto.INT64, 1)
        return squeeze(writer, writer.op("NonZero", ones), 0)

    return writer.once(("arange", length), counted)


def count_to(writer: Writer, number: str) -> str:
    """0, 1, ..., `number` - 1 as an int64 vector; `number` is a scalar. From opset 11 on."""

    def counted() -> str:
        return writer.op("Range", writer.int(0), number, writer.int(1))

    return writer.once(("count to", number), counted)


def filled(writer: Writer, shape: str, elem_type: int, value: int) -> str:
    """A tensor of `shape` (int64 vector) that holds `value` everywhere."""
    element = np.array([value]).astype(helper.tensor_dtype_to_np_dtype(elem_type))
    tensor = numpy_helper.from_array(element, "value")
    return writer.op("ConstantOfShape", shape, value=tensor)


def zero(writer: Writer, elem_type: int) -> str:
    """Zero, False or "", one of them in a vector."""
    if elem_type == TensorProto.STRING:
        return writer.value(np.array([""], object))
    return writer.value(np.zeros(1, helper.tensor_dtype_to_np_dtype(elem_type)), "zero")


def zeros(writer: Writer, shape: str, elem_type: int) -> str:
    """Zero, False or "" everywhere, for every element type.

    ConstantOfShape supports no strings and no complex numbers: they are gathered from a single
    zero.
    """
    if elem_type not in (TensorProto.STRING, TensorProto.COMPLEX64, TensorProto.COMPLEX128):
        return filled(writer, shape, elem_type, 0)
    return writer.op(
        "Gather", zero(writer, elem_type), filled(writer, shape, TensorProto.INT64, 0), axis=0
    )


def select(
    writer: Writer, condition: str, new: str, old: str, elem_type: int, outputs: Sequence[str] = ()
) -> str:
    """`new` where the scalar bool `condition` holds, else `old`: bit for bit, of every type.

    NaN and Inf of the value that is not taken do not get through. Where onnxruntime's Where
    does not suffice, the value is gathered from a list of both.
    """
    if elem_type not in FLOATS and runs("Where", writer.opset, elem_type):
        return writer.op("Where", condition, new, old, outputs=outputs)
    both = writer.op("Concat", unsqueeze(writer, old, 0), unsqueeze(writer, new, 0), axis=0)
    index = writer.op("Cast", condition, to=TensorProto.INT64)
    return writer.op("Gather", both, index, axis=0, outputs=outputs)


def both(writer: Writer, conditions: Sequence[str]) -> str:
    """Return whether all of these scalar bools hold."""
    first, *others = conditions
    for other in others:
        first = writer.op("And", first, other)
    return first


def split(writer: Writer, value: str, axis: int, parts: Sequence[str]) -> None:
    """The slices of size 1 along an axis of known size, under the names `parts`."""
    if writer.opset < SPLIT_COUNTS_OUTPUTS:
        writer.op("Split", value, outputs=parts, axis=axis)
    else:
        writer.op("Split", value, outputs=parts, axis=axis, num_outputs=len(parts))
