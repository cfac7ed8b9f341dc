"""recognize-cell: what exporters make of cells, compared with what the framework computes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest

import passes
from passes.ir import scope

FOLDER = Path(__file__).parents[3] / "golden_models" / "exported"

CELLS = {
    "jax/cell_lstm.opset21": "LSTM",
    "jax/cell_gru.opset21": "GRU",
    "jax/cell_rnn.opset21": "RNN",
    "jax/cell_lstm_rows.opset21": "LSTM",
    "jax/cell_gru_rows.opset21": "GRU",
    "jax/cell_lstm_any_rows.opset21": "LSTM",
    "jax/cell_batched.opset21": "LSTM",
    "tensorflow/cell.opset18": "LSTM",
    "tensorflow/keras_gru.opset18": "GRU",
    "tensorflow/keras_gru_reset_first.opset18": "GRU",
    "tensorflow/keras_gru_masked.opset18": "GRU",
    "tensorflow/keras_lstm_masked.opset18": "LSTM",
    "tensorflow/keras_rnn_masked.opset18": "RNN",
    "tensorflow/v1_cell_ragged.opset18": "RNN",
    "tensorflow/recurrence.opset18": "RNN",
    "torch/script_cell.opset13": "LSTM",
}
#: Verified in every run; the others with `--slow`.
QUICK = ("jax/cell_lstm.opset21", "tensorflow/v1_cell_ragged.opset18")


@pytest.mark.parametrize(
    ("name", "operator"),
    [
        pytest.param(*one, marks=[] if one[0] in QUICK else pytest.mark.slow)
        for one in CELLS.items()
    ],
)
def test_exported_cells_become_operators(name: str, operator: str) -> None:
    path = FOLDER / f"{name}.onnx"
    model = passes.optimize(path).model
    kinds = {place.node.op_type for place in scope.walk_model(model)}
    assert operator in kinds
    data = FOLDER / name.partition(".")[0]
    inputs, outputs = (np.load(f"{data}.{kind}.npz") for kind in ("inputs", "outputs"))
    session = onnxruntime.InferenceSession(model.SerializeToString())
    names = [value.name for value in onnx.load(path).graph.input]
    fed = dict(zip(names, (inputs[one] for one in inputs.files), strict=False))
    found = session.run(None, {one.name: fed[one.name] for one in session.get_inputs()})
    for one, expected in zip(found, (outputs[key] for key in outputs.files), strict=True):
        np.testing.assert_allclose(one, expected, rtol=1e-3, atol=1e-5)
