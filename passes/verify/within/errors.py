"""How far the outcome of a run is from another one: floats by their error, the rest by count."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, zip_longest

import numpy as np

from passes.reports.precision import Differing, OutputError
from passes.types.dtypes import is_float
from passes.verify.executor import Array, Outcome, Value

#: The growth of an error that is not reported, for each so many times the length.
_NO_GROWTH, _TIMES = 2.0, 8
#: How what tells of an output begins that has another shape, so that nothing in it is compared.
SHAPE = "the shape of"
#: The tensors of a value, by their positions in the sequences that it consists of.
_Tensors = dict[tuple[int, ...], Array]


@dataclass(frozen=True)
class _Tensor:
    """A tensor of an output, before and after, and of the original under other roundings."""

    at: tuple[int, ...]
    was: Array
    now: Array
    moved: Array


def off(
    old: Outcome, new: Outcome, other: Outcome, length: int | None
) -> Iterator[OutputError | Differing]:
    """How far each output of `new` is from that of `old`; `other` is the outcome of the original
    under other roundings. A float that is not finite before has no error; what became of such
    elements is counted."""
    for name, value in old.outputs.items():
        was, now = _tensors(value), _tensors(new.outputs.get(name))
        moved = _tensors(other.outputs.get(name))
        steady = _fit(was, moved)
        if not _fit(was, now):
            yield Differing(f"{SHAPE} {name!r}", length, 1, 1, int(not steady))
            continue
        all_ = [_Tensor(at, was[at], now[at], (moved if steady else was)[at]) for at in was]
        floats = [one for one in all_ if is_float(one.was.dtype)]
        if floats:
            yield _error(name, floats, length)
            odd = [(~np.isfinite(one.was), one) for one in floats]
            left = [_Tensor(one.at, one.was[w], one.now[w], one.moved[w]) for w, one in odd]
            yield _count(f"elements of {name!r} that are not finite", left, length)
        yield _count(repr(name), [one for one in all_ if not is_float(one.was.dtype)], length)


@np.errstate(all="ignore")
def _error(name: str, tensors: Sequence[_Tensor], length: int | None) -> OutputError:
    """The error of an output."""
    elements = (np.abs(one.was[np.isfinite(one.was)]).max(initial=0) for one in tensors)
    scale, worst = float(max(elements)) or 1.0, OutputError(name, length, 0.0)
    error = unsure = 0.0
    overflows = 0
    for one in tensors:
        known = np.isfinite(one.was)
        steady = known & np.isfinite(one.moved)
        moved = np.abs(one.moved - one.was).max(initial=0, where=steady)
        gone = steady & ~np.isfinite(one.now)
        differences = np.where(known & np.isfinite(one.now), np.abs(one.now - one.was), 0)
        sizes = np.asarray(differences / scale)  # a quotient of no axes is no array
        error = max(error, float(sizes.max(initial=0)))
        unsure = max(unsure, float(moved) / scale)
        overflows += int(np.count_nonzero(gone))
        all_ = np.where(gone, math.inf, sizes)
        if all_.max(initial=0) > worst.error:
            place = np.unravel_index(int(all_.argmax()), all_.shape)
            now = float(one.now[place])
            worst = replace(
                worst,
                error=float(all_[place]),
                worst=(*one.at, *map(int, place)),
                was=float(one.was[place]),
                now=now if math.isfinite(now) else None,
            )
    most = sys.float_info.max  # of double precision, beside denormals
    return replace(worst, error=min(error, most), unsure=min(unsure, most), overflows=overflows)


def _count(what: str, tensors: Sequence[_Tensor], length: int | None) -> Differing:
    """How many elements differ, of how many, and how many under other roundings."""
    different = sum(int(np.count_nonzero(~_same(one.was, one.now))) for one in tensors)
    unsure = sum(int(np.count_nonzero(~_same(one.was, one.moved))) for one in tensors)
    return Differing(what, length, different, sum(one.was.size for one in tensors), unsure)


def _same(one: Array, other: Array) -> Array:
    """bool array: the elements that are equal, or both NaN."""
    return np.asarray((one == other) | ((one != one) & (other != other)))


def _tensors(value: Value, at: tuple[int, ...] = ()) -> _Tensors:
    """The tensors of a value; floats in double precision, complex numbers as pairs of them."""
    if value is None:
        return {}
    if isinstance(value, list):
        parts = [_tensors(one, (*at, position)) for position, one in enumerate(value)]
        return {place: one for part in parts for place, one in part.items()}
    if value.dtype.kind == "c":
        value = np.stack([value.real, value.imag], -1)
    return {at: value.astype(np.float64) if is_float(value.dtype) else value}


def _fit(one: _Tensors, other: _Tensors) -> bool:
    """Return whether two values have the same structure and shapes."""
    shapes = [{at: value.shape for at, value in each.items()} for each in (one, other)]
    return shapes[0] == shapes[1]


def decisions(what: str, length: int | None, runs: Sequence[Sequence[int]]) -> Differing:
    """How many trip counts or branches differ: before, after, and under other roundings."""
    was, now, moved = runs
    different = sum(one != other for one, other in zip_longest(was, now))
    unsure = sum(one != other for one, other in zip_longest(was, moved))
    return Differing(what, length, different, max(len(was), len(now)), unsure)


def worst_of(found: Iterable[OutputError]) -> list[OutputError]:
    """The largest error of each output at each length, of several cases."""
    kept: dict[tuple[str, int | None], OutputError] = {}
    for one in found:
        key = one.output, one.length
        known = kept.get(key, one)
        first = max(known, one, key=lambda each: (each.counted, each.error))
        kept[key] = replace(first, unsure=max(known.unsure, one.unsure))
    return list(kept.values())


def sums_of(found: Iterable[Differing]) -> list[Differing]:
    """What differs, summed up over several cases; nothing of what never differs."""
    kept: dict[tuple[str, int | None], Differing] = {}
    for one in found:
        known = kept.get((one.what, one.length), replace(one, different=0, total=0, unsure=0))
        kept[one.what, one.length] = replace(
            known,
            different=known.different + one.different,
            total=known.total + one.total,
            unsure=known.unsure + one.unsure,
        )
    return [one for one in kept.values() if one.different]


def growing(errors: Iterable[OutputError]) -> list[str]:
    """The outputs whose error grows from the last length but one to the last."""
    found = []
    known = [(one.output, one.length, one.counted) for one in errors if one.length]
    for name, group in groupby(sorted(known), key=lambda one: one[0]):
        *_, (_, short, less), (_, long, more) = [("", 1, math.inf), *group]
        if more > less * _NO_GROWTH ** math.log(max(long or 1, 1) / (short or 1), _TIMES):
            found.append(name)
    return found
