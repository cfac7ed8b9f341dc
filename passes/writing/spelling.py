"""Operators in the form of the author's opset, and the small idioms that rewrites share."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from onnx import TensorProto, TypeProto, helper, numpy_helper

from passes.ir.versions import (
    AXES_ARE_INPUTS,
    REDUCED_AXES_ARE_INPUTS,
    SLICE_HAS_INPUTS,
    SPLIT_COUNTS_OUTPUTS,
    ZERO_IS_A_SIZE,
)
from passes.onnxruntime.element_types import runs
from passes.types.value_types import FLOATS, dims_of
from passes.writing.author import Author


def squeeze(author: Author, value: str, axis: int, outputs: Sequence[str] = ()) -> str:
    """`value` without an axis of size 1."""
    if author.opset < AXES_ARE_INPUTS:
        return author.op("Squeeze", value, outputs=outputs, axes=[axis])
    return author.op("Squeeze", value, author.ints(axis), outputs=outputs)


def unsqueeze(author: Author, value: str, axis: int, outputs: Sequence[str] = ()) -> str:
    """`value` with a new axis of size 1."""
    if author.opset < AXES_ARE_INPUTS:
        return author.op("Unsqueeze", value, outputs=outputs, axes=[axis])
    return author.op("Unsqueeze", value, author.ints(axis), outputs=outputs)


def unsqueeze_axes(author: Author, value: str, axes: Sequence[int]) -> str:
    """`value` with new axes of size 1; `axes` count in the result."""
    if author.opset < AXES_ARE_INPUTS:
        return author.op("Unsqueeze", value, axes=list(axes))
    return author.op("Unsqueeze", value, author.ints(*axes))


def reshaped(author: Author, value: str, shape: str) -> str:
    """`value` in a computed shape, some of whose sizes may be 0; before opset 14 none may be."""
    if author.opset < ZERO_IS_A_SIZE:
        return author.op("Reshape", value, shape)
    return author.op("Reshape", value, shape, allowzero=1)


def of_rank(author: Author, scalar: str, rank: int) -> str:
    """A scalar as a tensor of one element, of rank 0 or 1."""
    if not rank:
        return scalar
    fixed = author.tensor(scalar)
    if fixed is None:
        return unsqueeze(author, scalar, 0)
    return author.constant(numpy_helper.to_array(fixed).reshape(1))


def true(author: Author, rank: int = 0) -> str:
    """A condition that holds, of rank 0 or 1."""
    return author.constant(np.ones((1,) * rank, np.bool_), "true")


def greatest(author: Author, value: str, axis: int) -> str:
    """The greatest elements along an axis, which is removed."""
    if author.opset < REDUCED_AXES_ARE_INPUTS:
        return author.op("ReduceMax", value, axes=[axis], keepdims=0)
    return author.op("ReduceMax", value, author.ints(axis), keepdims=0)


def total(author: Author, value: str) -> str:
    """The sum of all elements, a scalar; 0 for none."""
    return author.op("ReduceSum", value, keepdims=0)


def shape_of(author: Author, value: str) -> str:
    """The sizes of all axes, int64 vector."""
    return author.once(("Shape", value), lambda: author.op("Shape", value))


def scalar(author: Author, value: str, known: TypeProto | None) -> str:
    """A number or condition of this type, which may be a vector of one; "" where there is none."""
    if not value or dims_of(known) == ():
        return value
    return author.op("Reshape", value, author.ints())


def size_of_axis(author: Author, value: str, axis: int) -> str:
    """The size of one axis (0 or more), int64 [1]."""

    def measured() -> str:
        return author.op("Gather", shape_of(author, value), author.ints(axis), axis=0)

    return author.once(("size", value, axis), measured)


def scalar_size(author: Author, value: str, axis: int) -> str:
    """The size of one axis (0 or more), a scalar."""

    def measured() -> str:
        return author.op("Gather", shape_of(author, value), author.int(axis), axis=0)

    return author.once(("scalar size", value, axis), measured)


def rest_of_shape(author: Author, value: str, first: int) -> str:
    """The sizes of the axes from `first` on, int64 vector."""
    shape = shape_of(author, value)
    if author.opset < SLICE_HAS_INPUTS:
        return author.op("Slice", shape, starts=[first], ends=[_END], axes=[0])
    return author.op("Slice", shape, author.ints(first), author.ints(_END))


_END = (1 << 31) - 1


def row(author: Author, value: str, index: str, elem_type: int) -> str:
    """The element at `index` (int64 scalar, in range) along axis 0, without that axis."""
    if elem_type != TensorProto.STRING:
        return author.op("Gather", value, index, axis=0)
    # onnxruntime's Gather copies only the first string of a row.
    everyone = arange(author, size_of_axis(author, value, 0))
    chosen = author.op("Compress", value, author.op("Equal", everyone, index), axis=0)
    return squeeze(author, chosen, 0)


def prefix(author: Author, value: str, length: str, elem_type: int) -> str:
    """The first `length` (int64 [1], at most the size) elements along axis 0."""
    if author.opset >= SLICE_HAS_INPUTS:
        return author.op("Slice", value, author.ints(0), length, author.ints(0))
    if elem_type != TensorProto.STRING:
        return author.op("Gather", value, arange(author, length), axis=0)
    everyone = arange(author, size_of_axis(author, value, 0))
    return author.op("Compress", value, author.op("Less", everyone, length), axis=0)


def part(author: Author, value: str, axis: int, start: int, end: int | None) -> str:
    """The elements from `start` to `end` (None for all that follow) along an axis; both may count
    from the end."""
    end = _END if end is None else end
    if author.opset < SLICE_HAS_INPUTS:
        return author.op("Slice", value, starts=[start], ends=[end], axes=[axis])
    return author.op("Slice", value, author.ints(start), author.ints(end), author.ints(axis))


def reversed_rows(author: Author, value: str, outputs: Sequence[str] = (), *, axis: int = 0) -> str:
    """The elements along an axis, last first; before opset 10, along axis 0."""
    if author.opset >= SLICE_HAS_INPUTS:
        last, beyond = author.ints(-1), author.ints(-(1 << 31))
        return author.op("Slice", value, last, beyond, author.ints(axis), last, outputs=outputs)
    size = size_of_axis(author, value, 0)
    index = author.op("Sub", author.op("Sub", size, author.ints(1)), arange(author, size))
    return author.op("Gather", value, index, outputs=outputs, axis=0)


def arange(author: Author, length: str) -> str:
    """0, 1, ..., length - 1 as an int64 vector; `length` is int64 [1]."""

    def counted() -> str:
        ones = filled(author, length, TensorProto.INT64, 1)
        return squeeze(author, author.op("NonZero", ones), 0)

    return author.once(("arange", length), counted)


def count_to(author: Author, number: str) -> str:
    """0, 1, ..., `number` - 1 as an int64 vector; `number` is a scalar. From opset 11 on."""

    def counted() -> str:
        return author.op("Range", author.int(0), number, author.int(1))

    return author.once(("count to", number), counted)


def filled(author: Author, shape: str, elem_type: int, value: int) -> str:
    """A tensor of `shape` (int64 vector) that holds `value` everywhere."""
    element = np.array([value]).astype(helper.tensor_dtype_to_np_dtype(elem_type))
    tensor = numpy_helper.from_array(element, "value")
    return author.op("ConstantOfShape", shape, value=tensor)


def zero(author: Author, elem_type: int) -> str:
    """Zero, False or "", one of them in a vector."""
    if elem_type == TensorProto.STRING:
        return author.strings([""], (1,))
    return author.constant(np.zeros(1, helper.tensor_dtype_to_np_dtype(elem_type)), "zero")


def zeros(author: Author, shape: str, elem_type: int) -> str:
    """Zero, False or "" everywhere, for every element type.

    ConstantOfShape supports no strings and no complex numbers: they are gathered from a single
    zero.
    """
    if elem_type not in (TensorProto.STRING, TensorProto.COMPLEX64, TensorProto.COMPLEX128):
        return filled(author, shape, elem_type, 0)
    return author.op(
        "Gather", zero(author, elem_type), filled(author, shape, TensorProto.INT64, 0), axis=0
    )


def select(
    author: Author, condition: str, new: str, old: str, elem_type: int, outputs: Sequence[str] = ()
) -> str:
    """`new` where the scalar bool `condition` holds, else `old`: bit for bit, of every type.

    NaN and Inf of the value that is not taken do not get through. Where onnxruntime's Where
    does not suffice, the value is gathered from a list of both.
    """
    if elem_type not in FLOATS and runs("Where", author.opset, elem_type):
        return author.op("Where", condition, new, old, outputs=outputs)
    both = author.op("Concat", unsqueeze(author, old, 0), unsqueeze(author, new, 0), axis=0)
    index = author.op("Cast", condition, to=TensorProto.INT64)
    return author.op("Gather", both, index, axis=0, outputs=outputs)


def both(author: Author, conditions: Sequence[str]) -> str:
    """Whether all of these scalar bools hold."""
    first, *others = conditions
    for other in others:
        first = author.op("And", first, other)
    return first


def split(author: Author, value: str, axis: int, parts: Sequence[str]) -> None:
    """The slices of size 1 along an axis of known size, under the names `parts`."""
    if author.opset < SPLIT_COUNTS_OUTPUTS:
        author.op("Split", value, outputs=parts, axis=axis)
    else:
        author.op("Split", value, outputs=parts, axis=axis, num_outputs=len(parts))
