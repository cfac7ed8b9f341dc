"""The commands hoist, simplify and optimize: which rules run, in which order, for which target."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest
from onnx import ModelProto
from typer.testing import CliRunner

import passes
from passes.__main__ import app
from passes.commands.schedules import SCHEDULES
from passes.engine.outcome import Pass
from passes.engine.rewriting import Engine
from passes.engine.rounds import Round
from passes.engine.schedules import Phase
from passes.ir import scope as scoping
from passes.ir.model import Model
from passes.ir.places import is_loop
from passes.rule import UnknownRule
from passes.session import Session
from passes.testing import as_model
from tests.instruments.generate.choices import Choices
from tests.instruments.generate.model import generate

pytestmark = pytest.mark.sampled


def loops(rows: str) -> str:
    """A Loop of four iterations, and a Scan over the rows of what it reads."""
    return f"""
<ir_version: 10, opset_import: ["" : 21]>
g (float[{rows},2] x, float[2] h0) => (float[2] h, float[{rows},2] y)
<int64 four = {{4}}, bool yes = {{1}}> {{
   h, unread = Loop <body = step (int64 i, bool go, float[2] s) => (bool on, float[2] t, float[2] o)
      <float[2] w = {{1, 2}}> {{
      on = Identity (go) x_t = Gather (x, i) m = Mul (x_t, w) t_1 = Add (s, m) o = Exp (t_1)
      t = If (yes) <then_branch = a () => (float[2] p) {{ p = Tanh (t_1) }},
                    else_branch = b () => (float[2] q) {{ q = Neg (t_1) }}> }}> (four, "", h0)
   y = Scan <num_scan_inputs = 1, body = each (float[2] n) => (float[2] o)
      <float[2] v = {{1, 2}}> {{
      o = Mul (n, v) }}> (x)
}}
"""


LOOPS = loops("4")


def names_of(steps: tuple[tuple[Phase, ...], ...]) -> list[tuple[str, ...]]:
    phases = (phase for step in steps for phase in step)
    return [phase.rules for phase in phases if not phase.converts]


def ops(model: ModelProto) -> set[str]:
    return {place.node.op_type for place in scoping.walk_model(model)}


# -- which rules run --------------------------------------------------------------------------


def test_named_rules_run_in_the_order_of_the_pipeline() -> None:
    chosen = SCHEDULES["hoist"].steps(rules=("hoist-constants", "fold-constants"))
    assert names_of(chosen) == [("fold-constants",), ("hoist-constants",)]


def test_rules_of_other_commands_run_behind() -> None:
    chosen = SCHEDULES["simplify"].steps(rules=("unroll", "prune-if", "lower-scan"))
    assert names_of(chosen) == [("prune-if",), ("unroll",), ("lower-scan",)]


def test_skipped_rules_do_not_run_and_empty_phases_go() -> None:
    chosen = SCHEDULES["hoist"].steps(skip=("fold-constants",))
    assert names_of(chosen) == [("hoist-invariants",), ("hoist-constants",)]
    chosen = SCHEDULES["hoist"].steps(skip=("hoist-invariants",))
    assert names_of(chosen) == [("fold-constants",), ("hoist-constants",)]
    assert (
        names_of(SCHEDULES["hoist"].steps(rules=("fold-constants",), skip=("fold-constants",)))
        == []
    )


def test_a_scan_8_is_upgraded_whatever_is_named() -> None:
    ((upgrade,), _) = SCHEDULES["hoist"].steps(
        rules=("fold-constants",), skip=("hoist-invariants",)
    )
    assert upgrade.rules == SCHEDULES["upgrade"].rules


#: Random models with a loop that only what becomes of another one allows to raise.
@pytest.mark.parametrize("seed", [1040367, 1060095, 1067082, 1067416, 1080077, 1080153])
@pytest.mark.parametrize("target", ["onnxruntime", "scan-only"])
def test_a_second_run_finds_nothing_more(seed: int, target: str) -> None:
    model = generate(Choices.of_seed(seed, small=True)).model
    once = passes.optimize(model, target=target, verify=False)
    again = passes.optimize(once.model, target=target, verify=False)
    assert [record for record in again.report.records if record.outcome == "rewritten"] == []


@pytest.mark.parametrize("name", ["no-such-rule", "opset", "scan-8"])
def test_a_rule_that_is_not_there_or_needs_an_opset_is_told(name: str) -> None:
    with pytest.raises(UnknownRule, match=name):
        SCHEDULES["simplify"].steps(rules=(name,))
    with pytest.raises(UnknownRule, match=name):
        SCHEDULES["simplify"].steps(skip=(name,))


def test_no_phase_runs_twice_where_none_finds_anything(monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[tuple[str, ...]] = []
    usual = Engine.fixpoint

    def noted(self: Engine, model: Model) -> list[Round]:
        ran.append(tuple(rule.name for rule in self.rules))
        return usual(self, model)

    monkeypatch.setattr(Engine, "fixpoint", noted)
    settled = as_model(
        '<ir_version: 10, opset_import: ["" : 21]> g (float[2] x) => (float[2] y) { y = Exp (x) }'
    )
    Session([Pass(SCHEDULES["optimize"])], None).run(settled)
    assert ran == [phase.rules for phase in SCHEDULES["optimize"].phases if not phase.first]


# -- what becomes of a model ------------------------------------------------------------------


GOLDEN = Path(__file__).parent.parent / "golden_models"


@pytest.mark.parametrize(
    "path",
    sorted(GOLDEN.glob("optimize*/*.before.onnxtxt")),
    ids=lambda path: f"{path.parent.name}/{path.name.partition('.')[0]}",
)
def test_what_is_optimized_is_left_as_it_is(path: Path) -> None:
    session = Session([Pass(SCHEDULES[path.parent.name])], None)
    once = session.run(onnx.load(path)).model
    assert session.run(once).model.SerializeToString(deterministic=True) == (
        once.SerializeToString(deterministic=True)
    )


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
    weights = [tensor for tensor in result.model.graph.initializer if tensor.data_type == 1]
    assert len(weights) == 1, "w and v hold the same"


def test_nested_scans_become_one_loop() -> None:
    model = onnx.load(GOLDEN / "flatten-scan" / "cell.before.onnxtxt")
    result = passes.optimize(model, target="loop-only", verify_budget=20)
    loops = [place for place in scoping.walk_model(result.model) if is_loop(place.node)]
    assert [place.node.op_type for place in loops] == ["Loop"]
    assert result.report.checked is not None
    assert result.report.checked.verdict == "verified"


def test_an_unknown_target_is_a_value_error() -> None:
    with pytest.raises(ValueError, match="target is 'gpu', not a target; the nearest"):
        passes.optimize(as_model(LOOPS), target="gpu")


def test_dims_and_the_most_nodes_of_unrolling() -> None:
    result = passes.optimize(
        as_model(loops("N")), target="no-control-flow", dims={"N": 4}, verify_budget=20
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


OPTIMIZING = [name for name in SCHEDULES if name.startswith("optimize")]
#: A second run found more to do: what a guard stands in for, a condition, equal constants.
STAND_IN = """
<ir_version: 10, opset_import: ["" : 21]>
g (int64 n, float[2,3] a, int64[2] shape, float[2] h) => (float[2] y, float[K,3,2] z) {
   y, z = Loop <body = step (int64 i, bool go, float[2] s) => (bool on, float[2] t, float[3,2] e) {
      on = Identity (go) r = Reshape (a, shape) t = Add (s, s) x = Exp (r) e = Identity (x) }>
      (n, "", h)
}
"""
CONDITION = """
<ir_version: 10, opset_import: ["" : 21]>
g (float[T,2] x, float[2] h) => (float[2] y) {
   y = Scan <num_scan_inputs = 1, body = step (float[2] s, float[2] x_t) => (float[2] t)
      <int64 two = {2}, int64 three = {3}> {
      less = Less (two, three)
      m = If (less) <then_branch = a () => (float[2] p) { p = Identity (x_t) },
                     else_branch = b () => (float[2] q) { q = Exp (s) }>
      t_1 = Mul (s, m) t = Tanh (t_1) }> (h, x)
}
"""
EQUAL = """
<ir_version: 10, opset_import: ["" : 21]>
g (float[T,2] x, float[2] h) => (float[2] y) <float[2] w = {1, 2}> {
   y = Scan <num_scan_inputs = 1, body = step (float[2] s, float[2] x_t) => (float[2] t)
      <float[2] v = {1, 2}> {
      a = Mul (s, w) b = Mul (s, v) c = Tanh (a) d = Exp (b) t_1 = Sub (c, d)
      t = Add (t_1, x_t) }> (h, x)
}
"""


@pytest.mark.parametrize("text", [STAND_IN, CONDITION, EQUAL])
@pytest.mark.parametrize("command", ["hoist", "simplify", *OPTIMIZING])
def test_a_second_run_finds_nothing(text: str, command: str) -> None:
    once = Session([Pass(SCHEDULES[command])], None).run(as_model(text)).model
    left = command == "simplify" or (text, command) == (STAND_IN, "optimize-no-control-flow")
    assert (once == as_model(text)) <= left, "the guard of what moves would be an If"
    assert Session([Pass(SCHEDULES[command])], None).run(once).model is once


def test_hoist_and_simplify() -> None:
    hoisted = passes.hoist(as_model(LOOPS), rules=("hoist-constants",), verify=False).model
    assert [tensor.name for tensor in hoisted.graph.initializer if tensor.data_type == 1] == [
        "loop/w"
    ]
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
    assert "there is no rule 'prune'; the nearest are prune-if, prune-loop" in output


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--only", "main/lop_0"), "matches 'main/lop_0'; the nearest are main/loop_0"),
        (("--skip", "raise-loop"), "the rule 'raise-loop' is none of simplify"),
    ],
)
def test_what_matches_nothing_is_wrong_usage(
    file: Path, arguments: tuple[str, str], sentence: str
) -> None:
    code, output = run("simplify", file, *arguments)
    assert code == 2
    assert sentence in output
    assert not file.with_name("loops.simplified.onnx").exists()


def test_a_target_that_cannot_be_reached_fails_under_strict(file: Path) -> None:
    arguments = ("optimize", file, "--target", "no-control-flow", "--max-nodes", 2, "--strict")
    code, output = run(*arguments)
    assert code == 3
    assert "code too-many-nodes" in output


WHILE = """
<ir_version: 10, opset_import: ["" : 21]>
g (float[2] h0) => (float[2] h) <bool yes = {1}, float limit = {9}> {
   h = Loop <body = step (int64 i, bool go, float[2] s) => (bool on, float[2] t) {
      t = Exp (s) sum = ReduceSum <keepdims = 0> (t) on = Less (sum, limit) }> ("", yes, h0)
}
"""


@pytest.mark.parametrize("target", ["onnxruntime", "scan-only", "loop-only", "no-control-flow"])
def test_rules_that_only_help_may_refuse_under_strict(file: Path, target: str) -> None:
    code, output = run("optimize", file, "--target", target, "--strict")
    assert code == 0, output
    if target != "no-control-flow":
        assert "[rule dissolve-map, code carries]" in run("optimize", file, "--force")[1]


@pytest.mark.parametrize(
    ("target", "expected"),
    [("onnxruntime", 3), ("scan-only", 3), ("loop-only", 0), ("no-control-flow", 3)],
)
def test_a_while_stays_which_some_targets_may_have(
    tmp_path: Path, target: str, expected: int
) -> None:
    path = tmp_path / "while.onnx"
    onnx.save(as_model(WHILE), path)
    out = tmp_path / "new.onnx"
    code, output = run("optimize", path, "--target", target, "--strict", "-o", out)
    assert code == expected, output
    assert out.exists() == (expected == 0)
    stays = "main/loop_0 stays [condition]"
    if target != "onnxruntime":
        stays = f"1 problem on {target}"
    assert (f"{stays}, and --strict was given" in output) == (expected == 3)
    assert run("optimize", path, "--target", target, "-o", out, "--force")[0] == 0


@pytest.mark.parametrize("case", ["while", "while_steps", "while_and_limit"])
def test_a_while_that_a_few_iterations_do_not_pay_for_stays(tmp_path: Path, case: str) -> None:
    path, out = GOLDEN / "raise" / f"{case}.before.onnxtxt", tmp_path / "new.onnx"
    code, output = run("optimize", path, "--strict", "--no-verify", "--keep-order", "-o", out)
    assert code == 0, output
    assert "code few-iterations" in output
    assert ops(onnx.load(out)) & {"Loop", "Scan", "If"} == {"Loop"}
    scans = passes.optimize(onnx.load(path), target="scan-only", verify=False).model
    assert "Loop" not in ops(scans)


@pytest.mark.parametrize(
    ("case", "trips", "left"),
    [("while", 3, set()), ("no_reads", 40, {"Scan"}), ("no_reads", 3, set())],
)
def test_few_iterations_are_written_out_where_a_scan_takes_longer(
    case: str, trips: int, left: set[str]
) -> None:
    model = onnx.load(GOLDEN / "raise" / f"{case}.before.onnxtxt")
    (count,) = (value for value in model.graph.input if value.name in ("m", "n"))
    model.graph.input.remove(count)
    model.graph.initializer.append(onnx.helper.make_tensor(count.name, 7, [], [trips]))
    result = passes.optimize(model, verify_budget=10)
    assert ops(result.model) & {"Loop", "Scan", "If"} == left
    assert result.report.checked is not None
    assert result.report.checked.verdict == "verified"
    assert passes.optimize(result.model, verify=False).model is result.model


def test_few_iterations_that_fail_are_not_written_out() -> None:
    model = onnx.load(GOLDEN / "raise" / "one_iteration_more.refused.onnxtxt")
    assert "Loop" in ops(passes.optimize(model, verify=False).model)


def test_a_rule_that_was_named_may_not_refuse_under_strict(file: Path) -> None:
    assert run("optimize", file, "--rule", "dissolve-map", "--strict")[0] == 0  # no Scan carries
    both = ("--rule", "raise-loop", "--rule", "dissolve-map")
    code, output = run("optimize", file, *both, "--strict", "--force")
    assert code == 3, output
    assert "code carries" in output
