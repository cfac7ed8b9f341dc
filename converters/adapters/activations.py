"""Steps of activations that newer opsets brought."""

from __future__ import annotations

from collections.abc import Sequence

from onnx import NodeProto, TensorProto

from passes.converters.steps import adapter_down, expanded
from passes.converters.writing.conversion import Conversion
from passes.converters.writing.expansion import expand

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
