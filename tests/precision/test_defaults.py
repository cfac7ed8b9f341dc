"""What stays in float32 because it decides, by the range of constants, by its operator, or because
the user says so."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from passes.ir.model import Model
from passes.ir.selection import NothingMatches
from passes.precision.defaults import float_seeds
from passes.precision.flow import Flow
from tests.precision.keeping import EMA, RNN, kept, seeds
from tests.written import changed

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


def test_the_reciprocal_of_a_small_constant_is_large() -> None:
    weights = changed(
        NORM, {"Div (x, root)": "Reciprocal (safe)", "Add (square, eps)": "Max (square, eps)"}
    )
    assert kept(weights) == dict.fromkeys(("safe", "root", "ratio", "y"), "range")


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


@pytest.mark.slow
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
