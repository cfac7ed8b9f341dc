"""How a Scan-8 is upgraded: the whole batch at once, a loop over its rows, or these written out."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

from onnx import NodeProto

from passes.bodies.time_body import OLDEST
from passes.converters.scan_8.batched_scan import BatchedScan
from passes.converters.scan_8.upgraded_scan import UpgradedScan
from passes.ir import scope as scoping
from passes.rule import Edit, Refused, Site
from passes.vectorize import NeedsRows
from passes.writing.author import Author

_MOST_ROWS = 64  # unrolling copies the body; beyond this the loop over the batch is the answer


def upgraded(site: Site) -> Edit:
    """The Edit of the first strategy that does not refuse.

    Raises:
        Refused: all of them do; the reason is that of the last one.
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
    return replace(author.edit(note, nodes), exact=exact)


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
