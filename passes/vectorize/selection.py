"""Choosing between two batched values row by row, for every type."""

from __future__ import annotations

from onnx import TensorProto

from passes import spelling
from passes.author import Author

#: What onnxruntime's Where lacks, and a type that holds it without loss.
_WIDER: dict[int, int] = {
    TensorProto.INT16: TensorProto.INT32,
    TensorProto.UINT16: TensorProto.INT32,
    TensorProto.UINT32: TensorProto.INT64,
    TensorProto.INT8: TensorProto.INT32,
    TensorProto.FLOAT16: TensorProto.FLOAT,
    TensorProto.BFLOAT16: TensorProto.FLOAT,
    # Conversion between the 64-bit integers keeps the bits, there and back.
    TensorProto.UINT64: TensorProto.INT64,
}


def choose(author: Author, mask: str, new: str, old: str, elem_type: int) -> str:
    """`new` where the bool `mask` holds, else `old`; all broadcast against each other.

    NaN and Inf of the value not taken do not get through. In onnxruntime a -0.0 of `new`
    becomes 0.0: that is what its Where does.
    """
    if elem_type == TensorProto.BOOL:
        taken = author.op("And", mask, new)
        kept = author.op("And", author.op("Not", mask), old)
        return author.op("Or", taken, kept)
    wider = _WIDER.get(elem_type)
    if wider is None:
        return author.op("Where", mask, new, old)
    wide = [author.op("Cast", value, to=wider) for value in (new, old)]
    return author.op("Cast", author.op("Where", mask, *wide), to=elem_type)


def row_mask(author: Author, mask: str, rank: int, axes: int = 1) -> str:
    """A mask over `axes` leading axes, shaped to choose among rows of `rank` axes."""
    if not rank:
        return mask
    return spelling.unsqueeze_axes(author, mask, range(axes, axes + rank))
