"""Steps of quantized ops."""

from __future__ import annotations

from collections.abc import Sequence

from onnx import NodeProto, TensorProto

from converters.conversion import Conversion
from converters.steps import adapter, identical
from passes.types.value_types import elem_type_of

identical("DequantizeLinear", 13, because="axis is new, and a scalar scale has none")
identical("DequantizeLinear", 19)
identical("DequantizeLinear", 21, because="block_size is new, and 0 is no blocks, as before")
identical("DequantizeLinear", 23, because="output_dtype is new, by default the type of x_scale")
identical("DequantizeLinear", 24, 25, 28)

identical("QuantizeLinear", 13, because="axis is new, and a scalar scale has none")


@adapter("QuantizeLinear", 19)
def quantize_linear_19(node: NodeProto, at: Conversion) -> Sequence[NodeProto]:
    """The scale has the type of x: an x of int32, whose scale is float, is cast to float."""
    x, *others = node.input
    elem_type = elem_type_of(at.type_of(x))
    if elem_type == TensorProto.FLOAT:
        return [node]
    if elem_type:
        as_float = at.node("Cast", [x], to=TensorProto.FLOAT)
    else:
        as_float = at.node("CastLike", [x, others[0]])
    return [as_float, at.changed(node, inputs=[as_float.output[0], *others])]


identical(
    "QuantizeLinear", 21, because="output_dtype and block_size are new, and 0 is none, as before"
)
identical("QuantizeLinear", 23, because="precision is new, by default the type of y_scale")
identical("QuantizeLinear", 24, 25, 28)

identical("QLinearMatMul", 21)
