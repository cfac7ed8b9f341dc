"""A loader of Polygraphy that rewrites what another one loads."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

import passes

pytest.importorskip("polygraphy")
polygraphy = pytest.importorskip("polygraphy.backend.onnx")
integration = pytest.importorskip("passes.integrations.polygraphy")

TEXT = """<ir_version: 8, opset_import: ["" : 17]>
g (float[3,2] x, float[2] s) => (float[2] y)
<int64 trips = {3}>
{
  y = Loop (trips, "", s) <body = b (int64 i, bool c, float[2] h) => (bool c2, float[2] h2) {
    c2 = Identity (c)
    r = Gather (x, i)
    h2 = Add (h, r)
  }>
}"""
STEPS = ["upgrade", ("unroll", {"max_nodes": 500})]


def test_a_model_is_rewritten_between_loaders(tmp_path: Path) -> None:
    runtime = pytest.importorskip("polygraphy.backend.onnxrt")
    pytest.importorskip("onnxruntime")
    path = tmp_path / "model.onnx"
    onnx.save(onnx.parser.parse_model(TEXT), path)
    rewritten = integration.RewriteOnnx(polygraphy.OnnxFromPath(str(path)), STEPS)
    assert [node.op_type for node in rewritten().graph.node] == ["Gather", "Add"] * 3
    session = runtime.SessionFromOnnx(polygraphy.BytesFromOnnx(rewritten))
    with runtime.OnnxrtRunner(session) as runner:
        answer = runner.infer({"x": np.ones((3, 2), np.float32), "s": np.zeros(2, np.float32)})
    assert answer["y"].tolist() == [3, 3]


def test_a_model_is_taken_as_everywhere_and_each_call_loads_it_anew() -> None:
    rewritten = integration.RewriteOnnx(onnx.parser.parse_model(TEXT), STEPS)
    assert rewritten() == rewritten()
    graphs = integration.RewriteOnnx(polygraphy.GsFromOnnx(onnx.parser.parse_model(TEXT)), STEPS)
    assert passes.compare(onnx.parser.parse_model(TEXT), graphs()).verdict == "verified"


def test_wrong_steps_are_refused_when_the_loader_is_made() -> None:
    with pytest.raises(passes.PassesError, match="there is no command 'upgrad'"):
        integration.RewriteOnnx(onnx.parser.parse_model(TEXT), ["upgrad"])
