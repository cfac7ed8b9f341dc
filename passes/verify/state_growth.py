"""By which factor the values that a Loop carries grow in an iteration, as by a Resize to twice the
size."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping

from onnx import GraphProto, NodeProto, TensorProto, ValueInfoProto, numpy_helper

from passes.ir.operators import op_of
from passes.types.value_types import dims_of

#: The input that holds factors, one for each axis, by operator.
_FACTORS = {"Resize": -1, "Tile": 1, "Upsample": 1}


def growth(body: GraphProto, tensors: Mapping[str, TensorProto]) -> float:
    """The factor, where constants determine it; 1 where nothing grows, as far as is known.

    `tensors` are the constants that the body sees.
    """
    elements = {value.name: 1.0 for value in body.input[2:]}  # times those of a carried value
    for node in body.node:
        read = [name for name in node.input if name in elements]
        if read:
            often = Counter(read if op_of(node) == "Concat" else dict.fromkeys(read, 1))
            most = max(elements[name] * times for name, times in often.items())
            elements.update(dict.fromkeys(node.output, most * _factor(node, tensors)))
    carried = zip(body.input[2:], body.output[1:], strict=False)
    factors = (elements.get(new.name, 1.0) for old, new in carried if not _keeps_size(old, new))
    return max(factors, default=1.0)


def _keeps_size(old: ValueInfoProto, new: ValueInfoProto) -> bool:
    """Return whether a carried value is declared with the same sizes before and after an
    iteration."""
    dims = dims_of(old.type)
    return dims is not None and None not in dims and dims == dims_of(new.type)


def _factor(node: NodeProto, tensors: Mapping[str, TensorProto]) -> float:
    """By how much a node enlarges its first input; 1 where that is not constant."""
    op = op_of(node)
    if op not in _FACTORS or len(node.input) > 3:  # a Resize to given sizes
        return 1.0
    scales = [list(one.floats) for one in node.attribute if one.name == "scales"]
    tensor = tensors.get(node.input[_FACTORS[op]]) if len(node.input) > 1 else None
    if tensor is not None and tensor.data_location != TensorProto.EXTERNAL:
        scales.append(numpy_helper.to_array(tensor).tolist())
    return max(1.0, math.prod(scales[0])) if scales else 1.0
