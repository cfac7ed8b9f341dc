"""A Scan that carries nothing runs several iterations at once: as many as stay in the cache."""

from __future__ import annotations

from dataclasses import replace

from onnx import GraphProto

from passes.bodies.time_body import TimeBody
from passes.bodies.time_cost import row_bytes, same_bits
from passes.ir import scope as scoping
from passes.loops.form import Collected
from passes.operators.table import traits_of
from passes.operators.traits import Work
from passes.rule import Edit, Refused
from passes.rules.dissolve_map.dispatch_on_size import up_to
from passes.types.value_types import Dims, dims_of, is_static
from passes.vectorize import Axis, Vectorizer
from passes.writing.author import Author

#: Bytes of a value in one block, such that it stays in the cache with others.
_BLOCK = 1 << 18
#: Blocks of fewer elements gain little, and so do rows of more.
_PAYS, _LONGEST = 4, 1 << 12


def strip_mine(body: TimeBody) -> Edit | None:
    """The Edit that reshapes what a Scan reads into blocks, and lets the Scan run over these.

    Where one size of the rows is unknown, the Scan stays, in an If, for rows that are too long.

    None where it carries something, scans or collects on another axis than the first or in
    reverse, multiplies matrices, whose weights are to stay where runtimes pack them, holds bodies,
    or cannot be cut into blocks of one size.
    """
    if _count(body) < 2 or not _is_plain(body):
        return None
    if _is_static(body):
        return _cut(body, _count(body))
    longest = _longest(body)
    edit = _cut(body, _count(longest))
    return None if edit is None else up_to(body, edit, longest.unknown)


def _longest(body: TimeBody) -> TimeBody:
    """The body with the longest rows for which blocks still pay."""
    while body.unknown < _LONGEST:
        longer = replace(body, unknown=2 * body.unknown)
        if _count(longer) < _PAYS:
            break
        body = longer
    return body


def _count(body: TimeBody) -> int:
    """Iterations in a block: the largest divisor of the trip count that stays in the cache."""
    largest = max((row_bytes(body, name) for name in body.varying), default=0)
    trips = body.trips or 0
    most = min(_BLOCK // max(1, largest), trips // 2)
    return next((count for count in range(most, 1, -1) if trips % count == 0), 1)


def _is_plain(body: TimeBody) -> bool:
    """Return whether a Scan only scans and collects rows in order, with light nodes."""
    form = body.form
    turned = any(scanned.axis or scanned.reversed for scanned in form.scanned)
    turned = turned or any(collected.axis or collected.reversed for collected in form.collected)
    lengths = [(dims_of(body.site.type_of(scanned.tensor)) or ())[:1] for scanned in form.scanned]
    light = all(
        traits_of(node).work is not Work.PRODUCT and not scoping.holds_graphs(node)
        for node in body.nodes
    )
    same = all(length == (body.trips,) for length in lengths)
    return light and same and not turned and not form.carried


def _is_static(body: TimeBody) -> bool:
    """Return whether the sizes of all rows are known."""
    return all(is_static(dims_of(body.rows.types.get(name))) for name in body.varying)


def _cut(body: TimeBody, count: int) -> Edit | None:
    """The Edit that scans blocks of `count` elements; None where a size or an op forbids it."""
    form, site, trips = body.form, body.site, body.trips or 0
    read = [_sizes(dims_of(site.type_of(scanned.tensor)), 1) for scanned in form.scanned]
    rows = [
        _sizes(dims_of(body.rows.types.get(collected.body_output))) for collected in form.collected
    ]
    author = Author.at(site, "scan")
    block = _block(body, author, count)
    if block is None or None in read or None in rows:
        return None
    pieces = [author.ints(trips // count, count, *(sizes or ())) for sizes in read]
    scanned = [
        replace(scanned, tensor=author.op("Reshape", scanned.tensor, shape))
        for scanned, shape in zip(form.scanned, pieces, strict=True)
    ]
    outputs = [
        Collected(name, author.fresh(f"{name}/blocks")) for name in scoping.output_names(block)
    ]
    written = replace(form, body=block, scanned=tuple(scanned), collected=tuple(outputs))
    author.adopt([written.to_node()])
    for collected, blocks, sizes in zip(form.collected, outputs, rows, strict=True):
        if collected.tensor:
            shape = author.ints(trips, *(sizes or ()))
            author.op("Reshape", blocks.tensor, shape, outputs=[collected.tensor])
    exact = all(map(same_bits, body.nodes))
    return replace(author.edit(f"{count} iterations at once"), exact=exact)


def _block(body: TimeBody, author: Author, count: int) -> GraphProto | None:
    """The body for `count` iterations at once; None where an op has no rule for that."""
    axis = Axis(author.ints(count), count, True)
    vectorizer = Vectorizer(body.rows, axis, author, set(), body.site.path)
    elements = [scanned.body_input for scanned in body.form.scanned]
    try:
        return vectorizer.body(
            body.rows.graph, elements, {collected.body_output for collected in body.form.collected}
        ).graph
    except Refused:
        return None


def _sizes(dims: Dims | None, start: int = 0) -> list[int] | None:
    """Sizes for a Reshape, from an axis on: -1 for one known only at run time."""
    sizes = [dim if isinstance(dim, int) else -1 for dim in (dims or ())[start:]]
    return None if dims is None or sizes.count(-1) > 1 or 0 in sizes else sizes
