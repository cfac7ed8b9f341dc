"""Steps of Clip."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from onnx import NodeProto, TensorProto, helper

from converters.steps import adapter, adapter_down, identical
from converters.writing.attribute_inputs import float_as_input
from converters.writing.conversion import Conversion
from converters.writing.replacement import FLOATS
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

    So are those of double and float16: the defaults of the attributes are not theirs. And so is a
    lower bound above the upper one, which onnxruntime does not take as attributes.
    """
    x, *bounds = (*node.input, "", "")[:3]
    elem_type = ctx.known_elem_type(x)
    fixed = [ctx.constant(name) for name in bounds]
    known = all(not name or value is not None for name, value in zip(bounds, fixed, strict=True))
    if elem_type == TensorProto.FLOAT and known:
        lower, upper = (None if value is None else float(value.item()) for value in fixed)
        if (-_LARGEST if lower is None else lower) <= (_LARGEST if upper is None else upper):
            return [ctx.changed(node, inputs=[x], min=lower, max=upper)]
    limits = np.finfo(helper.tensor_dtype_to_np_dtype(elem_type))
    least = bounds[0] or ctx.value(limits.min, "min")
    most = bounds[1] or ctx.value(limits.max, "max")
    above = ctx.node("Max", [x, least])
    return [above, ctx.changed(node, op="Min", inputs=[*above.output, most])]


@adapter_down("Clip", 12)
def clip_11_down(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """Integers, which Clip-11 does not take, are compared with each bound."""
    x, lower, upper = (*node.input, "", "")[:3]
    if elem_type_of(ctx.type_of(x)) in (0, *FLOATS):
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
