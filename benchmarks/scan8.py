"""What an upgraded Scan-8 costs in onnxruntime, one thread, against the original."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from typing import Any

import numpy as np
from onnx import ModelProto

import passes
from benchmarks.harness import Bench, Run, Side
from benchmarks.models import rnn
from passes.choices import Batch

_OPSET = 13  # the oldest that every strategy writes


def measure(bench: Bench) -> None:
    """An RNN cell over the batch sizes, full and ragged rows, and the strategies."""
    if importlib.util.find_spec("onnxruntime") is None:
        bench.note("onnxruntime is not installed")
        return
    batches = (4,) if bench.quick else (1, 4, 16)
    width, steps = (4, 5) if bench.quick else (64, 128)
    for batch in batches:
        for ragged in (False, True):
            _strategies(bench, batch, width, steps, ragged)


def _strategies(bench: Bench, batch: int, width: int, steps: int, ragged: bool) -> None:
    model = rnn(batch, width, steps, ragged=ragged)
    feeds = _feeds(batch, width, steps, ragged)
    original = Side("Scan-8", session_run(model, feeds, repeat=1 if bench.quick else 20))
    for strategy in Batch:
        if strategy is Batch.auto:
            continue
        upgraded = passes.upgrade(model, opset=_OPSET, batch=strategy, verify=False).model
        run = session_run(upgraded, feeds, repeat=1 if bench.quick else 20)
        lengths = "ragged" if ragged else "full"
        bench.compare(f"RNN, batch {batch}, {lengths}", Side(strategy, run), original, runs=15)


def _feeds(batch: int, width: int, steps: int, ragged: bool) -> dict[str, Any]:
    draw = np.random.default_rng(1)
    feeds = {
        "h0": draw.standard_normal((batch, width)).astype(np.float32),
        "x": draw.standard_normal((batch, steps, width)).astype(np.float32),
    }
    if ragged:  # from half of the steps to all of them
        feeds["lens"] = np.linspace(steps, steps // 2, batch).astype(np.int64)
    return feeds


def session_run(
    model: ModelProto, feeds: Mapping[str, Any], repeat: int, answers: list[Any] | None = None
) -> Run:
    """Runs a model in onnxruntime on one thread, `repeat` times a call; `answers` get outputs."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )

    def run() -> None:
        for _ in range(repeat):
            found = session.run(None, feeds)
            if answers is not None:
                answers[:] = found

    return run
