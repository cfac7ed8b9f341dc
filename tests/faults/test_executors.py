"""An executor that crashes, hangs or is broken: the other one goes on, and the report says so."""

from __future__ import annotations

import os
import time
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import ModelProto

import passes
from passes.errors import NotVerified
from passes.verify import installed as worker

pytestmark = pytest.mark.skipif(
    not worker.OnnxRuntimeExecutor.available(), reason="onnxruntime is not installed"
)

#: A module whose every class does something when a model is loaded.
LOADING = """
import os, signal, time
__version__ = "0"
def get_available_providers(): return []
def __getattr__(name): return Session
class Session:
    def __init__(self, *args, **kwargs):
        {}
"""

#: Modules that stand in for onnxruntime, and what is said of them.
FAKES = {
    "crashes when it is imported": (
        "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)",
        "SIGSEGV",
    ),
    "leaves when it is imported": ("raise SystemExit(3)", "exit code 3"),
    "is not installed whole": ("raise ImportError('libfoo is missing')", "libfoo is missing"),
    "has nothing in it": ("", "onnxruntime"),
    "writes to standard output": ("print('hello' * 100, flush=True)", "onnxruntime"),
    "crashes when it loads a model": (
        LOADING.format("os.kill(os.getpid(), signal.SIGABRT)"),
        "SIGABRT",
    ),
    "gives what cannot be read": ("class Odd: pass\n__version__ = Odd()", "does not answer"),
}


@pytest.fixture
def model() -> ModelProto:
    return onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["" : 8]>
        g (float[2,3] x) => (float[1,2,3] y) { y = Unsqueeze <axes = [0]> (x) }"""
    )


def stand_in(monkeypatch: pytest.MonkeyPatch, folder: Path, code: str) -> None:
    """Let the worker process import this in the place of onnxruntime."""
    (folder / "onnxruntime.py").write_text(code)
    monkeypatch.setenv("PYTHONPATH", str(folder))


@pytest.mark.parametrize(("code", "said"), FAKES.values(), ids=FAKES)
def test_the_reference_executor_goes_on(
    code: str, said: str, model: ModelProto, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in(monkeypatch, tmp_path, code)
    result = passes.upgrade(model, opset=21)
    checked = result.report.checked
    assert checked is not None
    assert checked.verdict == "verified"
    assert checked.compared["reference"] > 0
    assert checked.compared["onnxruntime"] == 0


@pytest.mark.parametrize(("code", "said"), FAKES.values(), ids=FAKES)
def test_alone_it_verifies_nothing(
    code: str, said: str, model: ModelProto, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in(monkeypatch, tmp_path, code)
    with pytest.raises(NotVerified) as error:
        passes.upgrade(model, opset=21, executor="onnxruntime")
    assert said in str(error.value)
    checked = error.value.report.checked
    assert checked is not None
    assert checked.verdict == "not-compared"


@pytest.mark.slow
def test_one_that_hangs_is_killed_and_soon_left_alone(
    model: ModelProto, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in(monkeypatch, tmp_path, LOADING.format("time.sleep(600)"))
    began = time.monotonic()
    result = passes.upgrade(model, opset=21, verify_budget=15)
    assert time.monotonic() - began < 60  # it would hang for ten minutes
    assert result.report.checked is not None
    assert result.report.checked.compared["onnxruntime"] == 0
    assert result.report.checked.verdict == "verified"


def workers() -> set[str]:
    """The processes of onnxruntime that this one has started and that still run."""
    children = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text().split()
    return {pid for pid in children if b"onnxruntime" in Path(f"/proc/{pid}/cmdline").read_bytes()}


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="/proc tells the processes")
def test_its_process_ends_with_the_run(model: ModelProto) -> None:
    before = workers()  # other tests share one
    with worker.OnnxRuntimeExecutor() as executor:
        executor.run(model, {"x": np.zeros((2, 3), np.float32)})
        assert len(workers() - before) == 1
    passes.upgrade(model, opset=21)
    assert workers() <= before
