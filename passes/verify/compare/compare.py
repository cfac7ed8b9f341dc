"""Comparing what two runs gave."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import Any, TypeGuard

import numpy as np

from passes.types.dtypes import is_float
from passes.verify.compare.tolerance import (
    BITS,
    VALUES,
    Tolerance,
    absolute_errors,
    bits,
    ulp_errors,
    unequal,
)
from passes.verify.executor import Array, Outcome, Value, kind_of


@dataclass(frozen=True)
class Difference:
    """A difference between two outputs. `index` is the worst element, None if no element is
    meant."""

    output: str
    sentence: str
    index: tuple[int, ...] | None = None
    expected: Any = None
    actual: Any = None


class Alike(IntEnum):
    """The degree to which two outcomes agree: `VALUES` if only signs of zeros differ."""

    BITS = 0
    VALUES = 1
    NEAR = 2


@dataclass(frozen=True)
class Errors:
    """The worst float errors among finite elements: absolute, relative, in units in the last
    place, and how much `alike` all elements are. `worst` shows the element that is off by most,
    empty where none is."""

    absolute: float = 0.0
    relative: float = 0.0
    ulp: float = 0.0
    alike: Alike = Alike.BITS
    worst: str = field(default="", compare=False)

    def __or__(self, other: Errors) -> Errors:
        """The worse of both, measure by measure."""
        return Errors(
            max(self.absolute, other.absolute),
            max(self.relative, other.relative),
            max(self.ulp, other.ulp),
            max(self.alike, other.alike),
            self.worst if self.absolute >= other.absolute and self.worst else other.worst,
        )


NO_ERRORS = Errors()


@dataclass(frozen=True)
class Comparison:
    """The differences (none: the outcomes agree), the errors, how many elements were seen, and of
    these how many were `wrong`, and how many prove nothing (`undecided`)."""

    differences: tuple[Difference, ...] = ()
    errors: Errors = NO_ERRORS
    elements: int = 0
    wrong: int = 0
    undecided: int = 0

    @property
    def agree(self) -> bool:
        return not self.differences

    def __or__(self, other: Comparison) -> Comparison:
        return Comparison(
            self.differences + other.differences,
            self.errors | other.errors,
            self.elements + other.elements,
            self.wrong + other.wrong,
            self.undecided + other.undecided,
        )


NOTHING = Comparison()


def compare(
    expected: Outcome,
    actual: Outcome,
    tolerance: Tolerance = BITS,
    *,
    sides: tuple[str, str] = ("before", "after"),
) -> Comparison:
    """Compare two runs: names and order of outputs, then dtypes, shapes and elements of each.

    Dims that are 0 are wildcards where either outcome had to guess shapes, for tensors that hold
    nothing but zeros. `sides` is what the sentences call the two runs.
    """
    how = _How(tolerance, expected.guessed_shapes or actual.guessed_shapes, sides)
    names, others = list(expected.outputs), list(actual.outputs)
    if names != others:
        return how.differ("", "the outputs", "are", names, others)
    result = Comparison()
    for name in names:
        result |= _compare_values(name, expected.outputs[name], actual.outputs[name], how)
    return result


#: Which elements count as equal, and how many of these prove nothing, of two arrays of one shape
#: and dtype, and others beside them, None where one is not alike.
Chosen = Callable[[Array, Array, Sequence[Array | None]], tuple[Array, int]]


def as_expected(
    expected: Outcome, actual: Outcome, others: Sequence[Outcome | None], chosen: Chosen
) -> tuple[Outcome, int]:
    """Return the actual outcome with the expected elements that are chosen, and how many of them
    prove nothing."""
    outputs: dict[str, Value] = {}
    undecided = 0
    for name, value in actual.outputs.items():
        beside = [None if other is None else other.outputs.get(name) for other in others]
        outputs[name], count = _as_expected(expected.outputs.get(name), value, beside, chosen)
        undecided += count
    return replace(actual, outputs=outputs), undecided


def _as_expected(
    expected: Value, actual: Value, others: Sequence[Value], chosen: Chosen
) -> tuple[Value, int]:
    if isinstance(expected, list) and isinstance(actual, list) and len(expected) == len(actual):
        lists = [
            one if isinstance(one, list) and len(one) == len(actual) else None for one in others
        ]
        items = [
            _as_expected(own, actual[n], [None if one is None else one[n] for one in lists], chosen)
            for n, own in enumerate(expected)
        ]
        return [item for item, _ in items], sum(count for _, count in items)
    if not isinstance(expected, np.ndarray) or not _is_like(actual, expected):
        return actual, 0
    arrays = [one if _is_like(one, expected) else None for one in others]
    where, undecided = chosen(expected, actual, arrays)
    return np.where(where, expected, actual), undecided


def _is_like(value: Value, array: Array) -> TypeGuard[Array]:
    """Return whether a value is an array of the shape and dtype of another one."""
    alike = isinstance(value, np.ndarray) and value.shape == array.shape
    return alike and np.asarray(value).dtype == array.dtype


def with_nan(right: Outcome, expected: Outcome, actual: Outcome) -> tuple[Outcome, int]:
    """Return the actual outcome with the expected element wherever the two differ, one of them is a
    number and `right`, a third outcome, is NaN; and the number of these elements."""

    def lost(before: Array, after: Array, others: Sequence[Array | None]) -> tuple[Array, int]:
        (nan,) = others
        if nan is None or not is_float(before.dtype):
            return np.zeros(before.shape, bool), 0
        both = np.isnan(before) & np.isnan(after)
        where = np.isnan(nan) & ~both & (before != after)
        return where, int(np.count_nonzero(where))

    return as_expected(expected, actual, [right], lost)


@dataclass(frozen=True)
class _How:
    """The way to compare two values, and the names of the two sides in messages."""

    tolerance: Tolerance
    guessed: bool
    sides: tuple[str, str]

    def both(self, left: Any, right: Any) -> str:
        return f"{left} {self.sides[0]} and {right} {self.sides[1]}"

    def element(self, name: str, index: tuple[int, ...], expected: Array, actual: Array) -> str:
        """A sentence with an element on both sides."""
        where = f"[{', '.join(map(str, index))}]" if index else ""
        return f"{name}{where} is {self.both(_show(expected[index]), _show(actual[index]))}"

    def differ(self, output: str, subject: str, verb: str, left: Any, right: Any) -> Comparison:
        return Comparison((Difference(output, f"{subject} {verb} {self.both(left, right)}"),))


def _compare_values(name: str, expected: Value, actual: Value, how: _How) -> Comparison:
    if kind_of(expected) != kind_of(actual):
        return how.differ(name, name, "is", kind_of(expected), kind_of(actual))
    if expected is None:
        return Comparison(elements=1)
    if isinstance(expected, list) and isinstance(actual, list):
        if len(expected) != len(actual):
            return how.differ(name, f"the length of {name}", "is", len(expected), len(actual))
        result = Comparison(elements=1)
        for index, (left, right) in enumerate(zip(expected, actual, strict=True)):
            result |= _compare_values(f"{name}[{index}]", left, right, how)
        return result
    return _compare_arrays(name, np.asarray(expected), np.asarray(actual), how)


def _compare_arrays(name: str, expected: Array, actual: Array, how: _How) -> Comparison:
    kind = _dtype_name(expected)
    if kind != _dtype_name(actual):
        return how.differ(name, name, "is", kind, _dtype_name(actual))
    if expected.shape != actual.shape:
        if how.guessed and _both_are_nothing(expected, actual):
            return Comparison()
        return how.differ(name, f"the shape of {name}", "is", expected.shape, actual.shape)
    if kind == "string":
        wrong = np.asarray(_strings(expected) != _strings(actual))
    elif expected.dtype.kind == "c":
        real = _compare_arrays(f"{name}.real", expected.real, actual.real, how)
        return real | _compare_arrays(f"{name}.imag", expected.imag, actual.imag, how)
    elif is_float(expected.dtype):
        if np.array_equal(bits(expected), bits(actual)):
            return Comparison(elements=expected.size)
        with np.errstate(all="ignore"):
            wrong = unequal(expected, actual, how.tolerance)
            errors = _errors(expected, actual)
            if errors.absolute:
                worst = _worst(expected, actual, np.asarray(expected != actual))
                errors = replace(errors, worst=how.element(name, worst, expected, actual))
            return _elements(name, expected, actual, wrong, how, errors)
    else:
        wrong = np.asarray(expected != actual)
    errors = replace(NO_ERRORS, alike=Alike.NEAR) if wrong.any() else NO_ERRORS
    return _elements(name, expected, actual, wrong, how, errors)


def _elements(
    name: str,
    expected: Array,
    actual: Array,
    wrong: Array,
    how: _How,
    errors: Errors = NO_ERRORS,
) -> Comparison:
    """The comparison of two arrays of one shape, described where they differ too much."""
    count = int(np.count_nonzero(wrong))
    if not count:
        return Comparison(errors=errors, elements=expected.size)
    worst = _worst(expected, actual, wrong)
    shown = how.element(name, worst, expected, actual)
    sentence = f"{shown}; {count} of {expected.size} elements differ"
    found = Difference(name, sentence, worst, expected[worst], actual[worst])
    return Comparison((found,), errors, expected.size, count)


def _worst(expected: Array, actual: Array, wrong: Array) -> tuple[int, ...]:
    """The index of the worst wrong element: not finite on one side, else the largest error."""
    severity = wrong.astype(np.float64)
    if is_float(expected.dtype):
        one_sided = np.isfinite(expected) != np.isfinite(actual)
        errors = 1.0 + absolute_errors(expected, actual)
        severity = np.where(wrong, np.where(one_sided, np.inf, errors), 0.0)
    flat = int(np.argmax(severity))
    return tuple(int(place) for place in np.unravel_index(flat, expected.shape))


def _errors(expected: Array, actual: Array) -> Errors:
    if not expected.size:
        return NO_ERRORS
    absolute = absolute_errors(expected, actual)
    alike = Alike.BITS
    if unequal(expected, actual, BITS).any():
        alike = Alike.NEAR if unequal(expected, actual, VALUES).any() else Alike.VALUES
    magnitude = np.abs(expected.astype(np.float64))
    relative = np.divide(absolute, magnitude, out=np.zeros_like(absolute), where=magnitude > 0)
    relative[~np.isfinite(relative)] = 0.0
    return Errors(
        float(absolute.max()),
        float(relative.max()),
        float(ulp_errors(expected, actual).max()),
        alike,
    )


def _dtype_name(array: Array) -> str:
    return "string" if array.dtype.kind in "OUST" else array.dtype.name


def _strings(array: Array) -> Array:
    """Strings as objects; bytes are UTF-8, as in a TensorProto."""
    texts = [item.decode() if isinstance(item, bytes) else str(item) for item in array.flat]
    result = np.empty(len(texts), object)
    result[:] = texts
    return result.reshape(array.shape)


def _both_are_nothing(left: Array, right: Array) -> bool:
    """Return whether two shapes agree in every dim that is nonzero in both, and no element, if
    there is any, differs from zero."""
    return (
        left.ndim == right.ndim
        and all(a == b or 0 in (a, b) for a, b in zip(left.shape, right.shape, strict=True))
        and not any(bool(element) for element in (*left.flat, *right.flat))
    )


def _show(element: Any) -> str:
    return repr(str(element)) if isinstance(element, str | bytes) else str(element)
