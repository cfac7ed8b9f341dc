"""ConvTranspose."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np

from passes.verify.executor import Array
from passes.verify.reference.registry import Call, implements


@implements("ConvTranspose")
def conv_transpose(call: Call, x: Array, w: Array, b: Array | None = None) -> Array:
    """ConvTranspose-1 to -22: `x` [N, C, ...], `w` [C, M / group, ...], `b` [M].

    Raises ValueError where channels and groups do not fit.
    """
    rank, group = x.ndim - 2, call.get("group", 1)
    strides = call.get("strides") or [1] * rank
    dilations = call.get("dilations") or [1] * rank
    extra = call.get("output_padding") or [0] * rank
    spans = [(size - 1) * step + 1 for size, step in zip(w.shape[2:], dilations, strict=True)]
    full = [
        strides[axis] * (x.shape[axis + 2] - 1) + spans[axis] + extra[axis] for axis in range(rank)
    ]
    start, lengths = _crop(call, x.shape[2:], strides, full)
    # An output_shape may ask for more than there is: zeros follow.
    room = [max(have, a + n) for have, a, n in zip(full, start, lengths, strict=True)]
    whole = _spread(x, w, (group, strides, dilations), room)
    inside: Any = (..., *(slice(a, a + n) for a, n in zip(start, lengths, strict=True)))
    cropped: Array = whole[inside]
    if b is not None:
        cropped = cropped + b.reshape(-1, *[1] * rank)
    return np.asarray(cropped, x.dtype)


def _spread(x: Array, w: Array, how: tuple[int, list[int], list[int]], full: list[int]) -> Array:
    """Every input element times the kernel, added up in an output without padding."""
    group, strides, dilations = how
    batch, channels, spatial = x.shape[0], x.shape[1], x.shape[2:]
    grouped = x.reshape(batch, group, channels // group, math.prod(spatial))
    kernels = w.reshape(group, channels // group, w.shape[1], *w.shape[2:])
    whole = np.zeros((batch, group * w.shape[1], *full), x.dtype)
    for offset in itertools.product(*map(range, w.shape[2:])):
        tap: Any = (..., *offset)
        part = np.einsum("ngcs,gcm->ngms", grouped, kernels[tap])
        reached: Any = (
            ...,
            *(
                slice(o * d, o * d + (length - 1) * s + 1, s)
                for o, d, s, length in zip(offset, dilations, strides, spatial, strict=True)
            ),
        )
        whole[reached] += part.reshape(batch, whole.shape[1], *spatial)
    return whole


def _crop(
    call: Call, spatial: tuple[int, ...], strides: list[int], full: list[int]
) -> tuple[list[int], list[int]]:
    """Return the start of the output in the unpadded one, and its lengths."""
    rank, auto = len(spatial), call.get("auto_pad", "NOTSET")
    pads = call.get("pads") or [0] * (2 * rank)
    wanted = call.get("output_shape")
    if wanted is None and auto in ("NOTSET", "VALID"):
        pads = [0] * (2 * rank) if auto == "VALID" else pads
        lengths = [full[axis] - pads[axis] - pads[axis + rank] for axis in range(rank)]
        return pads[:rank], lengths
    lengths = list(wanted or [n * s for n, s in zip(spatial, strides, strict=True)])[-rank:]
    totals = [max(0, have - want) for have, want in zip(full, lengths, strict=True)]
    upper = auto == "SAME_UPPER"
    return [total // 2 if upper else total - total // 2 for total in totals], lengths
