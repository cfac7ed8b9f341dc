"""The sequence_lens of Scan-8: facts about the lengths, and the guards they need.

A row runs exactly as many iterations as its length; if the whole batch runs at once, its
loop may run on, but nothing that the original did not give is kept.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from onnx import TensorProto

from passes.converters.scan_8.batched_scan import BatchedScan
from passes.ir.purposes import GUARD_SIZES, HANDLE_LENGTH_0, HANDLE_NOTHING
from passes.rule import Site
from passes.writing import spelling
from passes.writing.author import Author


@dataclass(frozen=True)
class Lengths:
    """`ends` is int64 [batch], or [batch, 1] where the whole batch runs at once; `time` a scalar.

    `may_all_be_zero`: possibly no row runs, which a batch or time of 0 says, too. `rows`, shaped as
    `ends`, is the row whose inputs each row runs on, empty if its own. `masked`: each row takes all
    steps, and masks alone end it.
    """

    ends: str
    time: str
    may_be_zero: bool
    may_all_be_zero: bool
    rows: str = ""
    masked: bool = False


@dataclass(frozen=True)
class KnownLengths:
    """Facts about the lengths when the model is rewritten."""

    fixed: tuple[int, ...] | None

    @classmethod
    def of(cls, site: Site, scan: BatchedScan) -> KnownLengths | None:
        """None where the rows all run to the end: lengths omitted, or all equal to the time."""
        if not scan.form.lengths:
            return None
        value = site.constant(scan.form.lengths)
        if value is None:
            return cls(None)
        fixed = tuple(int(length) for length in value.ravel())
        everything = scan.times == (scan.time,) and scan.batches == (len(fixed),)
        if everything and all(length == scan.time for length in fixed):
            return None
        return cls(fixed)

    @property
    def may_be_zero(self) -> bool:
        """True if some row may have length 0."""
        return self.fixed is None or 0 in self.fixed

    @property
    def may_all_be_zero(self) -> bool:
        """True if possibly no row runs at all."""
        return self.fixed is None or not any(self.fixed)

    def in_range(self, time: int | None) -> bool:
        """Return whether all lengths are known to lie in 0..time."""
        return (
            self.fixed is not None
            and time is not None
            and all(0 <= length <= time for length in self.fixed)
        )


def time_of(author: Author, scan: BatchedScan) -> str:
    """The number of steps, a scalar."""
    if scan.time is not None:
        return author.int(scan.time)
    return spelling.scalar_size(author, scan.sequences[0], 1)


def same_sizes(author: Author, scan: BatchedScan, *, times: bool) -> list[str]:
    """Conditions (scalar bools) that batch sizes agree, and `times`, where that is not proven."""
    with author.serving(GUARD_SIZES):
        conditions = _agree(author, scan.batches, 0)
        return [*conditions, *_agree(author, scan.times, 1)] if times else conditions


def _agree(author: Author, sizes: tuple[int | str, ...], axis: int) -> list[str]:
    """Conditions that sizes, numbers or those of inputs, are all the same."""
    if len(sizes) == 1:
        return []
    first, *others = (
        author.int(size) if isinstance(size, int) else spelling.scalar_size(author, size, axis)
        for size in sizes
    )
    return [author.op("Equal", first, other) for other in others]


def any_row_runs(author: Author, ends: str) -> str:
    """Return whether any length is above 0, a scalar bool."""
    with author.serving(HANDLE_NOTHING):
        runs = author.op("Cast", _runs(author, ends), to=TensorProto.INT64)
        return author.op("Greater", spelling.total(author, runs), author.int(0))


def borrowed_rows(author: Author, lengths: str, ends: str, *, column: bool) -> str:
    """For each row the one whose inputs it runs on: itself, or else the first of the longest.

    That one runs, if any does. `column`: `ends` is [batch, 1].
    """
    with author.serving(HANDLE_LENGTH_0):
        everyone = spelling.arange(author, spelling.shape_of(author, lengths))
        if column:
            everyone = spelling.unsqueeze(author, everyone, 1)
        # ArgMax of onnxruntime knows int32 at every opset, int64 only later.
        known = author.op("Cast", lengths, to=TensorProto.INT32)
        # With one more, there is a longest one in an empty batch, too.
        nothing = author.value(np.zeros(1, np.int32), "nothing")
        first = author.op("ArgMax", author.op("Concat", known, nothing, axis=0), axis=0, keepdims=1)
        return author.op("Where", _runs(author, ends), everyone, first)


def _runs(author: Author, ends: str) -> str:
    nought = author.int(0)
    return author.once(("runs", ends), lambda: author.op("Greater", ends, nought))
