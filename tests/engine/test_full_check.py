"""What is written passes onnx's whole check where the original does."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import onnx
import pytest
from onnx import parser

import passes
from passes.engine.full_check import full_objection

GOLDEN = Path(__file__).parents[2] / "golden_models/hoist/empty_scales.before.onnxtxt"
#: As exporters wrote it at opset 11, where an empty `scales` had to stand beside `sizes`.
RESIZED_KEYPOINTS = """<ir_version: 6, opset_import: ["" : 11]>
g (float[1,2,4,4] x, int64 n) => (float[N,1,2,6,5] y)
<bool true = {1}, float[0] none = {}, int64[4] sizes = {1, 2, 6, 5}> {
   y = Loop (n, true) <body = step (int64 i, bool c) => (bool go, float[1,2,6,5] r) {
      go = Identity (c)
      number = Cast <to = 1> (i)
      picture = Mul (x, number)
      r = Resize <mode = "cubic"> (picture, none, none, sizes)
   }>
}"""


@pytest.mark.parametrize(
    ("command", "options"),
    [
        (passes.upgrade, {}),
        (passes.upgrade, {"opset": 13}),
        (passes.hoist, {}),
        (passes.optimize, {"opset": 18}),
        (passes.lower, {"opset": 17}),
        (passes.raise_, {"opset": 13}),
        (passes.unroll, {"opset": 13, "factor": 2}),
        (passes.unroll, {"opset": 18, "peel": "first"}),
        (passes.unroll, {"opset": 21, "max_trips": 2}),
    ],
)
@pytest.mark.parametrize("model", ["keypoints", "golden"])
def test_an_empty_scales_beside_sizes_in_a_body(
    command: Callable[..., passes.Result], options: dict[str, Any], model: str
) -> None:
    text = RESIZED_KEYPOINTS if model == "keypoints" else GOLDEN.read_text()
    before = parser.parse_model(text)
    onnx.checker.check_model(before, full_check=True)
    onnx.checker.check_model(command(before, verify=False, **options).model, full_check=True)


def test_the_rewrite_after_which_the_check_fails_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("passes.bodies.lifting.RESIZE_OF_SCALES_OR_SIZES", 99)
    before = parser.parse_model(GOLDEN.read_text())
    sentence = "main/loop_0: after the rule hoist-constants the outcome is no valid ONNX model"
    with pytest.raises(passes.NotProduced, match=sentence) as caught:
        passes.hoist(before, verify=False)
    assert "Either `sizes` or `scales` must be provided" in caught.value.report.failure


def test_what_the_check_did_not_pass_before_it_need_not_pass() -> None:
    inside = "none = Constant <value = float[0] {}> ()"
    text = GOLDEN.read_text().replace(inside, "").replace("y = Loop", f"{inside} y = Loop")
    before = parser.parse_model(text)
    assert full_objection(before)
    assert full_objection(passes.lower(before, opset=18, verify=False).model)
