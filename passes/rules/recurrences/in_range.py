"""Writes the condition that the form of the states of a block is exact enough for its numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from passes.rules.recurrences.index_notation import Factor
from passes.writing.author import Author

#: Products of factors do not overflow, and small results do not drown in what they are summed of.
LARGEST = 1e12
#: Results are finite.
FINITE = 1e37


#: The states after a block, and what is read of them, by name.
Written = tuple[list[str], dict[str, str]]


@dataclass(frozen=True)
class Prepared:
    """The iterations of a block for states of one form: `checks` are the conditions, scalar bools,
    on which what `write` writes may be used; `judge` writes those that depend on what it wrote."""

    checks: list[str]
    write: Callable[[Author], Written]
    judge: Callable[[Author, Written], list[str]] | None = None


def square(author: Author, factor: Factor) -> str:
    """The sum of the squares of a factor."""

    def written() -> str:
        value = author.op("Reciprocal", factor.name) if factor.inverse else factor.name
        return author.op("ReduceSumSquare", value, keepdims=0)

    return author.once(("square", factor.name, factor.inverse), written)


def is_finite(
    author: Author, squares: Sequence[str], dtype: np.dtype[Any], most: float = LARGEST
) -> str:
    """Return whether no number is NaN, infinite, or too large: the sum of all squares is less than
    `most`."""
    total = author.op("Sum", *squares) if len(squares) > 1 else squares[0]
    return author.op("Less", total, author.value(np.array(most, dtype), "largest"))
