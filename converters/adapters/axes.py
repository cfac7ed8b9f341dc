"""Steps of ops that add, drop, order or join axes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from onnx import NodeProto

from converters.attribute_inputs import ints_as_input
from converters.conversion import Conversion
from converters.steps import adapter, identical


@adapter("Squeeze", 13)
def squeeze_13(node: NodeProto, at: Conversion) -> Sequence[NodeProto]:
    """The attribute `axes` becomes the optional second input, int64 (n).

    Without axes every axis of size 1 goes, as before.
    """
    return ints_as_input(node, at, "axes")


@adapter("Unsqueeze", 13)
def unsqueeze_13(node: NodeProto, at: Conversion) -> Sequence[NodeProto]:
    """The attribute `axes` becomes the second input, int64 (n)."""
    axes = at.attribute_as_input(node, "axes", np.int64)
    return [at.changed(node, inputs=[node.input[0], axes], without=["axes"])]


for _op in ("Squeeze", "Unsqueeze"):
    identical(_op, 11)  # negative axes are new
    identical(_op, 21, 23, 24, 25)

identical("Concat", 11, 13)
identical("Expand", 13)
identical("Flatten", 9)
identical("Flatten", 11)  # a negative axis is new
identical("Flatten", 13, 21, 23, 24, 25)
identical("Reshape", 13, 19, 21, 23, 24, 25)
identical("Reshape", 14, because="allowzero is new; by default a 0 copies a dim, as ever")
identical("Tile", 13)
identical("Transpose", 13, 21, 23, 24, 25)

identical("DepthToSpace", 11, because="mode is new; its default DCR is the order of version 1")
identical("DepthToSpace", 13, 28)
identical("SpaceToDepth", 13)
identical("SpaceToDepth", 28, because="mode is new; its default DCR is the order of version 13")

identical("Shape", 13, 19, 21, 23, 24, 25)
identical("Shape", 15, because="start and end are new; by default the shape is whole")
identical("Size", 13, 19, 21, 23, 24, 25)
