"""`--executor NAME`: the outcome of a command runs in another runtime, too, of others as well."""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib.metadata import EntryPoint
from pathlib import Path

import onnx
import pytest

from passes.errors import DONE, FAILED, MISMATCH, NOT_PRODUCED, USAGE
from passes.testing import as_model
from passes.verify.runtimes import executors
from tests.cli.test_checking import run
from tests.targets.test_findings import SUM
from tests.written import changed

#: All that a distribution writes to register an executor, beside the entry point.
NPU = """
import onnx
from onnx.reference import ReferenceEvaluator

def version():
    return "1.2"

def load(job):
    return ReferenceEvaluator(onnx.load_model_from_string(job.model))

def run(session, feeds):
    return dict(zip(session.output_names, session.run(None, feeds)))
"""


@pytest.fixture
def register(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Registers a module as the executor `npu`, as the distribution that has it does."""
    monkeypatch.chdir(tmp_path)
    onnx.save(as_model(SUM), "sum.onnx")

    def registered(module: str) -> None:
        Path("acme_npu.py").write_text(module)
        monkeypatch.setenv("PYTHONPATH", str(tmp_path))
        entry = EntryPoint("npu", "acme_npu", executors.GROUP)
        monkeypatch.setattr(executors, "entry_points", lambda group: [entry])

    return registered


def test_an_executor_of_another_distribution_runs_the_outcome(
    register: Callable[[str], None],
) -> None:
    register(NPU)
    arguments = ("--executor", "npu", "-o", "new.onnx", "--json", "report.json")
    code, said, errors = run("unroll", "sum.onnx", *arguments)
    assert (code, errors) == (DONE, "")
    assert " with the new model in npu, the original in reference" in said
    compared = json.loads(Path("report.json").read_text())["checked"]
    assert compared["compared"]["reference"] > 0
    assert compared["crossed"]["npu"] > 0
    Path("npu.toml").write_text('name = "npu"\nsummary = "Some NPU"\nruntime = "npu"\n')
    said = run("check", "sum.onnx", "--target", "npu.toml", "--run")[1]
    assert "sum.onnx: agrees with the original on npu 1.2, in " in said


@pytest.mark.parametrize(
    ("module", "code", "sentence"),
    [
        (
            NPU.replace("(None, feeds)", "(None, {n: -x for n, x in feeds.items()})"),
            NOT_PRODUCED,
            "does not agree",
        ),
        (
            NPU.replace("onnx.load_model_from_string(job.model)", "1 / 0"),
            NOT_PRODUCED,
            "was not compared on npu 1.2: cannot load: division by zero",
        ),
        ("import acme_driver", FAILED, "npu does not start: No module named 'acme_driver'"),
    ],
)
def test_an_outcome_that_does_not_run_there_is_not_written(
    register: Callable[[str], None], module: str, code: int, sentence: str
) -> None:
    register(module)
    found, _, errors = run("unroll", "sum.onnx", "--executor", "npu", "-o", "new.onnx")
    assert (found, Path("new.onnx").exists()) == (code, False)
    assert sentence in errors


def test_two_files_are_compared_there(register: Callable[[str], None]) -> None:
    register(NPU)
    onnx.save(as_model(changed(SUM, {"Add (s, e)": "Sub (s, e)"})), "other.onnx")
    for other, code in (("sum.onnx", DONE), ("other.onnx", MISMATCH)):
        assert run("verify", "sum.onnx", other, "--executor", "npu")[0] == code


def test_an_executor_that_there_is_not(register: Callable[[str], None]) -> None:
    register(NPU)
    code, _, errors = run("unroll", "sum.onnx", "--executor", "npo")
    assert code == USAGE
    assert "--executor is 'npo', not an executor; the nearest are npu, " in errors


@pytest.mark.slow
@pytest.mark.parametrize("name", ["openvino", "tract"])
def test_those_that_the_package_knows(register: Callable[[str], None], name: str) -> None:
    pytest.importorskip(name)
    wide = changed(SUM, {"[2]": "[300000]", "[3,2]": "[2,300000]"})
    weights = onnx.helper.make_tensor("h", 1, [300000], bytes(1200000), raw=True)
    model = as_model(wide)
    model.graph.input.pop(0)
    model.graph.initializer.append(weights)
    onnx.save(model, "wide.onnx")
    for command, file in (("unroll", "sum.onnx"), ("unroll", "wide.onnx")):
        code, said, errors = run(command, file, "--executor", name, "-o", "new.onnx", "--force")
        assert (code, errors) == (DONE, "")
        assert f" with the new model in {name}, the original in reference" in said
