"""Bounds of whole tensors: of every element of an output, by those of the inputs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt
from onnx import NodeProto, TensorProto, numpy_helper

from passes.ir.attributes import attribute, attribute_proto, has, numbers, text
from passes.ir.operators import Registry, op_of
from passes.operators.comparisons import COMPARISONS
from passes.operators.table import positions, traits_of, where
from passes.operators.traits import EVERY
from passes.types.dtypes import numpy_dtype
from passes.types.value_types import FLOATS, Dims

#: The least and the largest element, as `int` of whole numbers, which are exact; of a condition, 0
#: if it may be false and 1 if it may be true.
Interval = tuple[float, float]
#: The interval of an empty sequence, and of what is computed of its elements.
NOTHING: Interval = (math.inf, -math.inf)
#: No axis and no loop is longer, so numbers of 32 bits count them, and a little more.
SIZE = (0, (1 << 31) - (1 << 16))
_FALSE, _TRUE, _OPEN = (0, 0), (1, 1), (0, 1)
_MOST_FLOATS = 64  # weights are not read


class Unbounded(Exception):
    """No bounds are known."""


@dataclass(frozen=True)
class Bounded:
    """A node, and what is known of its inputs: `bounds` by position, None if they are unknown or
    the input is omitted; `elem_type` is that of the output."""

    node: NodeProto
    elem_type: int
    bounds: Sequence[Interval | None]
    dims: Callable[[str], Dims | None]
    constant: Callable[[str], npt.NDArray[Any] | None]

    def has(self, position: int) -> bool:
        """Return whether an input is given."""
        return position < len(self.node.input) and bool(self.node.input[position])

    def of(self, position: int) -> Interval:
        """The bounds of an input. Raises Unbounded."""
        found = self.bounds[position] if position < len(self.bounds) else None
        if found is None:
            raise Unbounded
        return found

    @property
    def all(self) -> list[Interval]:
        """The bounds of all inputs that are not omitted. Raises Unbounded."""
        return [self.of(position) for position, name in enumerate(self.node.input) if name]

    @property
    def is_float(self) -> bool:
        """True if the output has floats."""
        return self.elem_type in FLOATS

    def sizes(self) -> tuple[int, ...]:
        """The largest sizes of the first input, or one for all axes if the rank is unknown."""
        dims = self.dims(self.node.input[0])
        if dims is None:
            return (SIZE[1],)
        return tuple(dim if isinstance(dim, int) else SIZE[1] for dim in dims)


#: The inputs whose elements are those of the output, besides what operators move.
_CHOOSING: Mapping[str, Sequence[int]] = {
    **positions("moves"),
    **dict.fromkeys(where(lambda row: row.hands_on), (0,)),
    **dict.fromkeys(("ConcatFromSequence", "SequenceAt", "SequenceErase"), (0,)),
    **dict.fromkeys(("SplitToSequence", "TopK", "Unique"), (0,)),
    **dict.fromkeys(("Max", "Min", "SequenceConstruct"), EVERY),
    "SequenceInsert": (0, 1),
    "Where": (1, 2),
}
#: Those that fill up with zeros.
_FILLING = ("CenterCropPad", "Pad", "Trilu")
#: The interval of an operator of one operand, from the ends of that.
_BY_ENDS: Mapping[str, Callable[[float, float], Interval]] = {
    "Abs": lambda low, high: (max(low, -high, 0), max(-low, high)),
    **dict.fromkeys(("Ceil", "Floor", "Round"), lambda a, b: (math.floor(a), math.ceil(b))),
    "Neg": lambda low, high: (-high, -low),
    "Not": lambda low, high: (1 - high, 1 - low),
}
#: The interval of the first output of an operator.
_FOLLOWED: Registry[Callable[[Bounded], Interval]] = Registry()


def hull(intervals: Iterable[Interval]) -> Interval:
    """The smallest interval that holds all of them."""
    found = NOTHING
    for low, high in intervals:
        found = min(found[0], low), max(found[1], high)
    return found


@cache
def type_bounds(elem_type: int) -> Interval | None:
    """The bounds that a type has; None if it is none of whole numbers or bools."""
    if elem_type == TensorProto.BOOL:
        return _OPEN
    if elem_type not in TensorProto.DataType.values() or not elem_type:
        return None
    dtype = numpy_dtype(elem_type)
    if dtype.kind not in "iu":
        return None
    return int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)


def held(found: Interval | None, elem_type: int) -> Interval | None:
    """The bounds of what a tensor of a type holds for numbers within `found`: rounded, or those of
    the type if they may wrap; None for floats that may be infinite."""
    if found == NOTHING:
        return found
    limits = type_bounds(elem_type)
    if limits is not None:
        fits = found is not None and limits[0] <= found[0] and found[1] <= limits[1]
        return found if fits else limits
    if found is None or elem_type not in FLOATS:
        return None
    dtype = numpy_dtype(elem_type)
    with np.errstate(over="ignore"):
        low, high = (float(dtype.type(end)) for end in found)
    return (low, high) if math.isfinite(low) and math.isfinite(high) else None


def chosen_from(node: NodeProto) -> Sequence[int]:
    """The inputs of which the elements of the output are; none if it may have others."""
    op = op_of(node)
    if op in _FILLING or text(node, "reduction", "none") in ("add", "mul"):
        return ()
    places = _CHOOSING.get(op, ())
    return [place for place, name in enumerate(node.input) if name and place in places]


def bounds_of_constant(array: npt.NDArray[Any]) -> Interval | None:
    """The least and the largest element; None if they are no numbers, or weights."""
    if array.dtype.kind == "f" and array.size > _MOST_FLOATS:
        return None
    if array.dtype.kind not in "biuf" or not np.all(np.isfinite(array)):
        return None
    if not array.size:
        return 0, 0
    number = float if array.dtype.kind == "f" else int
    return number(array.min()), number(array.max())


def bounds_of_output(read: Bounded, position: int) -> Interval | None:
    """The bounds of the elements of an output; those of its type if no more is known, None where
    that has none."""
    row = traits_of(read.node)
    if NOTHING in read.bounds and not row.wraps:
        return NOTHING
    try:
        if position in row.counting:
            found = _counted(read)
        else:
            follow = None if position else _FOLLOWED.get(op_of(read.node))
            found = _chosen(read) if follow is None else follow(read)
    except Unbounded:
        return held(None, read.elem_type)
    return held(found, read.elem_type)


def _counted(read: Bounded) -> Interval:
    """Positions along an axis, or in the whole tensor; or its size."""
    sizes = read.sizes()
    axis = attribute(read.node, "axis", None)
    if axis is not None and -len(sizes) <= axis < len(sizes):
        return 0, sizes[axis]
    if op_of(read.node) == "Shape" and sizes:
        dims = read.dims(read.node.input[0]) or (None,)
        return min(dim if isinstance(dim, int) else 0 for dim in dims), max(sizes)
    return 0, min(math.prod(sizes), SIZE[1])


def _chosen(read: Bounded) -> Interval:
    places = chosen_from(read.node)
    if not places:
        raise Unbounded
    return hull(map(read.of, places))


@_FOLLOWED.enter("SequenceEmpty")
def _nothing(read: Bounded) -> Interval:
    return NOTHING


@_FOLLOWED.enter("SequenceLength")
def _length(read: Bounded) -> Interval:
    return SIZE


@_FOLLOWED.enter("Cast", "CastLike")
def _cast(read: Bounded) -> Interval:
    low, high = read.of(0)
    if read.elem_type == TensorProto.BOOL and not isinstance(low, int):
        raise Unbounded
    return (low, high) if read.is_float else (int(low), int(high))


# -- element by element ---------------------------------------------------------------------------


@_FOLLOWED.enter(*_BY_ENDS)
def _by_ends(read: Bounded) -> Interval:
    return _BY_ENDS[op_of(read.node)](*read.of(0))


@_FOLLOWED.enter("Add", "Sum")
def _sum(read: Bounded) -> Interval:
    return sum(low for low, _ in read.all), sum(high for _, high in read.all)


@_FOLLOWED.enter("Sub")
def _difference(read: Bounded) -> Interval:
    (low, high), (least, most) = read.all
    return low - most, high - least


@_FOLLOWED.enter("Mul")
def _product(read: Bounded) -> Interval:
    one, other = read.all
    corners = [a * b for a, b in product(one, other)]
    return min(corners), max(corners)


@_FOLLOWED.enter("Div")
def _quotient(read: Bounded) -> Interval:
    one, (least, most) = read.all
    if least <= 0 <= most:
        if read.is_float:
            raise Unbounded
        largest = max(abs(one[0]), abs(one[1]))  # by 1 or -1; by 0 it fails
        return -largest, largest
    corners = [_divided(a, b) for a, b in product(one, (least, most))]
    return min(corners), max(corners)


def _divided(a: float, b: float) -> float:
    if isinstance(a, int) and isinstance(b, int):
        return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
    return a / b


@_FOLLOWED.enter("Mod")
def _remainder(read: Bounded) -> Interval:
    (low, high), (least, most) = read.all
    if read.is_float or attribute(read.node, "fmod", 0):
        raise Unbounded
    return min(0, least + 1), max(0, most - 1) if low < 0 else max(0, min(high, most - 1))


@_FOLLOWED.enter("Max", "Or")
def _largest(read: Bounded) -> Interval:
    return max(low for low, _ in read.all), max(high for _, high in read.all)


@_FOLLOWED.enter("Min", "And")
def _smallest(read: Bounded) -> Interval:
    return min(low for low, _ in read.all), min(high for _, high in read.all)


@_FOLLOWED.enter("Clip")
def _clipped(read: Bounded) -> Interval:
    low, high = read.of(0)
    if has(read.node, "min") or has(read.node, "max"):
        raise Unbounded
    if read.has(1):
        low, high = max(low, read.of(1)[0]), max(high, read.of(1)[1])
    if read.has(2):
        low, high = min(low, read.of(2)[0]), min(high, read.of(2)[1])
    return low, high


@_FOLLOWED.enter("Where")
def _where(read: Bounded) -> Interval:
    condition = read.bounds[0]
    if condition == _TRUE:
        return read.of(1)
    return read.of(2) if condition == _FALSE else hull([read.of(1), read.of(2)])


@_FOLLOWED.enter(*COMPARISONS)
def _compared(read: Bounded) -> Interval:
    (low, high), (least, most) = read.all
    possible = {"<": low < most, "=": low <= most and least <= high, ">": high > least}
    holds = {sign in COMPARISONS[op_of(read.node)] for sign, may_be in possible.items() if may_be}
    return _OPEN if len(holds) != 1 else _TRUE if True in holds else _FALSE


# -- generators and reductions --------------------------------------------------------------------


@_FOLLOWED.enter("Range")
def _range(read: Bounded) -> Interval:
    (start, starts), (end, ends), (step, steps) = read.all
    if read.is_float:
        raise Unbounded
    upwards, downwards = max(starts, ends - 1), min(start, end + 1)
    return start if step > 0 else downwards, starts if steps < 0 else upwards


@_FOLLOWED.enter("ConstantOfShape")
def _fill(read: Bounded) -> Interval:
    value = attribute_proto(read.node, "value")
    found = (0, 0) if value is None else bounds_of_constant(numpy_helper.to_array(value.t))
    if found is None:
        raise Unbounded
    return found


@_FOLLOWED.enter("ReduceSum")
def _total(read: Bounded) -> Interval:
    """As much as all elements, or none."""
    if read.is_float:
        raise Unbounded
    (low, high), sizes = read.of(0), read.sizes()
    axes = numbers(read.node, 1, "axes", read.constant) or range(len(sizes))
    if all(-len(sizes) <= axis < len(sizes) for axis in axes):
        sizes = tuple(sizes[axis] for axis in axes)
    count = max(1, min(math.prod(sizes), SIZE[1]))
    return count * min(low, 0), count * max(high, 0)


@_FOLLOWED.enter("ReduceMax", "ReduceMin")
def _extreme(read: Bounded) -> Interval:
    """One of the elements, or an end of the type if there is none."""
    dims = read.dims(read.node.input[0])
    filled = dims is not None and all(isinstance(dim, int) and dim for dim in dims)
    if not filled:
        raise Unbounded
    return read.of(0)
