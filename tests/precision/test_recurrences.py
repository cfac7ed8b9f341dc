"""What stays in float32 in recurrences of each kind, so that errors do not grow with the length."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import pytest
from onnx import ModelProto, TensorProto

from passes.precision.narrowing import Decision
from passes.precision.operands import Narrowing
from passes.precision.seeds import Seeds
from passes.precision.written import written
from passes.verify.reference.executor import ReferenceExecutor
from tests.precision.keeping import EMA, RNN, kept, seeds
from tests.written import changed

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


ATTENTION = """
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
    """


def test_linear_attention_keeps_its_sum_but_not_its_products() -> None:
    assert kept(ATTENTION) == {"s_in": "accumulator", "s_out": "accumulator"}


DELTA = """
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
    """


def test_the_delta_rule_keeps_its_state_but_not_what_it_reads_from_it() -> None:
    assert kept(DELTA) == {"s_in": "accumulator", "s_out": "accumulator"}


ONLINE = """
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
    """


def test_online_softmax_keeps_its_sums_and_the_maximum_that_scales_them() -> None:
    assert kept(ONLINE) == {
        **dict.fromkeys(("z_in", "z_old", "z_out", "n_in", "n_old", "n_out"), "accumulator"),
        **dict.fromkeys(("m_in", "m_out", "fall", "scale", "score"), "factor"),
    }


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


LENGTH = 4096


def inputs(names: str) -> Mapping[str, npt.NDArray[np.float32]]:
    """The inputs of a recurrence of that length: moderate ones, and a decay near 1."""
    rng = np.random.default_rng(0)
    drawn = {
        "xs": rng.normal(1, 1, (LENGTH, 8)),
        "ts": rng.uniform(1e-3, 3e-3, (LENGTH, 8)),
        "ks": rng.normal(0, 0.35, (LENGTH, 8, 1)),
        "vs": rng.normal(0.5, 1, (LENGTH, 1, 8)),
        "qs": rng.normal(0, 1, (LENGTH, 1, 8)),
        "q": rng.normal(0, 1, (1, 8)),
        "betas": np.full((LENGTH, 1, 1), 0.1),
        "h0": np.zeros(8),
        "s0": np.zeros((8, 8)),
        "m0": np.full(1, -1e4),
        "z0": np.zeros(1),
        "n0": np.zeros((1, 8)),
    }
    return {name: drawn[name].astype(np.float32) for name in names.split()}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "names", "error"),
    [
        pytest.param(EMA, "h0 xs ts", 5e-2, id="slow decay"),
        pytest.param(ATTENTION, "s0 ks vs qs", 5e-3, id="linear attention"),
        pytest.param(DELTA, "s0 ks vs betas", 1e-3, id="delta rule"),
        pytest.param(ONLINE, "m0 z0 n0 q ks vs", 1e-2, id="online softmax"),
    ],
)
def test_errors_are_small_after_many_iterations(model: str, names: str, error: float) -> None:
    flow, found = seeds(model)
    change, feeds = Narrowing(TensorProto.FLOAT, TensorProto.FLOAT16), inputs(names)

    def first(proto: ModelProto) -> npt.NDArray[np.float32]:
        outputs = ReferenceExecutor().run(proto, feeds).outputs
        return np.asarray(outputs[proto.graph.output[0].name])

    def off(these: Seeds) -> float:
        result = first(written(Decision(flow, change, these, signature_stays=True)).proto)
        return float(np.abs(result - expected).max() / np.abs(expected).max())

    expected = first(flow.model.proto)
    assert off(found) < 1e-3
    assert off(Seeds()) > error
