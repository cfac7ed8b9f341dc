"""The rule `scan-8`: Scan-8, with its batch axis and sequence_lens, becomes Scan-9 or later."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

from onnx import GraphProto, NodeProto

from converters.batch_nest import nest
from converters.batch_unroll import unroll
from converters.batch_vectorize import OLDEST, vectorize
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
from passes import scope as scoping
from passes import spelling
from passes.author import Author
from passes.rule import Edit, Refused, Site, register
from passes.value_types import Dim

_MOST_ROWS = 64  # unrolling copies the body; beyond this the loop over the batch is the answer


def considers(node: NodeProto, opset: int, target: int) -> bool:
    """Whether a node is a Scan in the form of version 8 that must leave it."""
    return node.op_type == "Scan" and scoping.is_onnx_domain(node.domain) and opset < 9 <= target


@register("scan-8", considers=considers)
def upgrade_scan_8(site: Site) -> Edit:
    """Upgrade a Scan-8, batch and sequence_lens included, to the Scan of the target opset.

    Before:

        y, z = Scan <num_scan_inputs = 1, body> (lens, h0, x)

    After (`vectorize`, from opset 13 on: the body handles the whole batch at once):

        y, z = Scan <num_scan_inputs = 1, scan_input_axes = [1], scan_output_axes = [1],
                     body = batch> (h0, x)

    After (`nest`, for every body; `unroll` writes the rows of a static batch out):

        y, z = Scan <num_scan_inputs = 3, body = row (float[H] h0_b, float[T, I] x_b, int64 len) {
            x_valid = Slice(x_b, 0, len)
            y_b, z_valid = Scan <num_scan_inputs = 1, body> (h0_b, x_valid)
            z_b = Concat(z_valid, zeros)
        }> (h0, x, lens)

    Each row runs exactly as many iterations as its length says, on the values that the original
    saw; positions behind the length are zero. Lengths outside 0..T fail, as in the original.

    Refuses:
    - `unknown-type`: the element type of a state or collected value is not declared or inferred
    - `unknown-rank`: the rank of a state or collected value is not declared or inferred
    - `opset-too-old`: `--batch vectorize` was asked for, but the target opset is below 13
    - `no-batching-rule`: `--batch vectorize`: an op of the body has no rule for a batch
    - `batched-operand`: `--batch vectorize`: a shape or size in the body differs from row to row
    - `random`: `--batch vectorize`: an op of the body draws anew for each row
    - `not-speculatable`: `--batch vectorize`: a branch or loop in the body may fail on other rows
    - `ragged-rows`: `--batch vectorize`: branches or loops in the body give rows of other shapes
    - `collected-while`: `--batch vectorize`: a loop in the body collects another count per row
    - `batch-not-static`: `--batch unroll` was asked for, but the batch size is not known
    - `batch-too-large`: `--batch unroll` was asked for a batch of more than 64 rows
    """
    scan = BatchedScan.of(site)
    strategy = _strategy(site, scan)
    if strategy != "auto":
        return _edit(site, scan, strategy, strategy)
    try:
        return _edit(site, scan, "vectorize", "vectorize")
    except Refused as reason:
        return _edit(site, scan, "nest", f"nest, since vectorize refused: {reason.sentence}")


def _strategy(site: Site, scan: BatchedScan) -> str:
    asked = site.options.get("batch", "auto")
    if asked == "auto":
        return _automatic(site, scan)
    if asked == "unroll" and scan.batch is None:
        raise Refused(
            "batch-not-static",
            "`unroll` needs a static batch size, but no input of the Scan declares one",
            [site.path, *scan.sequences],
        )
    if asked == "unroll" and scan.batch is not None and scan.batch > _MOST_ROWS:
        raise Refused(
            "batch-too-large",
            f"`unroll` would write {scan.batch} copies of the body, at most {_MOST_ROWS} are "
            "allowed; `nest` has no such limit",
            [site.path],
        )
    return str(asked)


def _automatic(site: Site, scan: BatchedScan) -> str:
    """A batch of 1 needs no loop over it; else the whole batch at once, where that works."""
    if scan.batch == 1:
        return "unroll"
    return "auto" if site.target >= OLDEST else "nest"


def _edit(site: Site, scan: BatchedScan, strategy: str, note: str) -> Edit:
    author = Author(site.target, site.names, site.node.name or "scan")
    outputs = [name or author.fresh("unused") for name in scan.form.outputs]
    _Upgrade(author, site, scan, strategy, outputs).write()
    nodes = author.nodes
    _inherit(nodes[-1], site.node, set(_node_names(nodes)))
    exact = strategy != "vectorize"  # a batched product sums in another order
    return Edit(tuple(nodes), tuple(author.constants), note=note, exact=exact, tidies=True)


@dataclass(frozen=True)
class _Upgrade:
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
            self._padded(Padded.of(self.author, scan))
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
            self._padded(Padded.of(author, scan, vector, time))
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
    leading: list[tuple[Dim, ...]] = [(scan.batch,)] * len(scan.states)
    leading += [(scan.batch, scan.time)] * len(scan.elements)
    typed = zip(row_types, names, leading, strict=True)
    return writer.graph(
        writer.prefix, [], [row.value_info(name, *front) for row, name, front in typed]
    )


def _node_names(nodes: Sequence[NodeProto]) -> Iterator[str]:
    for node in nodes:
        yield node.name
        for _, graph in scoping.subgraphs(node):
            yield from _node_names(graph.node)


def _inherit(node: NodeProto, source: NodeProto, taken: Collection[str]) -> None:
    """The node that takes the place keeps what people wrote on the old one, and its name unless
    the loop has it."""
    if source.name not in taken:
        node.name = source.name
    node.doc_string = source.doc_string
    node.metadata_props.extend(source.metadata_props)
