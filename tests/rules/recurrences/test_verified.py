"""What runs in blocks is verified where it does: on decays that ordinary numbers are not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

import passes
from passes.ir.draft import ONE_BY_ONE, runs_in_blocks
from passes.ir.scope import walk_model
from passes.rules.recurrences.decays import DecayOfRows
from tests.written import changed

GOLDEN = Path(__file__).parents[3] / "golden_models" / "run-in-blocks"


def test_a_fault_in_what_only_mild_decays_reach_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(self: DecayOfRows, value: str) -> str:
        return value  # not divided by the decay

    monkeypatch.setattr(DecayOfRows, "column", wrong)
    model = onnx.load(GOLDEN / "decay_of_rows.before.onnxtxt")
    with pytest.raises(passes.Mismatch, match="branches: a near one"):
        passes.optimize(model, rules=["run-in-blocks"], allow_reassociation=True)


@pytest.mark.slow
def test_keys_may_be_rows_by_a_flatten() -> None:
    text = (GOLDEN / "shared_keys.before.onnxtxt").read_text()
    row = "B_row = Flatten <axis = 0> (B_t)  xB = Mul (x_column, B_row)"
    model = onnx.parser.parse_model(changed(text, {"xB = Mul (x_column, B_t)": row}))
    result = passes.optimize(model, rules=["run-in-blocks"], allow_reassociation=True)
    assert [one.rule for one in result.report.records] == ["run-in-blocks"]
    assert result.report.checked.verdict == "verified"


GATED = """<ir_version: 10, opset_import: ["" : 21]>
g (float[1,16] h0, float[T,1,16] xs) => (float[1,16] h, float[T,1,16] ys)
<float[16,16] Z = {0}, float one = {1}> {
    h, ys = Scan <num_scan_inputs = 1, body = step (float[1,16] h_in, float[1,16] x)
        => (float[1,16] h_out, float[1,16] y) {
        xz = MatMul (x, Z)  z = Sigmoid (xz)  keep = Sub (one, z)  kh = Mul (keep, h_in)
        zx = Mul (z, x)  h_out = Add (kh, zx)  y = Identity (h_out) }> (h0, xs) }"""


@pytest.mark.parametrize("verify", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_iterations_that_make_no_block_are_optimized_as_a_loop_without_blocks_is(
    verify: bool,
) -> None:
    model = onnx.parser.parse_model(GATED)
    weights = np.linspace(-1, 1, 256, dtype=np.float32).reshape(16, 16)
    del model.graph.initializer[0]
    model.graph.initializer.append(onnx.numpy_helper.from_array(weights, "Z"))
    result = passes.optimize(model, allow_reassociation=True, verify=verify)
    checked = result.report.checked
    assert (checked.verdict if checked else "") == ("verified" if verify else "")
    assert [one.rule for one in result.report.records if one.regroups] == ["run-in-blocks"]
    assert "sums of floats are regrouped in 1 loop" in result.report.to_text()
    scans = [place for place in walk_model(result.model) if place.node.op_type == "Scan"]
    few = [one for one in scans if runs_in_blocks(one.node, ONE_BY_ONE)]
    assert len(few) == 3  # fewer than a block, those after the last one, and one that overflows
    for place in few:
        (body,) = place.scope.inner(place.index)
        assert "MatMul" not in {node.op_type for node in body.owner.node}


LOG_SUM = """<ir_version: 8, opset_import: ["" : 18]>
g (float[4] h0, float[T,4] xs) => (float[4] h, float[T,4] ys) <float[4] zero = {0, 0, 0, 0}> {
    h, ys = Scan <num_scan_inputs = 1, body = step (float[4] h_in, float[4] x)
        => (float[4] h_out, float[4] y) {
        m = Max (h_in, x)  a = Sub (h_in, m)  b = Sub (x, m)  c = Exp (a)  d = Exp (b)
        e = Add (c, d)  f = Log (e)  h_out = Add (f, m)  y = Identity (h_out) }> (h0, xs) }"""


@pytest.mark.parametrize(
    ("old", "new", "runs"),
    [
        ("m = Max (h_in, x)", "m = Max (x, h_in)", True),
        ("m = Max (h_in, x)", "m = Max (h_in, zero)", False),
        ("b = Sub (x, m)", "b = Sub (x, zero)", False),
        ("d = Exp (b)", "d = Exp (a)", False),
        ("e = Add (c, d)", "e = Sub (c, d)", False),
        ("h_out = Add (f, m)", "h_out = Sub (m, f)", False),
    ],
)
def test_a_log_of_a_sum_is_that_of_two_exps_relative_to_the_larger_one(
    old: str, new: str, runs: bool
) -> None:
    model = onnx.parser.parse_model(changed(LOG_SUM, {old: new}))
    result = passes.optimize(model, allow_reassociation=True, verify=False)
    assert ("run-in-blocks" in {one.rule for one in result.report.records}) == runs


WHILE = """<ir_version: 8, opset_import: ["" : 18]>
g (float[4] h0, int64 n) => (float[4] h) <int64 zero = {0}, int64 one = {1}, float half = {0.5}> {
    numbers = Range (zero, n, one)
    h = Scan <num_scan_inputs = 1, body = step (float[4] h_in, int64 i) => (float[4] h_out) {
        x = Cast <to = 1> (i)  kept = Mul (h_in, half)  h_out = Add (kept, x) }> (h0, numbers) }"""


def test_a_computed_number_of_iterations_may_be_small() -> None:
    model = onnx.parser.parse_model(WHILE)
    result = passes.optimize(model, allow_reassociation=True, verify=False)
    refused = {one.code: one.sentence for one in result.report.records if one.code}
    assert "trip count is computed at run time" in refused["not-worth-it"]


SUM = """<ir_version: 8, opset_import: ["" : 18]>
g (float[T,3] x) => (float[T,3] y) <int64 n = {4}, bool yes = {1}> {
    y = Loop (n, yes, x) <body = step (int64 i, bool c, float[T,3] s) => (bool d, float[T,3] t) {
        d = Identity (c)  f = Cast <to = 1> (i)  t = Add (s, f) }> }"""


def test_a_few_sums_of_floats_are_written_out_in_their_order() -> None:
    model = onnx.parser.parse_model(SUM)
    regrouped = passes.optimize(model, allow_reassociation=True, verify=False)
    assert regrouped.model == passes.optimize(model, verify=False).model
    assert not any(one.regroups for one in regrouped.report.records)
    assert [node.op_type for node in regrouped.model.graph.node] == ["Add"] * 4
