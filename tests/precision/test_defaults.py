"""What stays in float32 by default, in recurrences of each kind, and where something is decided."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from passes.ir.model import Model
from passes.ir.selection import NothingMatches
from passes.precision.defaults import float_seeds
from passes.precision.flow import Flow
from passes.precision.seeds import Seeds
from tests.written import changed


def seeds(
    model: str | Model,
    narrow: int = TensorProto.FLOAT16,
    keep: Sequence[str] = (),
    half: Sequence[str] = (),
) -> tuple[Flow, Seeds]:
    """The flow of a model and its seeds."""
    if isinstance(model, str):
        proto = onnx.parser.parse_model(model)
        onnx.checker.check_model(proto, full_check=True)
        model = Model(proto)
    flow = Flow.of(model)
    return flow, float_seeds(flow, narrow, keep, half)


def kept(
    model: str | Model,
    narrow: int = TensorProto.FLOAT16,
    keep: Sequence[str] = (),
    half: Sequence[str] = (),
) -> dict[str, str]:
    """The code of each node that is kept, by its first output, and of each value."""
    flow, found = seeds(model, narrow, keep, half)
    codes = {flow.steps[one].node.output[0]: why.code for one, why in found.steps.items()}
    return codes | {flow.values[one].name: why.code for one, why in found.values.items()}


SUM = """
    <ir_version: 8, opset_import: ["" : 17]>
    sums (float[N] h0, float[T,N] xs) => (float[N] h, float[T,N] ys) {
      h, ys = Scan <num_scan_inputs = 1, body = step
        (float[N] h_in, float[N] x) => (float[N] h_out, float[N] y) {
          scaled = Tanh (x)
          h_out = Add (h_in, scaled)
          y = Sin (h_out)
        }> (h0, xs)
    }
"""


def test_a_sum_is_kept_but_not_what_is_added_or_read_from_it() -> None:
    assert kept(SUM) == {"h_in": "accumulator", "h_out": "accumulator"}


def test_reasons_are_sentences() -> None:
    _, found = seeds(SUM)
    assert {why.sentence for why in found.steps.values()} == {
        "it is part of a state that sums or factors change: errors would grow with the length"
    }


@pytest.mark.parametrize("op", ["Relu", "LeakyRelu", "Abs", "Identity", "Neg"])
def test_a_sum_is_one_through_what_does_not_saturate(op: str) -> None:
    model = changed(SUM, {"h_out = Add (h_in, scaled)": "a = Add (h_in, scaled) h_out = Op (a)"})
    assert kept(changed(model, {"Op (a)": f"{op} (a)"})) == {
        "h_in": "accumulator",
        "a": "accumulator",
        "h_out": "accumulator",
    }


@pytest.mark.parametrize("op", ["Tanh", "Sigmoid", "Softsign", "Erf"])
def test_a_state_behind_a_saturating_function_is_half(op: str) -> None:
    model = changed(SUM, {"h_out = Add (h_in, scaled)": "a = Add (h_in, scaled) h_out = Op (a)"})
    assert kept(changed(model, {"Op (a)": f"{op} (a)"})) == {}


def test_a_shift_register_is_half() -> None:
    assert (
        kept("""
        <ir_version: 8, opset_import: ["" : 17]>
        shift (float[4] h0, float[T,1] xs) => (float[4] h, float[T] ys)
        <int64[1] one = {1}, int64[1] five = {5}> {
          h, ys = Scan <num_scan_inputs = 1, body = step
            (float[4] h_in, float[1] x) => (float[4] h_out, float y) {
              both = Concat <axis = 0> (h_in, x)
              h_out = Slice (both, one, five)
              squares = Mul (h_in, h_in)
              y = ReduceMax <keepdims = 0> (squares)
            }> (h0, xs)
        }
    """)
        == {}
    )


EMA = """
    <ir_version: 8, opset_import: ["" : 17]>
    ema (float[N] h0, float[T,N] xs, float[T,N] ts) => (float[N] h) {
      a = Constant <value_float = -0.5> ()
      at = Mul (ts, a)
      decays = Exp (at)
      h = Scan <num_scan_inputs = 2, body = step
        (float[N] h_in, float[N] x, float[N] decay) => (float[N] h_out) {
          one = Constant <value_float = 1.0> ()
          new = Sub (one, decay)
          added = Mul (new, x)
          left = Mul (decay, h_in)
          h_out = Add (left, added)
        }> (h0, xs, decays)
    }
"""


def test_a_decay_is_kept_from_outside_of_the_loop_but_not_inputs_of_the_model() -> None:
    assert kept(EMA) == {
        "h_in": "accumulator",
        "left": "accumulator",
        "h_out": "accumulator",
        "decay": "factor",
        "decays": "factor",
        "at": "factor",
    }


def test_a_decay_is_kept_where_it_is_computed_inside() -> None:
    inside = changed(
        EMA,
        {
            "at = Mul (ts, a)": "",
            "decays = Exp (at)": "",
            "xs, decays)": "xs, ts)",
            "float[N] decay)": "float[N] t)",
            "new = Sub": "at = Mul (t, a) decay = Exp (at) new = Sub",
        },
    )
    assert kept(inside) == {
        "h_in": "accumulator",
        "left": "accumulator",
        "h_out": "accumulator",
        "decay": "factor",
        "at": "factor",
        "t": "factor",
    }


def test_a_difference_that_is_scaled_is_part_of_the_state() -> None:
    moved = changed(
        EMA,
        {
            "new = Sub (one, decay)": "",
            "added = Mul (new, x)": "away = Sub (x, h_in)",
            "left = Mul (decay, h_in)": "step = Mul (decay, away)",
            "h_out = Add (left, added)": "h_out = Add (h_in, step)",
        },
    )
    assert kept(moved) == {
        **dict.fromkeys(("h_in", "away", "step", "h_out"), "accumulator"),
        **dict.fromkeys(("decay", "decays", "at"), "factor"),
    }


def test_the_factors_of_a_loop_are_read_by_the_iteration() -> None:
    assert kept("""
        <ir_version: 8, opset_import: ["" : 17]>
        gathered (int64 trips, float[N] h0, float[T,N] xs, float[T,N] ts) => (float[N] h) {
          yes = Constant <value = bool {1}> ()
          decays = Exp (ts)
          h = Loop <body = step
            (int64 i, bool go, float[N] h_in) => (bool go_out, float[N] h_out) {
              go_out = Identity (go)
              x = Gather <axis = 0> (xs, i)
              first = Constant <value_ints = [0]> ()
              last = Unsqueeze (i, first)
              one = Constant <value_int = 1> ()
              next = Add (last, one)
              rows = Slice (decays, last, next, first)
              decay = Squeeze (rows, first)
              left = Mul (h_in, decay)
              h_out = Add (x, left)
            }> (trips, yes, h0)
        }
    """) == {
        "h_in": "accumulator",
        "left": "accumulator",
        "h_out": "accumulator",
        "decay": "factor",
        "rows": "factor",
        "decays": "factor",
    }


def test_linear_attention_keeps_its_sum_but_not_its_products() -> None:
    assert kept("""
        <ir_version: 8, opset_import: ["" : 17]>
        attention (float[D,E] s0, float[T,D,1] ks, float[T,1,E] vs, float[T,1,D] qs)
          => (float[D,E] s, float[T,1,E] ys) {
          s, ys = Scan <num_scan_inputs = 3, body = step
            (float[D,E] s_in, float[D,1] k, float[1,E] v, float[1,D] q)
              => (float[D,E] s_out, float[1,E] y) {
              kv = MatMul (k, v)
              s_out = Add (s_in, kv)
              y = MatMul (q, s_out)
            }> (s0, ks, vs, qs)
        }
    """) == {"s_in": "accumulator", "s_out": "accumulator"}


def test_the_delta_rule_keeps_its_state_but_not_what_it_reads_from_it() -> None:
    assert kept("""
        <ir_version: 8, opset_import: ["" : 17]>
        delta (float[D,E] s0, float[T,D,1] ks, float[T,1,E] vs, float[T,1,1] betas)
          => (float[D,E] s) {
          s = Scan <num_scan_inputs = 3, body = step
            (float[D,E] s_in, float[D,1] k, float[1,E] v, float[1,1] beta) => (float[D,E] s_out) {
              row = Transpose (k)
              old = MatMul (row, s_in)
              new = Sub (v, old)
              scaled = Mul (beta, new)
              kv = MatMul (k, scaled)
              s_out = Add (s_in, kv)
            }> (s0, ks, vs, betas)
        }
    """) == {"s_in": "accumulator", "s_out": "accumulator"}


def test_online_softmax_keeps_its_sums_and_the_maximum_that_scales_them() -> None:
    assert kept("""
        <ir_version: 8, opset_import: ["" : 17]>
        online (float[1] m0, float[1] z0, float[1,E] n0, float[1,D] q, float[T,D,1] ks,
                float[T,1,E] vs) => (float[1,E] n) {
          m, z, n = Scan <num_scan_inputs = 2, body = step
            (float[1] m_in, float[1] z_in, float[1,E] n_in, float[D,1] k, float[1,E] v)
              => (float[1] m_out, float[1] z_out, float[1,E] n_out) {
              axis = Constant <value_ints = [0]> ()
              qk = MatMul (q, k)
              score = Squeeze (qk, axis)
              m_out = Max (m_in, score)
              fall = Sub (m_in, m_out)
              scale = Exp (fall)
              rest = Sub (score, m_out)
              weight = Exp (rest)
              z_old = Mul (z_in, scale)
              z_out = Add (z_old, weight)
              n_old = Mul (n_in, scale)
              weighted = Mul (weight, v)
              n_out = Add (n_old, weighted)
            }> (m0, z0, n0, ks, vs)
        }
    """) == {
        **dict.fromkeys(("z_in", "z_old", "z_out", "n_in", "n_old", "n_out"), "accumulator"),
        **dict.fromkeys(("m_in", "m_out", "fall", "scale", "score"), "factor"),
    }


RNN = """
    <ir_version: 8, opset_import: ["" : 17]>
    rnn (float[B,H] h0, float[T,B,I] xs, float[I,H] W, float[H,H] R) => (float[B,H] h) {
      h = Scan <num_scan_inputs = 1, body = step
        (float[B,H] h_in, float[B,I] x) => (float[B,H] h_out) {
          wx = MatMul (x, W)
          rh = MatMul (h_in, R)
          a = Add (wx, rh)
          h_out = Tanh (a)
        }> (h0, xs)
    }
"""


def test_a_recurrent_network_is_half_altogether() -> None:
    assert kept(RNN) == {}
    assert kept(changed(RNN, {"Tanh (a)": "Relu (a)"})) == {}


def test_an_lstm_keeps_its_cell_and_the_gate_that_forgets() -> None:
    assert kept("""
        <ir_version: 8, opset_import: ["" : 17]>
        lstm (float[B,H] h0, float[B,H] c0, float[T,B,I] xs, float[I,G] W, float[H,G] R, float[G] b)
          => (float[B,H] h, float[B,H] c) {
          h, c = Scan <num_scan_inputs = 1, body = step
            (float[B,H] h_in, float[B,H] c_in, float[B,I] x) => (float[B,H] h_out, float[B,H] c_out)
            {
              wx = Gemm (x, W, b)
              rh = MatMul (h_in, R)
              gates = Add (wx, rh)
              i_, o_, f_, g_ = Split <axis = 1> (gates)
              i = Sigmoid (i_)
              o = Sigmoid (o_)
              f = Sigmoid (f_)
              g = Tanh (g_)
              left = Mul (f, c_in)
              new = Mul (i, g)
              c_out = Add (left, new)
              seen = Tanh (c_out)
              h_out = Mul (o, seen)
            }> (h0, c0, xs)
        }
    """) == {
        **dict.fromkeys(("c_in", "left", "c_out"), "accumulator"),
        # the Split, too, which is named after the first of its outputs
        **dict.fromkeys(("f", "i_", "gates"), "factor"),
    }


def test_a_gru_keeps_its_state_and_the_gate_that_updates_it() -> None:
    assert kept("""
        <ir_version: 8, opset_import: ["" : 17]>
        gru (float[B,H] h0, float[T,B,H] xs, float[H,H] Rz, float[H,H] Rr, float[H,H] Rh)
          => (float[B,H] h) {
          h = Scan <num_scan_inputs = 1, body = step
            (float[B,H] h_in, float[B,H] x) => (float[B,H] h_out) {
              one = Constant <value_float = 1.0> ()
              zh = MatMul (h_in, Rz)
              az = Add (x, zh)
              z = Sigmoid (az)
              rh = MatMul (h_in, Rr)
              ar = Add (x, rh)
              r = Sigmoid (ar)
              reset = Mul (r, h_in)
              nh = MatMul (reset, Rh)
              an = Add (x, nh)
              n = Tanh (an)
              not_z = Sub (one, z)
              new = Mul (not_z, n)
              left = Mul (z, h_in)
              h_out = Add (new, left)
            }> (h0, xs)
        }
    """) == {
        **dict.fromkeys(("h_in", "left", "h_out"), "accumulator"),
        # the scanned tensor is added to the gate
        **dict.fromkeys(("z", "az", "x"), "factor"),
    }


def test_a_masked_update_is_a_path_of_a_sum() -> None:
    masked = changed(
        SUM,
        {
            "h_out = Add (h_in, scaled)": """
                zero = Constant <value_float = 0.0> ()
                sum = Add (h_in, scaled)
                runs = Greater (x, zero)
                h_out = Where (runs, sum, h_in)""",
        },
    )
    assert kept(masked) == {
        **dict.fromkeys(("h_in", "sum", "h_out"), "accumulator"),
        "runs": "block-list",
    }


def test_a_masked_update_of_a_recurrent_network_is_half() -> None:
    masked = changed(
        RNN,
        {
            "float[B,I] x) =>": "float[B,I] x, bool[B,1] runs) =>",
            "num_scan_inputs = 1": "num_scan_inputs = 2",
            "float[T,B,I] xs,": "float[T,B,I] xs, bool[T,B,1] mask,",
            "(h0, xs)": "(h0, xs, mask)",
            "h_out = Tanh (a)": "new = Tanh (a) h_out = Where (runs, new, h_in)",
        },
    )
    assert kept(masked) == {}


def test_a_state_grows_through_a_loop_in_its_loop() -> None:
    assert kept("""
        <ir_version: 8, opset_import: ["" : 17]>
        nested (float[N] h0, float[T,S,N] xs) => (float[N] h) {
          h = Scan <num_scan_inputs = 1, body = outer
            (float[N] h_in, float[S,N] row) => (float[N] h_out) {
              h_out = Scan <num_scan_inputs = 1, body = inner
                (float[N] g_in, float[N] x) => (float[N] g_out) {
                  g_out = Add (g_in, x)
                }> (h_in, row)
            }> (h0, xs)
        }
    """) == dict.fromkeys(("h_in", "h_out", "g_in", "g_out"), "accumulator")


def test_a_state_grows_through_a_branch_that_captures_it() -> None:
    assert kept("""
        <ir_version: 8, opset_import: ["" : 17]>
        branched (float[N] h0, float[T,N] xs, bool[T] flags) => (float[N] h) {
          h = Scan <num_scan_inputs = 2, body = step
            (float[N] h_in, float[N] x, bool flag) => (float[N] h_out) {
              h_out = If (flag) <
                then_branch = sums () => (float[N] a) { a = Add (h_in, x) },
                else_branch = keeps () => (float[N] b) { b = Identity (h_in) }
              >
            }> (h0, xs, flags)
        }
    """) == dict.fromkeys(("h_in", "h_out", "a", "b"), "accumulator")


def test_a_sequence_of_sums_is_kept() -> None:
    assert kept("""
        <ir_version: 8, opset_import: ["" : 17]>
        listed (int64 trips, float[N] x, seq(float[N]) list0) => (seq(float[N]) list) {
          yes = Constant <value = bool {1}> ()
          list = Loop <body = step
            (int64 i, bool go, seq(float[N]) list_in) => (bool go_out, seq(float[N]) list_out) {
              go_out = Identity (go)
              last = Constant <value_int = -1> ()
              h = SequenceAt (list_in, last)
              sum = Add (h, x)
              list_out = SequenceInsert (list_in, sum)
            }> (trips, yes, list0)
        }
    """) == dict.fromkeys(("list_in", "h", "sum", "list_out"), "accumulator")


WHILE = """
    <ir_version: 8, opset_import: ["" : 17]>
    power (float[N,1] v0, float[N,N] A, float eps) => (float[N,1] v) {
      yes = Constant <value = bool {1}> ()
      v = Loop <body = step
        (int64 i, bool go, float[N,1] v_in) => (bool go_out, float[N,1] v_out) {
          av = MatMul (A, v_in)
          norm = ReduceL2 <keepdims = 1> (av)
          v_out = Div (av, norm)
          change = Sub (v_out, v_in)
          size = ReduceMax <keepdims = 0> (change)
          go_out = Greater (size, eps)
        }> ("", yes, v0)
    }
"""


def test_what_decides_when_a_loop_ends_is_kept_through_products_and_states() -> None:
    assert kept(WHILE) == dict.fromkeys(
        ("v_in", "av", "norm", "v_out", "change", "size", "go_out"), "decides"
    )


def test_a_greedy_decoder_is_half_but_for_what_chooses() -> None:
    assert kept("""
        <ir_version: 8, opset_import: ["" : 17]>
        greedy (float[1,H] h0, int64[1] first, float[V,H] E, float[H,H] R, float[H,V] W)
          => (float[1,H] h, int64[1] token, int64[L,1] tokens) {
          yes = Constant <value = bool {1}> ()
          most = Constant <value_int = 100> ()
          h, token, tokens = Loop <body = step
            (int64 i, bool go, float[1,H] h_in, int64[1] old)
              => (bool go_out, float[1,H] h_out, int64[1] new, int64[1] kept) {
              end = Constant <value_ints = [0]> ()
              x = Gather <axis = 0> (E, old)
              rh = MatMul (h_in, R)
              a = Add (x, rh)
              h_out = Tanh (a)
              logits = MatMul (h_out, W)
              new = ArgMax <axis = 1, keepdims = 0> (logits)
              ends = Equal (new, end)
              more = Not (ends)
              go_out = Squeeze (more)
              kept = Identity (new)
            }> (most, yes, h0, first)
        }
    """) == {"new": "decides"}


def test_what_decides_on_branches_integers_and_positions_is_kept_back_to_products() -> None:
    assert kept("""
        <ir_version: 8, opset_import: ["" : 17]>
        decides (float[N] x, float[N,N] W, float[N,N] b)
          => (float[N] y, int64[N] whole, int64[2,K] found) {
          zero = Constant <value_float = 0.0> ()
          product = MatMul (W, b)
          sum = Add (product, b)
          large = Abs (sum)
          largest = ReduceMax <keepdims = 0> (large)
          flag = Greater (largest, zero)
          y = If (flag) <
            then_branch = one () => (float[N] p) { p = Sin (x) },
            else_branch = two () => (float[N] q) { q = Cos (x) }
          >
          root = Sqrt (x)
          whole = Cast <to = 7> (root)
          cut = Relu (b)
          found = NonZero (cut)
        }
    """) == dict.fromkeys(("sum", "large", "largest", "flag", "root", "found", "cut"), "decides")


def test_floats_of_integers_are_kept_but_not_those_of_bytes_or_truth_values() -> None:
    _, found = seeds(
        INTEGERS := """
        <ir_version: 8, opset_import: ["" : 17]>
        integers (int64[N] i, uint8[N] u, bool[N] b) => (float[N] x, float[N] y, float[N] z) {
          x = Cast <to = 1> (i)
          y = Cast <to = 1> (u)
          z = Cast <to = 1> (b)
        }
    """
    )
    assert [why.sentence for why in found.steps.values()] == [
        "it makes floats of integers, exact in float16 only up to 2048"
    ]
    assert kept(INTEGERS, TensorProto.BFLOAT16) == {"x": "from-integers"}


def test_operators_that_lose_digits_are_kept() -> None:
    assert kept("""
        <ir_version: 8, opset_import: ["" : 17]>
        operators (float[M,N] x) => (float[M,N] y, float[M] z, bool[M] flags) {
          soft = Softmax (x)
          p = Pow (soft, soft)
          drawn = RandomNormalLike (p)
          f = Floor (drawn)
          y = Relu (f)
          axes = Constant <value_ints = [1]> ()
          z = ReduceSum <keepdims = 0> (y, axes)
          top = ReduceMax <axes = [1], keepdims = 0> (y)
          flags = Less (z, top)
        }
    """) == dict.fromkeys(("soft", "p", "drawn", "f", "z", "flags"), "block-list")


def test_updates_that_are_added_up_are_kept_and_for_them_onnxruntime_lacks_kernels() -> None:
    assert kept("""
        <ir_version: 10, opset_import: ["" : 21]>
        g (float[N] x, int64[M,1] at, float[M] updates) => (float[N] y, float[N] z) {
            y = ScatterND <reduction = "add"> (x, at, updates)
            z = ScatterND (x, at, updates)
        }""") == {"y": "block-list"}


NORM = """
    <ir_version: 8, opset_import: ["" : 17]>
    norm (float[N] x) => (float[N] y) <float eps = {1e-8}> {
      square = Mul (x, x)
      safe = Add (square, eps)
      root = Sqrt (safe)
      ratio = Div (x, root)
      y = Mul (ratio, x)
    }
"""


def test_what_reads_a_small_constant_is_kept_and_what_reads_its_sum() -> None:
    flow, found = seeds(NORM)
    assert [flow.steps[one].op for one in found.steps] == ["Add", "Sqrt"]
    assert {why.sentence for why in found.steps.values()} == {
        "it computes with 'eps': its element 1e-08 is below the smallest normal number of float16"
    }


def test_bfloat16_has_the_range_of_float32() -> None:
    assert kept(NORM, TensorProto.BFLOAT16) == {}
    subnormal = changed(NORM, {"1e-8": "1e-40"})
    assert kept(subnormal, TensorProto.BFLOAT16) == {"safe": "range", "root": "range"}


def test_a_clipped_norm_is_divided_by_in_float32() -> None:
    clipped = changed(NORM, {"Add (square, eps)": "Max (square, eps)"})
    assert kept(clipped) == {"safe": "range", "root": "range"}


MASK = """
    <ir_version: 8, opset_import: ["" : 17]>
    mask (float[N,D] q, float[D,N] k, float[N,N] off) => (float[N,N] y)
    <float least = {-3.4028234663852886e38}> {
      scores = MatMul (q, k)
      bias = Mul (off, least)
      masked = Add (scores, bias)
      y = Relu (masked)
    }
"""


@pytest.mark.parametrize("narrow", [TensorProto.FLOAT16, TensorProto.BFLOAT16])
def test_a_mask_is_added_in_float32(narrow: int) -> None:
    assert kept(MASK, narrow) == {"bias": "range", "masked": "range", "y": "range"}


def test_infinity_is_in_range() -> None:
    assert kept(changed(MASK, {"-3.4028234663852886e38": "-inf"})) == {}


def test_a_state_that_begins_with_a_large_constant_is_kept() -> None:
    assert kept("""
        <ir_version: 8, opset_import: ["" : 17]>
        largest (float[T,1] xs) => (float[1] h) <float[1] least = {-1e30}> {
          h = Scan <num_scan_inputs = 1, body = step
            (float[1] h_in, float[1] x) => (float[1] h_out) {
              h_out = Max (h_in, x)
            }> (least, xs)
        }
    """) == {"h_in": "range", "h_out": "range", "h": "range"}


def test_a_tensor_that_is_filled_with_a_large_value_is_kept() -> None:
    assert kept("""
        <ir_version: 8, opset_import: ["" : 17]>
        filled (int64[1] n, float[N] x) => (float[N] y) {
          bound = ConstantOfShape <value = float[1] {1e6}> (n)
          low = Min (x, bound)
          y = Sin (low)
        }
    """) == {"bound": "range", "low": "range", "y": "range"}


def test_weights_are_kept_for_their_range_but_not_for_small_elements(tmp_path: Path) -> None:
    def loaded(largest: float) -> Model:
        weight = np.full((64, 64), 1e-7, np.float32)
        weight[3, 5], weight[0, 0] = largest, np.inf
        tensor = onnx.numpy_helper.from_array(weight, "W")
        x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, ["N", 64]) for name in "xy")
        node = helper.make_node("MatMul", ["x", "W"], ["y"])
        graph = helper.make_graph([node], "weights", [x], [y], [tensor])
        proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
        file = tmp_path / f"{largest}.onnx"
        onnx.save(proto, file, save_as_external_data=True, size_threshold=0, location=f"{largest}")
        return Model.load(file)

    assert kept(loaded(3.0)) == {}
    assert kept(loaded(1e5)) == {"y": "range"}


def test_the_user_keeps_operators_paths_and_names() -> None:
    assert kept(RNN, keep=["Tanh"]) == {"h_out": "kept"}
    assert kept(RNN, keep=["main/scan_0.body/matmul_*"]) == {"wx": "kept", "rh": "kept"}
    named = changed(RNN, {"a = Add": "[sum] a = Add"})
    assert kept(named, keep=["sum"]) == {"a": "kept"}


def test_a_loop_is_kept_with_its_body_and_its_states() -> None:
    assert kept(RNN, keep=["Scan"]) == dict.fromkeys(
        ("wx", "rh", "a", "h_out", "h_in", "x", "h"), "kept"
    )


def test_the_user_lifts_defaults() -> None:
    assert kept(EMA, half=["Exp"]) == {
        "h_in": "accumulator",
        "left": "accumulator",
        "h_out": "accumulator",
        "decay": "factor",
        "at": "factor",
    }
    assert kept(EMA, half=["main/scan_*"]) == {"decays": "factor", "at": "factor"}
    assert kept(EMA, half=["Scan", "Exp", "Mul"], keep=["Exp"]) == {"decays": "kept"}


def test_a_pattern_that_matches_nothing_is_wrong() -> None:
    with pytest.raises(NothingMatches, match=r"matches 'Tan'; the nearest are Tanh, Scan"):
        seeds(RNN, keep=["Tan"])
    with pytest.raises(NothingMatches, match="matches 'LSTM'"):
        seeds(RNN, half=["LSTM"])


def test_the_cost_is_linear_in_the_nodes() -> None:
    layer = onnx.parser.parse_graph(
        """layer (float[N] x) => (float[N] y) {
          a = Add (x, eps) b = Sqrt (a) c = Mul (b, x) y = Sin (c)
        }"""
    )
    nodes = []
    for number in range(5_000):
        for node in layer.node:
            names = {"x": f"y{number}", "y": f"y{number + 1}", "eps": "eps"}
            new = onnx.NodeProto(op_type=node.op_type)
            new.input.extend(names.get(one, f"{one}{number}") for one in node.input)
            new.output.extend(names.get(one, f"{one}{number}") for one in node.output)
            nodes.append(new)
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [4]) for name in ("y0", "y5000"))
    eps = helper.make_tensor("eps", TensorProto.FLOAT, [], [1e-8])
    graph = helper.make_graph(nodes, "long", [x], [y], [eps])
    flow = Flow.of(Model(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])))
    before = time.process_time()
    found = float_seeds(flow, TensorProto.FLOAT16, (), ())
    assert len(found.steps) == 10_000
    assert time.process_time() - before < 2
