"""Squeeze, Unsqueeze, Flatten; Split, whose parts must add up; Pad, whose negative amounts cut."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from passes.ir.operators import op_of
from passes.verify.executor import Array, CannotRun
from passes.verify.reference.registry import KernelCall, implements

#: Elements of an array: more take gigabytes, and whether there is room is for no machine to decide.
_MOST = 1 << 26


def see_room(call: KernelCall, sizes: Sequence[int]) -> None:
    """CannotRun if an array of these sizes has more elements than there need be room for."""
    if math.prod(max(size, 0) for size in sizes) > _MOST:
        raise CannotRun(f"the result of {op_of(call.node)}, {[*sizes]}, is too large")


def see_shape(shape: tuple[int, ...], *operands: Array | None) -> None:
    """Raise ValueError unless the operands that are given have this shape: numpy would broadcast
    others."""
    for operand in operands:
        if operand is not None and operand.shape != shape:
            raise ValueError(f"an operand of shape {operand.shape} in place of {shape}")


def normalized(axes: list[int], rank: int) -> list[int]:
    """Axes as 0..rank-1; ValueError when one is out of range or named twice."""
    for axis in axes:
        if not -rank <= axis < rank:
            raise ValueError(f"axis {axis} does not fit {rank} dimensions")
    positive = [axis % rank for axis in axes]
    if len(set(positive)) < len(positive):
        raise ValueError(f"an axis is named twice in {axes}")
    return positive


@implements("Squeeze", until=12)
def squeeze(call: KernelCall, x: Array) -> Array:
    """Squeeze-1 and -11: drops `axes` (default: every axis of length 1), all at once."""
    return _squeezed(x, call.get("axes"))


@implements("Squeeze", since=13)
def squeeze_input(call: KernelCall, x: Array, axes: Array | None = None) -> Array:
    """Squeeze-13 and later: the same, `axes` being an input, a vector, else ValueError."""
    if axes is not None:
        see_shape((axes.size,), axes)
    return _squeezed(x, None if axes is None else [int(axis) for axis in axes])


def _squeezed(x: Array, axes: list[int] | None) -> Array:
    """Without these axes, or without all of length 1.

    Raises NotImplementedError for a list of no axes: by the document nothing is dropped then,
    but onnxruntime drops every axis of length 1.
    """
    if axes is None:
        return np.squeeze(x)
    if not axes and 1 in x.shape:
        raise NotImplementedError("runtimes differ in what an empty list of axes means")
    return np.squeeze(x, tuple(normalized(axes, x.ndim)))


@implements("Unsqueeze", until=12)
def unsqueeze(call: KernelCall, x: Array) -> Array:
    """Unsqueeze-1 and -11: `axes` are places in the output, their order has no meaning."""
    axes = call.get("axes")
    return np.expand_dims(x, tuple(sorted(normalized(axes, x.ndim + len(axes)))))


@implements("Flatten")
def flatten(call: KernelCall, x: Array) -> Array:
    """Flatten-1 and later: `x` as a matrix, the dims before `axis` (default 1) as its rows.

    Either dim may be 0. ValueError for an axis outside of -rank..rank.
    """
    axis = call.get("axis")
    if not -x.ndim <= axis <= x.ndim:
        raise ValueError(f"axis {axis} does not fit {x.ndim} dimensions")
    axis = axis + x.ndim if axis < 0 else axis
    return x.reshape(math.prod(x.shape[:axis]), math.prod(x.shape[axis:]))


@implements("Split")
def split(call: KernelCall, x: Array, parts: Array | None = None) -> tuple[Array, ...]:
    """Split-2 to -18: `split` as an attribute, from opset 13 on as an int64 input.

    Without it the parts are equal; from opset 18 on the last one may be smaller. Raises
    ValueError where the lengths are negative, too few, too many, or do not add up.
    """
    (axis,) = normalized([call.get("axis", 0)], x.ndim)
    length, count = x.shape[axis], call.get("num_outputs", call.outputs)
    given = call.get("split") if parts is None else [int(part) for part in parts]
    lengths = _equal(call, length, count) if given is None else list(given)
    if min(lengths, default=0) < 0 or sum(lengths) != length or len(lengths) != call.outputs:
        raise ValueError(f"lengths {lengths} for {call.outputs} parts of {length}")
    return tuple(np.split(x, np.cumsum(lengths)[:-1], axis))


def _equal(call: KernelCall, length: int, count: int) -> list[int]:
    if call.version < 18 and length % count:
        raise ValueError(f"{length} does not split into {count} equal parts")
    size = -(-length // count)
    return [max(0, min(size, length - size * place)) for place in range(count)]


@implements("Pad", until=10)
def pad_by_attributes(call: KernelCall, x: Array) -> Array:
    """Pad-2: `pads` and `value` are attributes."""
    pads = call.get("pads") or call.get("paddings")
    return _padded(call, x, list(pads), call.get("value", 0.0))


@implements("Pad", since=11)
def pad(
    call: KernelCall, x: Array, pads: Array, value: Array | None = None, axes: Array | None = None
) -> Array:
    """Pad-11 to -25: `pads` int64 [2 * rank], or two per axis of `axes`; negative ones cut."""
    amounts = [int(amount) for amount in pads]
    if axes is not None:
        amounts = _spread(amounts, normalized([int(axis) for axis in axes], x.ndim), x.ndim)
    blank = "" if x.dtype == object else 0
    fill = blank if value is None or value.size == 0 else value.reshape(()).item()
    return _padded(call, x, amounts, fill)


def _spread(amounts: list[int], axes: list[int], rank: int) -> list[int]:
    if len(amounts) != 2 * len(axes):
        raise ValueError(f"{len(amounts)} amounts for {len(axes)} axes")
    whole = [0] * (2 * rank)
    for place, axis in enumerate(axes):
        whole[axis] = amounts[place]
        whole[axis + rank] = amounts[place + len(axes)]
    return whole


def _padded(call: KernelCall, x: Array, amounts: list[int], fill: float | str) -> Array:
    mode = call.get("mode", "constant")
    if len(amounts) != 2 * x.ndim:
        raise ValueError(f"{len(amounts)} amounts for {x.ndim} dimensions")
    pairs = list(zip(amounts[: x.ndim], amounts[x.ndim :], strict=True))
    widths = [(max(0, front), max(0, back)) for front, back in pairs]
    see_room(call, [n + sum(width) for n, width in zip(x.shape, widths, strict=True)])
    if mode == "constant":  # a cut may reach into what is added at the other end
        return _cut(np.pad(x, widths, constant_values=np.array(fill, x.dtype)), pairs)
    cut = _cut(x, pairs)
    if mode == "reflect":
        if any(
            max(width) >= max(1, length) for width, length in zip(widths, cut.shape, strict=True)
        ):
            raise ValueError(f"reflecting {widths} reaches beyond shape {cut.shape}")
        return np.pad(cut, widths, mode="reflect")
    if mode in ("edge", "wrap"):
        return np.pad(cut, widths, mode)
    raise ValueError(f"mode {mode!r} is none of constant, reflect, edge, wrap")


def _cut(x: Array, pairs: list[tuple[int, int]]) -> Array:
    """Without the elements that negative amounts cut off; ValueError for more than there are."""
    ends = [
        (-min(0, front), n + min(0, back)) for (front, back), n in zip(pairs, x.shape, strict=True)
    ]
    if any(begin > end for begin, end in ends):
        raise ValueError(f"{pairs} cuts off more than there is of shape {x.shape}")
    return x[tuple(slice(begin, end) for begin, end in ends)]
