"""BatchNormalization below opset 14, as inference."""

from __future__ import annotations

import numpy as np

from passes.verify.executor import Array, CannotRun
from passes.verify.reference.failures import described
from passes.verify.reference.registry import Call, implements


@implements("BatchNormalization", since=7, until=13)
def batch_normalization(
    call: Call, x: Array, scale: Array, bias: Array, mean: Array, var: Array
) -> Array:
    """BatchNormalization-7 and -9: `x` [N, C, ...], statistics per channel [C].

    With `spatial=0` (opsets 7 and 8) there is one per channel and place: [C, ...]. One output
    means inference; more of them mean training, which raises CannotRun.
    """
    if call.outputs > 1:
        raise CannotRun(f"{described(call.node)}: training below opset 14 is not implemented")
    if call.get("spatial", 1):
        result: Array = call.onnx(
            x, scale, bias, mean, var, version=15, spatial=None, momentum=None
        )[0]
        return result
    epsilon = np.asarray(call.get("epsilon"), x.dtype)
    return np.asarray(scale * (x - mean) / np.sqrt(var + epsilon) + bias, x.dtype)
