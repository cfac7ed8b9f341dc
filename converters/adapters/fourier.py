"""Steps of the discrete Fourier transform."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from onnx import NodeProto

from converters.conversion import Conversion
from converters.steps import adapter


@adapter("DFT", 20)
def dft_20(node: NodeProto, at: Conversion) -> Sequence[NodeProto]:
    """The attribute `axis` becomes the third input, an int64 scalar; the default was 1, is -2."""
    x, length = [*node.input, ""][:2]
    axis = at.attribute_as_input(node, "axis", np.int64, 1)
    return [at.changed(node, inputs=[x, length, axis], without=["axis"])]
