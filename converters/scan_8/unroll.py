"""Strategy `unroll`: one Scan over time for each row of a static batch."""

from __future__ import annotations

from collections.abc import Sequence

from onnx import GraphProto

from passes.converters.scan_8.batched_scan import BatchedScan
from passes.converters.scan_8.rows import Row, rows_at, run_row
from passes.converters.scan_8.sequence_lens import Lengths
from passes.ir import scope as scoping
from passes.ir.protos import copied
from passes.writing import spelling
from passes.writing.author import Author


def unroll(
    author: Author,
    scan: BatchedScan,
    lengths: Lengths | None,
    batch: int,
    outputs: Sequence[str],
    name: str,
) -> None:
    """Write the rows one after the other; the weights of the body are shared, not copied."""
    body = _shared(author, scan.body) if batch > 1 else scan.body
    rows = []
    for index in range(batch):
        row = _row(author, scan, lengths, index, batch)
        copy = _copy(author, body, index) if batch > 1 else body
        finals, collected = run_row(author, scan, copy, row, f"{name}/row{index}")
        rows.append([*finals, *collected])
    for position, output in enumerate(outputs):
        _join(author, [row[position] for row in rows], output)


def _join(author: Author, rows: Sequence[str], output: str) -> None:
    if len(rows) == 1:
        spelling.unsqueeze(author, rows[0], 0, outputs=[output])
        return
    raised = [spelling.unsqueeze(author, row, 0) for row in rows]
    author.op("Concat", *raised, outputs=[output], axis=0)


def _row(author: Author, scan: BatchedScan, lengths: Lengths | None, index: int, batch: int) -> Row:
    own_initials, own_sequences = _own(author, scan, index, batch)
    if lengths is None:
        return Row(own_initials, own_sequences)
    count = lengths.ends if batch == 1 else author.op("Gather", lengths.ends, author.ints(index))
    if not lengths.rows:
        return Row(own_initials, own_sequences, count, lengths.time)
    source = author.op("Gather", lengths.rows, author.int(index), axis=0)
    initials, sequences = rows_at(author, scan, source)
    return Row(initials, sequences, count, lengths.time, own_initials)


def _own(author: Author, scan: BatchedScan, index: int, batch: int) -> tuple[list[str], list[str]]:
    if batch > 1:
        return rows_at(author, scan, author.int(index))
    states = [_only_row(author, value) for value in scan.initials]
    return states, [_only_row(author, value) for value in scan.sequences]


def _only_row(author: Author, value: str) -> str:
    return author.once(("only row", value), lambda: spelling.squeeze(author, value, 0))


def _shared(author: Author, body: GraphProto) -> GraphProto:
    """The body with its initializers moved to where all rows read them."""
    shared = copied(body)
    mapping = {tensor.name: author.fresh(tensor.name) for tensor in body.initializer}
    constants = list(shared.initializer)
    del shared.initializer[:]
    scoping.rename_captures(shared, mapping)
    for tensor in constants:
        tensor.name = mapping[tensor.name]
    author.adopt([], constants)
    return shared


def _copy(author: Author, body: GraphProto, index: int) -> GraphProto:
    copy = copied(body)
    scoping.rename_all(copy, lambda name: author.names.fresh(f"{name}/row{index}"))
    return copy
