"""Steps of ops that pick, place, order or find elements by their indices."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from onnx import NodeProto

from converters.conversion import Conversion
from converters.steps import adapter, identical


@adapter("TopK", 10)
def top_k_10(node: NodeProto, at: Conversion) -> Sequence[NodeProto]:
    """The attribute `k` becomes the second input, int64 (1)."""
    x = node.input[0]
    if not at.refers(node, "k"):
        k = at.value(np.array([at.attribute(node, "k")], np.int64), "k")
        return [at.changed(node, inputs=[x, k], without=["k"])]
    one = at.value(np.array([1], np.int64), "shape")
    k = at.attribute_as_input(node, "k", np.int64)
    vector = at.node("Reshape", [k, one])
    return [vector, at.changed(node, inputs=[x, vector.output[0]], without=["k"])]


identical("TopK", 11, because="largest and sorted are new; by default it is as it was")
identical("TopK", 24)


@adapter("Scatter", 11)
def scatter_11(node: NodeProto, at: Conversion) -> Sequence[NodeProto]:
    """Scatter is now called ScatterElements."""
    return [at.changed(node, op="ScatterElements")]


for _op in ("ScatterElements", "ScatterND"):
    identical(_op, 13)
    identical(_op, 16, because="reduction is new; by default nothing is reduced")
    identical(_op, 18)  # the reductions max and min are new

identical("Gather", 11, 13)
identical("GatherElements", 13)
identical("GatherND", 12, because="batch_dims is new; 0 by default")
identical("GatherND", 13)
identical("OneHot", 11)  # negative indices are new: version 9 asks for non-negative ones
identical("OneHot", 28)
identical("NonZero", 13)
identical("Compress", 11)  # a negative axis is new
identical("Compress", 28)
identical("Unique", 28)
identical("ReverseSequence", 28)
identical("NonMaxSuppression", 11)  # "strictly greater" is said, and was so
