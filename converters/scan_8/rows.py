"""One row of a Scan-8: the loop over time, for one element of the batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from onnx import GraphProto

from passes.converters.scan_8.batched_scan import BatchedScan, RowType
from passes.ir.purposes import END_ROWS, HANDLE_LENGTH_0
from passes.loops.form import Carried, Collected, Kind, LoopForm, Scanned
from passes.writing import spelling
from passes.writing.author import Author


@dataclass(frozen=True)
class Row:
    """Values of one row, without the batch axis.

    It runs on `initials` and `sequences` ([time, ...]), `count` (int64 [1]) iterations or all.
    `time` is a scalar. `own_initials` are what the final states are where `count` is 0; given only
    where the row then runs on those of another one.
    """

    initials: Sequence[str]
    sequences: Sequence[str]
    count: str = ""
    time: str = ""
    own_initials: Sequence[str] | None = None


def run_row(
    author: Author, scan: BatchedScan, body: GraphProto, row: Row, name: str
) -> tuple[list[str], list[str]]:
    """Write the loop over time; return the final states and the collected values.

    Collected values have time as their axis 0, zeros after the row's last iteration.
    """
    if not row.count:
        return _loop(author, scan, body, row.initials, row.sequences, name)
    may_be_zero = row.own_initials is not None
    runs, count = "", row.count
    if may_be_zero:
        with author.serving(HANDLE_LENGTH_0):
            runs = author.op("Greater", row.count, author.ints(0))
            count = author.op("Where", runs, row.count, author.ints(1))
    with author.serving(END_ROWS):
        sequences = [
            author.once(("valid", value), partial(spelling.prefix, author, value, count, elem_type))
            for value, elem_type in zip(row.sequences, scan.sequence_types, strict=True)
        ]
    finals, collected = _loop(author, scan, body, row.initials, sequences, name)
    if may_be_zero:
        with author.serving(HANDLE_LENGTH_0):
            happened = spelling.squeeze(author, runs, 0)
            finals = [
                spelling.select(author, happened, new, old, state.elem_type)
                for new, old, state in zip(finals, row.own_initials or (), scan.states, strict=True)
            ]
            collected = [
                spelling.prefix(author, value, row.count, element.elem_type)
                for value, element in zip(collected, scan.elements, strict=True)
            ]
    with author.serving(END_ROWS):
        return finals, [
            _padded(author, value, row, element)
            for value, element in zip(collected, scan.elements, strict=True)
        ]


def _padded(author: Author, value: str, row: Row, element: RowType) -> str:
    source = "" if element.is_static else value  # where its sizes are to be measured
    key = ("idle", row.count, element, source)
    padding = author.once(key, lambda: _zeros(author, value, row, element))
    return author.op("Concat", value, padding, axis=0)


def _zeros(author: Author, value: str, row: Row, element: RowType) -> str:
    """Zeros for the iterations that do not take place."""
    shape = author.once(("idle", row.count), lambda: author.op("Sub", row.time, row.count))
    if element.dims:
        shape = author.op("Concat", shape, element.shape(author, value, 1), axis=0)
    return spelling.zeros(author, shape, element.elem_type)


def _loop(
    author: Author,
    scan: BatchedScan,
    body: GraphProto,
    initials: Sequence[str],
    sequences: Sequence[str],
    name: str,
) -> tuple[list[str], list[str]]:
    """The Scan over time; a reversed input reads the valid prefix from its end."""
    inputs = [value.name for value in body.input]
    outputs = [value.name for value in body.output]
    count = len(initials)
    finals = [author.fresh(f"{output}/final") for output in outputs[:count]]
    collected = [author.fresh(f"{output}/collected") for output in outputs[count:]]
    form = LoopForm(
        kind=Kind.SCAN,
        body=body,
        carried=tuple(map(Carried, initials, inputs, outputs, finals)),
        scanned=tuple(
            Scanned(tensor, inside, 0, one.reversed)
            for tensor, inside, one in zip(
                sequences, inputs[count:], scan.form.scanned, strict=True
            )
        ),
        collected=tuple(map(Collected, outputs[count:], collected)),
    )
    node = form.to_node()
    node.name = name
    author.adopt([node])
    return finals, collected


def rows_at(author: Author, scan: BatchedScan, index: str) -> tuple[list[str], list[str]]:
    """Initial states and scanned tensors of the row at `index` (int64 scalar)."""
    states = [
        _row_at(author, value, index, state.elem_type)
        for value, state in zip(scan.initials, scan.states, strict=True)
    ]
    sequences = [
        _row_at(author, value, index, elem_type)
        for value, elem_type in zip(scan.sequences, scan.sequence_types, strict=True)
    ]
    return states, sequences


def _row_at(author: Author, value: str, index: str, elem_type: int) -> str:
    return author.once(("row", value, index), lambda: spelling.row(author, value, index, elem_type))
