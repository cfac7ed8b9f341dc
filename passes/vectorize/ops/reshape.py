"""Reshape: the one op whose shape may say 'as it was' (0) and 'what is left' (-1)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from onnx import NodeProto

from passes.ir.versions import ZERO_IS_A_SIZE
from passes.vectorize.axes import attribute
from passes.vectorize.reshaping import row_shape
from passes.vectorize.vectorizer import Vectorizer, batched

_INFERRED = -1


@batched("Reshape")
def reshape(node: NodeProto, at: Vectorizer) -> None:
    """The new axis comes first, and stays as it was."""
    at.only_rows(node, 1)
    x, shape = node.input
    fixed = _fixed(node, at)
    if fixed is not None and (_INFERRED not in fixed or at.has_rows()):
        _to_constant(node, at, fixed)
    elif at.has_rows():
        exact = attribute(node, "allowzero", 0)
        lead = at.axis.size if exact else at.author.ints(0)
        at.again(node, [x, at.op("Concat", lead, shape, axis=0)])
    else:
        _to_computed(node, at)


def _fixed(node: NodeProto, at: Vectorizer) -> list[int] | None:
    """The shape where it is constant, with -1 only where inference cannot tell the size."""
    known = at.constant(node.input[1])
    if known is None:
        return None
    sizes = [int(size) for size in known]
    if _INFERRED in sizes and (at.axis.unguarded or not at.axis.nonempty):
        told = at.dims(node.output[0])[sizes.index(_INFERRED)]
        if isinstance(told, int) and told > 0:
            sizes[sizes.index(_INFERRED)] = told
    return sizes


def _to_constant(node: NodeProto, at: Vectorizer, sizes: Sequence[int]) -> None:
    """A 0 copies the dim at its place, so that it does for the new axis, too."""
    x = node.input[0]
    if attribute(node, "allowzero", 0) and 0 in sizes:
        at.again(node, [x, at.op("Concat", at.axis.size, at.author.ints(*sizes), axis=0)])
    elif at.author.opset < ZERO_IS_A_SIZE:
        at.again(node, [x, at.author.ints(0, *sizes)])
    else:
        at.again(node, [x, at.author.ints(0, *sizes)], allowzero=None)


def _to_computed(node: NodeProto, at: Vectorizer) -> None:
    """What is left is computed where there are no rows, and cannot be inferred from them.

    Where there are rows the -1 stays, and fails where it fails in a row.
    """
    x, shape = node.input
    if at.author.opset < ZERO_IS_A_SIZE and not _has_elements(at, x):
        at.refuse("may-be-empty", "a Reshape to a size that may be 0 needs opset 14", x)
    row = row_shape(at, x)
    sizes = shape if attribute(node, "allowzero", 0) else _without_zeros(at, x, shape, row)
    inferred = at.op("Equal", sizes, at.author.ints(_INFERRED))
    others = at.op("Where", inferred, at.author.ints(1), sizes)
    left = at.op("Div", _total(at, row), at.op("Max", _total(at, others), at.author.ints(1)))
    empty = at.op("Equal", at.axis.size, at.author.ints(0))
    resolved = at.op("Where", at.op("And", empty, inferred), left, sizes)
    inputs = [x, at.op("Concat", at.axis.size, resolved, axis=0)]
    if at.author.opset < ZERO_IS_A_SIZE:
        # The axis itself may be 0 there: it is copied.
        at.again(node, [x, at.op("Concat", at.author.ints(0), resolved, axis=0)])
    else:
        at.again(node, inputs, allowzero=1)


def _has_elements(at: Vectorizer, name: str) -> bool:
    return all(isinstance(dim, int) and dim > 0 for dim in at.dims(name))


def _without_zeros(at: Vectorizer, x: str, shape: str, row: str) -> str:
    """The shape with the dims of the row at the places where it says 0."""
    (length,) = at.dims(shape)
    if not isinstance(length, int):
        at.refuse("unknown-rank", f"the rank that {shape!r} asks for is not known", shape)
    missing = length - at.rank(x)
    if missing > 0:
        ones = at.author.constant(np.ones(missing, np.int64), "ones")
        row = at.op("Concat", row, ones, axis=0)
    elif missing < 0:
        row = at.op("Slice", row, at.author.ints(0), at.author.ints(length))
    return at.op("Where", at.op("Equal", shape, at.author.ints(0)), row, shape)


def _total(at: Vectorizer, sizes: str) -> str:
    """The product of sizes, int64 [1]; 1 for none."""
    one = at.author.ints(1)
    return at.op("ReduceProd", at.op("Concat", one, sizes, axis=0), keepdims=1)
