"""Unrolling: what a node costs, how much memory it takes, and when onnxruntime thanks for it."""

from __future__ import annotations

import importlib.util
import tempfile
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.version_converter
from onnx import ModelProto

import passes
from benchmarks.harness import Aim, Bench, Run, Side
from benchmarks.memory import peak_memory
from benchmarks.raised import recurrence
from benchmarks.scan8 import session_run

_OPSET = 17
_BODY = 20
_MOST = 10**7
_FLAT, _AS_FAST = Aim(ratio=2), Aim(ratio=1)  # more nodes no longer fit the cache
_MOST_MEMORY = 3
_OURS = (
    "import passes, onnx; onnx.save(passes.unroll({0!r}, opset=17, max_nodes=10**7, "
    "verify=False).model, {1!r})"
)
_LOADED = (
    "import passes, onnx, passes.rules.unroll.unroll; model = onnx.load({1!r}); "
    "list(model.graph.node)"
)


def measure(bench: Bench) -> None:
    """Time by node and memory, then the time in onnxruntime."""
    counts = (10, 20) if bench.quick else (10, 100, 1_000, 10_000)
    _times(bench, counts)
    _memory(bench, counts[-1])
    if importlib.util.find_spec("onnxruntime") is None:
        bench.note("onnxruntime is not installed")
        return
    widths, steps = ((4,), (5,)) if bench.quick else ((16, 256), (16, 128, 1_024))
    for width in widths:
        for count in steps:
            _running(bench, width, count, 1 if bench.quick else max(1, 1_024 // count))


def loop(trips: int, width: int = 4) -> ModelProto:
    """A Loop whose body has 20 nodes."""
    ops = [
        f"v{at + 1} = LeakyRelu <alpha = 0.5> (v{at})" if at % 2 else f"v{at + 1} = Add (v{at}, w)"
        for at in range(_BODY - 1)
    ]
    weight = ", ".join(["1"] * width)
    text = f"""<ir_version: 8, opset_import: ["" : {_OPSET}]>
        repeated (float[{width}] h) => (float[{width}] y) <int64 trips = {{{trips}}}> {{
            y = Loop <body = step (int64 i, bool go, float[{width}] v0)
                => (bool on, float[{width}] v{_BODY - 1}) <float[{width}] w = {{{weight}}}> {{
                on = Identity (go) {" ".join(ops)} }}> (trips, "", h) }}"""
    model: ModelProto = onnx.parser.parse_model(text)
    return model


def _times(bench: Bench, counts: Sequence[int]) -> None:
    sides = []
    for trips in counts:
        unrolled = passes.unroll(loop(trips), opset=_OPSET, max_nodes=_MOST, verify=False).model
        nodes = len(unrolled.graph.node)
        ours = Side("this", _unroll(loop(trips)), nodes)
        theirs = Side("version_converter on it", _convert(unrolled), nodes)
        runs = 2 if trips >= 10_000 else 5
        bench.compare(f"{trips} iterations of 20 nodes", ours, theirs, aim=_AS_FAST, runs=runs)
        sides.append(Side(f"{trips}", ours.run, nodes))
    for smaller, larger in pairwise(sides[-3:]):
        bench.compare("growth, a node", larger, smaller, aim=_FLAT, runs=2)


def _unroll(model: ModelProto) -> Run:
    return lambda: passes.unroll(model, opset=_OPSET, max_nodes=_MOST, verify=False)


def _convert(model: ModelProto) -> Run:
    return lambda: onnx.version_converter.convert_version(model, _OPSET + 1)


def _memory(bench: Bench, trips: int) -> None:
    """Peak memory above that of a tiny model, against what the loaded result takes."""
    with tempfile.TemporaryDirectory() as folder:
        before, after = Path(folder) / "before.onnx", Path(folder) / "after.onnx"
        onnx.save(loop(2), before)
        least = peak_memory(_OURS, before, after)
        nothing = peak_memory(_LOADED, before, after)
        onnx.save(loop(trips), before)
        most = peak_memory(_OURS, before, after)
        result = peak_memory(_LOADED, before, after)
    if result <= nothing:
        bench.note(f"{trips} iterations: the result is too small for its memory to show")
        return
    ratio = (most - least) / (result - nothing)
    aim = f"; aim <= {_MOST_MEMORY}x, {'met' if ratio <= _MOST_MEMORY else 'MISSED'}"
    bench.note(
        f"{trips} iterations: peak memory {ratio:.1f}x of what the result takes, loaded "
        f"({(most - least) / 1024:.0f} MB against {(result - nothing) / 1024:.0f} MB)"
        + ("" if bench.quick else aim)
    )


def _running(bench: Bench, width: int, steps: int, repeat: int) -> None:
    """A recurrence as a Loop, four and sixteen iterations at a time, and unrolled."""
    model = recurrence(width, steps)
    draw = np.random.default_rng(1)
    feeds = {
        "h0": draw.standard_normal((1, width)).astype(np.float32),
        "x": draw.standard_normal((steps, 1, width)).astype(np.float32),
    }
    forms = {
        f"{factor} at a time": passes.unroll(model, opset=_OPSET, factor=factor, verify=False).model
        for factor in (4, 16)
        if factor < steps
    }
    forms["unrolled"] = passes.unroll(model, opset=_OPSET, max_nodes=_MOST, verify=False).model
    case = f"width {width}, {steps} steps"
    for name, form in forms.items():
        run = [session_run(one, feeds, repeat) for one in (form, model)]
        bench.compare(f"{case}: run", Side(name, run[0]), Side("Loop", run[1]), runs=9)
    for name, form in forms.items():
        load = [_load(one, feeds) for one in (form, model)]
        bench.compare(f"{case}: load", Side(name, load[0]), Side("Loop", load[1]), runs=3)


def _load(model: ModelProto, feeds: dict[str, Any]) -> Run:
    return lambda: session_run(model, feeds, 0)
