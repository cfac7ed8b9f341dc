"""Steps of Fourier transforms, and of the windows and weights that go with them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from onnx import NodeProto, TensorProto, helper

from passes.converters.steps import adapter, adapter_down
from passes.converters.writing.conversion import Conversion
from passes.converters.writing.expansion import expand
from passes.ir.operators import op_of
from passes.writing import spelling
from passes.writing.spelling import Array


@adapter("DFT", 20)
def dft_20(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """The attribute `axis` becomes the third input, an int64 scalar; the default was 1, is -2."""
    x, length = [*node.input, ""][:2]
    axis = ctx.attribute_as_input(node, "axis", np.int64, 1)
    return [ctx.changed(node, inputs=[x, length, axis], without=["axis"])]


@adapter_down("DFT", 20)
def dft_19(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """The axis, which is fixed, becomes an attribute."""
    axis = ctx.fixed(node, 2, "the axis")
    position = -2 if axis is None else int(axis.item())
    return [ctx.changed(node, inputs=node.input[:2], axis=position)]


@adapter_down("DFT", 17, exact=False)
def dft_16(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """The matrix of the transform is multiplied from the left, for a length that is known.

    x (..., n, ..., 1 or 2) has real and imaginary parts along the last axis.
    """
    x = node.input[0]
    dims, elem_type = ctx.dims_of(x) or (), ctx.known_elem_type(x)
    rank = ctx.known_rank(x)
    axis = ctx.attribute(node, "axis", 1) % rank
    size, parts = dims[axis], dims[-1]
    inverse, onesided = (ctx.attribute(node, name, 0) for name in ("inverse", "onesided"))
    if not isinstance(size, int) or parts not in (1, 2):
        raise ctx.refused("unknown-rank", f"the sizes of {x!r} are not known: {dims}")
    if parts != (1 + inverse if onesided else parts):
        raise ctx.refused("invalid-node", "a DFT of one side is of real, its inverse of complex")
    given = ctx.fixed(node, 1, "the length")
    default = 2 * (size - 1) if onesided and inverse else size
    count = default if given is None else int(given.item())
    read = min(size, count // 2 + 1 if onesided and inverse else count)
    ctx = ctx.later(9)
    kind = TensorProto.DOUBLE if elem_type == TensorProto.DOUBLE else TensorProto.FLOAT
    wide = ctx.cast(x, elem_type, kind)
    if read < size:
        wide = spelling.part(ctx, wide, axis, 0, read)
    order = [*range(rank)]
    order[axis], order[-2] = order[-2], order[axis]
    moved = order != [*range(rank)]
    if moved:
        wide = ctx.op("Transpose", wide, perm=order)
    weights = _weights(read, count, bool(inverse), bool(onesided))
    wide = _transformed(wide, weights, int(parts), bool(inverse and onesided), kind, ctx)
    if moved:
        wide = ctx.op("Transpose", wide, perm=order)
    ctx.cast(wide, kind, elem_type, [node.output[0]])
    return []


def _weights(read: int, count: int, inverse: bool, onesided: bool) -> Array:
    """The complex matrix (out, in) of a transform of length `count`, of which `read` are there.

    The inverse of one side takes each of its inputs for its mirror image too, and gives real
    numbers: the real parts of what the conjugate weights make.
    """
    out = count // 2 + 1 if onesided and not inverse else count
    turns = np.outer(np.arange(out), np.arange(read)) % max(count, 1) / max(count, 1)
    weights: Array = np.exp((2j if inverse else -2j) * np.pi * turns)
    if inverse:
        weights = weights / count
    if inverse and onesided:
        alone = (np.arange(read) == 0) | (2 * np.arange(read) == count)
        weights = weights * np.where(alone, 1, 2)
    return weights


def _transformed(
    x: str, weights: Array, parts: int, is_real: bool, kind: int, ctx: Conversion
) -> str:
    """The product of complex weights (out, in) and x (..., in, parts): (..., out, 2), or only its
    real part, (..., out, 1)."""
    dtype = helper.tensor_dtype_to_np_dtype(kind)
    into = [[[1, 0], [0, 1]], [[0, 1], [-1, 0]]]  # what real and imaginary weights give, by part
    found = []
    for matrix, where in zip((weights.real, weights.imag), into, strict=True):
        product = ctx.op("MatMul", ctx.value(matrix.astype(dtype), "weights"), x)
        part = np.array(where, dtype)[:parts, : 1 if is_real else 2]
        found.append(ctx.op("MatMul", product, ctx.value(part, "part")))
    return ctx.op("Add", *found)


@adapter_down("STFT", 17, exact=False)
def stft_16(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """It becomes a Conv of the signal, (batch, length, 1 or 2), with the windowed waves."""
    signal, _, window, _ = [*node.input, "", ""][:4]
    dims, elem_type = ctx.dims_of(signal) or (None, None, None), ctx.known_elem_type(signal)
    parts, onesided = dims[-1], ctx.attribute(node, "onesided", 1)
    step, length = ctx.fixed(node, 1, "the frame step"), ctx.fixed(node, 3, "the frame length")
    assert step is not None  # it cannot be left out
    count = length.item() if length is not None else (ctx.dims_of(window) or dims[1:2])[0]
    if not isinstance(count, int) or parts not in (1, 2):
        sentence = f"the sizes of {signal!r} and of its frames are not known: {dims}"
        raise ctx.refused("unknown-rank", sentence)
    if onesided and parts == 2:
        raise ctx.refused("invalid-node", "an STFT of one side is of a real signal")
    ctx = ctx.later(9)
    kind = TensorProto.DOUBLE if elem_type == TensorProto.DOUBLE else TensorProto.FLOAT
    dtype = helper.tensor_dtype_to_np_dtype(kind)
    weights = _weights(count, count, False, bool(onesided))
    real, imaginary = weights.real, weights.imag
    kernel = np.array([[real, -imaginary][:parts], [imaginary, real][:parts]])
    kernel = kernel.transpose(0, 2, 1, 3).reshape(-1, int(parts), count)
    waves = ctx.value(kernel.astype(dtype), "waves")
    if window:
        waves = ctx.op("Mul", waves, ctx.cast(window, elem_type, kind))
    channels = ctx.op("Transpose", ctx.cast(signal, elem_type, kind), perm=[0, 2, 1])
    frames = ctx.op("Conv", channels, waves, strides=[int(step.item())])
    whole = (dims[1] - count) // int(step.item()) + 1 if isinstance(dims[1], int) else -1
    rows = whole if whole > 0 else -1  # no -1 where the batch may be empty
    split = ctx.op("Reshape", frames, ctx.ints(0, 2, len(weights), rows))
    last = ctx.op("Transpose", split, perm=[0, 3, 2, 1])
    ctx.cast(last, kind, elem_type, [node.output[0]])
    return []


#: By window the weights of the waves of period `size`, `size` / 2.
_WAVES = {
    "BlackmanWindow": (0.42, -0.5, 0.08),
    "HannWindow": (0.5, -0.5, 0.0),
    "HammingWindow": (25 / 46, -21 / 46, 0.0),
}


def window(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """It is a fixed value where its size is, else the function body."""
    size = ctx.constant(node.input[0])
    periodic = ctx.attribute(node, "periodic", 1)
    if size is None or size.item() <= 1 - periodic:  # of period 0 it is no number
        return expand(node, ctx, 17)
    count = int(size.item())
    angle = 2 * np.pi * np.arange(count) / (count if periodic else count - 1)
    level, *waves = _WAVES[op_of(node)]
    found = level + sum(
        weight * np.cos(times * angle) for times, weight in enumerate(waves, start=1)
    )
    return _fixed(node, np.asarray(found), ctx)


for _op in _WAVES:
    adapter_down(_op, 17, exact=False)(window)


@adapter_down("MelWeightMatrix", 17, exact=False)
def mel_weight_matrix_16(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """It is a fixed value: the triangles between edges that are equally far on the mel scale."""
    given = [ctx.constant(name) for name in node.input]
    if any(one is None for one in given):
        raise ctx.refused(
            "not-constant", "what MelWeightMatrix is made of is only known at run time"
        )
    bins, length, rate, lowest, highest = (one.item() for one in given if one is not None)
    low, high = (2595 * np.log1p(edge / 700) / np.log(10) for edge in (lowest, highest))
    mels = low + np.arange(bins + 2) * (high - low) / (bins + 2)
    hertz = 700 * np.expm1(mels / 2595 * np.log(10))
    edges = ((length + 1) * hertz // rate).astype(int)
    found = np.zeros((length // 2 + 1, bins))
    for band, (left, centre, right) in enumerate(zip(edges, edges[1:], edges[2:], strict=False)):
        rising, falling = np.arange(left, centre + 1), np.arange(centre, right)
        found[rising, band] = (rising - left) / (centre - left) if centre > left else 1
        if right > centre:
            found[falling, band] = (right - falling) / (right - centre)
    return _fixed(node, found, ctx)


def _fixed(node: NodeProto, value: Array, ctx: Conversion) -> Sequence[NodeProto]:
    """The node as a constant of its declared element type."""
    elem_type = ctx.attribute(node, "output_datatype", TensorProto.FLOAT)
    dtype = helper.tensor_dtype_to_np_dtype(elem_type)
    return [ctx.node("Identity", [ctx.value(value.astype(dtype), "weights")], node.output)]
