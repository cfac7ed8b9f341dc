"""The rule `scan-8`: Scan-8, with its batch axis and sequence_lens, becomes Scan-9 or later."""

from __future__ import annotations

from collections.abc import Sequence

from onnx import GraphProto, NodeProto

from converters.batch_nest import nest
from converters.batch_unroll import unroll
from converters.batched_scan import BatchedScan
from converters.idle_scan import has_elements, idle_outputs
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

    After (`nest`; a batch of 1 needs no loop over it, `unroll` writes the rows out):

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
    - `batch-not-static`: `--batch unroll` was asked for, but the batch size is not known
    - `batch-too-large`: `--batch unroll` was asked for a batch of more than 64 rows
    """
    scan = BatchedScan.of(site)
    strategy = _strategy(site, scan)
    author = Author(site.target, site.names, site.node.name or "scan")
    outputs = [name or author.fresh("unused") for name in scan.form.outputs]
    known = KnownLengths.of(site, scan)
    _write(author, site, scan, known, strategy, outputs)
    nodes = author.nodes
    _inherit(nodes[-1], site.node)
    return Edit(tuple(nodes), tuple(author.constants), note=strategy)


def _strategy(site: Site, scan: BatchedScan) -> str:
    asked = site.options.get("batch", "auto")
    if asked == "auto":
        return "unroll" if scan.batch == 1 else "nest"
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


def _write(
    author: Author,
    site: Site,
    scan: BatchedScan,
    known: KnownLengths | None,
    strategy: str,
    outputs: Sequence[str],
) -> None:
    """Write the rows, and the way around them where possibly no iteration runs at all."""
    assumed = site.options.get("assume", ())
    name = site.node.name
    if known is None:
        scan = _guarded(author, scan, strategy, "valid-inputs" in assumed)
        if (scan.batch and scan.time) or "non-empty" in assumed:
            _write_rows(author, scan, None, strategy, outputs, name)
            return
        condition = has_elements(author, scan)
        vector = time = ""
    else:
        vector, time = checked_lengths(author, scan, known, "valid-inputs" in assumed)
        if not known.may_all_be_zero or "non-empty" in assumed:
            borrow = known.may_be_zero and "non-empty" not in assumed
            lengths = Lengths(vector, time, borrowed_rows(author, vector) if borrow else "")
            _write_rows(author, scan, lengths, strategy, outputs, name)
            return
        condition = any_row_runs(author, vector)
    running = author.inside(f"{author.prefix}/some")
    results = [running.fresh(output) for output in outputs]
    # With one row, "some row runs" is "the row runs".
    rows = borrowed_rows(running, vector) if vector and scan.batch != 1 else ""
    some = Lengths(vector, time, rows) if vector else None
    _write_rows(running, scan, some, strategy, results, name)
    idle = author.inside(f"{author.prefix}/none")
    untouched = idle_outputs(idle, site, scan, checked=bool(vector) or "valid-inputs" in assumed)
    _choose(author, scan, condition, (running, results), (idle, untouched), outputs)


def _write_rows(
    author: Author,
    scan: BatchedScan,
    lengths: Lengths | None,
    strategy: str,
    outputs: Sequence[str],
    name: str,
) -> None:
    if strategy == "unroll":
        assert scan.batch is not None
        unroll(author, scan, lengths, scan.batch, outputs, name)
    else:
        nest(author, scan, lengths, outputs, name)


def _guarded(author: Author, scan: BatchedScan, strategy: str, assume_valid: bool) -> BatchedScan:
    """Without lengths the loops themselves compare the sizes, but for an unrolled batch."""
    if strategy != "unroll" or assume_valid or scan.same_batch:
        return scan
    conditions = same_sizes(author, scan)
    first = scan.sequences[0]
    return scan.reading({first: spelling.must(author, first, spelling.both(author, conditions))})


def _choose(
    author: Author,
    scan: BatchedScan,
    condition: str,
    running: tuple[Author, Sequence[str]],
    idle: tuple[Author, Sequence[str]],
    outputs: Sequence[str],
) -> None:
    """Run the loops only if some iteration does: an empty Scan fails in onnxruntime."""
    row_types = (*scan.states, *scan.elements)
    leading: list[tuple[Dim, ...]] = [(scan.batch,)] * len(scan.states)
    leading += [(scan.batch, scan.time)] * len(scan.elements)

    def branch(writer: Author, names: Sequence[str]) -> GraphProto:
        typed = zip(row_types, names, leading, strict=True)
        infos = [row.value_info(name, *front) for row, name, front in typed]
        return writer.graph(writer.prefix, [], infos)

    author.op(
        "If",
        condition,
        outputs=outputs,
        then_branch=branch(*running),
        else_branch=branch(*idle),
    )


def _inherit(node: NodeProto, source: NodeProto) -> None:
    """The node that takes the place keeps what people wrote on the old one."""
    node.name = source.name
    node.doc_string = source.doc_string
    node.metadata_props.extend(source.metadata_props)
