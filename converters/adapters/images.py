"""Steps of AffineGrid, Col2Im and ImageDecoder."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from onnx import NodeProto, helper

from passes.converters.adapters.convolution import steps_and_pads
from passes.converters.steps import adapter_down, refusal_down
from passes.converters.writing.conversion import Conversion
from passes.writing import spelling

refusal_down("ImageDecoder", 20, "no-equivalent", "no older op decodes images")


@adapter_down("AffineGrid", 20, exact=False)
def affine_grid_19(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """It is written out: what each coordinate adds to a place, each along an axis of its own.

    theta (N, 2, 3) or (N, 3, 4), size (N, C, [D,] H, W), grid (N, [D,] H, W, 2 or 3). The
    document's own body does not take a batch of 1.
    """
    theta, size = node.input
    known = ctx.dims_of(theta) or (None, None)
    count = known[1] if isinstance(known[1], int) else (ctx.dims_of(size) or (None,))[0]
    count = count - 2 if isinstance(count, int) and count != known[1] else count
    if not isinstance(count, int):
        raise ctx.refused("unknown-rank", f"the number of rows of {theta!r} is not known")
    ctx = ctx.later(12)
    elem_type = ctx.known_elem_type(theta)
    spatial = list(range(1, count + 1))

    def column(place: int) -> str:
        """Return the factor of a coordinate: (N, 1, ..., rows)."""
        picked = ctx.op("Gather", theta, ctx.whole(place, "column"), axis=2)
        return spelling.unsqueeze_axes(ctx, picked, spatial)

    total = ""
    for place in range(count):  # the first coordinate is that of the last axis
        axis = count - 1 - place
        along = _coordinates(node, size, axis + 2, elem_type, ctx)
        behind = [1] * (count - 1 - axis)
        line = ctx.op("Reshape", along, ctx.ints(-1, *behind, 1))
        part = ctx.op("Mul", line, column(place))
        total = ctx.op("Add", total, part) if total else part
    return ctx.last(node, "Add", total, column(count))


def _coordinates(node: NodeProto, size: str, place: int, elem_type: int, ctx: Conversion) -> str:
    """Positions from -1 to 1 along an axis, of pixel centres, or of corners where they align."""
    dtype = helper.tensor_dtype_to_np_dtype(elem_type)
    corners = ctx.attribute(node, "align_corners", 0)
    fixed = ctx.constant(size)
    if fixed is not None:
        count = int(fixed[place])
        if corners and count == 1:
            raise ctx.refused("no-equivalent", "runtimes differ in the corners of a single pixel")
        steps = np.arange(count, dtype=np.float64)
        found = 2 * steps / max(count - 1, 1) - 1 if corners else (2 * steps + 1) / count - 1
        return ctx.value(found.astype(dtype), "coordinates")
    length = ctx.op("Gather", size, ctx.whole(place, "axis"))
    indices = ctx.op("Cast", spelling.count_to(ctx, length), to=elem_type)
    two, less = ctx.rounded(2, dtype), ctx.rounded(1, dtype)
    doubled = ctx.op("Mul", indices, two)
    if corners:
        spans = ctx.op("Max", ctx.op("Cast", ctx.op("Sub", length, ctx.int(1)), to=elem_type), less)
    else:
        doubled = ctx.op("Add", doubled, less)
        spans = ctx.op("Cast", length, to=elem_type)
    return ctx.op("Sub", ctx.op("Div", doubled, spans), less)


@adapter_down("Col2Im", 18, exact=False)
def col2im_17(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """The node is written out, axis by axis: each pixel adds up the elements of the blocks that
    cover it.

    x (N, C * block, blocks) becomes (N, C, block_1, ..., blocks_1, ...); of each axis the block
    and the blocks, flat and followed by a 0, are gathered as (image_i, at most so many) and summed.
    """
    image, block = (ctx.fixed(node, place, what) for place, what in ((1, "image"), (2, "block")))
    assert image is not None  # they cannot be left out
    assert block is not None
    count = len(image)
    strides, dilations, pads = steps_and_pads(node, ctx, count)
    blocks = [
        (int(image[i]) + pads[i] + pads[count + i] - dilations[i] * (int(block[i]) - 1) - 1)
        // strides[i]
        + 1
        for i in range(count)
    ]
    ctx = ctx.later(9)
    left = [*map(int, block), *blocks]
    x = ctx.op("Reshape", node.input[0], ctx.ints(0, -1, *left))
    for i in range(count):
        # (N, C, block_i, .., blocks_i, .., done ..), of which two become the last, as one
        rest = [2 + place for place in range(len(left)) if place not in (0, count - i)]
        x = ctx.op("Transpose", x, perm=[0, 1, *rest, 2, 2 + count - i])
        flat = left[0] * left[count - i]
        kept = [left[axis - 2] for axis in rest]
        x = ctx.op("Reshape", x, ctx.ints(0, 0, *kept, flat))
        ends = [0] * (3 + len(kept))
        x = ctx.op("Pad", x, pads=[*ends, *ends[:-1], 1])
        index = _on_each_pixel(
            int(image[i]), int(block[i]), blocks[i], strides[i], dilations[i], pads[i]
        )
        x = ctx.op("Gather", x, ctx.value(index, "index"), axis=2 + len(kept))
        last = i == count - 1
        x = ctx.op(
            "ReduceSum", x, axes=[3 + len(kept)], keepdims=0, outputs=node.output if last else ()
        )
        left = [*kept, int(image[i])]
    return []


def _on_each_pixel(
    size: int, block: int, blocks: int, stride: int, dilation: int, pad: int
) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    """Return for each pixel the elements (block, blocks), flat, that cover it, padded with that of
    the 0."""
    found: list[list[int]] = [[] for _ in range(size)]
    for element in range(block):
        for one in range(blocks):
            pixel = element * dilation + one * stride - pad
            if 0 <= pixel < size:
                found[pixel].append(element * blocks + one)
    most = max(map(len, found), default=0)
    padded = [[*ones, *[block * blocks] * (most - len(ones))] for ones in found]
    return np.array(padded, np.int64).reshape(size, most)
