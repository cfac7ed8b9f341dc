"""The commands hoist, simplify and optimize: which rules run, in which order, for which target."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest
from onnx import ModelProto
from typer.testing import CliRunner

import passes
from passes import scope as scoping
from passes.__main__ import app
from passes.pipelines import PIPELINES, Stage, stages_of
from passes.plugins import UnknownRule
from passes.testing import as_model

LOOPS = """
<ir_version: 10, opset_import: ["" : 21]>
g (float[4,2] x, float[2] h0) => (float[2] h, float[4,2] y) <int64 four = {4}, bool yes = {1}> {
   h, unread = Loop <body = step (int64 i, bool go, float[2] s) => (bool on, float[2] t, float[2] o)
      <float[2] w = {1, 2}> {
      on = Identity (go) x_t = Gather (x, i) m = Mul (x_t, w) t_1 = Add (s, m) o = Exp (t_1)
      t = If (yes) <then_branch = a () => (float[2] p) { p = Tanh (t_1) },
                    else_branch = b () => (float[2] q) { q = Neg (t_1) }> }> (four, "", h0)
   y = Scan <num_scan_inputs = 1, body = each (float[2] n) => (float[2] o) <float[2] v = {1, 2}> {
      o = Mul (n, v) }> (x)
}
"""


def names_of(stages: tuple[Stage, ...]) -> list[tuple[str, ...]]:
    return [stage.rules for stage in stages if not stage.converts]


def ops(model: ModelProto) -> set[str]:
    return {place.node.op_type for place in scoping.walk_model(model)}


# -- which rules run --------------------------------------------------------------------------


def test_named_rules_run_in_the_order_of_the_pipeline() -> None:
    chosen = stages_of("hoist", rules=("hoist-constants", "fold-constants"))
    assert names_of(chosen) == [("fold-constants",), ("hoist-constants",)]


def test_rules_of_other_commands_run_behind() -> None:
    chosen = stages_of("simplify", rules=("unroll", "prune-if", "lower-scan"))
    assert names_of(chosen) == [("prune-if",), ("unroll",), ("lower-scan",)]


def test_skipped_rules_do_not_run_and_empty_stages_go() -> None:
    chosen = stages_of("hoist", skip=("fold-constants",))
    assert names_of(chosen) == [("hoist-invariants",), ("hoist-constants",)]
    assert names_of(stages_of("hoist", rules=("fold-constants",), skip=("fold-constants",))) == []


def test_a_scan_8_is_upgraded_whatever_is_named() -> None:
    assert stages_of("hoist", rules=("fold-constants",))[0] == PIPELINES["hoist"][0]


@pytest.mark.parametrize("name", ["no-such-rule", "opset", "scan-8"])
def test_a_rule_that_is_not_there_or_needs_an_opset_is_told(name: str) -> None:
    with pytest.raises(UnknownRule, match=name):
        stages_of("simplify", rules=(name,))
    with pytest.raises(UnknownRule, match=name):
        stages_of("simplify", skip=(name,))


def test_two_rules_in_the_wrong_order_are_refused() -> None:
    with pytest.raises(ValueError, match="'lower-scan' must run before 'hoist-constants'"):
        stages_of("hoist", rules=("hoist-constants", "lower-scan"))


# -- what becomes of a model ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("target", "gone", "left"),
    [
        ("onnxruntime", {"Loop", "If"}, {"Scan"}),
        ("scan-only", {"Loop", "If"}, {"Scan"}),
        ("loop-only", {"Scan", "If"}, {"Loop"}),
        ("no-control-flow", {"Loop", "Scan", "If"}, set()),
    ],
)
def test_targets(target: str, gone: set[str], left: set[str]) -> None:
    result = passes.optimize(as_model(LOOPS), target=target, verify_budget=20)
    assert gone.isdisjoint(ops(result.model))
    assert left <= ops(result.model)
    assert {record.rule for record in result.report.refusals} <= {"dissolve-map"}
    assert result.report.checked is not None
    assert result.report.checked.verdict == "verified"
    weights = [one for one in result.model.graph.initializer if one.data_type == 1]
    assert len(weights) == 1, "w and v hold the same"


def test_an_unknown_target_is_a_value_error() -> None:
    with pytest.raises(ValueError, match="target is 'gpu', not one of onnxruntime"):
        passes.optimize(as_model(LOOPS), target="gpu")


def test_dims_and_the_most_nodes_of_unrolling() -> None:
    text = LOOPS.replace("float[4,2] x", "float[N,2] x").replace("float[4,2] y", "float[N,2] y")
    result = passes.optimize(
        as_model(text), target="no-control-flow", dims={"N": 4}, verify_budget=20
    )
    assert ops(result.model).isdisjoint({"Loop", "Scan", "If"})
    result = passes.optimize(as_model(LOOPS), target="no-control-flow", max_nodes=3, verify=False)
    assert {record.code for record in result.report.refusals} == {"too-many-nodes"}


def test_a_loop_that_stays_is_told_once() -> None:
    text = """
    <ir_version: 10, opset_import: ["" : 21]>
    g (float[2] h0, int64 at, bool yes) => (float[2] h) <float bound = {5}> {
       h = Loop <body = step (int64 i, bool go, float[2] s) => (bool on, float[2] t) {
          in_vain = Gather (s, at) t = Add (s, s) top = ReduceMax <keepdims = 0> (t)
          on = Less (top, bound) }> ("", yes, h0)
    }
    """
    result = passes.optimize(as_model(text), verify=False)
    codes = [(record.rule, record.code) for record in result.report.refusals]
    assert ("prune-loop", "may-fail") in codes
    assert len(codes) == len(set(codes))


def test_the_same_bytes_each_time() -> None:
    first, second = (passes.optimize(as_model(LOOPS), verify=False).model for _ in range(2))
    assert first.SerializeToString(deterministic=True) == second.SerializeToString(
        deterministic=True
    )


def test_what_was_optimized_is_left_alone() -> None:
    once = passes.optimize(as_model(LOOPS), verify=False).model
    assert passes.optimize(once, verify=False).model is once


def test_hoist_and_simplify() -> None:
    hoisted = passes.hoist(as_model(LOOPS), rules=("hoist-constants",), verify=False).model
    assert [one.name for one in hoisted.graph.initializer if one.data_type == 1] == ["loop/w"]
    simple = passes.simplify(as_model(LOOPS), skip=("prune-loop",), verify=False).model
    assert ops(simple) >= {"Loop", "Scan"}
    assert "If" not in ops(simple)
    assert len(simple.graph.node[0].output) == 2


# -- on the command line ----------------------------------------------------------------------


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "loops.onnx"
    onnx.save(as_model(LOOPS), path)
    return path


def run(*arguments: object) -> tuple[int, str]:
    result = CliRunner().invoke(app, [*map(str, arguments), "--no-verify"])
    return result.exit_code, result.output


@pytest.mark.parametrize(
    ("command", "suffix"),
    [("hoist", "hoisted"), ("simplify", "simplified"), ("optimize", "optimized")],
)
def test_commands_write_beside_the_model(file: Path, command: str, suffix: str) -> None:
    code, output = run(command, file)
    assert code == 0, output
    assert file.with_name(f"loops.{suffix}.onnx").exists()


def test_rules_are_named_and_skipped(file: Path) -> None:
    code, output = run("optimize", file, "--rule", "prune-loop", "--rule", "inline-if")
    assert code == 0
    assert "inline-if: main/loop_0.body/if_5" in output
    assert "raise-loop" not in output
    code, output = run("simplify", file, "--skip", "inline-if", "--force")
    assert code == 0
    assert "inline-if" not in output


def test_an_unknown_rule_is_wrong_usage(file: Path) -> None:
    code, output = run("simplify", file, "--rule", "prune")
    assert code == 2
    assert "there is no rule 'prune'; there are" in output


def test_a_target_that_cannot_be_reached_fails_under_strict(file: Path) -> None:
    arguments = ("optimize", file, "--target", "no-control-flow", "--max-nodes", 2, "--strict")
    code, output = run(*arguments)
    assert code == 3
    assert "code too-many-nodes" in output
