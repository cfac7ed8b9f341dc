"""Random loops with a linear matrix as their state, in blocks and executed before and after."""

from __future__ import annotations

import random

import pytest

from passes.choices import RuleOptions
from passes.commands.schedules import SCHEDULES
from passes.engine.outcome import Pass
from passes.session import Session
from passes.testing import as_model, assert_rewrite, options_of

pytestmark = pytest.mark.slow

#: What the state is multiplied by, of the scanned a [H,D], g [H] and the outer w [H,1,1].
_DECAYS = (
    "kept = Identity (S_in)",
    "a1 = Unsqueeze (a, last) kept = Mul (S_in, a1)",
    "a1 = Sigmoid (a) a2 = Unsqueeze (a1, last) kept = Mul (a2, S_in)",
    "a1 = Abs (a) a2 = Neg (a1) a3 = Exp (a2) a4 = Unsqueeze (a3, last) kept = Mul (a4, S_in)",
    "g1 = Sigmoid (g) g2 = Unsqueeze (g1, both) kept = Mul (S_in, g2)",
    "g1 = Unsqueeze (g, both) g2 = Sigmoid (g1) g3 = Mul (S_in, g2) kept = Sub (S_in, g3)",
    "kept = Mul (S_in, w)",
    "kept = Div (S_in, four)",
)
#: What is added to it, of the scanned k [H,D] and v [H,E].
_UPDATES = (
    "k1 = Unsqueeze (k, last) v1 = Unsqueeze (v, row) new = MatMul (k1, v1)",
    "k1 = Unsqueeze (k, last) v1 = Unsqueeze (v, row) new = Mul (v1, k1)",
    'new = Einsum <equation = "hk,hv->hkv"> (k, v)',
    "k0 = Tanh (k) k1 = Unsqueeze (k0, last) v1 = Unsqueeze (v, row) n0 = Mul (k1, v1)"
    " g9 = Unsqueeze (g, both) new = Mul (n0, g9)",
)
#: Corrections by what a key of length one or less reads.
_CORRECTIONS = (
    "S_out = Add (kept, new)",
    "S_out = Add (new, kept)",
    "c0 = Mul (k, k) c1 = ReduceSum (c0, last) c2 = Add (c1, one) c3 = Sqrt (c2) c4 = Div (k, c3)"
    " c5 = Unsqueeze (c4, row) c6 = MatMul (c5, kept) c7 = Unsqueeze (c4, last)"
    " c8 = MatMul (c7, c6) c9 = Sub (kept, c8) S_out = Add (c9, new)",
)
#: What is read, of the scanned q [H,D], from a state S.
_READS = (
    "q1 = Unsqueeze (q, row) y0 = MatMul (q1, S) y1 = Squeeze (y0, row)",
    "q1 = Unsqueeze (q, last) y0 = Mul (S, q1) y1 = ReduceSum <keepdims = 0> (y0, row)",
    'y1 = Einsum <equation = "hk,hkv->hv"> (q, S)',
    "q1 = Unsqueeze (q, last) y0 = Transpose <perm = [0, 2, 1]> (S) y2 = MatMul (y0, q1)"
    " y1 = Squeeze (y2, last)",
)
_AFTER_READS = (
    "y = Identity (y1)",
    "y8 = Tanh (y1) y = Add (y8, v)",
    "y8 = Mul (y1, v) y = Neg (y8)",
)


def loop(seed: int) -> str:
    """A loop over 37 or more steps, or of any length, with 2 heads of 8 rows and 9 columns."""
    draw = random.Random(seed)
    steps = draw.choice(["37", "64", "T"])
    read = draw.choice(_READS).replace("S)", "{})").replace("S,", "{},")
    body = " ".join(
        (
            *(draw.choice(part) for part in (_DECAYS, _UPDATES, _CORRECTIONS)),
            read.replace("{}", draw.choice(["S_in", "S_out"])),
            draw.choice(_AFTER_READS),
        )
    )
    return """<ir_version: 10, opset_import: ["" : 18]>
    g (float[2,8,9] S0, float[2,1,1] w, float[T,2,8] qs, float[T,2,8] ks, float[T,2,9] vs,
       float[T,2,8] as_, float[T,2] gs) => (float[2,8,9] S9, float[T,2,9] ys)
    <int64[1] last = {-1}, int64[1] row = {-2}, int64[2] both = {-1, -2}, float four = {4},
     float one = {1}> {
      S9, ys = Scan <num_scan_inputs = 5, body = step (float[2,8,9] S_in, float[2,8] q,
        float[2,8] k, float[2,9] v, float[2,8] a, float[2] g)
        => (float[2,8,9] S_out, float[2,9] y) { BODY }> (S0, qs, ks, vs, as_, gs)
    }""".replace("BODY", body).replace("T,", f"{steps},")


@pytest.mark.parametrize(
    "seed", [pytest.param(one, marks=[pytest.mark.slow] * (one > 20)) for one in range(120)]
)
def test_answers_as_before(seed: int) -> None:
    options = {"allow_reassociation": "yes"}
    result = assert_rewrite(loop(seed), pipeline="run-in-blocks", options=options)
    assert {record.rule for record in result.report.records} == {"run-in-blocks"}


@pytest.mark.parametrize("seed", range(0, 120, 10))
def test_runs_once(seed: int) -> None:
    options = RuleOptions(allow_reassociation=True)
    session = Session([Pass(SCHEDULES["run-in-blocks"], options=options)], None)
    once = session.run(as_model(loop(seed))).model
    assert session.run(once).model == once
    assert options_of({"allow_reassociation": "yes"}) == options
