"""The positions of the windows of a pool or a convolution."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from passes.verify.reference.registry import KernelCall


@dataclass(frozen=True)
class Windows:
    """Per spatial axis: how many windows, how far apart, how large, the padding on both sides."""

    counts: list[int]
    strides: list[int]
    sizes: list[int]
    dilations: list[int]
    before: list[int]
    after: list[int]


def windows(
    call: KernelCall, spatial: Sequence[int], sizes: Sequence[int] | None = None
) -> Windows:
    """Return the windows of a node over an image of these lengths; their sizes are its kernel_shape
    unless they are given.

    Follows MaxPool-12's document. With `ceil_mode` a last window that would start after the
    image is left out. Raises ValueError where nothing fits.
    """
    rank = len(spatial)
    sizes = list(sizes or call.get("kernel_shape"))
    if len(sizes) != rank:
        raise ValueError(f"kernel_shape {sizes} for {rank} spatial dimensions")
    strides = call.get("strides") or [1] * rank
    dilations = call.get("dilations") or [1] * rank
    pads = call.get("pads") or [0] * (2 * rank)
    spans = [(size - 1) * step + 1 for size, step in zip(sizes, dilations, strict=True)]
    auto = call.get("auto_pad", "NOTSET")
    counts, before, after = [], [], []
    for axis in range(rank):
        start, end = pads[axis], pads[axis + rank]
        length, stride, span = spatial[axis], strides[axis], spans[axis]
        if auto in ("SAME_UPPER", "SAME_LOWER"):
            count = -(-length // stride)
            total = max(0, (count - 1) * stride + span - length)
            start = total // 2 if auto == "SAME_UPPER" else total - total // 2
            end = total - start
        else:
            start, end = (0, 0) if auto == "VALID" else (start, end)
            room = length + start + end - span
            count = (-(-room // stride) if call.get("ceil_mode", 0) else room // stride) + 1
            if call.get("ceil_mode", 0) and (count - 1) * stride >= length + start:
                count -= 1
        if count < 0:
            raise ValueError(f"a window of {span} does not fit into {length}")
        counts.append(count)
        before.append(start)
        after.append(end)
    return Windows(counts, strides, sizes, dilations, before, after)
