"""Strategy `nest`: a Scan over the batch whose body holds the Scan over time."""

from __future__ import annotations

from collections.abc import Sequence

from onnx import TensorProto, ValueInfoProto, helper

from passes.converters.scan_8.batched_scan import BatchedScan
from passes.converters.scan_8.rows import Row, rows_at, run_row
from passes.converters.scan_8.sequence_lens import Lengths
from passes.ir.purposes import HANDLE_LENGTH_0
from passes.loops.form import Collected, Kind, LoopForm, Scanned
from passes.types.value_types import dims_of, tensor_type
from passes.writing import spelling
from passes.writing.author import Author


def nest(
    author: Author,
    scan: BatchedScan,
    lengths: Lengths | None,
    outputs: Sequence[str],
    name: str,
) -> None:
    """Write the two loops; right for every batch, static or symbolic.

    The outer Scan sees to it that all inputs agree on the batch, the inner one on the time.
    """
    inner = author.inside(f"{author.prefix}/row")
    inputs = _Inputs(inner)
    row = _row(inner, inputs, scan, lengths)
    finals, collected = run_row(inner, scan, scan.body, row, f"{name}/row")
    infos = [state.value_info(value) for state, value in zip(scan.states, finals, strict=True)] + [
        element.value_info(value, scan.time)
        for element, value in zip(scan.elements, collected, strict=True)
    ]
    form = LoopForm(
        kind=Kind.SCAN,
        body=inner.graph(f"{author.prefix}/rows", inputs.infos, infos),
        scanned=tuple(inputs.scanned),
        collected=tuple(map(Collected, [*finals, *collected], outputs)),
    )
    node = form.to_node()
    node.name = name
    author.adopt([node])


class _Inputs:
    """The inputs that the loop over the batch scans, in order."""

    def __init__(self, inner: Author) -> None:
        self._inner = inner
        self.scanned: list[Scanned] = []
        self.infos: list[ValueInfoProto] = []

    def add(self, tensor: str, hint: str, info: ValueInfoProto) -> str:
        """Scan a tensor over axis 0; answers with the name of its row."""
        known = next((scanned for scanned in self.scanned if scanned.tensor == tensor), None)
        if known is not None:
            return known.body_input
        info.name = self._inner.fresh(hint)
        self.infos.append(info)
        self.scanned.append(Scanned(tensor, info.name))
        return info.name

    def scalar(self, tensor: str, hint: str) -> str:
        """The same for an int64 vector."""
        info = helper.make_value_info("", tensor_type(TensorProto.INT64, ()))
        return self.add(tensor, hint, info)


def _row(inner: Author, inputs: _Inputs, scan: BatchedScan, lengths: Lengths | None) -> Row:
    own = [
        inputs.add(one.initial, f"{one.body_input}/row", state.value_info(""))
        for one, state in zip(scan.form.carried, scan.states, strict=True)
    ]
    if lengths is None or not lengths.rows:
        sequences = [_sequence(inputs, scan, index) for index in range(len(scan.sequences))]
        if lengths is None:
            return Row(own, sequences)
        length = inputs.scalar(lengths.ends, "length")
        return Row(own, sequences, spelling.unsqueeze(inner, length, 0), lengths.time)
    length = inputs.scalar(lengths.ends, "length")
    borrowed = inputs.scalar(lengths.rows, "runs_on")
    with inner.serving(HANDLE_LENGTH_0):
        initials, sequences = rows_at(inner, scan, borrowed)
    return Row(
        initials=initials,
        sequences=sequences,
        count=spelling.unsqueeze(inner, length, 0),
        time=lengths.time,
        own_initials=own,
    )


def _sequence(inputs: _Inputs, scan: BatchedScan, index: int) -> str:
    one = scan.form.scanned[index]
    element = next(value for value in scan.body.input if value.name == one.body_input)
    info = ValueInfoProto()
    dims = dims_of(element.type)
    info.type.CopyFrom(
        tensor_type(
            element.type.tensor_type.elem_type, None if dims is None else (scan.time, *dims)
        )
    )
    return inputs.add(one.tensor, f"{one.body_input}/rows", info)
