"""Recurrences of torch that fill `found[:, i]`: they become Scans, and those run over blocks."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from raised_models import nodes

import passes

FOLDER = Path(__file__).parents[3] / "golden_models" / "exported" / "torch"
#: The batch of the states and of the tokens has two names in RWKV, and so is proven to be one only
#: where the user gives it.
BATCH = {"x0_d0": 2, "x1_d0": 2}


@pytest.mark.parametrize(
    ("name", "dims"),
    [
        pytest.param("recurrence_hgrn.opset13", {}, marks=pytest.mark.slow),
        pytest.param("recurrence_gated_linear_attention.opset13", {}, marks=pytest.mark.slow),
        pytest.param("recurrence_delta_net.opset13", {}, marks=pytest.mark.slow),
        pytest.param("rwkv6.opset11", BATCH, marks=pytest.mark.slow),
        pytest.param("rwkv5.opset11", BATCH, marks=pytest.mark.slow),
    ],
)
def test_a_recurrence_that_fills_a_buffer_runs_in_blocks(name: str, dims: dict[str, int]) -> None:
    path, stem = FOLDER / f"{name}.onnx", name.split(".")[0]
    result = passes.optimize(onnx.load(path), allow_reassociation=True, opset=18, dims=dims)
    assert result.report.checked is not None
    assert result.report.checked.verdict == "verified"
    written = {one.rule for one in result.report.records if one.outcome == "rewritten"}
    assert {"raise-loop", "run-in-blocks"} <= written
    assert not nodes(result.model, "Loop")
    assert not nodes(result.model, "ScatterND")
    inputs, outputs = (
        dict(np.load(FOLDER / f"{stem}.{what}.npz")) for what in ("inputs", "outputs")
    )
    session = onnxruntime.InferenceSession(result.model.SerializeToString())
    names = [one.name for one in session.get_outputs()]
    for output, value in zip(names, session.run(names, inputs), strict=True):
        np.testing.assert_allclose(value, outputs[output], rtol=1e-4, atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["rwkv6.opset11", "rwkv5.opset11"])
def test_the_batch_may_be_any_number_where_states_and_tokens_share_it(name: str) -> None:
    model = onnx.load(FOLDER / f"{name}.onnx")
    model.graph.input[1].type.tensor_type.shape.dim[0].dim_param = "x0_d0"
    result = passes.optimize(model, allow_reassociation=True, opset=18)
    written = {one.rule for one in result.report.records if one.outcome == "rewritten"}
    assert {"raise-loop", "run-in-blocks"} <= written
