"""A pass of Olive in a workflow, found by a package configuration."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

import passes

pytestmark = pytest.mark.slow  # Olive takes ten seconds to import

TEXT = """<ir_version: 8, opset_import: ["" : 17]>
g (float[3,2] x, float[2] s) => (float[2] y)
{
  y = Loop (trips, "", s) <body = b (int64 i, bool c, float[2] h) => (bool c2, float[2] h2) {
    c2 = Identity (c)
    r = Gather (x, i)
    h2 = Add (h, r)
  }>
}"""


def run(folder: Path, steps: list[Any], **more: Any) -> Path:
    """The path of the outcome of a workflow of Olive with the pass, and options of it."""
    workflows = pytest.importorskip("olive.workflows")
    integration = pytest.importorskip("passes.integrations.olive")
    model = onnx.parser.parse_model(TEXT)
    model.graph.initializer.append(numpy_helper.from_array(np.array(3), "trips"))
    onnx.save(model, folder / "model.onnx")
    config = {
        "input_model": {"type": "ONNXModel", "model_path": str(folder / "model.onnx")},
        "passes": {"rewrite": {"type": "OnnxPasses", "steps": steps, **more}},
        "output_dir": str(folder / "out"),
        "cache_dir": str(folder / "cache"),
    }
    made = workflows.run(config, package_config=integration.package_config())
    written = Path(made.get_best_candidate().model_path)
    return written if written.is_file() else written / "model.onnx"


def test_a_workflow_runs_commands(tmp_path: Path) -> None:
    path = run(tmp_path, ["upgrade", {"command": "unroll", "max_nodes": 500}])
    made = onnx.load(path)
    assert [node.op_type for node in made.graph.node] == ["Gather", "Add"] * 3
    assert passes.compare(tmp_path / "model.onnx", made).verdict == "verified"


def test_the_outcome_is_saved_as_olive_is_told(tmp_path: Path) -> None:
    path = run(tmp_path, ["simplify"], save_as_external_data=True, size_threshold=0)
    assert list(path.parent.glob("*.data"))
    assert passes.compare(tmp_path / "model.onnx", path).verdict == "verified"


@pytest.mark.parametrize(
    ("step", "sentence"),
    [
        ("upgrad", "there is no command 'upgrad'"),
        ({"opset": 21}, "names no command"),
        ({"command": "unroll", "max_nods": 5}, "unexpected keyword argument 'max_nods'"),
    ],
)
def test_wrong_steps_are_refused(tmp_path: Path, step: Any, sentence: str) -> None:
    with pytest.raises(Exception, match=sentence):
        run(tmp_path, [step])
