"""Recurrences of which the error grows with the length if all is half, and inputs of a length."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from onnx import ModelProto

Feeds = Mapping[str, npt.NDArray[Any]]

SUM = """
    <ir_version: 10, opset_import: ["" : 21]>
    sums (float[N] h0, float[T,N] xs) => (float[N] h, float[T,N] hs) {
        h, hs = Scan <num_scan_inputs = 1, body = step (float[N] h_in, float[N] x)
            => (float[N] h_out, float[N] row) {
            h_out = Add (h_in, x)
            row = Identity (h_out)
        }> (h0, xs)
    }
"""
MOVING_AVERAGE = """
    <ir_version: 10, opset_import: ["" : 21]>
    moving_average (float[N] h0, float[T,N] xs) => (float[N] h, float[T,N] hs)
        <float keep = {0.999}, float take = {0.001}> {
        h, hs = Scan <num_scan_inputs = 1, body = step (float[N] h_in, float[N] x)
            => (float[N] h_out, float[N] row) {
            kept = Mul (keep, h_in)
            new = Mul (take, x)
            h_out = Add (kept, new)
            row = Identity (h_out)
        }> (h0, xs)
    }
"""
LINEAR_ATTENTION = """
    <ir_version: 10, opset_import: ["" : 21]>
    linear_attention (float[D,D] S0, float[T,1,D] qs, float[T,D,1] ks, float[T,1,D] vs)
        => (float[D,D] S, float[T,1,D] ys) {
        S, ys = Scan <num_scan_inputs = 3, body = step
            (float[D,D] S_in, float[1,D] q, float[D,1] k, float[1,D] v)
            => (float[D,D] S_out, float[1,D] y) {
            kv = MatMul (k, v)
            S_out = Add (S_in, kv)
            y = MatMul (q, S_out)
        }> (S0, qs, ks, vs)
    }
"""
DELTA_RULE = """
    <ir_version: 10, opset_import: ["" : 21]>
    delta_rule (float[D,D] S0, float[T,1,D] qs, float[T,D,1] ks, float[T,1,D] vs,
        float[T,1,1] betas) => (float[D,D] S, float[T,1,D] ys) {
        S, ys = Scan <num_scan_inputs = 4, body = step
            (float[D,D] S_in, float[1,D] q, float[D,1] k, float[1,D] v, float[1,1] beta)
            => (float[D,D] S_out, float[1,D] y) {
            row = Transpose <perm = [1, 0]> (k)
            old = MatMul (row, S_in)
            off = Sub (v, old)
            new = Mul (beta, off)
            kv = MatMul (k, new)
            S_out = Add (S_in, kv)
            y = MatMul (q, S_out)
        }> (S0, qs, ks, vs, betas)
    }
"""
ONLINE_SOFTMAX = """
    <ir_version: 10, opset_import: ["" : 21]>
    online_softmax (float[1] m0, float[1] s0, float[D] o0, float[T,1] xs, float[T,D] vs)
        => (float[D] y) {
        m, s, o = Scan <num_scan_inputs = 2, body = step
            (float[1] m_in, float[1] s_in, float[D] o_in, float[1] x, float[D] v)
            => (float[1] m_out, float[1] s_out, float[D] o_out) {
            m_out = Max (m_in, x)
            lower = Sub (m_in, m_out)
            a = Exp (lower)
            over = Sub (x, m_out)
            e = Exp (over)
            s_kept = Mul (a, s_in)
            s_out = Add (s_kept, e)
            o_kept = Mul (a, o_in)
            ev = Mul (e, v)
            o_out = Add (o_kept, ev)
        }> (m0, s0, o0, xs, vs)
        y = Div (o, s)
    }
"""
DECAY_INSIDE = """
    <ir_version: 10, opset_import: ["" : 21]>
    slow_decay (float[N] h0, float[T,N] dts, float[T,N] xs) => (float[N] h, float[T,N] hs)
        <float rate = {-0.5}> {
        h, hs = Scan <num_scan_inputs = 2, body = step (float[N] h_in, float[N] dt, float[N] x)
            => (float[N] h_out, float[N] row) {
            exponent = Mul (dt, rate)
            a = Exp (exponent)
            kept = Mul (a, h_in)
            new = Mul (dt, x)
            h_out = Add (kept, new)
            row = Identity (h_out)
        }> (h0, dts, xs)
    }
"""
DECAY_OUTSIDE = """
    <ir_version: 10, opset_import: ["" : 21]>
    scanned_decay (float[N] h0, float[T,N] dts, float[T,N] xs) => (float[N] h, float[T,N] hs)
        <float rate = {-0.5}> {
        exponents = Mul (dts, rate)
        decays = Exp (exponents)
        new = Mul (dts, xs)
        h, hs = Scan <num_scan_inputs = 2, body = step (float[N] h_in, float[N] a, float[N] b)
            => (float[N] h_out, float[N] row) {
            kept = Mul (a, h_in)
            h_out = Add (kept, b)
            row = Identity (h_out)
        }> (h0, decays, new)
    }
"""
MODELS = {
    "sum": SUM,
    "moving average of 0.999": MOVING_AVERAGE,
    "linear attention without decay": LINEAR_ATTENTION,
    "delta rule": DELTA_RULE,
    "online softmax": ONLINE_SOFTMAX,
    "slow decay inside": DECAY_INSIDE,
    "slow decay computed outside": DECAY_OUTSIDE,
}


def feeds_of(model: ModelProto, length: int) -> Feeds:
    """Inputs of a length, as in use: positive values to sum up, keys of norm 1, steps of 0.001,
    states that begin with 0 and, of a maximum, with a low one."""
    draw, sizes, found = np.random.default_rng(0), {"T": length, "N": 16, "D": 16}, {}
    for value in model.graph.input:
        shape = [sizes.get(dim.dim_param, 1) for dim in value.type.tensor_type.shape.dim]
        drawn = np.asarray(draw.standard_normal(shape))
        match value.name:
            case "xs" | "vs":
                drawn = drawn + 1
            case "ks":
                drawn = drawn / np.sqrt((drawn**2).sum((-2, -1), keepdims=True))
            case "betas":
                drawn = 1 / (1 + np.exp(-drawn))
            case "dts":
                drawn = np.abs(drawn) / 1000
            case "m0":
                drawn = np.full(shape, -100.0)
            case "qs":
                pass
            case _:
                drawn = np.zeros(shape)
        found[value.name] = drawn.astype(np.float32)
    return found
