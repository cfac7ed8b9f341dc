"""Steps of Upsample and Resize."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from onnx import NodeProto

from converters.conversion import Conversion
from converters.steps import adapter


@adapter("Upsample", 9)
def upsample_9(node: NodeProto, at: Conversion) -> Sequence[NodeProto]:
    """The attribute `scales` becomes the second input, a float tensor (r)."""
    scales = at.attribute_as_input(node, "scales", np.float32)
    return [at.changed(node, inputs=[node.input[0], scales], without=["scales"])]
