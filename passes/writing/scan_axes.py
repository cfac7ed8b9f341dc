"""Scans on other axes than the first, where onnxruntime supports them.

It moves the axes itself, as a Transpose does, but crashes (SIGFPE) where there is nothing
to move: where the scanned size is 0, or a size after it or after the collected axis,
or any size where that is the second axis. A Transpose handles such tensors, so it does the work
where a size may be 0.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import replace

from onnx import NodeProto, TensorProto, TypeProto, ValueInfoProto

from passes.ir.purposes import HANDLE_NOTHING
from passes.loops.form import Collected, Kind, LoopForm, Scanned
from passes.types.value_types import Dims, dims_of, elem_type_of
from passes.writing import spelling
from passes.writing.author import Author


def write_scan(
    author: Author,
    form: LoopForm,
    dress: Callable[[NodeProto], NodeProto] = lambda node: node,
    *,
    name: str | None = None,
    rows: int = 0,
    may_be_empty: bool = False,
) -> None:
    """Write a Scan, or another loop as it is, with Transposes around it where it needs them.

    The sizes of elements follow from the body; the first `rows` of them are not 0 where it runs.
    `may_be_empty`: there may be nothing to scan, which must fail. `dress` finishes the node, or it
    gets a `name`.
    """
    inputs, outputs = _types(form.body.input), _types(form.body.output)
    written = form
    if form.kind is Kind.SCAN:
        written = replace(
            form,
            scanned=tuple(
                _scanned(author, scanned, inputs, rows, may_be_empty) for scanned in form.scanned
            ),
            collected=tuple(
                _collected(author, collected, outputs, rows) for collected in form.collected
            ),
        )
    node = written.to_node()
    if name is not None:
        node.name = name
    author.adopt([dress(node)])
    for collected, moved in zip(form.collected, written.collected, strict=True):
        if collected.axis != moved.axis:
            rank = len(dims_of(outputs[collected.body_output]) or ()) + 1
            axis, output = collected.axis % rank, collected.tensor
            spelling.axis_moved(author, moved.tensor, 0, axis, rank, [output])


def _types(values: Sequence[ValueInfoProto]) -> dict[str, TypeProto]:
    return {value.name: value.type for value in values}


def _scanned(
    author: Author, scanned: Scanned, types: dict[str, TypeProto], rows: int, may_be_empty: bool
) -> Scanned:
    known = types.get(scanned.body_input)
    dims = dims_of(known)
    if not scanned.axis or dims is None:
        return scanned
    axis = scanned.axis % (len(dims) + 1)
    first = 0 if elem_type_of(known) == TensorProto.STRING else axis
    elements = _are_sizes(dims, first, rows)
    if not axis or (elements and not may_be_empty):
        return scanned
    with author.serving(HANDLE_NOTHING) if elements else nullcontext():
        tensor = spelling.axis_moved(author, scanned.tensor, axis, 0, len(dims) + 1)
    return replace(scanned, tensor=tensor, axis=0)


def _collected(
    author: Author, collected: Collected, types: dict[str, TypeProto], rows: int
) -> Collected:
    known = types.get(collected.body_output)
    dims = dims_of(known)
    if not collected.axis or dims is None:
        return collected
    axis = collected.axis % (len(dims) + 1)
    first = 0 if axis == 1 or elem_type_of(known) == TensorProto.STRING else axis
    if not axis or _are_sizes(dims, first, rows):
        return collected
    return replace(collected, tensor=author.fresh(f"{collected.tensor}/rows"), axis=0)


def _are_sizes(dims: Dims, first: int, rows: int) -> bool:
    """Return whether all dims from `first` on are known and not 0."""
    return all(isinstance(dim, int) and dim > 0 for dim in dims[max(first, rows) :])
