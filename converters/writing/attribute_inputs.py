"""Attributes that became inputs of a newer version: what several families need of it, both ways."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from onnx import NodeProto, TensorProto, helper

from passes.converters.writing.conversion import Conversion
from passes.ir.versions import HAS_CAST_LIKE
from passes.types.value_types import elem_type_of


def ints_as_input(node: NodeProto, ctx: Conversion, name: str) -> Sequence[NodeProto]:
    """The node with its optional attribute `name` as the second input, an int64 tensor (n).

    No attribute is no input. An empty list stays one: runtimes differ in what Squeeze does with
    it, and do the same before and after.
    """
    if not ctx.refers(node, name) and ctx.attribute(node, name) is None:
        return [ctx.changed(node, inputs=[node.input[0]])]
    value = ctx.attribute_as_input(node, name, np.int64)
    return [ctx.changed(node, inputs=[node.input[0], value], without=[name])]


def ints_as_attribute(
    node: NodeProto, ctx: Conversion, name: str, position: int = 1
) -> Sequence[NodeProto]:
    """Return the node with its optional input at `position`, an int64 tensor (n), as attribute
    `name`.

    No input is no attribute. The inputs after it move up.

    Raises:
        Refused: `not-constant`: the input is not fixed.
    """
    value = ctx.fixed(node, position, name)
    inputs = [one for place, one in enumerate(node.input) if place != position]
    attributes: dict[str, Any] = {name: None if value is None else value.ravel().tolist()}
    return [ctx.changed(node, inputs=inputs, **attributes)]


def non_negative(node: NodeProto, ctx: Conversion, name: str, rank_of: str) -> NodeProto:
    """Return the node with its attribute `name`, an axis or a list of them, made non-negative.

    A list is sorted then, as inference of Squeeze-1 needs it.

    Args:
        node: a node with the attribute, or without it.
        ctx: the step of the conversion.
        name: the attribute.
        rank_of: a value of the rank that is added to negative axes; read only if there are any.

    Raises:
        Refused: `unknown-rank`: it is unknown; `attribute-reference`: callers choose the axes.
    """
    axes = ctx.attribute(node, name)
    listed = axes if isinstance(axes, list) else [axes]
    if axes is None or (min(listed, default=0) >= 0 and listed == sorted(listed)):
        return node
    rank = ctx.known_rank(rank_of) if min(listed) < 0 else 0
    counted = sorted(axis + rank if axis < 0 else axis for axis in listed)
    attributes: dict[str, Any] = {name: counted if isinstance(axes, list) else counted[0]}
    return ctx.changed(node, **attributes)


def front_axis(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """A negative axis is counted from the front."""
    return [non_negative(node, ctx, "axis", node.input[0])]


def front_axes(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """Negative axes are counted from the front."""
    return [non_negative(node, ctx, "axes", node.input[0])]


def float_as_input(node: NodeProto, ctx: Conversion, name: str, like: str, default: float) -> str:
    """The name of a scalar of the element type of `like` that holds the float attribute `name`.

    Raises:
        Refused: `unknown-type`: the type is unknown, and the target has no CastLike.
    """
    if not elem_type_of(ctx.type_of(like)) and ctx.site.target >= HAS_CAST_LIKE:
        value = ctx.attribute_as_input(node, name, np.float32, default)
        return ctx.later(HAS_CAST_LIKE).op("CastLike", value, like)
    elem_type = ctx.known_elem_type(like)
    if ctx.refers(node, name):
        value = ctx.attribute_as_input(node, name, np.float32, default)
        return ctx.cast(value, TensorProto.FLOAT, elem_type)
    dtype = helper.tensor_dtype_to_np_dtype(elem_type)
    return ctx.rounded(ctx.attribute(node, name, default), dtype, name)
