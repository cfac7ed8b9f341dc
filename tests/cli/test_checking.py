"""`passes check`: what is in the way, what clears it, and that its last line is true."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import jsonschema
import onnx
import pytest
from typer.testing import CliRunner

from passes.__main__ import app
from passes.errors import DONE, FAILED, NOT_PRODUCED, USAGE
from passes.reports.json_values import schema_of
from passes.reports.report_file import ReportFile
from passes.testing import as_model
from tests.targets.test_findings import CALLED, SUM, WHILE
from tests.written import changed

GOLDEN = Path(__file__).parents[2] / "golden_models"
FAST = ("--executor", "reference", "--verify-budget", "5")
NEGATED = """
    <ir_version: 10, opset_import: ["" : 21]>
    g (float[2] x) => (float[2] y) { y = Neg (x) }
"""


def run(*arguments: str) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, arguments)
    return result.exit_code, result.stdout, result.stderr


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name, text in (("called", CALLED), ("while", WHILE)):
        onnx.save(as_model(text), f"{name}.onnx")
    return tmp_path


def test_what_is_in_the_way_and_what_clears_it() -> None:
    code, said, _ = run("check", "called.onnx", "--target", "openvino-2026")
    assert code == NOT_PRODUCED
    assert said.splitlines() == [
        "called.onnx: 1 problem on openvino-2026, Intel OpenVINO 2026, CPU plugin",
        "  function my::twice (my::twice): model-local functions are not taken [function, stated]",
        "fixes 1 without changing results: convert --inline all",
        "run: passes check called.onnx --target openvino-2026 --fix  "
        "(after this: fits openvino-2026)",
    ]


#: Where the user has to say, or promise, something.
NOT_ALL = {
    ("exported/sklearn/nearest_neighbors.opset18.onnx", "graph-capture"),
    ("exported/torch/script_cell.opset13.onnx", "tract"),
}


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("model", "target"),
    [
        ("binary/gru.onnx", "openvino-2026"),
        ("binary/gru.onnx", "tract"),
        ("exported/jax/gates.opset21.onnx", "tract"),
        ("exported/onnxscript/for_reading.opset15.onnx", "tract"),
        ("exported/sklearn/gaussian_process.opset18.onnx", "no-control-flow"),
        ("exported/sklearn/nearest_neighbors.opset18.onnx", "graph-capture"),
        ("exported/tensorflow/decoded.opset9.onnx", "no-control-flow"),
        ("exported/tensorflow/decoded.opset9.onnx", "tract"),
        ("exported/torch/script_cell.opset13.onnx", "openvino-2026"),
        ("exported/torch/script_cell.opset13.onnx", "tract"),
        ("exported/torch/script_list_stacked.opset13.onnx", "openvino-2026"),
    ],
)
def test_the_last_line_leads_to_what_it_says(model: str, target: str) -> None:
    Path("m.onnx").write_bytes((GOLDEN / model).read_bytes())
    code, said, _ = run("check", "m.onnx", "--target", target)
    assert code == NOT_PRODUCED
    command, _, promised = said.splitlines()[-1].removeprefix("run: ").partition("  (after this: ")
    assert promised.startswith("fits") == ((model, target) not in NOT_ALL)
    program, *arguments = shlex.split(command)
    assert program == "passes"
    code, said, errors = run(*arguments, *FAST)
    assert errors == ""
    left = promised.removesuffix(")")
    verdict = left if left.startswith("fits") else f"still does not fit, {left}"
    assert said.splitlines()[-1] == f"m.{target}.onnx: {verdict}"
    assert (code == DONE) == promised.startswith("fits")
    assert run("check", f"m.{target}.onnx", "--target", target)[0] == code


def test_what_nothing_clears() -> None:
    Path("npu.toml").write_text('name = "npu"\nsummary = "N"\nrefused = ["Neg"]\n')
    onnx.save(as_model(NEGATED), "neg.onnx")
    code, said, _ = run("check", "neg.onnx", "--target", "npu.toml", "--json", "c.json")
    assert code == NOT_PRODUCED
    assert said.splitlines()[-1] == "no known command fixes any of it"
    report = json.loads(Path("c.json").read_text())
    assert [finding["code"] for finding in report["findings"]] == ["operator"]
    assert (report["fits"], report["remedies"]) == (False, [])


@pytest.mark.slow
def test_a_promise_clears_a_while() -> None:
    code, said, _ = run("check", "while.onnx", "--target", "no-control-flow")
    assert code == NOT_PRODUCED
    offer = "with a promise of yours: optimize --target no-control-flow --max-trips N"
    assert said.splitlines()[-1] == f"would fix 1 more {offer}"
    promised = ("check", "while.onnx", "--target", "no-control-flow", "--max-trips", "4")
    code, said, _ = run(*promised)
    assert said.splitlines()[-1].endswith("--fix --max-trips 4  (after this: fits no-control-flow)")
    code, said, errors = run(*promised, "--fix", *FAST)
    assert (code, errors) == (DONE, "")
    assert said.splitlines()[-1] == "while.no-control-flow.onnx: fits no-control-flow"


def test_a_profile_of_ones_own_and_all_targets() -> None:
    Path("npu.toml").write_text('name = "npu"\nsummary = "Some NPU"\n[loop]\ntaken = false\n')
    assert run("check", "called.onnx", "--target", "npu.toml") == (
        DONE,
        "called.onnx: fits npu, Some NPU\n",
        "",
    )
    code, said, _ = run("check", "while.onnx", "--all-targets")
    assert code == NOT_PRODUCED
    assert "  no-control-flow  1 x Loop (loop)\n" in said
    assert "  loop-only        fits\n" in said


@pytest.mark.parametrize(
    ("target", "ops"),
    [("tract", {"Scan"}), ("openvino-2026", {"Loop"}), ("migraphx", set()), ("npu.toml", {"Loop"})],
)
def test_a_model_is_given_the_form_that_its_target_takes(target: str, ops: set[str]) -> None:
    Path("npu.toml").write_text('name = "npu"\nsummary = "Some NPU"\n[scan]\nmost = 9\n')
    onnx.save(as_model(changed(SUM, {"Add": "Pow"})), "sum.onnx")  # a sum would need no loop
    arguments = ("optimize", "sum.onnx", "--target", target, "--strict", "-o", "new.onnx")
    assert run(*arguments, "--no-verify")[0] == DONE
    assert {node.op_type for node in onnx.load("new.onnx").graph.node} & {"Loop", "Scan"} == ops
    assert run("check", "new.onnx", "--target", target)[0] == DONE


def test_strict_ends_with_the_check() -> None:
    Path("npu.toml").write_text('name = "npu"\nsummary = "Some NPU"\nrefused = ["Exp", "Loop"]\n')
    arguments = ("optimize", "while.onnx", "--target", "npu.toml", "-o", "new.onnx", "--no-verify")
    code, said, errors = run(*arguments, "--strict", "--json", "report.json")
    assert (code, Path("new.onnx").exists()) == (NOT_PRODUCED, False)
    checked = run("check", "while.onnx", "--target", "npu.toml")[1].splitlines()[1]
    assert f"  in the way: {checked.strip()}\n" in said
    assert errors == (
        "1 problem on npu, and --strict was given; `passes check` names what clears it\n"
    )
    report = json.loads(Path("report.json").read_text())
    jsonschema.validate(report, schema_of(ReportFile))
    assert [one["code"] for one in report["findings"]] == ["operator"]
    assert run(*arguments)[0] == DONE


def test_many_models() -> None:
    onnx.save(as_model(NEGATED), "neg.onnx")
    Path("broken.onnx").write_text("no model")
    given = ("check", "called.onnx", "neg.onnx", "broken.onnx", "--target", "openvino-2026")
    code, said, errors = run(*given)
    assert code == FAILED
    lines = said.splitlines()
    assert lines[0] == "called.onnx: 1 problem on openvino-2026, Intel OpenVINO 2026, CPU plugin"
    assert lines[4] == "neg.onnx: fits openvino-2026, Intel OpenVINO 2026, CPU plugin"
    assert re.fullmatch(r"3 models, [\d.]+ s of work", lines[5])
    assert [line.split() for line in lines[6:]] == [
        ["fits", "1"],
        ["does", "not", "fit", "1"],
        ["invalid", "1"],
        ["findings:"],
        ["function", "1"],
    ]
    assert errors.startswith("broken.onnx: is no ONNX model")
    assert run("check", ".", "--target", "no-control-flow")[0] == FAILED
    assert run("check", "neg.onnx", "called.onnx", "--target", "tarct")[0] == USAGE
    code, _, errors = run(*given, "--fix")
    assert (code, errors) == (USAGE, "--fix is for one model\n")


def test_a_job_gets_annotations_and_a_summary() -> None:
    onnx.save(as_model(NEGATED), "neg.onnx")
    tell = ("--target", "openvino-2026", "--github", "--markdown", "summary.md")
    code, said, _ = run("check", "called.onnx", *tell)
    assert code == NOT_PRODUCED
    assert said.splitlines()[-1].startswith(
        "::error file=called.onnx,title=called.onnx::called.onnx: 1 problem on openvino-2026, "
    )
    summary = Path("summary.md").read_text()
    assert "| does not fit | 1 |" in summary
    assert "<br>function my::twice (my::twice): model-local functions are not taken" in summary
    code, said, _ = run("check", "neg.onnx", *tell)
    assert (code, "::error" in said) == (DONE, False)
    assert "| fits | 1 |" in Path("summary.md").read_text().removeprefix(summary)


def test_wrong_usage() -> None:
    assert run("check", "called.onnx")[2] == "name a --target, or take --all-targets\n"
    code, _, errors = run("check", "called.onnx", "--target", "tarct")
    assert code == USAGE
    assert errors.startswith("there is no target 'tarct'; the nearest are tract, ")
