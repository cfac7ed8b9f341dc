"""A recurrence as a Loop and, raised, as a Scan: onnxruntime's time, one thread."""

from __future__ import annotations

import importlib.util
from itertools import product

import numpy as np
import onnx
from onnx import ModelProto

import passes
from benchmarks.harness import Bench, Side
from benchmarks.scan8 import session_run


def measure(bench: Bench) -> None:
    """Widths and steps; a row each of the raised model against the original."""
    if importlib.util.find_spec("onnxruntime") is None:
        bench.note("onnxruntime is not installed")
        return
    widths, counts = ((4,), (5,)) if bench.quick else ((16, 64, 256), (64, 1024))
    for width, steps in product(widths, counts):
        model = recurrence(width, steps)
        raised = passes.raise_(model, verify=False)
        if raised.report.refusals:
            bench.note(f"width {width}: not raised, {raised.report.refusals[0].sentence}")
            continue
        draw = np.random.default_rng(1)
        feeds = {
            "h0": draw.standard_normal((1, width)).astype(np.float32),
            "x": draw.standard_normal((steps, 1, width)).astype(np.float32),
        }
        repeat = 1 if bench.quick else max(1, 1024 // steps)
        sides = [
            Side(name, session_run(one, feeds, repeat))
            for name, one in (("Scan", raised.model), ("Loop", model))
        ]
        bench.compare(f"width {width}, {steps} steps", *sides)


def recurrence(width: int, steps: int) -> ModelProto:
    """An RNN cell that reads its input by the iteration number, as exporters write it."""
    text = f"""<ir_version: 8, opset_import: ["" : 17]>
        rnn (float[1,{width}] h0, float[{steps},1,{width}] x)
            => (float[1,{width}] h, float[{steps},1,{width}] hs) {{
            trips = Constant <value = int64 {{{steps}}}> ()
            go = Constant <value = bool {{1}}> ()
            h, hs = Loop (trips, go, h0) <body = step (int64 i, bool c, float[1,{width}] h_in) =>
                (bool c_out, float[1,{width}] h_out, float[1,{width}] h_all) {{
                c_out = Identity (c)
                x_t = Gather <axis = 0> (x, i)
                a = MatMul (x_t, W)  b = MatMul (h_in, R)  s = Add (a, b)
                h_out = Tanh (s)  h_all = Identity (h_out) }}> }}"""
    model: ModelProto = onnx.parser.parse_model(text)
    draw = np.random.default_rng(0)
    for name in ("W", "R"):
        value = draw.standard_normal((width, width)) / np.sqrt(width)
        model.graph.initializer.append(onnx.numpy_helper.from_array(value.astype(np.float32), name))
    return model
