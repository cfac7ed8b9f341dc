"""Steps of Clip."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from onnx import NodeProto, TensorProto

from passes.converters.steps import adapter, adapter_down, identical
from passes.converters.writing.attribute_inputs import float_as_input
from passes.converters.writing.conversion import OLD_FLOATS, Conversion
from passes.types.value_types import elem_type_of

_LARGEST = float(np.finfo(np.float32).max)


@adapter("Clip", 11)
def clip_11(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """The attributes `min` and `max` become inputs, scalars () of the input's type.

    Both are always given. The defaults of Clip-6 are the extremes of float for every type, while
    a missing input of Clip-11 stands for those of the type itself: for double and float16 these
    are other numbers, and it differs between runtimes whether they clip an infinity.
    """
    lower, lower_nodes = float_as_input(node, ctx, "min", node.input[0], -_LARGEST)
    upper, upper_nodes = float_as_input(node, ctx, "max", node.input[0], _LARGEST)
    main = ctx.changed(node, inputs=[node.input[0], lower, upper], without=["min", "max"])
    return [*lower_nodes, *upper_nodes, main]


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
    made = []
    for op, bound in zip(("Max", "Min"), bounds, strict=True):
        if bound:
            made.append(ctx.node(op, [x, bound]))
            x = made[-1].output[0]
    if not made:
        return [ctx.changed(node, op="Identity", inputs=[x])]
    return [*made[:-1], ctx.changed(made[-1], outputs=node.output)]


@adapter_down("Clip", 12)
def clip_11_down(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """Integers, which Clip-11 does not take, are compared with each bound."""
    x, lower, upper = (*node.input, "", "")[:3]
    if elem_type_of(ctx.type_of(x)) in (0, *OLD_FLOATS):
        return [node]
    made: list[NodeProto] = []
    for bound, less in ((lower, (0, 1)), (upper, (1, 0))):
        if bound:
            is_out = ctx.node("Less", [(x, bound)[place] for place in less])
            made += [is_out, ctx.node("Where", [*is_out.output, bound, x])]
            x = made[-1].output[0]
    if not made:
        return [ctx.changed(node, op="Identity", inputs=[x])]
    return [*made[:-1], ctx.changed(made[-1], outputs=node.output)]


identical("Clip", 12)
identical("Clip", 13)  # min above max was not spoken of; max won in every runtime
