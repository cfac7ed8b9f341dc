"""Steps of pooling ops."""

from __future__ import annotations

from collections.abc import Sequence

from onnx import NodeProto

from converters.conversion import Conversion
from converters.steps import adapter, identical

# The document of AveragePool-11 gives other output sizes for auto_pad than those of 10 and 19,
# and than its own text on auto_pad; onnxruntime has always computed those of 10 and 19.
identical("AveragePool", 10, because="ceil_mode is new, and 0 is what version 7 does")
identical("AveragePool", 11)
identical("AveragePool", 19, because="dilations are new, 1 by default")

identical(
    "MaxPool",
    8,
    because="storage_order only bears on the output Indices, which is new and optional",
)
identical(
    "MaxPool", 10, because="ceil_mode and dilations are new, and the defaults are what 8 does"
)
identical("MaxPool", 11, 12)

identical("LpPool", 11)
identical(
    "LpPool", 18, because="ceil_mode and dilations are new, and the defaults are what 11 does"
)

# In version 22, with ceil_mode, windows that start in the right padding are left out. That such
# windows, which hold no element, are not in the output was so in onnxruntime and in onnx's
# reference before; only onnx's shape inference used to count them.
identical("AveragePool", 22)
identical("LpPool", 22)
identical("MaxPool", 22)

identical("GlobalAveragePool", 22)
identical("GlobalLpPool", 22)
identical("GlobalMaxPool", 22)
identical("MaxRoiPool", 22)
identical("MaxUnpool", 11, 22)


@adapter("RoiAlign", 16)
def roi_align_16(node: NodeProto, at: Conversion) -> Sequence[NodeProto]:
    """Coordinates are moved by half a pixel now, unless `coordinate_transformation_mode` says no.

    Version 10 does not move them: "output_half_pixel".
    """
    return [at.changed(node, coordinate_transformation_mode="output_half_pixel")]


identical("RoiAlign", 22)
