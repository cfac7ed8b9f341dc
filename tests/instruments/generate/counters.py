"""Counters of every type that end a loop, near the limits of the type, and how often it runs."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from onnx import TensorProto, helper

from tests.instruments.generate.block import Block, NotHere
from tests.instruments.generate.values import FLOAT, INT32, INT64, Shape, Value

_INT8, _INT16, _DOUBLE = TensorProto.INT8, TensorProto.INT16, TensorProto.DOUBLE
_UINT8, _UINT16 = TensorProto.UINT8, TensorProto.UINT16
_UINT32, _UINT64 = TensorProto.UINT32, TensorProto.UINT64
_HALF = TensorProto.FLOAT16
#: By how often they are drawn.
_TYPES = (
    *(
        INT64,
        INT64,
        INT64,
        INT64,
        INT32,
        INT32,
        INT32,
        INT32,
        FLOAT,
        _INT8,
        _UINT8,
        _INT16,
        _UINT16,
        _UINT32,
        _UINT64,
    ),
    *(_DOUBLE, _HALF),
)
_EDGES = (0, 1, 2**7, 2**8, 2**15, 2**16, 2**31, 2**32, 2**63, 2**64, 2**24, 2**53)
_FLOAT_STARTS = (0.0, 1.0, -1.0, 0.1, 2.0**24 - 2, -(2.0**24), 2.0**31 - 4, 3e38, 2048.0 - 2)
_FLOAT_STEPS = (1.0, 0.5, 0.1, -1.0, 3.0, 1e-9, 0.0)
_STEPS = (1, 1, 1, 2, 3, 0, -1, 100, 2**31 - 1, 2**31)
_COMPARISONS = (
    *("Less", "Greater", "LessOrEqual", "GreaterOrEqual", "Less", "Greater", "LessOrEqual"),
    *("GreaterOrEqual", "Equal"),
)
_WORDS = {INT32: 32, _INT16: 16, _INT8: 8, _UINT8: 8}
#: Loops that run longer get a bound.
_LONGEST = 9
_HUGE = (2**63 - 1, 2**31, 2**32 + 3, 2**31 - 1)


def trips_by_a_cast(b: Block, count: int) -> Value:
    """A trip count that is cut to its lower bits; what is fed to it holds others, too."""
    narrow = b.choices.pick([INT32, _INT16, _INT8])
    bits = {INT32: 32, _INT16: 16, _INT8: 8}[narrow]
    above = count + b.choices.pick((1, -1, 3, 0)) * 2**bits
    wide = b.constant(np.int64(above))
    if not b.function and b.choices.one_in(3):
        wide = b.input(INT64, (), f"exactly {above}")
    return b.op("Cast", b.op("Cast", wide, to=narrow), to=INT64)


class Counter:
    """A state that a number is added to, and the comparison that goes on or ends by it.

    Whether it ends is tried here; where it does not, `trips` is a small number.
    """

    def __init__(self, b: Block) -> None:
        choices = b.choices
        self.elem = choices.pick(_TYPES)
        self._type = helper.tensor_dtype_to_np_dtype(self.elem)
        self._shape: Shape = (1,) if choices.one_in(4) else ()
        start = _number(b, self._type)
        self._step = _step(b, self._type)
        self._op = "Sub" if choices.one_in(4) else "Add"
        #: The type it is computed in, and the one it is compared in, if others.
        self._wide = choices.pick([0] * 5 + [INT64, INT32])
        self._seen = choices.pick([0] * 8 + [INT64, INT32, INT32, _INT8, FLOAT, _DOUBLE, _UINT8])
        self._compared = choices.pick(_COMPARISONS)
        self._negated = choices.one_in(4)
        if self._nears("Greater") and choices.below(3):  # else it ends at once, or by wrapping
            self._compared = self._compared.replace("Greater", "Less")
        elif self._nears("Less") and choices.below(3):
            self._compared = self._compared.replace("Less", "Greater")
        self._early = bool(choices.below(2))  # what came in is compared, not what goes out
        limit = start
        for _ in range(choices.below(6)):
            limit = self._next(limit)
        self._limit = self._cast(limit, self._seen)
        if choices.one_in(6):
            self._limit = _number(b, self._limit.dtype)
        self.held = Value("", self.elem, self._shape)
        self.initial = b.constant(np.full([int(dim) for dim in self._shape], start))
        self._bound = self._read_bound(b)
        ends = self._ends(start)
        self.trips, self.start = _bounds(b, ends, self._shape)
        if self.start is not None and choices.one_in(3):  # a while: asked in front of it, too
            self.start = self._says_so(b, self.initial)

    def write(self, b: Block, held: Value) -> tuple[Value, Value]:
        """What it becomes, and whether to go on."""
        known = held
        if self._wide:
            known = b.op("Cast", held, to=self._wide)
        step = b.constant(self._cast(self._step, self._wide))
        after = b.estranged(b.op(self._op, *_swapped(b, self._op, known, step)))
        if self._wide:
            after = b.op("Cast", after, to=self.elem)
        return after, self._says_so(b, held if self._early else after)

    def _says_so(self, b: Block, seen: Value) -> Value:
        if self._seen:
            seen = b.op("Cast", seen, to=self._seen)
        bound = self._bound or b.constant(self._limit)
        going = b.estranged(b.op(self._compared, seen, bound))
        return b.op("Not", going) if self._negated else going

    def _read_bound(self, b: Block) -> Value | None:
        """The bound where it is no constant: an input, perhaps cut to its lower bits."""
        elem = self._seen or self.elem
        if b.function or elem not in (INT64, INT32, _INT16, _INT8, _UINT8) or b.choices.below(3):
            return None
        number = int(self._limit)
        if elem == INT64:
            return b.input(INT64, (), f"exactly {number}")
        number += 2 ** _WORDS[elem] * b.choices.pick((0, 1, -1))
        return b.op("Cast", b.input(INT64, (), f"exactly {number}"), to=elem)

    def _nears(self, compared: str) -> bool:
        """Whether a comparison holds ever more as the counter counts on."""
        up = (float(self._step) > 0) == (self._op == "Add")
        grows = "Greater" if up else "Less"
        return compared in self._compared and (compared == grows) != self._negated

    def _next(self, value: npt.NDArray[Any]) -> npt.NDArray[Any]:
        wide = self._wide or self.elem
        one, step = self._cast(value, wide), self._cast(self._step, wide)
        with np.errstate(all="ignore"):
            made = np.asarray(one - step if self._op == "Sub" else one + step)
        return self._cast(made.astype(one.dtype), self.elem)

    def _cast(self, value: npt.NDArray[Any], elem: int) -> npt.NDArray[Any]:
        """A Cast, of whole numbers modulo; what no document defines is not written."""
        if not elem:
            return value
        kind = helper.tensor_dtype_to_np_dtype(elem)
        number = float(value)
        if value.dtype.kind == "f" and kind.kind in "iu":
            limits = np.iinfo(kind)
            if not limits.min <= number <= limits.max or number >= 2.0**63:
                raise NotHere
        with np.errstate(all="ignore"):
            return np.asarray(value.astype(kind))

    def _ends(self, start: npt.NDArray[Any]) -> bool:
        value = start
        for _ in range(_LONGEST):
            after = self._next(value)
            seen = self._cast(value if self._early else after, self._seen)
            if self._says(seen) == self._negated:
                return True
            value = after
        return False

    def _says(self, seen: npt.NDArray[Any]) -> bool:
        limit = self._limit
        said = {
            "Less": seen < limit,
            "Greater": seen > limit,
            "LessOrEqual": seen <= limit,
            "GreaterOrEqual": seen >= limit,
            "Equal": seen == limit,
        }
        return bool(said[self._compared])


def _bounds(b: Block, ends: bool, shape: Shape) -> tuple[Value | None, Value | None]:
    """A trip count and a first condition: not both may be left out, none but where it ends."""
    start = b.constant(np.ones([int(dim) for dim in shape], bool))
    if "foreign" in b.program.odd or not ends:
        trips: Value | None = b.scalar(b.choices.below(5))
    else:
        trips = b.choices.pick([None, b.constant(np.int64(b.choices.pick(_HUGE)))])
    if trips is not None and "no-cond" in b.program.odd and b.choices.one_in(2):
        return trips, None
    return trips, start


def _number(b: Block, kind: npt.DTypeLike) -> npt.NDArray[Any]:
    """A number near what the type can hold, or near 0."""
    dtype = np.dtype(kind)
    if dtype.kind == "f":
        number = b.choices.pick(_FLOAT_STARTS)
        most = float(np.finfo(dtype).max)
        return np.asarray(max(-most, min(most, number)), dtype)
    limits = np.iinfo(dtype)
    edge = b.choices.pick(_EDGES) * (-1 if b.choices.one_in(3) else 1)
    number = edge + b.choices.pick((0, -1, -2, -3, 1, 3))
    return np.asarray(max(limits.min, min(limits.max, number)), dtype)


def _step(b: Block, kind: npt.DTypeLike) -> npt.NDArray[Any]:
    dtype = np.dtype(kind)
    if dtype.kind == "f":
        return np.asarray(b.choices.pick(_FLOAT_STEPS), dtype)
    step = b.choices.pick(_STEPS)
    limits = np.iinfo(dtype)
    return np.asarray(step if limits.min <= step <= limits.max else 1, dtype)


def _swapped(b: Block, op: str, one: Value, other: Value) -> tuple[Value, Value]:
    return (other, one) if op == "Add" and b.choices.one_in(3) else (one, other)
