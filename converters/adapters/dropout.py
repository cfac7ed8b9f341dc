"""Steps of Dropout. Old versions have no training mode: they return their input."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from onnx import NodeProto

from converters.conversion import Conversion
from converters.steps import adapter, identical


@adapter("Dropout", 10)
def dropout_10(node: NodeProto, at: Conversion) -> Sequence[NodeProto]:
    """The output `mask` is bool; it had the type of `data`, to which it is cast back."""
    y, *mask = node.output
    if not any(mask):
        return [node]
    main = at.changed(node, outputs=[y, at.fresh(mask[0])])
    elem_type = at.known_elem_type(node.input[0])
    return [main, at.node("Cast", [main.output[1]], mask, to=elem_type)]


@adapter("Dropout", 12)
def dropout_12(node: NodeProto, at: Conversion) -> Sequence[NodeProto]:
    """The attribute `ratio` becomes the second input, a float scalar; nothing asks for training.

    Without training the ratio is ignored, so one that cannot be said is left out. What the mask
    is then was not said: onnxruntime makes it all false. From 12 on it is all true, so negated.
    """
    y, *mask = node.output
    inputs = [node.input[0]]
    ratio = next((one for one in node.attribute if one.name == "ratio"), None)
    if ratio is not None and not ratio.ref_attr_name and 0 <= ratio.f < 1:
        inputs.append(at.attribute_as_input(node, "ratio", np.float32))
    if not any(mask):
        return [at.changed(node, inputs=inputs, without=["ratio"])]
    kept = at.fresh(mask[0])
    main = at.changed(node, inputs=inputs, outputs=[y, kept], without=["ratio"])
    return [main, at.node("Not", [kept], mask)]


identical("Dropout", 13)
identical("Dropout", 22)  # says that a ratio left out is 0.5; 13 says so too, and contradicts it
