"""Blocks err by little more than the loop, where numbers are large, small, or grow."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort

import passes
from tests.written import changed

GOLDEN = Path(__file__).parents[3] / "golden_models" / "run-in-blocks"
Arrays = dict[str, np.ndarray]


def _golden(name: str) -> str:
    return (GOLDEN / f"{name}.before.onnxtxt").read_text()


def _before_and_after(text: str, inputs: Arrays) -> list[list[np.ndarray]]:
    """The outputs of a model, and of the same in blocks."""
    before = onnx.parser.parse_model(text)
    options = {"rules": ["run-in-blocks"], "allow_reassociation": True, "verify": False}
    after = passes.optimize(before, **options).model
    assert after.graph != before.graph
    return [
        ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"]).run(
            None, {name: value.astype(np.float32) for name, value in inputs.items()}
        )
        for model in (before, after)
    ]


def _mean(values: np.ndarray) -> float:
    return float(np.sqrt(np.mean(values.astype(np.float64) ** 2)))


def test_decays_that_are_just_mild_enough_for_products_err_by_at_most_twice_as_much() -> None:
    """Each half of a block decays by e^-5.9; a sum of logs in float would err by 4e-7."""
    draw = np.random.default_rng(0)
    logs = np.where((np.arange(480) % 16 == 7)[:, None, None], -5.7, -1e-2)
    a = np.exp(logs * draw.uniform(0.99, 1, (480, 2, 8))).astype(np.float32)
    q, k, v = draw.standard_normal((3, 480, 2, 8)).astype(np.float32)
    text = changed(_golden("decay_of_rows"), {"[48,": "[480,"})
    state, exact = np.zeros((2, 8, 8)), []
    for step in zip(*(one.astype(np.float64) for one in (a, q, k, v)), strict=True):
        decay, query, key, value = step
        state = decay[:, :, None] * state + key[:, :, None] * value[:, None, :]
        exact.append(np.einsum("hk,hkv->hv", query, state))
    inputs = {"S0": np.zeros((2, 8, 8)), "q": q, "k": k, "v": v, "a": a}
    before, after = (_mean(y - exact) for _, y in _before_and_after(text, inputs))
    assert after <= 2 * before


def test_a_stabilizer_of_any_size_rounds_as_in_the_loop() -> None:
    """The exponential of a difference in rounding of 1e5 is no small error."""
    draw = np.random.default_rng(0)
    q, k, v = draw.standard_normal((3, 48, 2, 8))
    gates = {"i": 1e5 * draw.random((48, 2)), "f": draw.standard_normal((48, 2))}
    starts = {"S0": np.zeros((2, 8, 8)), "n0": np.zeros((2, 8)), "m0": np.zeros(2)}
    before, after = _before_and_after(
        _golden("stabilized"), {"q": q, "k": k, "v": v, **gates, **starts}
    )
    np.testing.assert_array_equal(after[2], before[2])
    np.testing.assert_allclose(after[3], before[3], rtol=1e-3, atol=1e-5)


def test_a_state_that_shrinks_and_grows_again_is_not_lost() -> None:
    """The product of two decays is 0, that of one and the state is not."""
    decays = np.tile([1e-25, 1e-25, 1e25, 1e25], 18)[:70, None] * np.ones(3)
    inputs = {"h0": np.full(3, 1e15), "a": decays, "x": np.zeros((70, 3))}
    before, after = _before_and_after(_golden("moving_average"), inputs)
    assert (before[0] != 0).all()
    np.testing.assert_allclose(after[0], before[0], rtol=1e-5)


def test_a_sum_that_overflows_only_without_the_state_before_it_is_as_in_the_loop() -> None:
    text = changed(_golden("moving_average"), {"Mul (a_t, h_in)": "Identity (h_in)"})
    added = np.zeros((70, 3))
    added[8:10] = -3e38
    inputs = {"h0": np.full(3, 3e38), "a": added, "x": added}
    before, after = _before_and_after(text, inputs)
    assert np.isfinite(before[0]).all()
    for found, right in zip(after, before, strict=True):
        np.testing.assert_array_equal(found, right)


CONSTANT = """<ir_version: 8, opset_import: ["" : 18]>
g (float[64] h0, float[1024,64] x) => (float[64] h) <float[64] a = {0}> {
    h = Scan <num_scan_inputs = 1, body = step (float[64] s, float[64] x_t) => (float[64] t) {
        kept = Mul (a, s)  t = Add (kept, x_t) }> (h0, x) }"""


def test_the_error_of_a_product_of_constant_decays_does_not_add_up() -> None:
    decays = np.linspace(0.99, 1, 64, endpoint=False, dtype=np.float32)
    written = ", ".join(map(str, decays))
    inputs = {"h0": np.ones(64), "x": np.zeros((1024, 64))}
    outcomes = _before_and_after(changed(CONSTANT, {"{0}": f"{{{written}}}"}), inputs)
    exact = decays.astype(np.float64) ** 1024
    before, after = (_mean(h / exact - 1) for (h,) in outcomes)
    assert after <= 2 * before
