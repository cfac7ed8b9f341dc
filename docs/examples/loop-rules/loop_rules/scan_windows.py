"""The rule `scan-windows`: a Scan that carries its latest elements scans them instead."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from onnx import NodeProto

from loop_rules.windows import Window, is_read, windows
from passes.bodies.time_body import TimeBody
from passes.bodies.time_cost import all_bytes, most_bytes, row_bytes
from passes.ir import scope as scoping
from passes.ir.operators import is_scan_9, op_of
from passes.ir.protos import replace_all
from passes.loops.form import LoopForm, Scanned
from passes.rule import Edit, NothingToDo, Site, register
from passes.types.value_types import dims_of
from passes.writing import spelling
from passes.writing.author import Author

#: The bytes of a window up to which writing all of them is faster than to carry one (measured:
#: 2.7x at 16 KiB, 0.5x at 32 KiB).
_MOST_BYTES = 1 << 14


def considers(node: NodeProto, opset: int, target: int) -> bool:
    """Return whether a node is a Scan of version 9 or later in whose body there is a Concat."""
    return is_scan_9(node, opset) and any(
        op_of(inner) == "Concat" for inner in scoping.inner_nodes(node)
    )


@register("scan-windows", considers=considers, optional=True)
def scan_windows(site: Site) -> Edit:
    """Scan the windows of a tensor in place of carrying the latest of its elements.

    Before, a causal convolution of 4 taps:

        last, ys = Scan <num_scan_inputs = 1, body = step (float[3,C] w, float[C] x) => (...) {
            row = Unsqueeze (x, axis)
            window = Concat <axis = 0> (w, row)
            w_out = Slice (window, one, four, axis)
            ...
        }> (first, xs)

    After:

        padded = Concat <axis = 0> (first, xs)
        windows = ...
        ys = Scan <num_scan_inputs = 1, body = step (float[4,C] window) => (...) {
            ...
        }> (windows)
        last = Slice (padded, ...)

    Then the work on a window depends on no other iteration: `dissolve-map` or `batch-inputs` does
    it for all windows at once. The elements lie on any axis, the oldest first; it may leave before
    the newest comes, or after. A Loop is raised to a Scan first.

    Refuses:
    - `opset-too-old`: the opset is below 13
    - `reads-window`: the window is also read before the newest element is in it
    - `other-sizes`: the sizes of an element are not those of the window
    - `not-worth-it`: a window is larger than 16 KiB
    - `over-budget`: all windows together take more than `--max-bytes`
    """
    body = TimeBody.of(site)
    found = windows(body)
    if not found:
        raise NothingToDo
    for window in found:
        if row_bytes(body, window.whole) > _MOST_BYTES:
            what = f"a window {window.whole!r} is large, and would be written for all iterations"
            raise site.refused("not-worth-it", what, window.whole)
        if all_bytes(body, window.whole) > most_bytes(body):
            what = f"all windows {window.whole!r} together take more than --max-bytes"
            raise site.refused("over-budget", what, window.whole)
    author = Author.at(site, "scan")
    scanned = [_written(body, author, window) for window in found]
    author.adopt([_scan(body, found, scanned).to_node()])
    return Edit(
        tuple(author.nodes),
        tuple(author.constants),
        note=f"windows of {', '.join(str(window.size) for window in found)}",
    )


def _written(body: TimeBody, author: Author, window: Window) -> Scanned:
    """Write the windows of all iterations, time first, and what is left of them in the end."""
    axis, carried = window.axis, window.carried
    rank = len(dims_of(body.rows.types[window.whole]) or ())
    before = spelling.axis_moved(author, carried.initial, axis, 0, rank)
    padded = author.op("Concat", before, _elements(author, window, rank), axis=0)
    columns = []
    for start in range(window.size):
        end = start + 1 - window.size
        part = spelling.part(author, padded, 0, start + window.full, end or None)
        columns.append(spelling.unsqueeze(author, part, axis + 1))
    if carried.final:
        last = spelling.part(author, padded, 0, (not window.full) - window.size, None)
        author.name_as(spelling.axis_moved(author, last, 0, axis, rank), carried.final)
    return Scanned(author.op("Concat", *columns, axis=axis + 1), window.whole)


def _elements(author: Author, window: Window, rank: int) -> str:
    """Return the scanned elements, time first, in the order of the iterations, without the axis of
    windows."""
    rows = window.scanned.tensor
    time = window.scanned.axis % (rank + window.is_row)
    rows = spelling.axis_moved(author, rows, time, 0, rank + window.is_row)
    if window.scanned.reversed:
        rows = spelling.reversed_rows(author, rows)
    return spelling.squeeze(author, rows, window.axis + 1) if window.is_row else rows


def _scan(body: TimeBody, found: Sequence[Window], scanned: Sequence[Scanned]) -> LoopForm:
    """The Scan that scans the windows."""
    gone = {name for window in found for name in window.gone}
    graph = body.form.body
    replace_all(graph.node, [node for node in graph.node if gone.isdisjoint(node.output)])
    replace_all(graph.value_info, [one for one in graph.value_info if one.name not in gone])
    for window in found:
        graph.input.add(name=window.whole).type.CopyFrom(body.rows.types[window.whole])
    carried = [window.carried for window in found]
    kept = [
        one
        for one in body.form.scanned
        if one not in [window.scanned for window in found] or is_read(body, one.body_input, gone)
    ]
    return replace(
        body.form,
        body=graph,
        carried=tuple(one for one in body.form.carried if one not in carried),
        scanned=(*kept, *scanned),
    )
