"""The words of reports: numbers, equal things together, and columns."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import TypeVar

from passes.loops.alike import pattern_of

_T = TypeVar("_T")
#: A name in a sentence.
_NAME = re.compile("'[^']*'")


def and_more(number: int) -> str:
    """How many there are besides what a sentence names; empty if there are no more."""
    return f" (and {number} more)" if number else ""


def change(before: int, after: int) -> str:
    """A number before and after, once if it is the same."""
    return f"{before}" if before == after else f"{before} -> {after}"


def grouped(things: Iterable[_T], key: Callable[[_T], Hashable]) -> list[list[_T]]:
    """Things of equal keys together, in the order of the first of them."""
    groups: dict[Hashable, list[_T]] = {}
    for one in things:
        groups.setdefault(key(one), []).append(one)
    return list(groups.values())


def places_of(paths: Sequence[str]) -> str:
    """A path, or the number of several and a pattern that they match."""
    return f"{len(paths)} x {pattern_of(paths)}" if len(paths) > 1 else paths[0]


def without_names(sentence: str) -> str:
    """A sentence, the same for all that differ in quoted names alone."""
    return _NAME.sub("", sentence)


def scientific(number: float) -> str:
    """A finite number in two digits and a power of ten, as `2.5e-4`."""
    mantissa, exponent = f"{number:.1e}".split("e")
    return f"{mantissa}e{int(exponent)}" if number else "0"


def aligned(rows: Sequence[Sequence[str]], indent: str = "  ") -> list[str]:
    """A line for each row, whose cells begin below one another; rows have as many cells."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [indent + "  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
