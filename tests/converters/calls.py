"""Proof of opset steps in a function whose attributes the caller chooses."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import ModelProto
from proving import Feeds, converted, drawn, run
from steps_taken import proved, recorded

from passes.converters.stamp import ir_version_for


def calling(model: str, function: str, opset: int) -> ModelProto:
    """A model and a function of the domain `local`, both in ONNX text and in one opset.

    (float[2] x) => (float[2] y) { y = local.F<by = 2.0>(x) }
    F <by> (x) => (y) { y = Elu<alpha: float = @by>(x) }
    """
    return onnx.parser.parse_model(
        f"""
        <ir_version: {max(8, ir_version_for(opset))}, opset_import: ["": {opset}, "local": 1]>
        graph {model}
        <domain: "local", opset_import: ["": {opset}]>
        {function}
        """
    )


def prove_call(
    model: str,
    function: str,
    *,
    opset: int,
    target: int,
    feeds: Feeds | None = None,
    rtol: float = 0.0,
) -> list[str]:
    """Assert that a model with a function gives the same after its conversion.

    Args:
        rtol: 0 where the numbers must be equal, as they are where the adapter is exact.

    Returns:
        The ops of the function when converted.
    """
    before = calling(model, function, opset)
    onnx.checker.check_model(before, full_check=True)
    with recorded(before, target) as taken:
        after = converted(before, target)
    onnx.checker.check_model(after, full_check=True)
    given = {**drawn(before), **(feeds or {})}
    for expected, actual in zip(run(before, given), run(after, given), strict=True):
        assert expected.dtype == actual.dtype
        np.testing.assert_allclose(actual, expected, rtol=rtol, atol=rtol)
    proved(taken, "onnxruntime")
    return [node.op_type for node in after.functions[0].node]
