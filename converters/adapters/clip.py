"""Steps of Clip."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from onnx import NodeProto

from converters.attribute_inputs import float_as_input
from converters.conversion import Conversion
from converters.steps import adapter, identical

_LARGEST = float(np.finfo(np.float32).max)


@adapter("Clip", 11)
def clip_11(node: NodeProto, at: Conversion) -> Sequence[NodeProto]:
    """The attributes `min` and `max` become inputs, scalars () of the input's type.

    Both are always given. The defaults of Clip-6 are the extremes of float for every type, while
    a missing input of Clip-11 stands for those of the type itself: for double and float16 these
    are other numbers, and it differs between runtimes whether they clip an infinity.
    """
    lower, lower_nodes = float_as_input(node, at, "min", node.input[0], -_LARGEST)
    upper, upper_nodes = float_as_input(node, at, "max", node.input[0], _LARGEST)
    main = at.changed(node, inputs=[node.input[0], lower, upper], without=["min", "max"])
    return [*lower_nodes, *upper_nodes, main]


identical("Clip", 12)
identical("Clip", 13)  # min above max was not spoken of; max won in every runtime
