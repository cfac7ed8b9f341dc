"""Models as of speech, cut at random: onnxruntime runs them as their descriptions tell."""

from __future__ import annotations

import json

import numpy as np
import onnx
import onnxruntime
import pytest

import passes
from passes.streaming.chunks import Judge
from passes.streaming.plan import KEY
from passes.testing import as_model
from passes.types import signature

GRU = """<ir_version: 10, opset_import: ["" : 21]>
g (float[batch,time,8] x, float[1,24,8] W, float[1,24,8] R, float[1,48] b)
    => (float[batch,time,8] y) <int64[1] one = {1}> {
    steps = Transpose <perm = [1, 0, 2]> (x)
    states = GRU <hidden_size = 8, linear_before_reset = 1> (steps, W, R, b)
    rows = Squeeze (states, one)
    y = Transpose <perm = [1, 0, 2]> (rows)
}"""
LSTM = """<ir_version: 10, opset_import: ["" : 21]>
g (float[time,batch,8] x, float[1,32,8] W, float[1,32,8] R, float[1,batch,8] h, float[1,batch,8] c)
    => (float[time,batch,8] y, float[1,batch,8] hn, float[1,batch,8] cn) <int64[1] one = {1}> {
    states, hn, cn = LSTM <hidden_size = 8> (x, W, R, "", "", h, c)
    y = Squeeze (states, one)
}"""
SCAN = """<ir_version: 10, opset_import: ["" : 21]>
g (float[time,batch,8] x, float[8,8] w, float[batch,8] h)
    => (float[time,batch,8] y, float[batch,8] hn) {
    hn, y = Scan <num_scan_inputs = 1, body = step (float[batch,8] s, float[batch,8] a)
            => (float[batch,8] t, float[batch,8] o) {
        p = MatMul (s, w)
        q = Add (p, a)
        z = Sigmoid (q)
        kept = Mul (z, s)
        t = Add (kept, a)
        o = Tanh (t)
    }> (h, x)
}"""
CONV = """<ir_version: 10, opset_import: ["" : 21]>
g (float[batch,8,time] x, float[8,8,3] W, float[8] b, float[8,1,3] V) => (float[batch,8,time] y) {
    a = Conv <pads = [2, 0]> (x, W, b)
    r = Relu (a)
    d = Conv <pads = [8, 0], dilations = [4], group = 8> (r, V)
    y = Add (d, x)
}"""
STACKED = """<ir_version: 10, opset_import: ["" : 21]>
g (float[batch,8,time] x, float[8,8,5] W, float[8] b, float[1,24,8] V, float[1,24,8] R,
   float[1,32,8] U, float[1,32,8] Q) => (float[half,batch,8] y) <int64[1] one = {1}> {
    a = Conv <pads = [3, 0], strides = [2]> (x, W, b)
    r = Tanh (a)
    steps = Transpose <perm = [2, 0, 1]> (r)
    first = GRU <hidden_size = 8> (steps, V, R)
    rows = Squeeze (first, one)
    sum = Add (rows, steps)
    second = LSTM <hidden_size = 8> (sum, U, Q)
    y = Squeeze (second, one)
}"""


@pytest.mark.parametrize(
    "text", [GRU, LSTM, SCAN, CONV, STACKED], ids=["GRU", "LSTM", "Scan", "Conv", "stacked"]
)
def test_random_cuts(text: str) -> None:
    whole, rng = as_model(text), np.random.default_rng(0)
    live = passes.stream(whole, "time", judge=Judge(budget=10)).model
    sizes = {"batch": 2, "time": 46}
    feeds = {
        value.name: rng.normal(
            size=[dim.dim_value or sizes[dim.dim_param] for dim in value.type.tensor_type.shape.dim]
        ).astype(np.float32)
        for value in signature.inputs(whole.graph)
    }
    expected = outputs_of(whole, feeds)
    for _ in range(5):
        cuts = sorted(rng.choice(range(2, 46, 2), size=6, replace=False).tolist())
        found = chunk_by_chunk(live, feeds, sizes, cuts)
        for name, array in expected.items():
            np.testing.assert_allclose(found[name], array, rtol=1e-4, atol=1e-5)


def chunk_by_chunk(
    live: onnx.ModelProto,
    feeds: dict[str, np.ndarray],
    sizes: dict[str, int],
    cuts: list[int],
) -> dict[str, np.ndarray]:
    """What a model gives for chunks that are cut so; its metadata tells how to run it."""
    (plan,) = [json.loads(one.value) for one in live.metadata_props if one.key == KEY]
    states = {
        one["input"]: feeds[one["input"]]
        if one["fill"] is None
        else np.full([sizes.get(dim, dim) for dim in one["shape"]], one["fill"], one["type"])
        for one in plan["states"]
    }
    axes = {port["name"]: port["time_axis"] for port in (*plan["inputs"], *plan["outputs"])}
    pieces: dict[str, list[np.ndarray]] = {port["name"]: [] for port in plan["outputs"]}
    found: dict[str, np.ndarray] = {}
    for start, end in zip([0, *cuts], [*cuts, sizes["time"]], strict=True):
        chunk = {
            port["name"]: feeds[port["name"]].take(range(start, end), port["time_axis"])
            for port in plan["inputs"]
        }
        found = outputs_of(live, {**feeds, **chunk, **states})
        states = {one["input"]: found[one["output"]] for one in plan["states"]}
        for name, piece in pieces.items():
            piece.append(found[name])
    return found | {name: np.concatenate(piece, axes[name]) for name, piece in pieces.items()}


def outputs_of(model: onnx.ModelProto, feeds: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    session = onnxruntime.InferenceSession(model.SerializeToString())
    names = [value.name for value in session.get_outputs()]
    own = {value.name: feeds[value.name] for value in session.get_inputs()}
    return dict(zip(names, session.run(names, own), strict=True))
