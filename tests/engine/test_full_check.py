"""What is written passes onnx's whole check where the original does."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import onnx
import pytest
from onnx import helper, parser
from typer.testing import CliRunner

import passes
from passes.__main__ import app
from passes.engine.full_check import full_objection
from passes.ir.model import Model
from passes.rule import RULES, Rule, nodes_of

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


def test_a_rewrite_after_which_the_check_fails_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("passes.bodies.lifting.RESIZE_OF_SCALES_OR_SIZES", 99)
    before = parser.parse_model(GOLDEN.read_text())
    result = passes.hoist(before, verify=False)
    (refused,) = result.report.left_out
    assert (refused.rule, refused.path) == ("hoist-constants", "main/loop_0")
    assert "Either `sizes` or `scales` must be provided" in refused.sentence
    onnx.checker.check_model(result.model, full_check=True)


NEG = """<ir_version: 10, opset_import: ["" : 21]>
g (float[2] x, bool c) => (float[2] y, float[2] z) {
   y = Neg (x)
   sum = Add (x, y)
   z = If (c) <then_branch = some () => (float[2] a) { a = Neg (sum) },
               else_branch = other () => (float[2] b) { b = Abs (sum) }>
}"""
#: What a rule writes for the Neg of the branch.
INVALID = {
    "an operator that there is not": helper.make_node("Negg", ["sum"], ["a"]),
    "another shape": helper.make_node("Concat", ["sum", "sum"], ["a"], axis=0),
    "another type": helper.make_node("Cast", ["sum"], ["a"], to=7),
    "not what is read": helper.make_node("Abs", ["sum"], ["other"]),
    "a value that there is not": helper.make_node("Abs", ["nothing"], ["a"]),
}


@pytest.mark.parametrize("kind", INVALID)
def test_an_invalid_edit_of_an_own_rule_costs_that_rewrite_alone(
    kind: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def own(site: passes.Site) -> passes.Edit:
        """Write Neg as a product."""
        (x,), (y,) = site.node.input, site.node.output
        if site.scope.outer is not None:
            return passes.Edit((INVALID[kind],))
        minus = helper.make_tensor(site.fresh("minus"), 1, [], [-1])
        product = helper.make_node("Mul", [x, minus.name], [y])
        return passes.Edit((product,), (minus,), note="as a product")

    considers = nodes_of("Neg")
    monkeypatch.setitem(RULES, "own-neg", Rule("own-neg", own, considers, optional=True))
    (tmp_path / "neg.onnxtxt").write_text(NEG)
    monkeypatch.chdir(tmp_path)
    call = "simplify neg.onnxtxt --rule own-neg -o out.onnx --json r.json --html r.html"
    done = CliRunner().invoke(app, [*call.split(), "--verify-budget", "5"])
    assert done.exit_code == 0, done.output
    sentence = "main/if_2.then_branch/neg_0 (Neg): the model is invalid after this rewrite: "
    assert f"refused {sentence}" in done.output
    assert "[rule own-neg, code invalid-outcome]" in done.output
    assert "own-neg: main/neg_0 (Neg), as a product; verified" in done.output
    report = json.loads(Path("r.json").read_text())
    outcomes = {one["path"]: (one["outcome"], one["code"]) for one in report["records"]}
    assert outcomes == {
        "main/neg_0": ("rewritten", ""),
        "main/if_2.then_branch/neg_0": ("refused", "invalid-outcome"),
    }
    assert report["checked"]["verdict"] == "verified"
    assert "the model is invalid after this rewrite" in Path("r.html").read_text()
    model = onnx.load("out.onnx")
    onnx.checker.check_model(model, full_check=True)
    assert [node.op_type for node in model.graph.node] == ["Mul", "Add", "If"]


def test_a_constant_that_inference_misses_outside_of_the_body_costs_one_rewrite() -> None:
    """onnx takes the unknown length of `sizes`, once the axis of Unsqueeze is outside, for 0."""
    before = parser.parse_model("""<ir_version: 8, opset_import: ["" : 17]>
    g (float[T,1,2,4,4] x, int64[T] h, int64 n) => (float[T,?] y) {
       y = Scan <num_scan_inputs = 2,
          body = step (float[1,2,4,4] picture, int64 height) => (float[?] row) {
             first = Constant <value_ints = [0]> ()
             others = Constant <value_ints = [1, 2, 6]> ()
             last = Unsqueeze (height, first)
             sizes = Concat <axis = 0> (others, last)
             resized = Resize <mode = "linear"> (picture, "", "", sizes)
             most = ReduceMax <keepdims = 0> (resized)
             length = Unsqueeze (n, first)
             row = Expand (most, length)
          }> (x, h)
    }""")
    result = passes.hoist(before, verify=False)
    (refused,) = result.report.left_out
    assert (refused.rule, refused.path) == ("hoist-invariants", "main/scan_0")
    assert [record.rule for record in result.report.records] == [
        "hoist-constants",
        "hoist-invariants",
    ]
    onnx.checker.check_model(result.model, full_check=True)


def test_a_rewrite_that_only_the_whole_model_shows_invalid_is_found() -> None:
    """onnxruntime accepts a `count` of unknown shape, but not a constant of shape [1]."""
    before = parser.parse_model("""<ir_version: 9, opset_import: ["" : 20]>
    g (int64[4] size, float[2] x) => (int64[K] y, float[2] z) {
       zero = Constant <value_int = 0> ()
       one = Constant <value_int = 1> ()
       four = Constant <value_int = 4> ()
       single = Constant <value_ints = [1]> ()
       rank = Size (size)
       is_4 = Equal (rank, four)
       count = If (is_4) <
          then_branch = some () => (n) { n = Identity (single) },
          else_branch = other () => (k) { j, k, o, p, q = Split <num_outputs = 5> (size) }>
       y = Range (zero, count, one)
       z = If (is_4) <
          then_branch = negative () => (a) { a = Neg (x) },
          else_branch = positive () => (b) { b = Abs (x) }>
    }""")
    result = passes.optimize(before, verify_budget=10)
    (refused,) = result.report.left_out
    assert (refused.rule, refused.path) == ("inline-if", "main/if_6")
    assert "loads the original, but not the outcome: " in refused.sentence
    assert result.report.checked is not None
    assert result.report.checked.verdict == "verified"
    assert [node.op_type for node in result.model.graph.node].count("If") == 1


#: An exporter takes the trip count for the length of the state.
MISDECLARED = """<ir_version: 10, opset_import: ["" : 21]>
g (float[3] x) => (float[3] y, float[3,3] z) <int64 two = {2}, bool on = {1}> {
   y, z = Loop (two, on, x) <
      body = step (int64 i, bool go, float[?] s) => (bool stays, float[?] t, float[?] o) {
         stays = Identity (go)
         t = Neg (s)
         o = Exp (s)
      }>
}"""


@pytest.mark.parametrize("command", [passes.raise_, passes.optimize])
def test_sizes_that_the_original_mistakes_are_mended(
    command: Callable[..., passes.Result],
) -> None:
    result = command(parser.parse_model(MISDECLARED), verify_budget=10)
    note = (
        "main: 'z' is declared float[3,3], but float[2,3] is computed, which is declared in its "
        "place"
    )
    assert list(result.report.notes) == [note]
    assert result.report.checked is not None
    assert result.report.checked.verdict == "verified"
    assert f"note: {note}" in result.report.to_text()
    onnx.checker.check_model(result.model, full_check=True)
    assert [dim.dim_value for dim in result.model.graph.output[1].type.tensor_type.shape.dim] == [
        2,
        3,
    ]
    again = passes.compare(parser.parse_model(MISDECLARED), result.model, budget=10)
    assert again.verdict == "verified"


def test_what_the_check_did_not_pass_before_it_need_not_pass() -> None:
    inside = "none = Constant <value = float[0] {}> ()"
    text = GOLDEN.read_text().replace(inside, "").replace("y = Loop", f"{inside} y = Loop")
    before = parser.parse_model(text)
    assert full_objection(Model(before))
    assert full_objection(Model(passes.lower(before, opset=18, verify=False).model))
