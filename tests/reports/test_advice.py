"""What to do next: the options that lift a refusal, as far as they help."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest

import passes
from passes.commands.pipeline import Pipeline
from passes.commands.rewriting import Optimize, Raise, Unroll
from passes.commands.task import Task, perform, with_advice
from passes.reports.advice import lifting
from passes.reports.report import Report
from passes.testing import as_model
from tests.written import changed

#: Each row by itself: dissolve-map needs no loop, from opset 13 on.
ROWS = """
    <ir_version: 6, opset_import: ["" : 11]>
    g (float[T,3] x) => (float[T,3] y) {
      y = Scan <num_scan_inputs = 1, body = b (float[3] a) => (float[3] c) {
        c = Softmax <axis = 0> (a)
      }> (x)
    }
"""
#: What no opset helps: the loop has to run in turn.
IN_TURN = """
    <ir_version: 6, opset_import: ["" : 11]>
    g (float[40,1,3] x, float[1,3] s0, float[3,3] w) => (float[1,3] s, float[40,1,3] y) {
      s, y = Scan <
        num_scan_inputs = 1, body = b (float[1,3] a, float[1,3] r) => (float[1,3] c, float[1,3] d) {
          e = MatMul (a, w)
          f = Mul (e, r)
          c = Tanh (f)
          d = Identity (c)
      }> (s0, x)
    }
"""
COUNTED = """
    <ir_version: 10, opset_import: ["" : 21]>
    g (int64 n, float[2] x) => (float[2] y) {
      y = Loop <body = b (int64 i, bool go, float[2] s) => (bool on, float[2] t) {
        on = Identity (go)
        t = Sin (s)
      }> (n, "", x)
    }
"""
CELL = """
    <ir_version: 3, opset_import: ["" : 8]>
    g (float[T,B,3] x, float[1,2,3] w, float[1,2,2] r) => (float[T,1,B,2] y) {
      y = RNN <hidden_size = 2> (x, w, r)
    }
"""
READS = """
    <ir_version: 3, opset_import: ["" : 8]>
    g (float[4,3] x, float[3] h0) => (float[3] h) <int64 four = {4}, bool go = {1}> {
      h = Loop (four, go, h0) <
        body = b (int64 i, bool c, float[3] h_in) => (bool d, float[3] h_out) {
          d = Identity (c)
          x_t = Gather <axis = 0> (x, i)
          h_out = Add (h_in, x_t)
      }>
    }
"""


def reported(model: str, folder: Path, command: str, **options: object) -> Report:
    """The report of a command on a model at `m.onnx`, whose outcome is `o.onnx`."""
    onnx.save(as_model(model), folder / "m.onnx")
    pipeline = Pipeline([(command, {"verify": False, **options})])
    output = folder / "o.onnx"
    task = Task(f"{folder / 'm.onnx'}", pipeline, f"{output}", force=True)
    report = with_advice(task, perform(task)).report
    assert report is not None
    return report


def advice(report: Report, folder: Path) -> list[str]:
    return [f"{one}".replace(f"{folder}/", "").replace(" --no-verify", "") for one in report.advice]


def test_a_newer_opset_where_it_helps(tmp_path: Path) -> None:
    report = reported(ROWS, tmp_path, "optimize")
    (line,) = advice(report, tmp_path)
    assert line == "next: passes optimize m.onnx --opset 13  (lets dissolve-map apply)"
    assert "opset 11 is too old for the vectorization rules; opset 13 would do" in report.to_text()
    assert report.to_text(written="wrote it").splitlines()[-2] == "wrote it"


def test_no_newer_opset_where_it_does_not(tmp_path: Path) -> None:
    report = reported(IN_TURN, tmp_path, "optimize")
    assert not any("--opset" in one for one in advice(report, tmp_path))
    refused = {one.code: one for one in report.refusals}
    assert refused["opset-too-old"].lifted_by == ()
    assert "opset-too-old" not in report.to_text()
    assert "opset-too-old" in report.to_text(verbose=True)


def test_a_loop_in_turn_has_one_reason(tmp_path: Path) -> None:
    report = reported(changed(IN_TURN, {"11": "21", "6": "10"}), tmp_path, "optimize")
    told = [line for line in report.to_text().splitlines() if "refused" in line]
    assert len(told) == 1
    assert told[0].endswith("[rule dissolve-map, code carries]")
    assert len(report.refusals) > 1


def test_what_was_asked_for_is_always_told(tmp_path: Path) -> None:
    report = reported(IN_TURN, tmp_path, "optimize", rules=["dissolve-map"])
    (refusal,) = report.refusals
    assert refusal.asked
    assert "rule dissolve-map, code opset-too-old" in report.to_text()


@pytest.mark.parametrize(
    ("command", "model", "rule"), [("expand", CELL, "expand-cell"), ("raise", READS, "raise-loop")]
)
def test_below_the_first_opset_with_such_a_scan(
    command: str, model: str, rule: str, tmp_path: Path
) -> None:
    (line,) = advice(reported(model, tmp_path, command), tmp_path)
    assert line == f"next: passes {command} m.onnx --opset 9  (lets {rule} apply)"


def test_promises_are_named_as_such(tmp_path: Path) -> None:
    assert advice(reported(COUNTED, tmp_path, "unroll"), tmp_path) == [
        "next: passes unroll m.onnx --max-trips 16  (lets unroll apply; a promise of yours)"
    ]
    sized = changed(ROWS, {"11": "21", "6": "10"})
    (line,) = advice(reported(sized, tmp_path, "unroll"), tmp_path)
    assert "--dim T=256" in line


def test_after_optimize_the_gain_is_measured_and_a_target_checked(tmp_path: Path) -> None:
    report = reported(changed(ROWS, {"11": "21", "6": "10"}), tmp_path, "optimize")
    last = "next: passes measure m.onnx o.onnx  (tells the gain; so does --measure)"
    assert advice(report, tmp_path) == [last]
    report = reported(ROWS, tmp_path, "optimize", target="loop-only")
    assert "passes check o.onnx --target loop-only" in advice(report, tmp_path)[-1]


def test_inspect_does_not_advise_what_makes_a_model_larger(tmp_path: Path) -> None:
    onnx.save(as_model(changed(IN_TURN, {"11": "21", "6": "10"})), tmp_path / "m.onnx")
    found = passes.inspect(tmp_path / "m.onnx")
    assert any(one.rule == "unroll" for one in found.groups[0].answers)
    assert "unroll" not in f"{found.advice}"


def test_options_that_lift() -> None:
    assert lifting(Optimize(assume=["non-empty"]), {"assume": ("valid-inputs",)}) == Optimize(
        assume=["non-empty", "valid-inputs"]
    )
    assert lifting(Unroll(dims={"B": 1}), {"dims": {"T": 2}}) == Unroll(dims={"B": 1, "T": 2})
    assert lifting(Raise(), {"contrib": True}) is None, "no such option"
    assert lifting(Unroll(), {"max_nodes": None}) is None, "only the user knows"
    assert lifting(Optimize(for_="onnxruntime==1.22"), {"opset": 13}) is None, "not together"
