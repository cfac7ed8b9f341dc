"""Other optimizers and converters to float16, each run in a process of its own: they may crash, and
take what they import."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import ModelProto

Arrays = Mapping[str, NDArray[np.generic]]
_SECONDS = 120
_SAVED = """
options = onnxruntime.SessionOptions()
options.optimized_model_filepath = after
options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
options.intra_op_num_threads = 1
options.log_severity_level = 3
onnxruntime.InferenceSession(before, options, providers=["CPUExecutionProvider"])
"""
#: By name: the program that makes the file `after` of the file `before`.
PEERS = {
    "onnxsim": "import onnxsim; made, fine = onnxsim.simplify(onnx.load(before)); "
    "assert fine, 'it says that its own check failed'; onnx.save(made, after)",
    "onnxslim": "import onnxslim; onnx.save(onnxslim.slim(onnx.load(before)), after)",
    "onnxscript": "from onnxscript import optimizer; "
    "onnx.save(optimizer.optimize(onnx.load(before)), after)",
    "onnxruntime offline": f"import onnxruntime\n{_SAVED}",
}
#: By name: the expression that is a converter of models to float16, with inputs and outputs kept.
CASTS = {
    "onnxconverter-common": "functools.partial(importlib.import_module("
    "'onnxconverter_common.float16').convert_float_to_float16, "
    "keep_io_types=True, disable_shape_infer=True)",
    "onnxruntime.transformers": "functools.partial(importlib.import_module("
    "'onnxruntime.transformers.float16').convert_float_to_float16, keep_io_types=True)",
}
_CAST = """
import functools, importlib, json, pathlib, sys, warnings
import onnx
warnings.simplefilter("ignore")
cast, failed = {cast}, {{}}
for number in range({count}):
    try:
        before, after = (pathlib.Path(folder) / f"{{number}}.{{side}}.onnx" for side in "ab")
        onnx.save(cast(onnx.load(before)), after)
    except Exception as error:
        failed[number] = f"{{type(error).__name__}}: {{error}}"
pathlib.Path(folder, "failed.json").write_text(json.dumps(failed))
"""
_RUN = """
import onnxruntime, numpy
options = onnxruntime.SessionOptions()
options.intra_op_num_threads = 1
options.log_severity_level = 3
session = onnxruntime.InferenceSession(after, options, providers=["CPUExecutionProvider"])
numpy.savez(outputs, *session.run(None, dict(numpy.load(inputs))))
"""


class Failed(Exception):
    """A peer made no model that answers what the original does; says in a few words why."""


def optimized(
    peer: str, model: ModelProto, feeds: Arrays, expected: Sequence[NDArray[np.generic]]
) -> ModelProto:
    """What a peer makes of a model.

    Raises:
        Failed: it is not installed, fails, takes too long, or its model fails or answers otherwise.
    """
    if importlib.util.find_spec(peer.partition(" ")[0]) is None:
        raise Failed("not installed")
    with tempfile.TemporaryDirectory() as folder:
        paths = {
            name: str(Path(folder) / file)
            for name, file in (
                ("before", "before.onnx"), ("after", "after.onnx"),
                ("inputs", "inputs.npz"), ("outputs", "outputs.npz"),
            )
        }  # fmt: skip
        onnx.save(model, paths["before"])
        np.savez(paths["inputs"], **feeds)
        head = "".join(f"{name} = {path!r}\n" for name, path in paths.items())
        _run(f"import onnx\n{head}{PEERS[peer]}", "fails")
        _run(f"{head}{_RUN}", "its model fails")
        with np.load(paths["outputs"]) as found:
            answers = [found[name] for name in found.files]
        if (off := difference(expected, answers)) is not None:
            raise Failed(f"corrupts the model: {off}")
        return onnx.load(paths["after"])


def cast_by(peer: str, models: Sequence[ModelProto]) -> list[ModelProto | Failed]:
    """What a converter to float16 makes of each model, or why it makes nothing.

    Raises:
        Failed: the converter is not installed, or the process crashes.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for number, model in enumerate(models):
            onnx.save(model, folder / f"{number}.a.onnx")
        program = _CAST.format(cast=CASTS[peer], count=len(models))
        _run(f"folder = {name!r}\n{program}", "fails", seconds=_SECONDS + 2 * len(models))
        failed = json.loads((folder / "failed.json").read_text(encoding="utf-8"))
        return [
            Failed(failed[str(number)])
            if str(number) in failed
            else onnx.load(folder / f"{number}.b.onnx")
            for number in range(len(models))
        ]


def _run(program: str, what: str, *, seconds: int = _SECONDS) -> None:
    """Run a program to its end."""
    try:
        done = subprocess.run(
            [sys.executable, "-c", program],
            capture_output=True, text=True, timeout=seconds, check=False,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise Failed(f"{what}: not done after {seconds} s") from None
    if done.returncode == 0:
        return
    last = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
    crashed = f"crashed (signal {-done.returncode}) " if done.returncode < 0 else ""
    raise Failed(f"{what}: {crashed}{last[:120]}")


def difference(
    expected: Sequence[NDArray[np.generic]], found: Sequence[NDArray[np.generic]]
) -> str | None:
    """Where answers differ by more than rounding, None where they do not.

    Sums of other orders may pick another of two near distances, so of integers one in a thousand
    may differ.
    """
    for position, (one, other) in enumerate(zip(expected, found, strict=True)):
        if one.shape != other.shape or one.dtype != other.dtype:
            return f"output {position} is {_kind(other)}, not {_kind(one)}"
        if one.dtype.kind == "f":
            same = bool(np.allclose(one, other, rtol=1e-3, atol=1e-4, equal_nan=True))
        else:
            same = bool(np.mean(one != other) <= 1e-3)
        if not same:
            return f"output {position} has other values"
    return None


def _kind(value: NDArray[np.generic]) -> str:
    return f"{value.dtype}{list(value.shape)}"
