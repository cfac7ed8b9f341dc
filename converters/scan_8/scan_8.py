"""The rule `scan-8`: Scan-8, with its batch axis and sequence_lens, becomes Scan-9 or later."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from onnx import NodeProto

from passes.bodies.time_body import OLDEST
from passes.converters.scan_8.batched_scan import BatchedScan
from passes.converters.scan_8.upgraded_scan import UpgradedScan
from passes.ir import scope as scoping
from passes.ir.model import Model
from passes.ir.operators import op_of
from passes.ir.versions import SCAN_HAS_AXES
from passes.rule import Considers, Edit, Refused, Site, register
from passes.vectorize import NeedsRows
from passes.writing.author import Author

_MOST_ROWS = 64  # unrolling copies the body; beyond this the loop over the batch is the answer


def considers(node: NodeProto, opset: int, target: int) -> bool:
    """Return whether a node is a Scan in the form of version 8 that must leave it."""
    return op_of(node) == "Scan" and opset < SCAN_HAS_AXES <= target


def closer(model: Model, target: int) -> Considers | None:
    """Considers nothing in a model without a Scan."""
    return considers if any("Scan" in counted for _, counted in model.operators) else None


@register("scan-8", considers=considers, closer=closer, converts=True)
def upgrade_scan_8(site: Site) -> Edit:
    """Upgrade a Scan-8, batch and sequence_lens included, to the Scan of the target opset.

    Before:

        y, z = Scan <num_scan_inputs = 1, body> (lens, h0, x)

    After (`vectorize`, from opset 13 on: the body handles the whole batch at once):

        y, z = Scan <num_scan_inputs = 1, scan_input_axes = [1], scan_output_axes = [1],
                     body = batch> (h0, x)

    With `--batch mask`, which the target without control flow chooses, rows of other lengths take
    all steps, too: masks keep their states and write zeros after their lengths.

    After (`nest`, for every body; `unroll` writes the rows of a static batch out):

        y, z = Scan <num_scan_inputs = 3, body = row (float[H] h0_b, float[T, I] x_b, int64 len) {
            x_valid = Slice(x_b, 0, len)
            y_b, z_valid = Scan <num_scan_inputs = 1, body> (h0_b, x_valid)
            z_b = Concat(z_valid, zeros)
        }> (h0, x, lens)

    Each row runs exactly as many iterations as its length, on the values that the original
    saw; positions after the length are zero. Lengths outside 0..T fail, as in the original, and
    so do sizes that disagree, unless the model's inputs declare them with one symbol; `--assume
    valid-inputs` leaves these guards out. If there is nothing to run, the Scan does nothing, as
    the Scan-8 did; onnxruntime fails on it then, as on most such Scan-8: `--robust` writes an If
    around it.

    Refuses:
    - `unknown-type`: the element type of a state or collected value is not declared or inferred
    - `unknown-rank`: the rank of a state or collected value is not declared or inferred
    - `attribute-reference`: callers of the function choose how many tensors it scans, or how
    - `opset-too-old`: `--batch vectorize` was asked for, but the target opset is below 13
    - `no-batching-rule`: `--batch vectorize`: an op of the body has no rule for a batch
    - `batched-operand`: `--batch vectorize`: a shape or size in the body differs from row to row
    - `random`: `--batch vectorize`: an op of the body draws other numbers for each row
    - `not-speculatable`: `--batch vectorize`: a branch or loop in the body may fail on other rows;
      `--batch mask`: the body may fail where a row of length 0 runs
    - `ragged-rows`: `--batch vectorize`: branches or loops in the body give rows of other shapes
    - `collected-while`: `--batch vectorize`: a loop in the body collects another count per row
    - `batch-not-static`: `--batch unroll` was asked for, but the batch size is unknown, or 0
    - `batch-too-large`: `--batch unroll` was asked for a batch of more than 64 rows
    """
    scan = BatchedScan.of(site)
    *attempts, last = _strategies(site, scan)
    why = ""
    for strategy in attempts:
        try:
            return _written(site, scan, strategy, f"{strategy}{why}")
        except Refused as reason:
            why = f", since {strategy} refused: {reason.sentence}"
    return _written(site, scan, last, f"{last}{why}")


def _strategies(site: Site, scan: BatchedScan) -> list[str]:
    """The strategies to try, in order; one alone where it was asked for."""
    asked = site.options.batch
    if asked == "auto":
        return _automatic(site, scan)
    if asked == "unroll" and scan.batch is None:
        what = "`unroll` needs a static batch size, but no input of the Scan declares one"
        raise site.refused("batch-not-static", what, *scan.sequences)
    if asked == "unroll" and scan.batch == 0:
        what = "`unroll` writes out the rows of a batch, but this one is always empty"
        raise site.refused("batch-not-static", what, *scan.sequences)
    if asked == "unroll" and scan.batch is not None and scan.batch > _MOST_ROWS:
        raise site.refused(
            "batch-too-large",
            f"`unroll` would write {scan.batch} copies of the body, at most {_MOST_ROWS} are "
            "allowed; `nest` has no such limit",
        )
    return [str(asked)]


def _automatic(site: Site, scan: BatchedScan) -> list[str]:
    """A batch of 1 needs no loop over it; else the whole batch at once, where that works. What is
    to have no control flow cannot have rows that end at a size known only at run time, either."""
    if site.target < OLDEST:
        return ["unroll" if scan.batch == 1 else "nest"]
    masks = ["mask"] if site.options.flat and scan.form.lengths else []
    return [*masks, "unroll"] if scan.batch == 1 else [*masks, "vectorize", "nest"]


def _written(site: Site, scan: BatchedScan, strategy: str, note: str) -> Edit:
    try:
        return _edit(site, scan, strategy, note)
    except NeedsRows:
        return _edit(site, scan, strategy, note, needs_rows=True)


def _edit(
    site: Site, scan: BatchedScan, strategy: str, note: str, *, needs_rows: bool = False
) -> Edit:
    author = Author.at(site, "scan")
    outputs = [name or author.fresh("unused") for name in scan.form.outputs]
    UpgradedScan(author, site, scan, strategy, outputs, needs_rows).write()
    nodes = author.read(outputs)
    _inherit(nodes[-1], site.node, set(_node_names(nodes)))
    exact = strategy not in ("vectorize", "mask")  # a batched product sums in another order
    return Edit(
        tuple(nodes),
        tuple(author.constants),
        note=note,
        exact=exact,
        extras=author.extras(nodes),
    )


def _node_names(nodes: Sequence[NodeProto]) -> Iterator[str]:
    for node in nodes:
        yield node.name
        for _, graph in scoping.subgraphs(node):
            yield from _node_names(graph.node)


def _inherit(node: NodeProto, source: NodeProto, taken: Collection[str]) -> None:
    """The node that takes the place keeps what people wrote on the old one, and its name unless
    the loop has it."""
    if source.name and source.name not in taken:
        node.name = source.name
    node.doc_string = source.doc_string
    node.metadata_props.extend(source.metadata_props)
