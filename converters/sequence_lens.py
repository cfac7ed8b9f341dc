"""sequence_lens of Scan-8: what is known of the lengths, and the guards they need.

A row runs exactly as many iterations as its length says, so nothing is ever computed on values
that the original did not see. Only a row of length 0 borrows the inputs of a row that ran, for
one iteration that nobody reads, since a Scan over nothing fails in onnxruntime.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from onnx import TensorProto

from converters.batched_scan import BatchedScan
from passes import spelling
from passes.author import Author
from passes.purposes import GUARD_LENGTHS, GUARD_SIZES, HANDLE_LENGTH_0, HANDLE_NOTHING
from passes.rule import Site


@dataclass(frozen=True)
class Lengths:
    """`vector` is int64 [batch]; `rows` the row whose inputs each row runs on, empty if its own."""

    vector: str
    time: str  # int64 [1]
    rows: str = ""
    padded: bool = False  # some of it stands in for nothing, and any row may have length 0

    @property
    def may_be_zero(self) -> bool:
        """Whether a row may have length 0."""
        return bool(self.rows) or self.padded


@dataclass(frozen=True)
class KnownLengths:
    """What is known of the lengths when the model is rewritten."""

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
        everything = scan.same_time and scan.same_batch and len(fixed) == scan.batch
        if everything and all(length == scan.time for length in fixed):
            return None
        return cls(fixed)

    @property
    def may_be_zero(self) -> bool:
        """Whether some row may have length 0."""
        return self.fixed is None or 0 in self.fixed

    @property
    def may_all_be_zero(self) -> bool:
        """Whether possibly no row runs at all."""
        return self.fixed is None or not any(self.fixed)

    def in_range(self, time: int | None) -> bool:
        """Whether all lengths are known to lie in 0..time."""
        return (
            self.fixed is not None
            and time is not None
            and all(0 <= length <= time for length in self.fixed)
        )


def checked_lengths(
    author: Author, scan: BatchedScan, known: KnownLengths, assume_valid: bool
) -> tuple[str, str]:
    """The lengths and the time, guarded: the model fails where the original does.

    That is where a length lies outside 0..time, or where batch or time sizes disagree.
    """
    lengths = scan.form.lengths
    time = spelling.size_of_axis(author, scan.sequences[0], 1)
    if assume_valid:
        return lengths, time
    conditions = []
    with author.serving(GUARD_LENGTHS):
        if not (known.in_range(scan.time) and scan.same_time):
            conditions.append(_in_range(author, lengths, time))
        conditions += same_sizes(author, scan)
        if conditions:
            lengths = spelling.must_count(author, lengths, spelling.both(author, conditions))
    return lengths, time


def same_sizes(author: Author, scan: BatchedScan) -> list[str]:
    """Conditions (scalar bools) that batch and time sizes agree, where that is not proven."""
    with author.serving(GUARD_SIZES):
        return _same_sizes(author, scan)


def _same_sizes(author: Author, scan: BatchedScan) -> list[str]:
    conditions = []
    everything = [*scan.sequences, *scan.initials]
    if scan.form.lengths:
        everything.append(scan.form.lengths)
    if not scan.same_batch:
        conditions += _agree(author, everything, 0, scan.batch)
    if not scan.same_time:
        conditions += _agree(author, scan.sequences, 1, scan.time)
    return conditions


def _agree(author: Author, values: list[str], axis: int, size: int | None) -> list[str]:
    """Conditions that all values have the same size, and `size` where one is declared."""
    sizes = [
        spelling.squeeze(author, spelling.size_of_axis(author, value, axis), 0)
        for value in dict.fromkeys(values)
    ]
    if size is not None:
        sizes.insert(0, author.int(size))
    return [author.op("Equal", sizes[0], other) for other in sizes[1:]]


def _in_range(author: Author, lengths: str, time: str) -> str:
    negative = author.op("Less", lengths, author.ints(0))
    wrong = author.op("Or", negative, author.op("Greater", lengths, time))
    count = spelling.total(author, author.op("Cast", wrong, to=TensorProto.INT64))
    return author.op("Equal", count, author.int(0))


def any_row_runs(author: Author, lengths: str) -> str:
    """Whether any length is above 0, a scalar bool."""
    with author.serving(HANDLE_NOTHING):
        runs = author.op("Cast", _runs(author, lengths), to=TensorProto.INT64)
        return author.op("Greater", spelling.total(author, runs), author.int(0))


def borrowed_rows(author: Author, lengths: str) -> str:
    """For each row the one whose inputs it runs on: itself, or the first row that runs.

    Only where at least one row runs.
    """
    with author.serving(HANDLE_LENGTH_0):
        runs = _runs(author, lengths)
        # ArgMax of onnxruntime knows int32 at every opset, int64 only later.
        flags = author.op("Cast", runs, to=TensorProto.INT32)
        first = author.op("ArgMax", flags, axis=0, keepdims=1)
        everyone = spelling.arange(author, author.op("Shape", lengths))
        return author.op("Where", runs, everyone, first)


def _runs(author: Author, lengths: str) -> str:
    nought = author.constant(np.zeros(1, np.int64), "ints")
    return author.once(("runs", lengths), lambda: author.op("Greater", lengths, nought))
