"""Lengths of rows (`sequence_lens`), and what lies behind them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from passes.verify.executor import Array
from passes.verify.inputs.arrays import is_float, specials
from passes.verify.inputs.plans import Lengths

#: Larger than any dim that is drawn.
_NO_INDEX = 1_000_000


def lengths(rng: np.random.Generator, mode: Lengths, rows: int, longest: int) -> Array:
    """int64 (rows,): a length from 0 to `longest` for each row; invalid ones where asked.

    Ragged lengths hold 0 and `longest` in one batch, wherever there are two rows.
    """
    drawn = rng.integers(0, longest + 1, rows)
    match mode:
        case "full":
            return np.full(rows, longest, np.int64)
        case "empty":
            return np.zeros(rows, np.int64)
        case "positive":
            drawn = np.maximum(drawn, min(1, longest))
            return _with(rng, drawn, [longest])
        case "too long":
            return _with(rng, drawn, [longest + 1])
        case "negative":
            return _with(rng, drawn, [-1])
    return _with(rng, drawn, [0, longest] if rows > 1 else [])


def _with(rng: np.random.Generator, values: Array, wanted: Sequence[int]) -> Array:
    """`values` with the wanted ones at random places, as many as fit."""
    places = rng.permutation(len(values))[: len(wanted)]
    result = values.astype(np.int64)
    result[places] = wanted[: len(places)]
    return result


def fill_behind(array: Array, row_axis: int, time_axis: int, ends: Array) -> Array:
    """A copy with what nobody may look at behind the end of each row: NaN and infinities, or
    integers that are no index and no divisor."""
    if is_float(array.dtype):
        odd = np.resize(specials(array.dtype, extremes=False)[:3], array.shape)
    elif array.dtype in (np.int32, np.int64):
        odd = np.resize(np.array([_NO_INDEX, 0, -_NO_INDEX]), array.shape)
    else:
        return array
    time = _along(np.arange(array.shape[time_axis]), time_axis, array.ndim)
    behind = time >= _along(ends, row_axis, array.ndim)
    return np.where(behind, odd, array).astype(array.dtype)


def _along(vector: Array, axis: int, rank: int) -> Array:
    return vector.reshape([-1 if at == axis else 1 for at in range(rank)])
