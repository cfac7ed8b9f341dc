"""Two moving averages as two Scans and as one: onnxruntime's time, one thread."""

from __future__ import annotations

import importlib.util

import numpy as np
import onnx
from onnx import ModelProto

import passes
from benchmarks.harness import Bench, Side
from benchmarks.scan8 import session_run

_STEP = """<num_scan_inputs = 2, body = step (float[{0}] h, float[{0}] a, float[{0}] b)
    => (float[{0}] h_out, float[{0}] y) {{ m = Mul (a, h)  h_out = Add (m, b)
    y = Identity (h_out) }}>"""


def measure(bench: Bench) -> None:
    """A row for each width: what `fuse-scans` makes of a model against the model."""
    if importlib.util.find_spec("onnxruntime") is None:
        bench.note("onnxruntime is not installed")
        return
    for width in (4,) if bench.quick else (16, 64, 256, 1024, 4096):
        steps = 5 if bench.quick else 1024
        model = averages(width)
        one = passes.simplify(model, rules=["fuse-scans"], verify=False)
        if one.report.refusals:
            bench.note(f"width {width}: {one.report.refusals[0].sentence}")
            continue
        draw = np.random.default_rng(1)
        feeds = {
            value.name: draw.random((steps, width) if value.name != "h" else width, np.float32)
            for value in model.graph.input
        }
        sides = [
            Side(name, session_run(made, feeds, 1))
            for name, made in (("one Scan", one.model), ("two Scans", model))
        ]
        bench.compare(f"width {width}, {steps} steps", *sides)


def averages(width: int) -> ModelProto:
    """Two averages, each with decays of its own."""
    step, kind = _STEP.format(width), f"float[T,{width}]"
    text = f"""<ir_version: 8, opset_import: ["" : 18]>
        averages (float[{width}] h, {kind} a, {kind} b, {kind} c, {kind} d)
            => ({kind} ys, {kind} zs) {{
            s, ys = Scan {step} (h, a, b)
            t, zs = Scan {step} (h, c, d) }}"""
    model: ModelProto = onnx.parser.parse_model(text)
    return model
