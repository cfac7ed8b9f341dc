"""Pad, where negative amounts cut."""

from __future__ import annotations

import numpy as np

from passes.verify.executor import Array
from passes.verify.reference.ops.axes import normalized
from passes.verify.reference.registry import Call, implements


@implements("Pad", until=10)
def pad_by_attributes(call: Call, x: Array) -> Array:
    """Pad-2: `pads` and `value` are attributes."""
    pads = call.get("pads") or call.get("paddings")
    return _padded(x, list(pads), call.get("value", 0.0), call.get("mode", "constant"))


@implements("Pad", since=11)
def pad(
    call: Call, x: Array, pads: Array, value: Array | None = None, axes: Array | None = None
) -> Array:
    """Pad-11 to -25: `pads` int64 [2 * rank], or two per axis of `axes`; negative ones cut."""
    amounts = [int(amount) for amount in pads]
    if axes is not None:
        amounts = _spread(amounts, normalized([int(axis) for axis in axes], x.ndim), x.ndim)
    blank = "" if x.dtype == object else 0
    fill = blank if value is None or value.size == 0 else value.reshape(()).item()
    return _padded(x, amounts, fill, call.get("mode", "constant"))


def _spread(amounts: list[int], axes: list[int], rank: int) -> list[int]:
    if len(amounts) != 2 * len(axes):
        raise ValueError(f"{len(amounts)} amounts for {len(axes)} axes")
    whole = [0] * (2 * rank)
    for place, axis in enumerate(axes):
        whole[axis] = amounts[place]
        whole[axis + rank] = amounts[place + len(axes)]
    return whole


def _padded(x: Array, amounts: list[int], fill: float | str, mode: str) -> Array:
    if len(amounts) != 2 * x.ndim:
        raise ValueError(f"{len(amounts)} amounts for {x.ndim} dimensions")
    pairs = list(zip(amounts[: x.ndim], amounts[x.ndim :], strict=True))
    if any(front + back + length < 0 for (front, back), length in zip(pairs, x.shape, strict=True)):
        raise ValueError(f"{amounts} cuts off more than there is of shape {x.shape}")
    cut = x[
        tuple(
            slice(max(0, -front), length - max(0, -back))
            for (front, back), length in zip(pairs, x.shape, strict=True)
        )
    ]
    widths = [(max(0, front), max(0, back)) for front, back in pairs]
    if mode == "constant":
        return np.pad(cut, widths, mode="constant", constant_values=np.array(fill, x.dtype))
    if mode == "reflect":
        if any(
            max(width) >= max(1, length) for width, length in zip(widths, cut.shape, strict=True)
        ):
            raise ValueError(f"reflecting {widths} reaches beyond shape {cut.shape}")
        return np.pad(cut, widths, mode="reflect")
    if mode == "edge":
        return np.pad(cut, widths, mode="edge")
    if mode == "wrap":
        return np.pad(cut, widths, mode="wrap")
    raise ValueError(f"mode {mode!r} is none of constant, reflect, edge, wrap")
