"""The Scan-9 that takes the place of a Scan-8, and the way around it where nothing may run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from onnx import GraphProto

from converters.batch_nest import nest
from converters.batch_unroll import unroll
from converters.batch_vectorize import vectorize
from converters.batched_scan import BatchedScan
from converters.idle_scan import has_elements, idle_outputs
from converters.own_weights import with_own_weights
from converters.padded_batch import Padded, may_pad
from converters.sequence_lens import (
    KnownLengths,
    Lengths,
    any_row_runs,
    borrowed_rows,
    checked_lengths,
    same_sizes,
)
from passes import spelling
from passes.author import Author
from passes.purposes import GUARD_SIZES, HANDLE_NOTHING
from passes.rule import Site
from passes.value_types import Dims


@dataclass(frozen=True)
class UpgradedScan:
    """One site, one strategy."""

    author: Author
    site: Site
    scan: BatchedScan
    strategy: str
    outputs: Sequence[str]

    def write(self) -> None:
        """Write the rows, and the way around them where possibly no iteration runs at all."""
        known = KnownLengths.of(self.site, self.scan)
        if known is None:
            self._write_full(self._guarded())
        else:
            self._write_ragged(known)

    def _assumed(self, assumption: str) -> bool:
        return assumption in self.site.options.get("assume", ())

    def _write_full(self, scan: BatchedScan) -> None:
        """All rows run to the end."""
        if (scan.batch and scan.time) or self._assumed("non-empty"):
            self._rows(self.author, scan, None, self.outputs)
            return
        if self._may_pad() and self._owning(scan) is None:
            with self.author.serving(HANDLE_NOTHING):
                padded = Padded.of(self.author, scan)
            self._padded(padded)
            return
        compared = scan is not self.scan or self._assumed("valid-inputs")
        condition = has_elements(self.author, scan)
        self._choose(scan, condition, None, compared)

    def _guarded(self) -> BatchedScan:
        """The loops of `nest` compare the sizes themselves; the other strategies do not."""
        scan = self.scan
        if self.strategy == "nest" or scan.same_batch or self._assumed("valid-inputs"):
            return scan
        conditions = same_sizes(self.author, scan)
        if not conditions:  # a single input agrees with itself
            return scan
        with self.author.serving(GUARD_SIZES):
            agree = spelling.both(self.author, conditions)
            first = scan.sequences[0]
            return scan.reading({first: spelling.must(self.author, first, agree)})

    def _write_ragged(self, known: KnownLengths) -> None:
        """Rows of different lengths."""
        author, scan = self.author, self.scan
        vector, time = checked_lengths(author, scan, known, self._assumed("valid-inputs"))
        if not known.may_all_be_zero or self._assumed("non-empty"):
            borrow = known.may_be_zero and not self._assumed("non-empty")
            rows = borrowed_rows(author, vector) if borrow else ""
            self._rows(author, scan, Lengths(vector, time, rows), self.outputs)
            return
        if self._may_pad() and self._owning(scan) is None:
            with author.serving(HANDLE_NOTHING):
                padded = Padded.of(author, scan, vector, time)
            self._padded(padded)
            return
        condition = any_row_runs(author, vector)
        self._choose(scan, condition, Lengths(vector, time), compared=True)

    def _owning(self, scan: BatchedScan) -> BatchedScan | None:
        """The Scan with its weights in its body; None where they stay, or would be copied."""
        if self.strategy == "unroll" and scan.batch != 1:
            return None
        return with_own_weights(self.site, scan)

    def _may_pad(self) -> bool:
        return self.strategy == "vectorize" and may_pad(self.site, self.scan)

    def _padded(self, padded: Padded) -> None:
        """Run the loop in any case, over a row and a step of zeros where there is nothing."""
        results = padded.outputs(len(self.outputs))
        self._rows(self.author, padded.scan, padded.lengths, results)
        with self.author.serving(HANDLE_NOTHING):
            padded.cut(results, self.outputs)

    def _choose(
        self, scan: BatchedScan, condition: str, lengths: Lengths | None, compared: bool
    ) -> None:
        """Run the loops only if some iteration does: an empty Scan fails in onnxruntime."""
        running = self.author.inside(f"{self.author.prefix}/some")
        results = [running.fresh(output) for output in self.outputs]
        if lengths is not None and scan.batch != 1:
            # With one row, "some row runs" is "the row runs".
            lengths = replace(lengths, rows=borrowed_rows(running, lengths.vector))
        self._rows(running, self._owning(scan) or scan, lengths, results)
        with self.author.serving(HANDLE_NOTHING):
            idle = self.author.inside(f"{self.author.prefix}/none")
            untouched = idle_outputs(idle, self.site, scan, checked=compared)
            self.author.op(
                "If",
                condition,
                outputs=self.outputs,
                then_branch=_branch(running, scan, results),
                else_branch=_branch(idle, scan, untouched),
            )

    def _rows(
        self,
        author: Author,
        scan: BatchedScan,
        lengths: Lengths | None,
        outputs: Sequence[str],
    ) -> None:
        name = self.site.node.name
        if self.strategy == "vectorize":
            vectorize(author, self.site, scan, lengths, outputs, name)
        elif self.strategy == "unroll":
            assert scan.batch is not None
            unroll(author, scan, lengths, scan.batch, outputs, name)
        else:
            nest(author, scan, lengths, outputs, name)


def _branch(writer: Author, scan: BatchedScan, names: Sequence[str]) -> GraphProto:
    """What was written, as a branch of the If, its outputs typed."""
    row_types = (*scan.states, *scan.elements)
    leading: list[Dims] = [(scan.batch,)] * len(scan.states)
    leading += [(scan.batch, scan.time)] * len(scan.elements)
    typed = zip(row_types, names, leading, strict=True)
    return writer.graph(
        writer.prefix, [], [row.value_info(name, *front) for row, name, front in typed]
    )
