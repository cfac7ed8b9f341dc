"""Drawing one array: values by dtype and purpose.

* `exact`: small dyadic numbers, on which short sums and products do not round;
* `moderate`: normal deviates;
* `decimal`: tenths, and quarters that tenths round to even;
* `wide`: normal deviates times 1e-6 to 1e6, and larger whole numbers;
* `mentioned`: constants of the models, and what is next to them;
* `whole`: 1 and 2, which a Cast makes small sizes, counts and repeats of;
* `special`: NaN, infinities, both zeros, denormals and, where asked, the extremes, mixed with
  moderate numbers;
* `alone`: one NaN or infinity, or both infinities, in each row of one input only, among exact ones;
* `large`, `small`: all of one magnitude; float16 beyond half of its range;
* `offset`: a large number, and little besides;
* `denormal`: dyadic numbers as small as sums of them are exact;
* whole numbers come by one of `INT_STYLES`, since they may be data, indices, sizes or axes; data
  is larger in some styles, and has the signs of `_SIGNS`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import ml_dtypes
import numpy as np
from onnx import TensorProto

from passes.types.dtypes import is_float, numpy_dtype
from passes.verify.executor import Array
from passes.verify.inputs.mentioned import NOTHING, Mentioned
from passes.verify.inputs.uses import Use, are_data, are_numbers, are_trips

Style = Literal[
    "exact",
    "moderate",
    "decimal",
    "wide",
    "mentioned",
    "whole",
    "special",
    "alone",
    "large",
    "small",
    "offset",
    "denormal",
]
Flags = Literal["mixed", "on", "off", "rows"]
IntStyle = Literal["small", "below", "zeros", "ones", "sizes", "permutation", "minus one", "end"]
INT_STYLES: tuple[IntStyle, ...] = (
    *("small", "below", "zeros", "sizes", "ones", "permutation", "minus one"),
)
#: Small dyadic numbers: few fractional bits, so that a few loop iterations stay exact too.
DYADIC = (-2.0, -1.0, -1.0, -0.5, -0.0, 0.0, 0.5, 1.0, 1.0, 2.0)
WHOLE = (1.0, 2.0)
DECIMALS = (*(tenths / 10 for tenths in range(-12, 13)), -0.75, -0.25, 0.25, 0.75)
STRINGS = ("", "a", "B", "é", "日本", "a b", "\n", "0", "-1", "a")
#: The magnitudes of numbers that are alike.
_LARGE, _SMALL, _OFFSET = 100.0, 2.0**-10, 1000.0
#: The least number of float16 that is twice too large for it.
_HALF = 2.0**15
#: The trip counts of cases, in their order.
_TRIPS = (3, 2, 4, 1, 7, 8, 9, 0, 5, 17, -2)
#: The signs of whole numbers by style: of the first input, the second, and so on.
_SIGNS: dict[Style, tuple[int, ...]] = {
    "large": (1, -1),
    "small": (-1,),
    "denormal": (-1, 1),
    "offset": (1,),
}
#: The product of two such whole numbers is beyond int32.
_PRODUCT = 1 << 16
_MOST = (1 << 63) - 1
#: Whole numbers that other types lack, and floats round.
_BEYOND = (2**24 + 1, 2**31 - 1, 2**31, 2**32, 2**53 + 1)
#: The share of special values among the numbers of a special draw, and how many of them, the first
#: ones, are NaN or infinite.
_SHARE, _TELLING = 0.5, 3
_ODD: tuple[Style, ...] = ("special", "alone")


@dataclass(frozen=True)
class Manner:
    """The way to draw an array. `sizes` are those of the case's dims, for integers that mean one;
    `mentioned` are constants of the models, `uses` what the model uses the array for, `turn` is
    the position of the case among all, and `place` that of the input among `places` inputs.

    `extremes` lets the largest numbers of a dtype in; a rewrite that regroups sums may
    overflow elsewhere than the original, so there they prove nothing.
    """

    style: Style = "exact"
    ints: IntStyle = "small"
    sizes: tuple[int, ...] = ()
    extremes: bool = True
    mentioned: Mentioned = NOTHING
    flags: Flags = "mixed"
    uses: frozenset[Use] | None = None
    turn: int = 0
    place: int = 0
    places: int = 1


@np.errstate(all="ignore")  # numbers that are too large for a dtype become infinite
def array(rng: np.random.Generator, elem_type: int, shape: Sequence[int], manner: Manner) -> Array:
    """An array of `shape` of a TensorProto element type."""
    shape = tuple(shape)
    if elem_type == TensorProto.STRING:
        strings = rng.choice(np.array(STRINGS, object), size=shape).reshape(shape)
        known = np.array(manner.mentioned.strings, object)
        return (
            _mixed(rng, strings, known) if manner.style == "mentioned" and len(known) else strings
        )
    dtype = numpy_dtype(elem_type)
    if dtype.kind == "b":
        return _flags(rng, shape, manner.flags)
    if dtype.kind == "c":
        result = np.empty(shape, dtype)
        for part in (result.real, result.imag):
            part[...] = _floats(rng, part.dtype, shape, manner)
        return result
    if is_float(dtype):
        values = _floats(rng, dtype, shape, manner)
        signed = manner.flags != "mixed" and manner.style not in _ODD
        return _signed(rng, values, manner.flags) if signed else values
    return _ints(rng, dtype, shape, manner)


def _flags(rng: np.random.Generator, shape: tuple[int, ...], flags: Flags) -> Array:
    """Bools: any, all or none of them hold, or so by rows."""
    drawn = rng.integers(0, 2, shape).astype(bool).reshape(shape)
    if flags in ("on", "off"):
        return np.full(shape, flags == "on")
    if flags == "rows" and shape:
        rows = drawn.reshape(-1, shape[-1]) if drawn.size else drawn.reshape(0, 1)
        rows[0::3], rows[1::3] = False, True
        return rows.reshape(shape)
    return drawn


def _signed(rng: np.random.Generator, values: Array, flags: Flags) -> Array:
    """Floats of these sizes that are positive where a bool holds."""
    return np.where(_flags(rng, values.shape, flags), np.abs(values), -np.abs(values))


def specials(dtype: np.dtype[Any], *, extremes: bool) -> Array:
    """The special values of a float dtype; those it lacks (float8 without Inf) become NaN."""
    info = ml_dtypes.finfo(dtype)
    values = [np.nan, np.inf, -np.inf, -0.0, 0.0]
    values += [float(info.smallest_subnormal), -float(info.tiny)]
    if extremes:
        values += [float(info.max), float(info.min)]
    with np.errstate(all="ignore"):
        return np.array(values).astype(dtype)


def _floats(
    rng: np.random.Generator, dtype: np.dtype[Any], shape: tuple[int, ...], manner: Manner
) -> Array:
    if manner.style in ("exact", "alone", "whole"):
        values = rng.choice(np.array(WHOLE if manner.style == "whole" else DYADIC), size=shape)
        exact = np.asarray(values).astype(dtype)
        return _alone(exact, manner) if manner.style == "alone" else exact
    values = np.asarray(rng.standard_normal(shape)).astype(dtype)
    match manner.style:
        case "decimal":  # each as often as the others, in any order
            values = np.resize(rng.permutation(np.array(DECIMALS)), shape)
        case "large" | "small":
            scale = _LARGE if manner.style == "large" else _SMALL
            scale = _HALF if dtype == np.float16 and manner.style == "large" else scale
            values = np.sign(values) * (1 + 0.9 * rng.random(shape)) * scale
        case "offset":
            values = _OFFSET + values.astype(np.float64) / 2
        case "denormal":
            info = ml_dtypes.finfo(dtype)
            least = float(info.smallest_subnormal) * 2.0 ** max(0, info.nmant - 3)
            values = rng.choice(np.array(DYADIC), size=shape) * least
        case "wide":
            values = values.astype(np.float64) * 10.0 ** rng.integers(-6, 7, shape)
        case "mentioned" if manner.mentioned.numbers:
            numbers = np.array(manner.mentioned.numbers).astype(dtype)
            values = _mixed(rng, values, _with_neighbours(numbers[np.isfinite(numbers)]))
        case "special":
            odd = specials(dtype, extremes=manner.extremes)
            if values.size == 1:  # the same in all inputs
                return np.full(shape, odd[manner.turn % _TELLING])
            values = _mixed(rng, values, odd)
    return np.asarray(values).astype(dtype)


def _alone(values: Array, manner: Manner) -> Array:
    """`values` with one NaN or infinity, or both infinities, in those rows that are this input's
    turn: in one column after the other. Half of its other rows are 0. A vector has rows of 1."""
    rows = values.reshape(-1, values.shape[-1] if values.ndim > 1 and values.size else 1).copy()
    odd = specials(values.dtype, extremes=False)
    columns = rows.shape[1]
    for row in range(len(rows)):
        turn = row // manner.places
        if (row + manner.turn) % manner.places == manner.place:
            rows[row, turn % columns] = odd[turn % _TELLING]
            if turn % 4 == 1 and columns > 1:
                rows[row, (turn + 1) % columns] = odd[2]
        elif turn % 2:
            rows[row] = 0
    return rows.reshape(values.shape)


def _with_neighbours(values: Array) -> Array:
    """Numbers, and the next larger and smaller one of their dtype."""
    steps = np.abs(values) * ml_dtypes.finfo(values.dtype).eps
    return np.concatenate([values, values + steps, values - steps]).astype(values.dtype)


def _ints(
    rng: np.random.Generator, dtype: np.dtype[Any], shape: tuple[int, ...], manner: Manner
) -> Array:
    info = ml_dtypes.iinfo(dtype)
    low, high = int(info.min), int(info.max)
    values = _plain_ints(rng, shape, manner)
    whole = [int(number) for number in manner.mentioned.numbers if number == int(number)]
    if manner.style == "mentioned" and manner.ints == "small" and whole:
        near = [number + step for number in whole for step in (-1, 0, 1)]
        values = rng.choice(np.array(near, object), shape)  # one past int64 would make all floats
    single = int(np.prod(shape)) == 1
    plain = manner.style not in ("wide", "mentioned")
    odd = manner.style in _ODD
    small = manner.ints == "small"
    harmless, numbers = small and are_data(manner.uses), small and are_numbers(manner.uses)
    signs = _SIGNS.get(manner.style)
    if signs is None and manner.flags != "mixed" and len(shape) > 1 and harmless:
        values = _flags(rng, shape, manner.flags).astype(np.int64)
    elif odd and harmless:
        values = _ends(rng, dtype, shape, manner.turn)
    elif odd and manner.extremes and _are_data(dtype, shape):
        ends = np.array([low, high, low + 1, high - 1], object)
        values = _mixed(rng, values.astype(object), ends)
    elif manner.style == "wide" and numbers and dtype.itemsize >= 4:
        bits = dtype.itemsize * 8 - 1
        raw = rng.integers(-(2**bits), 2**bits - 1, shape, endpoint=True)
        values = (raw >> rng.integers(0, bits, shape)) | (not harmless)  # no divisor is 0
    elif single and small and plain and are_trips(manner.uses):
        values = np.full(shape, _TRIPS[manner.turn % len(_TRIPS)])
    elif signs is not None and (numbers or (single and small)):
        sizes = np.maximum(1, np.abs(values))
        if numbers and manner.style == "large":
            least = max(1, min(_PRODUCT, high // 2))  # 1 in two bits
            sizes = least + rng.integers(0, least, shape)
        elif numbers and manner.style == "offset":
            sizes = min(high, _MOST) // 4 * 3 + sizes
        values = signs[manner.place % len(signs)] * sizes
    elif single and harmless and plain:
        size = int(rng.choice(np.array(manner.sizes or (1,))))
        values = np.full(shape, (values.item(), -1 - values.item(), size)[manner.turn % 3])
    if low == 0:  # unsigned
        values = np.where(values < 0, -values, values)
    return np.asarray(np.clip(values, low, high)).astype(dtype).reshape(shape)


def _ends(
    rng: np.random.Generator, dtype: np.dtype[Any], shape: tuple[int, ...], turn: int
) -> Array:
    """The ends of a dtype, and what narrower types lack; a single element by the `turn`."""
    low, high = int(ml_dtypes.iinfo(dtype).min), int(ml_dtypes.iinfo(dtype).max)
    beyond = [sign * number for sign in (1, -1) for number in _BEYOND]
    others = [low + 1, high - 1, *(number for number in beyond if low <= number <= high)]
    odd = np.array([high, low, *rng.permutation(np.array(others, object))], object)
    size = int(np.prod(shape))
    return np.resize(np.roll(odd, turn) if size == 1 else rng.permutation(odd[:size]), shape)


def _from_the_end(rng: np.random.Generator, shape: tuple[int, ...], manner: Manner) -> Array:
    """Positions that count from the end of an axis, which has one of the sizes."""
    sizes = sorted({size for size in manner.sizes if size > 0}, reverse=True) or [1]
    size = sizes[manner.turn % len(sizes)]
    values = -1 - rng.integers(0, size, shape)
    if values.size > 1:
        values = values.flatten()
        values[rng.integers(values.size)] = -size
    return np.asarray(values).reshape(shape)


def _mixed(rng: np.random.Generator, values: Array, odd: Array) -> Array:
    """`values` with the odd ones in half of the places, each about as often as the others."""
    count = int(np.ceil(values.size * _SHARE))
    result = values.flatten()
    result[rng.permutation(values.size)[:count]] = np.resize(rng.permutation(odd), count)
    return result.reshape(values.shape)


def _plain_ints(rng: np.random.Generator, shape: tuple[int, ...], manner: Manner) -> Array:
    single = int(np.prod(shape)) == 1
    match manner.ints:
        case "small" if manner.style == "wide":
            return rng.integers(*((16, 41) if single else (-1000, 1001)), shape)
        case "small":
            return rng.integers(*((0, 7) if single else (-4, 9)), shape)
        case "below":
            smallest = min((size for size in manner.sizes if size > 0), default=2)
            return rng.integers(0, smallest, shape)
        case "sizes":
            return rng.choice(np.array(manner.sizes or (1,)), size=shape)
        case "permutation":
            if not shape:
                return np.zeros(shape, np.int64)
            return rng.permuted(np.broadcast_to(np.arange(shape[-1]), shape), axis=-1)
        case "end":
            return _from_the_end(rng, shape, manner)
        case "zeros" | "ones" | "minus one":
            return np.full(shape, {"zeros": 0, "ones": 1, "minus one": -1}[manner.ints])


def _are_data(dtype: np.dtype[Any], shape: tuple[int, ...]) -> bool:
    """Return whether extremes are harmless: a scalar or vector of wide integers may be a trip count
    or a shape, and a size of 2**31 exhausts the machine instead of testing the model."""
    return dtype.itemsize < 4 or len(shape) >= 2
