"""Steps of ops that draw random numbers, Dropout among them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from onnx import NodeProto, TensorProto

from passes.converters.steps import adapter, adapter_down, identical
from passes.converters.writing.conversion import Conversion
from passes.ir.attributes import attribute_proto

for _op in (
    "Bernoulli",
    "Multinomial",
    "RandomNormal",
    "RandomNormalLike",
    "RandomUniform",
    "RandomUniformLike",
):
    identical(_op, 22)


@adapter_down("Bernoulli", 15, exact=False)
def bernoulli_14(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """Return whether a uniform random number is less than the probability."""
    if ctx.attribute(node, "seed") is not None:
        raise ctx.refused(
            "no-equivalent", "Bernoulli has a seed, which gives other numbers elsewhere"
        )
    (given,) = node.input
    elem_type = ctx.known_elem_type(given)
    less = ctx.op("Less", ctx.op("RandomUniformLike", given, dtype=elem_type), given)
    to = ctx.attribute(node, "dtype", elem_type)
    return [ctx.changed(node, op="Cast", inputs=[less], without=["seed", "dtype"], to=to)]


@adapter("Dropout", 10)
def dropout_10(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """The output `mask` is bool; it had the type of `data`, to which it is cast back."""
    return _with_mask_cast(node, ctx, ctx.known_elem_type(node.input[0])) if _mask(node) else [node]


@adapter_down("Dropout", 10)
def dropout_9(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """The output `mask` has the type of `data`; it is cast to bool."""
    return _with_mask_cast(node, ctx, TensorProto.BOOL) if _mask(node) else [node]


def _mask(node: NodeProto) -> str:
    return [*node.output, ""][1]


def _with_mask_cast(node: NodeProto, ctx: Conversion, to: int) -> list[NodeProto]:
    main = ctx.changed(node, outputs=[node.output[0], ctx.fresh(_mask(node))])
    return [main, ctx.node("Cast", [main.output[1]], [_mask(node)], to=to)]


@adapter("Dropout", 12)
def dropout_12(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """The attribute `ratio` becomes the second input, a float scalar; nothing asks for training.

    Without training the ratio is ignored, so one that cannot be expressed is left out. What
    the mask is then was not specified: onnxruntime makes it all false. From 12 on it is all
    true, so negated.
    """
    y, *mask = node.output
    inputs = [node.input[0]]
    ratio = attribute_proto(node, "ratio")
    if ratio is not None and not ratio.ref_attr_name and 0 <= ratio.f < 1:
        inputs.append(ctx.attribute_as_input(node, "ratio", np.float32))
    if not any(mask):
        return [ctx.changed(node, inputs=inputs, without=["ratio"])]
    kept = ctx.fresh(mask[0])
    main = ctx.changed(node, inputs=inputs, outputs=[y, kept], without=["ratio"])
    return [main, ctx.node("Not", [kept], mask)]


@adapter_down("Dropout", 12)
def dropout_11(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """Without training everything is kept: the mask is all true, and the ratio has no effect.

    A ratio that is fixed becomes an attribute again.
    """
    x, ratio, training = (*node.input, "", "")[:3]
    trains, fixed = ctx.constant(training), ctx.constant(ratio)
    if training and trains is None:
        raise ctx.refused(
            "not-constant",
            f"only {training!r} says, at run time, whether Dropout trains, and Dropout-10 does not",
        )
    if trains is not None and trains.any():
        raise ctx.refused("no-equivalent", "Dropout trains, which Dropout-10 does not")
    y, *mask = node.output
    main = ctx.changed(
        node,
        inputs=[x],
        outputs=[y],
        without=["seed"],
        ratio=None if fixed is None else float(fixed.item()),
    )
    if not any(mask):
        return [main]
    ctx.adopt(main)
    some = ctx.op("Cast", x, to=TensorProto.BOOL)
    return [ctx.node("Or", [some, ctx.op("Not", some)], mask)]


identical("Dropout", 13)
identical("Dropout", 22)  # says that a ratio left out is 0.5; 13 says so too, and contradicts it
