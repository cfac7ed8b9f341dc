"""The rule `raise-loop`: a Loop becomes a Scan, where it is proven that one can do its work."""

from __future__ import annotations

from dataclasses import replace

from passes.analysis.bodies.context import context_of
from passes.analysis.bodies.liveness import dead_after_rewrite
from passes.bodies.few_iterations import expected, refuse_few
from passes.ir.versions import SCAN_HAS_AXES
from passes.rule import Edit, Site, nodes_of, register
from passes.rules.raise_loop.raised_scan import RaisedScan
from passes.rules.raise_loop.raising import Raising
from passes.writing.author import Author


@register("raise-loop", considers=nodes_of("Loop"), optional=True)
def raise_loop(site: Site) -> Edit:
    """Turn a Loop with a known trip count into a Scan.

    Before:

        h, ys = Loop (T, "") <body = step (int64 i, bool go, float[H] h_in) => (...) {
            x_t = Gather (x, i)
            h_out = Add (h_in, x_t)
            y = Identity (h_out)
        }> (h0)

    After, if T is the size of x and above 0 (else the Scan is put into an If):

        h, ys = Scan <num_scan_inputs = 1, body = step (float[H] h_in, float[H] x_t) => (...) {
            h_out = Add (h_in, x_t)
            y = Identity (h_out)
        }> (h0, x)

    Slices that the iteration number indexes (`Gather`, `Slice`, `SequenceAt` of a split tensor;
    forwards, backwards, with an offset, on any axis) become scanned inputs; an iteration number
    that has other uses is scanned over a Range. What every iteration adds to a carried
    tensor or sequence becomes a collected output, and so do rows of a buffer, on any axis, that is
    written completely. A Transpose or reversal after the loop becomes the axis or direction of the
    output, a Transpose only where no size of an element may be 0. Where the trip count may exceed
    the size of a tensor, the new model fails as the read would have. `--assume non-empty` omits
    the If; `--assume valid-inputs` assumes that sizes that bodies declare with one symbol are
    equal, as is always assumed of the model's inputs.

    Refuses:
    - `opset-too-old`: the opset is below 9, which has no such Scan
    - `condition`: the body computes whether the loop continues
    - `endless`: nothing ends the loop
    - `no-iteration`: the trip count is constant, and below 1
    - `not-a-tensor`: a sequence or an optional is carried
    - `shape-changes`: a carried value changes its shape
    - `shape-unknown`: it is not proven that a carried value keeps its shape, or runtimes differ
    - `unknown-type`: the element type of a carried or collected value is not known
    - `unknown-rank`: the rank of a collected value is not known
    - `negative-read`: an index may be negative, and would count from the end
    - `out-of-range`: the last iterations read past the end of a tensor
    - `may-exceed`: a Slice may be empty where a Scan would fail
    - `accumulator-read`: the body reads what it collects in a carried value
    - `element-shape`: what is collected in a carried value may differ in its size
    - `not-filled`: it is not proven that all rows of a buffer are written
    - `old-if`: before opset 11 both branches of an If have one shape, but one scans a tensor of
      known size
    - `sequence-initial`: a collected sequence may not be empty at first
    - `sequence-read`: a collected sequence is used as one after the loop
    - `few-iterations`: in `optimize`: the trip count is known only at run time, and a few
      iterations take less time than the nodes that the Scan needs around it
    """
    site.need_opset(SCAN_HAS_AXES, "has no such Scan")
    raising = Raising.of(site)
    author = Author.at(site, "scan")
    scan = RaisedScan(raising, author)
    scan.write()
    nodes = author.nodes
    covered = dead_after_rewrite(
        site,
        raising.integers,
        {position for rows in scan.rows for position in rows.covered},
        nodes,
    )
    if not raising.accumulators:
        refuse_few(site, nodes, covered, expected([raising.trips.size]))
    return replace(author.edit(_note(scan)), covered=covered, context=context_of(site))


def _note(scan: RaisedScan) -> str:
    read = sum(window is not None for window, _ in scan.scanned)
    inputs = f"{read} tensor{'s' if read != 1 else ''} scanned"
    if any(window is None for window, _ in scan.scanned):
        inputs += ", the iteration number too" if read else ", but the iteration number"
    return f"Scan, {scan.raising.trips.size} trips, {inputs}"
