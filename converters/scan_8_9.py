"""The rule `scan-8`: Scan-8, with its batch axis and sequence_lens, becomes Scan-9 or later."""

from __future__ import annotations

from collections.abc import Sequence

from onnx import NodeProto, ValueInfoProto

from converters.batch_nest import nest
from converters.batch_unroll import unroll
from converters.batched_scan import BatchedScan
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
from passes.value_types import Dim, dims_of

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
    assume_valid = "valid-inputs" in site.options.get("assume", ())
    if known is None:
        scan = _guarded(author, scan, strategy, assume_valid)
        _write_rows(author, scan, None, strategy, outputs, site.node.name)
        return
    vector, time = checked_lengths(author, scan, known, assume_valid)
    if not known.may_all_be_zero:
        rows = borrowed_rows(author, vector) if known.may_be_zero else ""
        lengths = Lengths(vector, time, rows)
        _write_rows(author, scan, lengths, strategy, outputs, site.node.name)
        return
    condition = any_row_runs(author, vector)
    running = author.inside(f"{author.prefix}/some")
    # With one row, "some row runs" is "the row runs".
    rows = "" if scan.batch == 1 else borrowed_rows(running, vector)
    results = [running.fresh(output) for output in outputs]
    lengths = Lengths(vector, time, rows)
    _write_rows(running, scan, lengths, strategy, results, site.node.name)
    idle = author.inside(f"{author.prefix}/none")
    _guard(author, site, scan, condition, (running, results), idle, outputs)


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


def _guard(
    author: Author,
    site: Site,
    scan: BatchedScan,
    condition: str,
    running: tuple[Author, Sequence[str]],
    idle: Author,
    outputs: Sequence[str],
) -> None:
    """Run the loops only if some row does; else the states stay and all outputs are zero."""
    some, results = running
    untouched = _idle_outputs(idle, site, scan)
    row_types = (*scan.states, *scan.elements)
    leading: list[tuple[Dim, ...]] = [(scan.batch,)] * len(scan.states)
    leading += [(scan.batch, scan.time)] * len(scan.elements)

    def typed(names: Sequence[str]) -> list[ValueInfoProto]:
        return [
            row.value_info(name, *front)
            for row, name, front in zip(row_types, names, leading, strict=True)
        ]

    author.op(
        "If",
        condition,
        outputs=outputs,
        then_branch=some.graph(some.prefix, [], typed(results)),
        else_branch=idle.graph(idle.prefix, [], typed(untouched)),
    )


def _idle_outputs(idle: Author, site: Site, scan: BatchedScan) -> list[str]:
    states = [idle.op("Identity", value) for value in scan.initials]
    first = scan.sequences[0]
    sizes = [spelling.size_of_axis(idle, first, axis) for axis in (0, 1)]
    collected = []
    for element in scan.elements:
        dims = [_size(idle, site, scan, dim) for dim in element.dims]
        shape = idle.op("Concat", *sizes, *dims, axis=0)
        collected.append(spelling.zeros(idle, shape, element.elem_type))
    return [*states, *collected]


def _size(idle: Author, site: Site, scan: BatchedScan, dim: Dim) -> str:
    """A dim of a collected value: static, or a symbol that some input has too; else 0."""
    if isinstance(dim, int):
        return idle.ints(dim)
    for value in (*scan.initials, *scan.sequences):
        dims: Sequence[Dim] = dims_of(site.type_of(value)) or ()
        if dim is not None and dim in dims:
            return spelling.size_of_axis(idle, value, dims.index(dim))
    return idle.ints(0)


def _inherit(node: NodeProto, source: NodeProto) -> None:
    """The node that takes the place keeps what people wrote on the old one."""
    node.name = source.name
    node.doc_string = source.doc_string
    node.metadata_props.extend(source.metadata_props)
