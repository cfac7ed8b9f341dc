"""Faults seeded into outcomes: each is right on small inputs, and wrong where few draws go.

An outcome is the original and a fault on top: something is added to its output where a condition
on sizes or values holds. All of these are within reach of what is drawn; docs/trust.md names what
is not. Those of `tests/instruments/mutants/outcomes.py` were written before the draws were looked
at.
"""

from __future__ import annotations

import numpy as np
import pytest
from onnx import ModelProto
from onnx.helper import tensor_dtype_to_np_dtype
from verified_models import REFERENCE, check, model

from passes.verify.executor import Feeds, ModelFailed, Outcome
from tests.instruments.mutants.outcomes import Pair, is_out_of_reach, pairs, written_pairs

HEAD = "(float[B,T] x, int64 n, int64[B] k) => (float[B,T] y, int64[B] m)"
CONSTANTS = """
    zero = Constant <value_int = 0> ()  one = Constant <value_int = 1> ()
    shape = Shape (x)  b = Gather (shape, zero)  t = Gather (shape, one)
"""

#: Originals: what moves data, what rounds, what loops.
ORIGINALS = {
    "moves": "u = Identity (x)  v = Identity (k)",
    "rounds": "h = Tanh (x)  u = Add (h, x)  v = Add (k, n)",
    "loops": """
        v = Identity (k)
        u = Loop <body = step (int64 i, bool c, float[B,T] s) => (bool d, float[B,T] r) {
            d = Identity (c)  h = Sigmoid (s)  r = Add (h, x) }> (n, , x)""",
}

#: Conditions on sizes: scalars.
SIZES = {
    "T >= 10": "c = Constant <value_int = 10> ()  bad = GreaterOrEqual (t, c)",
    "T > 12": "c = Constant <value_int = 12> ()  bad = Greater (t, c)",
    "B >= 8": "c = Constant <value_int = 8> ()  bad = GreaterOrEqual (b, c)",
    "B >= 16": "c = Constant <value_int = 16> ()  bad = GreaterOrEqual (b, c)",
    "T >= 64": "c = Constant <value_int = 64> ()  bad = GreaterOrEqual (t, c)",
    "B == T > 2": "c = Constant <value_int = 2> ()  e = Equal (b, t)  g = Greater (t, c)"
    "  bad = And (e, g)",
    "T == 2 B": "c = Add (b, b)  bad = Equal (t, c)",
    "B == 2 T": "c = Add (t, t)  bad = Equal (b, c)",
    "T is a multiple of 4 above 4": "f4 = Constant <value_int = 4> ()  r = Mod (t, f4)"
    "  e = Equal (r, zero)  g = Greater (t, f4)  bad = And (e, g)",
    "T % 3 == 2 above 6": "f3 = Constant <value_int = 3> ()  l = Constant <value_int = 6> ()"
    "  w = Constant <value_int = 2> ()  r = Mod (t, f3)  e = Equal (r, w)"
    "  g = Greater (t, l)  bad = And (e, g)",
    "n >= 7": "c = Constant <value_int = 7> ()  bad = GreaterOrEqual (n, c)",
    "n > 20": "c = Constant <value_int = 20> ()  bad = Greater (n, c)",
    "n > T": "bad = Greater (n, t)",
}
#: Conditions on values: one for each element of x.
VALUES = {
    "|x| > 10": "a = Abs (x)  c = Constant <value_float = 10.0> ()  bad = Greater (a, c)",
    "|x| > 1e5": "a = Abs (x)  c = Constant <value_float = 100000.0> ()  bad = Greater (a, c)",
    "0 < |x| < 1e-4": "a = Abs (x)  c = Constant <value_float = 0.0001> ()  l = Less (a, c)"
    "  z = Constant <value_float = 0.0> ()  g = Greater (a, z)  bad = And (l, g)",
    "sum(x) > 30": "s = ReduceSum <keepdims = 0> (x)  c = Constant <value_float = 30.0> ()"
    "  bad = Greater (s, c)",
    "x == 0.25": "c = Constant <value_float = 0.25> ()  bad = Equal (x, c)",
    "x == 17.5": "c = Constant <value_float = 17.5> ()  bad = Equal (x, c)",
    "x < -3": "c = Constant <value_float = -3.0> ()  bad = Less (x, c)",
}
#: Faults of whole numbers, in place of v.
WHOLE = {
    "k > 8": "c = Constant <value_int = 8> ()  g = Greater (k, c)  i = Cast <to = 7> (g)"
    "  m = Add (v, i)",
    "k > 500": "c = Constant <value_int = 500> ()  g = Greater (k, c)  i = Cast <to = 7> (g)"
    "  m = Add (v, i)",
    "k < -50": "c = Constant <value_int = -50> ()  g = Less (k, c)  i = Cast <to = 7> (g)"
    "  m = Add (v, i)",
    "int8 arithmetic": "s = Cast <to = 3> (v)  m = Cast <to = 7> (s)",
    "clipped at 100": "lo = Constant <value_int = -100> ()  hi = Constant <value_int = 100> ()"
    "  m = Clip (v, lo, hi)",
}

SIZED = (
    "f = Constant <value_float = 1.0> ()  w1 = Add (u, f)  y = Where (bad, w1, u)  m = Identity (v)"
)
FAULTS = {
    **{name: f"{text}  {SIZED}" for name, text in {**SIZES, **VALUES}.items()},
    **{name: f"{text}  y = Identity (u)" for name, text in WHOLE.items()},
}


@pytest.mark.sampled
@pytest.mark.parametrize("exact", [True, False], ids=["exact", "near"])
@pytest.mark.parametrize("original", ORIGINALS)
@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_on_few_inputs_is_found(fault: str, original: str, exact: bool) -> None:
    before = f"{HEAD} {{ {ORIGINALS[original]}  y = Identity (u)  m = Identity (v) }}"
    after = f"{HEAD} {{ {CONSTANTS} {ORIGINALS[original]}  {FAULTS[fault]} }}"
    assert check(before, before, exact=exact, executors=[REFERENCE]).verdict == "verified"
    assert check(before, after, exact=exact, executors=[REFERENCE]).verdict == "mismatch"


@pytest.mark.sampled
@pytest.mark.parametrize(
    "pair", [pair for pair in pairs() if not is_out_of_reach(pair)], ids=lambda pair: pair.name
)
def test_a_mutant_of_an_outcome_is_found(pair: Pair) -> None:
    options = {"exact": False, "case_timeout": 1.0, "executors": [REFERENCE]}
    assert check(pair.before, pair.before, **options).verdict == "verified"
    assert check(pair.before, pair.after, **options).verdict == "mismatch"


@pytest.mark.parametrize("pair", [*written_pairs()], ids=lambda pair: pair.name)
def test_a_witness_tells_the_models_apart(pair: Pair) -> None:
    before, after = model(pair.before), model(pair.after)
    feeds = {
        value.name: np.array(
            (pair.witness or {})[value.name],
            tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type),
        )
        for value in before.graph.input
    }
    right = REFERENCE.run(before, feeds)
    assert differs(right, after, feeds)


def differs(right: Outcome, after: ModelProto, feeds: Feeds) -> bool:
    """Whether the model fails, or gives something else."""
    try:
        wrong = REFERENCE.run(after, feeds)
    except ModelFailed:
        return True
    return not all(
        np.array_equal(value, wrong.outputs[name], equal_nan=value.dtype.kind == "f")
        for name, value in right.outputs.items()
    )
