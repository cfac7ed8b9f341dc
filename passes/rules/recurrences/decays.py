"""Applies the decay of a state to products within a block of C iterations.

`pair(left, right)[r, s]` is the product of row r with row s times the decay between them, for
s <= r, or s < r where the state is read before its update. Sources: the segment sums of the
Mamba-2 paper (one decay for all rows), and secondary chunks of gated linear attention (one decay
for each row of the state), relative to the middle of the block.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial, reduce
from typing import Any

import numpy as np

from passes.writing.author import Author
from passes.writing.spelling import Array, part, unsqueeze

_NEVER = -1e4  # exp of it is 0


@dataclass(frozen=True)
class Decay:
    """No decay.

    `length` is C, `rank` that of the state as it is laid out, `dtype` its type.
    """

    author: Author
    length: int
    rank: int
    dtype: np.dtype[Any]

    def row(self, value: str, *, before: bool) -> str:
        """A row that reads other rows of the block, [around.., C, along]."""
        return value

    def row_of_state(self, value: str, *, before: bool) -> str:
        """A row that reads the state from which the block starts."""
        return self.row(value, before=before)

    def column(self, value: str) -> str:
        """A row that is read, [around.., C, along]."""
        return value

    def mask(self, *, before: bool) -> str:
        """Return the factors of products of rows, [.., C, C]."""
        return self.constant(np.tril(np.ones((self.length,) * 2), -1 if before else 0), "mask")

    def end(self, start: str, added: list[tuple[str, str]]) -> str:
        """The state after the block: `added` are the rows and columns that were added to it."""
        total = start
        for row, column in added:
            product = self.author.op("MatMul", self.flipped(row), column)
            total = self.author.op("Add", total, product)
        return total

    def pair(self, left: str, right: str, *, before: bool) -> str:
        """Products of rows with earlier ones, [around.., C, C]."""
        row, column = self.row(left, before=before), self.flipped(self.column(right))
        products = self.author.op("MatMul", row, column)
        return self.author.op("Mul", products, self.mask(before=before))

    def flipped(self, value: str) -> str:
        """A value with its last two axes exchanged."""
        perm = [*range(self.rank - 2), self.rank - 1, self.rank - 2]
        return self.author.once(
            ("flipped", value), lambda: self.author.op("Transpose", value, perm=perm)
        )

    def parts(self, logs: str) -> tuple[str, str]:
        """Logs as multiples of 2^-12, whose sums are exact, and what is left: an error of a sum of
        logs would be a relative one of products."""
        grid = self.constant(np.array(1.5 * 2.0 ** (np.finfo(self.dtype).nmant - 12)), "grid")
        coarse = self.author.op("Sub", self.author.op("Add", logs, grid), grid)
        return coarse, self.author.op("Sub", logs, coarse)

    def constant(self, value: Array, hint: str) -> str:
        """A constant of the type of the state."""
        return self.author.value(value.astype(self.dtype), hint)


@dataclass(frozen=True)
class DecayOfAll(Decay):
    """One decay an iteration for all rows of the state; `logs` are [around.., C].

    `constant_logs`: they are the same in all blocks, and so would be an error of their sum.
    """

    logs: str = ""
    constant_logs: bool = False

    def _segments(self, *, before: bool) -> str:
        author = self.author

        def written() -> str:
            size = self.length
            below = self.constant(np.tril(np.ones((size, size)), -1), "below")
            between = author.op("Mul", unsqueeze(author, self.logs, -1), below)
            axis = author.int(self.rank - 2)
            sums = author.op("CumSum", between, axis, exclusive=int(before))
            kept = np.tril(np.ones((size, size)), -1 if before else 0)
            masked = author.op("Add", sums, self.constant(np.where(kept, 0, _NEVER), "mask"))
            return author.op("Exp", masked)

        return author.once(("segments", self.logs, before), written)

    def _from_start(self, *, before: bool) -> str:
        author = self.author

        def written() -> str:
            size = self.length
            upto = self.constant(np.triu(np.ones((size, size)), 1 if before else 0), "upto")
            parts = self.parts(self.logs) if self.constant_logs else (self.logs,)
            sums = [author.op("Exp", author.op("MatMul", part, upto)) for part in parts]
            return unsqueeze(author, reduce(partial(author.op, "Mul"), sums), -1)

        return author.once(("from start", self.logs, before), written)

    def mask(self, *, before: bool) -> str:
        """The decays between rows."""
        return self._segments(before=before)

    def row_of_state(self, value: str, *, before: bool) -> str:
        """A row times the decay from the start of the block to it."""
        return self.author.op("Mul", value, self._from_start(before=before))

    def end(self, start: str, added: list[tuple[str, str]]) -> str:
        """The state after the block."""
        author = self.author
        last = self.rank - 2
        to_end = part(author, self._segments(before=False), last, -1, None)
        whole = part(author, self._from_start(before=False), last, -1, None)
        total = author.op("Mul", start, whole)
        for row, column in added:
            kept = author.op("Mul", self.flipped(row), to_end)
            total = author.op("Add", total, author.op("MatMul", kept, column))
        return total


@dataclass(frozen=True)
class DecayOfRows(Decay):
    """A decay for each row of the state; `logs` are [around.., C, along].

    Rows are multiplied by the decay since the middle of the block, or divided by it, so products
    are exact as far as half a block decays by no more than the type holds. `ways` are the logs of
    these, after an iteration and before it, each as two sums, of which the first is exact;
    `first_half` that of the decay until the middle.
    """

    logs: str = ""
    ways: tuple[tuple[str, str], ...] = ()
    first_half: str = ""

    @classmethod
    def of(cls, decay: Decay, logs: str) -> DecayOfRows:
        """The decay of these logs."""
        author, size = decay.author, decay.length
        middle, rows, parts = size // 2 - 1, np.arange(size), decay.parts(logs)
        after = (rows[None, :] > middle) & (rows[None, :] <= rows[:, None])
        until = (rows[None, :] > rows[:, None]) & (rows[None, :] <= middle)
        signs = decay.constant(after.astype(float) - until, "signs")
        coarse, rest = (author.op("MatMul", signs, part) for part in parts)
        before = author.op("Sub", coarse, parts[0]), author.op("Sub", rest, parts[1])
        half = author.op("MatMul", decay.constant(rows[None, :] <= middle, "half"), logs)
        return cls(author, size, decay.rank, decay.dtype, logs, ((coarse, rest), before), half)

    def _factor(self, *, before: bool) -> str:
        author, (coarse, rest) = self.author, self.ways[before]
        return author.once(
            ("factor", coarse),
            lambda: author.op("Mul", author.op("Exp", coarse), author.op("Exp", rest)),
        )

    def row(self, value: str, *, before: bool) -> str:
        """A row times the decay since the middle."""
        return self.author.op("Mul", value, self._factor(before=before))

    def column(self, value: str) -> str:
        """A row divided by the decay since the middle."""
        factor = self._factor(before=False)
        return self.author.once(("column", value), lambda: self.author.op("Div", value, factor))

    def row_of_state(self, value: str, *, before: bool) -> str:
        """A row times the decay from the start of the block to it."""
        return self.author.op("Mul", self.row(value, before=before), self._to_middle())

    def _to_middle(self) -> str:
        """The decay from the start of the block to its middle, [around.., 1, along]."""
        author, half = self.author, self.first_half
        return author.once(("to middle", half), lambda: author.op("Exp", half))

    def end(self, start: str, added: list[tuple[str, str]]) -> str:
        """The state after the block: its rows, not all of it, are decayed to the end."""
        author = self.author
        to_end = part(author, self._factor(before=False), self.rank - 2, -1, None)
        whole = author.op("Mul", self._to_middle(), to_end)
        total = author.op("Mul", start, self.flipped(whole))
        for row, column in added:
            kept = author.op("Mul", self.column(row), to_end)
            total = author.op("Add", total, author.op("MatMul", self.flipped(kept), column))
        return total
