"""Ops that lost their integer types: the same by way of a float type."""

from __future__ import annotations

from collections.abc import Sequence

from onnx import NodeProto, TensorProto

from converters.conversion import Conversion


def through_float(
    node: NodeProto, at: Conversion, float_type: int = TensorProto.FLOAT
) -> Sequence[NodeProto]:
    """The node between a Cast to `float_type` and one back, which rounds towards zero.

    Its first input and its output are of one integer type, which is known.
    """
    elem_type = at.known_elem_type(node.input[0])
    wide = at.node("Cast", [node.input[0]], to=float_type)
    main = at.changed(
        node,
        inputs=[wide.output[0], *node.input[1:]],
        outputs=[at.fresh(f"{node.output[0]}_float")],
    )
    return [wide, main, at.node("Cast", [main.output[0]], [node.output[0]], to=elem_type)]
