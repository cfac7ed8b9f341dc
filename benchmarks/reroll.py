"""Re-rolling: what a node costs, and how a model that is a loop again runs in onnxruntime."""

from __future__ import annotations

import importlib.util
import tempfile
from itertools import pairwise
from pathlib import Path

import numpy as np
import onnx
from onnx import ModelProto, parser

import passes
from benchmarks.harness import Aim, Bench, Run, Side
from benchmarks.memory import peak_memory
from benchmarks.scan8 import session_run

_MOST = 10**7
_LOADS = "import onnxruntime; onnxruntime.InferenceSession({0!r})"
_LINEAR = Aim(ratio=2)
#: An LSTM of 8 units over 100 steps.
_LSTM = """<ir_version: 10, opset_import: ["" : 21]>
lstm (float[1,8] h, float[1,8] c, float[100,1,8] x, float[8,32] w, float[8,32] r, float[32] b)
    => (float[1,8] hn, float[1,8] cn, float[100,1,8] y) {
    hn, cn, y = Scan <num_scan_inputs = 1,
        body = step (float[1,8] s, float[1,8] d, float[1,8] a)
            => (float[1,8] t, float[1,8] e, float[1,8] o) {
            p = MatMul (s, r) q = MatMul (a, w) u = Add (p, q) v = Add (u, b)
            i, out, f, g = Split <axis = 1, num_outputs = 4> (v)
            ii = Sigmoid (i) oo = Sigmoid (out) ff = Sigmoid (f) gg = Tanh (g)
            k = Mul (ff, d) n = Mul (ii, gg) e = Add (k, n)
            th = Tanh (e) t = Mul (oo, th) o = Identity (t)
        }> (h, c, x)
}"""


def measure(bench: Bench) -> None:
    """Time by node, then loading and running in onnxruntime."""
    sides = []
    for steps in (10, 20) if bench.quick else (100, 1_000, 10_000):
        unrolled = passes.unroll(lstm(steps), max_nodes=_MOST, verify=False).model
        nodes, rolled = len(unrolled.graph.node), passes.reroll(unrolled, verify=False).model
        bench.note(
            f"{steps} steps: {nodes} nodes, {unrolled.ByteSize()} bytes; re-rolled "
            f"{len(rolled.graph.node)}, {rolled.ByteSize()} bytes"
        )
        sides.append(Side(f"{steps}", _reroll(unrolled), nodes))
        if importlib.util.find_spec("onnxruntime") is not None and steps <= 1_000:
            _in_onnxruntime(bench, steps, unrolled, rolled)
    for smaller, larger in pairwise(sides):
        bench.compare("growth, a node", larger, smaller, aim=_LINEAR, runs=2)


def lstm(steps: int) -> ModelProto:
    """An LSTM as a Scan over so many steps."""
    model: ModelProto = parser.parse_model(_LSTM.replace("[100,", f"[{steps},"))
    return model


def _reroll(model: ModelProto) -> Run:
    return lambda: passes.reroll(model, verify=False)


def _in_onnxruntime(bench: Bench, steps: int, unrolled: ModelProto, rolled: ModelProto) -> None:
    draw = np.random.default_rng(1)
    shapes = {"h": (1, 8), "c": (1, 8), "x": (steps, 1, 8), "w": (8, 32), "r": (8, 32), "b": (32,)}
    feeds = {name: draw.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}
    for case, repeat, runs in (("load", 0, 3), ("run", 1, 9)):
        if repeat:
            after, before = (session_run(one, feeds, repeat) for one in (rolled, unrolled))
        else:
            after, before = (_load(one) for one in (rolled, unrolled))
        names = Side("re-rolled", after), Side("unrolled", before)
        bench.compare(f"{steps} steps: {case}", *names, runs=runs)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        peaks = []
        for model in (unrolled, rolled):
            onnx.save(model, path)
            peaks.append(peak_memory(_LOADS, path, path) / 1024)
    bench.note(
        f"{steps} steps: peak memory, loaded: {peaks[0]:.0f} MB; re-rolled {peaks[1]:.0f} MB"
    )


def _load(model: ModelProto) -> Run:
    return lambda: session_run(model, {}, 0)
