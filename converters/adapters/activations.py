"""Steps of Clip, and of activations that newer opsets brought."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from onnx import NodeProto, TensorProto

from passes.converters.steps import adapter, adapter_down, expanded, identical
from passes.converters.writing.attribute_inputs import float_as_input
from passes.converters.writing.conversion import OLD_FLOATS, Conversion
from passes.converters.writing.expansion import expand
from passes.types.value_types import elem_type_of

for _op in ("Elu", "HardSigmoid", "HardSwish", "Mish", "Selu", "ThresholdedRelu"):
    identical(_op, 22)
identical("Celu", 28)

expanded("Celu", 12)
expanded("Gelu", 20)
expanded("HardSwish", 14)
expanded("Mish", 18)
expanded("Shrink", 9)
expanded("SwiGLU", 28)
expanded("Swish", 24)
expanded("ThresholdedRelu", 10)


@adapter_down("Celu", 28, exact=False)
def celu_27(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """Version 12 takes float only: other types become the function body."""
    if ctx.known_elem_type(node.input[0]) == TensorProto.FLOAT:
        return [node]
    return expand(node, ctx, 28)


_LARGEST = float(np.finfo(np.float32).max)


@adapter("Clip", 11)
def clip_11(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """The attributes `min` and `max` become inputs, scalars () of the input's type.

    Both are always given. The defaults of Clip-6 are the extremes of float for every type, while
    a missing input of Clip-11 stands for those of the type itself: for double and float16 these
    are other numbers, and it differs between runtimes whether they clip an infinity.
    """
    x = node.input[0]
    lower = float_as_input(node, ctx, "min", x, -_LARGEST)
    upper = float_as_input(node, ctx, "max", x, _LARGEST)
    return [ctx.changed(node, inputs=[x, lower, upper], without=["min", "max"])]


@adapter_down("Clip", 11)
def clip_10(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """Bounds of float that are fixed become attributes again; others are those of a Max and a Min.

    A bound that is left out becomes an infinite attribute: the default of Clip-6 would clip an
    infinity, which Clip-11 without that bound keeps. Double and float16 are given a Max or a Min,
    and so is a lower bound above the upper one, which onnxruntime does not take as attributes.
    """
    x, *bounds = (*node.input, "", "")[:3]
    fixed = [ctx.constant(name) for name in bounds]
    known = all(not name or value is not None for name, value in zip(bounds, fixed, strict=True))
    if ctx.known_elem_type(x) == TensorProto.FLOAT and known:
        lower, upper = (
            default if value is None else float(value.item())
            for value, default in zip(fixed, (-np.inf, np.inf), strict=True)
        )
        if lower <= upper:
            return [ctx.changed(node, inputs=[x], min=lower, max=upper)]
    for op, bound in zip(("Max", "Min"), bounds, strict=True):
        if bound:
            x = ctx.op(op, x, bound)
    return ctx.named_last(node, x)


@adapter_down("Clip", 12)
def clip_11_down(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """Integers, which Clip-11 does not take, are compared with each bound."""
    x, lower, upper = (*node.input, "", "")[:3]
    if elem_type_of(ctx.type_of(x)) in (0, *OLD_FLOATS):
        return [node]
    for bound, less in ((lower, (0, 1)), (upper, (1, 0))):
        if bound:
            x = ctx.op("Where", ctx.op("Less", *[(x, bound)[place] for place in less]), bound, x)
    return ctx.named_last(node, x)


identical("Clip", 12)
identical("Clip", 13)  # min above max was not spoken of; max won in every runtime
