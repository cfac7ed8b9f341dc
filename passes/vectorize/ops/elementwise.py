"""Ops that work element by element: the new axis changes nothing but how operands line up."""

from __future__ import annotations

from onnx import NodeProto

from passes.operators.table import where
from passes.operators.traits import Shape
from passes.vectorize.vectorizer import Vectorizer, batched

_TRAINING = 2  # the input of Dropout that says whether it is random


@batched(*where(lambda row: row.shape is Shape.ELEMENTWISE) - {"CastLike", "Clip"}, "BitCast")
def unary(node: NodeProto, ctx: Vectorizer) -> None:
    """One operand, element by element: the same op on all rows."""
    ctx.again(node)


@batched(*where(lambda row: row.shape is Shape.BROADCAST))
def broadcasting(node: NodeProto, ctx: Vectorizer) -> None:
    """Operands that broadcast: those with the axis get its rank up to that of the result.

    Without that, the axis would line up with an axis of a row.
    """
    rank = max(ctx.rank(name) for name in node.input)
    ctx.again(node, [ctx.raised(name, rank) for name in node.input])


@batched("PRelu")
def prelu(node: NodeProto, ctx: Vectorizer) -> None:
    """The slope broadcasts to the data, never the data to the slope."""
    x, slope = node.input
    rank = ctx.rank(x)
    ctx.again(node, [ctx.raised(ctx.spread(x), rank), ctx.raised(slope, rank)])


@batched("CastLike")
def cast_like(node: NodeProto, ctx: Vectorizer) -> set[str] | None:
    """The second input only gives a type."""
    ctx.again(node)
    return None if ctx.carries(node.input[0]) else set(node.output)


@batched("Clip")
def clip(node: NodeProto, ctx: Vectorizer) -> None:
    """Bounds are scalars; where they come from each row, Max and Min take them."""
    x, low, high = [*node.input, "", ""][:3]
    if not (ctx.carries(low) or ctx.carries(high)):
        ctx.again(node)
        return
    rank = ctx.rank(x)
    value = ctx.raised(ctx.spread(x), rank)
    if low:
        value = ctx.op("Max", value, ctx.raised(low, rank))
    if high:
        value = ctx.op("Min", value, ctx.raised(high, rank))
    ctx.name_as(value, node.output[0])


@batched("Dropout")
def dropout(node: NodeProto, ctx: Vectorizer) -> None:
    """Out of training it hands its input on; in training rows would share one draw."""
    if len(node.input) > _TRAINING and node.input[_TRAINING]:
        training = ctx.constant(node.input[_TRAINING])
        if training is None or bool(training.ravel()[0]):
            ctx.refuse(
                "random", "Dropout in training draws other numbers for each row", *node.output
            )
    ctx.only_rows(node, 1, 2)
    ctx.again(node)
