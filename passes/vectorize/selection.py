"""Choosing between two batched values row by row, for every type."""

from __future__ import annotations

from onnx import TensorProto

from passes.writing import spelling
from passes.writing.writer import Writer


def choose(writer: Writer, mask: str, new: str, old: str, elem_type: int) -> str:
    """Return `new` where the bool `mask` is true, else `old`; all broadcast against each other.

    NaN and Inf of the value not taken do not get through. In onnxruntime a -0.0 of `new`
    becomes 0.0: that is what its Where does. What it lacks goes through a wider type, as
    everywhere (`fitting_types`), but for bools, for which logic is cheaper.
    """
    if elem_type == TensorProto.BOOL:
        taken = writer.op("And", mask, new)
        kept = writer.op("And", writer.op("Not", mask), old)
        return writer.op("Or", taken, kept)
    return writer.op("Where", mask, new, old)


def row_mask(writer: Writer, mask: str, rank: int, axes: int = 1) -> str:
    """A mask over `axes` leading axes, shaped to choose among rows of `rank` axes."""
    return spelling.unsqueeze_axes(writer, mask, range(axes, axes + rank))
