"""A Resize of known sizes, as the elements that it reads and their weights."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial, reduce

import numpy as np
import numpy.typing as npt
from onnx import NodeProto, TensorProto, helper

from passes.converters.writing.conversion import OLD_FLOATS, Conversion
from passes.writing.spelling import Array


def is_replicating(node: NodeProto, ctx: Conversion) -> bool:
    """Return whether a Resize-11 repeats or drops elements as Resize-10 does, by scales that are
    fixed."""
    scales = ctx.constant(node.input[2])
    if scales is None or ctx.attribute(node, "mode", "nearest") != "nearest":
        return False
    coordinates = ctx.attribute(node, "coordinate_transformation_mode", "half_pixel")
    rounding = ctx.attribute(node, "nearest_mode", "round_prefer_floor")
    if coordinates == "asymmetric":
        return (rounding == "floor" and bool(np.all(scales >= 1))) or (
            rounding == "ceil" and bool(np.all(scales <= 1))
        )
    whole = bool(np.all(scales == np.floor(scales)))  # position k + (j + 0.5) / scale, j < scale
    if coordinates in ("half_pixel", "pytorch_half_pixel"):
        return whole and rounding.startswith("round")
    return whole and coordinates == "tf_half_pixel_for_nn" and rounding == "floor"


def sampled(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """Return nodes that read the positions of a Resize of opset 11 to 18, axis by axis.

    Its input `x` is gathered once for each neighbour, and their sum is weighted. Only the sizes
    of axes that change need to be known.

    Raises:
        Refused: `not-constant`, `unknown-rank`: scales or sizes, or the size of an axis, are not
            known; `no-equivalent`: the mode, or the element type, cannot be said that way.
    """
    x = node.input[0]
    mode = ctx.attribute(node, "mode", "nearest")
    elem_type = ctx.known_elem_type(x)
    if ctx.attribute(node, "coordinate_transformation_mode") == "tf_crop_and_resize":
        raise ctx.refused("no-equivalent", f"opset {ctx.version} has no 'tf_crop_and_resize'")
    refuse_rounding(ctx, mode, elem_type)
    rank = ctx.known_rank(x)
    changing = _changing(node, ctx, rank)
    for axis, (size, new_size, scale) in changing.items():
        taps = _taps(node, ctx, mode, size, new_size, scale)
        behind = (new_size, *[1] * (rank - 1 - axis))
        parts = []
        for index, weight in taps:
            part = ctx.op("Gather", x, ctx.value(index.astype(np.int64), "index"), axis=axis)
            if weight is not None:
                dtype = helper.tensor_dtype_to_np_dtype(elem_type)
                part = ctx.op("Mul", part, ctx.rounded(weight.reshape(behind), dtype, "weight"))
            parts.append(part)
        x = reduce(partial(ctx.op, "Add"), parts)
    return ctx.last(node, "Identity", x)


def refuse_rounding(ctx: Conversion, mode: str, elem_type: int) -> None:
    """Refuse to interpolate a type that is rounded otherwise."""
    if mode != "nearest" and elem_type not in OLD_FLOATS:
        kind = TensorProto.DataType.Name(elem_type).lower()
        raise ctx.refused("no-equivalent", f"{kind} is rounded otherwise where it is interpolated")


def fixed_input(node: NodeProto, ctx: Conversion, position: int) -> Array:
    """The scales or sizes of a Resize.

    Raises:
        Refused: `not-constant`: they are only known at run time.
    """
    value = ctx.constant(node.input[position])
    if value is None:
        raise ctx.refused(
            "not-constant",
            f"which elements Resize reads is fixed before opset {ctx.version + 1} only for fixed "
            f"scales and sizes, and {node.input[position]!r} is only known at run time",
        )
    return value


def _changing(node: NodeProto, ctx: Conversion, rank: int) -> dict[int, tuple[int, int, float]]:
    """The size, the new size and the scale of each axis that changes."""
    dims = ctx.dims_of(node.input[0]) or ()
    has_sizes = bool(node.input[3:] and node.input[3]) and ctx.dims_of(node.input[3]) != (0,)
    given, sizes = (
        (None, fixed_input(node, ctx, 3)) if has_sizes else (fixed_input(node, ctx, 2), None)
    )
    found: dict[int, tuple[int, int, float]] = {}
    for axis in range(rank):
        dim = dims[axis]
        if given is not None and given[axis] == 1:
            continue
        if not isinstance(dim, int) or not dim:
            sentence = f"the size of axis {axis} of {node.input[0]!r} is not known, or 0"
            raise ctx.refused("unknown-rank", sentence)
        if given is not None:
            scale = float(given[axis])
            new_size = int(np.floor(np.float32(dim) * np.float32(scale)))
        else:
            assert sizes is not None
            new_size, scale = int(sizes[axis]), int(sizes[axis]) / dim
            if new_size == dim:
                continue
        found[axis] = dim, new_size, scale
    if found and all(size == new_size for size, new_size, _ in found.values()):
        raise ctx.refused("no-equivalent", "runtimes differ in a Resize that changes no size")
    return found


def _taps(
    node: NodeProto, ctx: Conversion, mode: str, size: int, new_size: int, scale: float
) -> list[tuple[Array, Array | None]]:
    """Return the elements that each new_size one reads along an axis, and their weights; None is
    1."""
    if mode == "nearest":
        index = _nearest(node, ctx, size, new_size, scale, np.float64)
        if not np.array_equal(index, _nearest(node, ctx, size, new_size, scale, np.float32)):
            raise ctx.refused(
                "no-equivalent", f"the nearest element for scale {scale} depends on rounding"
            )
        return [(index, None)]
    position = _positions(node, ctx, size, new_size, scale, np.float64)
    low = np.floor(position)
    ratio = position - low
    if mode == "linear":
        taps = [(low, 1 - ratio), (low + 1, ratio)]
    else:
        a = ctx.attribute(node, "cubic_coeff_a", -0.75)
        taps = [(low + step, _cubic(np.abs(ratio - step), a)) for step in (-1, 0, 1, 2)]
        if ctx.attribute(node, "exclude_outside", 0):
            taps = [(one, weight * ((one >= 0) & (one < size))) for one, weight in taps]
            total = sum(weight for _, weight in taps)
            taps = [(one, weight / total) for one, weight in taps]
    return [(np.clip(one, 0, size - 1), weight) for one, weight in taps]


def _cubic(distance: Array, a: float) -> Array:
    near = (a + 2) * distance**3 - (a + 3) * distance**2 + 1
    far = a * distance**3 - 5 * a * distance**2 + 8 * a * distance - 4 * a
    return np.where(distance <= 1, near, far)


def _nearest(
    node: NodeProto, ctx: Conversion, size: int, new_size: int, scale: float, dtype: npt.DTypeLike
) -> Array:
    position = _positions(node, ctx, size, new_size, scale, dtype)
    rounding = ctx.attribute(node, "nearest_mode", "round_prefer_floor")
    half = np.asarray(0.5, dtype)
    if rounding == "round_prefer_floor":
        position, rounding = position - half, "ceil"
    elif rounding == "round_prefer_ceil":
        position, rounding = position + half, "floor"
    rounded = np.ceil(position) if rounding == "ceil" else np.floor(position)
    return np.asarray(np.clip(rounded, 0, size - 1))


def _positions(
    node: NodeProto, ctx: Conversion, size: int, new_size: int, scale: float, dtype: npt.DTypeLike
) -> Array:
    """Return the position read for each new_size element, in the axis before; (new_size)."""
    mode = ctx.attribute(node, "coordinate_transformation_mode", "half_pixel")
    step, factor, half = np.arange(new_size).astype(dtype), *np.array([scale, 0.5], dtype)
    if mode == "align_corners":
        if not np.isclose(size * scale, new_size, rtol=0, atol=1e-4):
            raise ctx.refused(
                "no-equivalent", "runtimes differ in the corners of a fractional size"
            )
        position = step * np.asarray(size - 1, dtype)
        return np.asarray(position / np.asarray(max(new_size - 1, 1), dtype))
    if mode == "asymmetric":
        return np.asarray(step / factor)
    if mode == "pytorch_half_pixel" and new_size == 1:
        return np.zeros(1, dtype)
    position = (step + half) / factor
    if mode == "tf_half_pixel_for_nn":
        return np.asarray(position)
    offset = 0.0
    if mode == "half_pixel_symmetric":
        offset = size / 2 * (1 - new_size / (scale * size))
    return np.asarray(np.asarray(offset, dtype) + position - half)
