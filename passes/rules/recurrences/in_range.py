"""Whether the numbers of a block are such that the form of its states is exact enough."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np

from passes.rules.recurrences.index_notation import Factor
from passes.writing.author import Author

#: The sum of the squares of all factors is less: products of a few of them do not overflow.
_LARGEST = 1e20


#: The states after a block, and what is read of them, by name.
Written = tuple[list[str], dict[str, str]]


@dataclass(frozen=True)
class Prepared:
    """The iterations of a block for states of one form: `checks` are the conditions, scalar bools,
    on which `write` may be used."""

    checks: list[str]
    write: Callable[[Author], Written]


def square(author: Author, factor: Factor) -> str:
    """The sum of the squares of a factor."""

    def written() -> str:
        value = author.op("Reciprocal", factor.name) if factor.inverse else factor.name
        return author.op("ReduceSumSquare", value, keepdims=0)

    return author.once(("square", factor.name, factor.inverse), written)


def is_finite(author: Author, squares: Sequence[str], dtype: np.dtype[Any]) -> str:
    """Whether no number is NaN, infinite or so large that products may overflow."""
    total = reduce(lambda one, other: author.op("Add", one, other), squares)
    return author.op("Less", total, author.constant(np.array(_LARGEST, dtype), "largest"))
