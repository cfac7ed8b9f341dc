"""Choosing between two batched values row by row, for every type."""

from __future__ import annotations

from onnx import TensorProto

from passes.writing import spelling
from passes.writing.author import Author


def choose(author: Author, mask: str, new: str, old: str, elem_type: int) -> str:
    """Return `new` where the bool `mask` is true, else `old`; all broadcast against each other.

    NaN and Inf of the value not taken do not get through. In onnxruntime a -0.0 of `new`
    becomes 0.0: that is what its Where does. What it lacks goes through a wider type, as
    everywhere (`fitting_types`), but for bools, for which logic is cheaper.
    """
    if elem_type == TensorProto.BOOL:
        taken = author.op("And", mask, new)
        kept = author.op("And", author.op("Not", mask), old)
        return author.op("Or", taken, kept)
    return author.op("Where", mask, new, old)


def row_mask(author: Author, mask: str, rank: int, axes: int = 1) -> str:
    """A mask over `axes` leading axes, shaped to choose among rows of `rank` axes."""
    if not rank:
        return mask
    return spelling.unsqueeze_axes(author, mask, range(axes, axes + rank))
