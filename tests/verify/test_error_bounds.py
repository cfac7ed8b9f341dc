"""Error bounds: a difference that roundings explain proves nothing, any other one is a mismatch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from verified_models import REFERENCE, Pretend, check, model

from passes.verify.compare.error_bounds import ErrorBounds, NotMeasured
from passes.verify.compare.trial import OutOfTime
from passes.verify.executor import Executor, Feeds
from passes.verify.inputs.drawer import Case
from tests.verification import verify
from tests.written import changed

#: A recurrence that doubles an error in every step, over many steps: tanh of a sum of which `R`,
#: with large weights, is inserted. `y` collects all of its states.
ALL = """
(float[4] h, float[100,4] x) => (float[4] hT, float[100,4] y)
<float[4,4] R = {WEIGHTS}, float[4] bias = {0.3, -0.2, 0.7, 0.1}> {
    hT, y = Scan <num_scan_inputs = 1, body = step (float[4] h_in, float[4] x_t)
        => (float[4] h_out, float[4] y_t) {
        r = MatMul (h_in, R)
        p = Add (r, x_t)  s = Add (p, bias)
        h_out = Tanh (s)
        y_t = Identity (h_out)
    }> (h, x)
}
"""
LAST = """
(float[4] h, float[100,4] x) => (float[4] hT)
<float[4,4] R = {WEIGHTS}, float[4] bias = {0.3, -0.2, 0.7, 0.1}> {
    hT = Scan <num_scan_inputs = 1, body = step (float[4] h_in, float[4] x_t)
        => (float[4] h_out) {
        r = MatMul (h_in, R)
        p = Add (r, x_t)  s = Add (p, bias)
        h_out = Tanh (s)
    }> (h, x)
}
"""


def chaotic(text: str, step: str) -> str:
    """The recurrence with another sum."""
    weights = np.random.default_rng(0).normal(0, 1.5, (4, 4)).astype(np.float32)
    return changed(text, {"WEIGHTS": ", ".join(map(str, weights.ravel())), BEFORE: step})


BEFORE = "p = Add (r, x_t)  s = Add (p, bias)"
REGROUPED = "p = Add (x_t, bias)  s = Add (r, p)"
WRONG = "p = Sub (x_t, bias)  s = Add (r, p)"


def near(text: str, step: str, *executors: Executor) -> Any:
    """How the recurrence compares with itself with another sum."""
    return check(
        chaotic(text, BEFORE),
        chaotic(text, step),
        executors=[REFERENCE, *executors],
        exact=False,
    )


def test_a_regrouped_sum_is_verified_however_far_its_roundings_grow(
    onnxruntime: Executor,
) -> None:
    found = near(ALL, REGROUPED, onnxruntime)
    assert found.verdict == "verified", found.reason
    assert found.errors.ulp > 100  # far more than any operator rounds


@pytest.mark.parametrize("text", [ALL, LAST], ids=["all", "last"])
def test_a_wrong_term_is_a_mismatch_in_the_same_recurrence(text: str) -> None:
    assert near(text, WRONG).verdict == "mismatch"


def test_a_model_that_is_exact_is_not_excused(onnxruntime: Executor) -> None:
    one = model("(float[N] x) => (float[N] y) { y = Neg (x) }")
    other = model("(float[N] x) => (float[N] y) { y = Identity (x) }")
    found = verify(one, other, executors=[REFERENCE, onnxruntime], exact=False)
    assert found.verdict == "mismatch"


def test_where_roundings_decide_everything_nothing_is_verified() -> None:
    """An original that makes anything of its inputs, but the same of the same ones."""
    one, other = (model("(float[3] x) => (float[3] y) { y = Tanh (x) }") for _ in range(2))
    one.doc_string, other.doc_string = "before", "after"

    def answer(side: str, feeds: Feeds) -> Any:
        seed = np.asarray(feeds["x"]).tobytes() + side.encode()
        return np.random.default_rng(list(seed)).normal(size=3).astype(np.float32)

    def counts(case: Case) -> bool:
        """Whether every number can be nudged."""
        x = np.asarray(case.feeds["x"])
        return bool(np.all(np.isfinite(x) & (x != 0)))

    found = verify(one, other, executors=[Pretend(answer)], exact=False, accept=counts)
    assert found.verdict == "not-compared"
    assert "roundings decide every element" in found.reason


def verdict(before: str, after: str, *executors: Executor) -> str:
    found = check(before, after, executors=[REFERENCE, *executors], exact=False)
    return str(found.verdict)


#: A signature with a value of a coarse dtype, and a body that has nothing to do with it.
COARSE = (
    "(float[N] x, {coarse}[N] c) => (float[N] y, float[N] z) {{ {body} z = Cast <to = 1> (c) }}"
)


@pytest.mark.parametrize("coarse", ["bfloat16", "float16"])
@pytest.mark.parametrize("off", ["1.001", "1.2"])
def test_a_coarse_dtype_elsewhere_is_no_excuse(coarse: str, off: str) -> None:
    body = "a = Constant <value_float = {a}> ()  p = Mul (x, a)  y = Tanh (p)"
    before = COARSE.format(coarse=coarse, body=body.format(a=0.7))
    after = COARSE.format(coarse=coarse, body=body.format(a=0.7 * float(off)))
    assert verdict(before, after) == "mismatch"
    assert verdict(before, before.replace("Mul (x, a)", "Mul (a, x)")) == "verified"


def test_a_coarse_dtype_on_the_way_excuses_what_it_rounds_and_no_more() -> None:
    text = """(float[N] x) => (float[N] y) {{
        a = Constant <value_float = {a}> ()  p = Mul (x, a)
        h = Cast <to = 16> (p)  f = Cast <to = 1> (h)  y = Add (f, f) }}"""
    assert verdict(text.format(a=0.7), text.format(a=0.70000005)) == "verified"
    assert verdict(text.format(a=0.7), text.format(a=0.77)) == "mismatch"


def test_doubles_that_go_through_floats_are_found() -> None:
    before = "(double[N] x) => (double[N] y) { a = Tanh (x)  y = Add (a, x) }"
    after = """(double[N] x) => (double[N] y) {
        f = Cast <to = 1> (x)  t = Tanh (f)  a = Cast <to = 11> (t)  y = Add (a, x) }"""
    assert verdict(before, after) == "mismatch"


def test_a_large_column_is_no_excuse_for_its_neighbour() -> None:
    text = """(float[N,2] x) => (float[N,2] y)
        <float[2] s = {{1000000, 1}}, float[2] b = {{0, {b}}}> {{
        t = Tanh (x)  m = Mul (t, s)  y = Add (m, b) }}"""
    assert verdict(text.format(b=0.3), text.format(b=0.8)) == "mismatch"


@pytest.mark.parametrize("op", ["Greater", "Less"])
def test_a_comparison_is_compared_on_rounded_numbers_too(op: str) -> None:
    text = f"(float[N] x) => (bool[N] y) <float b = {{%s}}> {{ t = Tanh (x)  y = {op} (t, b) }}"
    assert verdict(text % 0.3, text % 0.45) == "mismatch"


def test_the_place_of_the_largest_is_compared() -> None:
    text = """(float[N,7] x) => (int64[N] y) {{
        t = Sigmoid (x)  y = {op} <axis = 1, keepdims = 0> (t) }}"""
    assert verdict(text.format(op="ArgMax"), text.format(op="ArgMin")) == "mismatch"


def test_an_element_at_the_border_of_a_comparison_is_not_a_mismatch(onnxruntime: Executor) -> None:
    """A sum in another order is as often above 0 as below it."""
    text = """(float[N] a, float[N] b, float[N] c) => (bool[N] y) {{
        z = Constant <value_float = 0.0> ()  {sums}  d = Sub (s, t)  y = Greater (d, z) }}"""
    one = "p = Mul (a, b)  q = Add (p, c)  s = Add (q, a)  u = Add (c, a)  t = Add (u, p)"
    other = "p = Mul (a, b)  q = Add (p, c)  t = Add (q, a)  u = Add (c, a)  s = Add (p, u)"
    assert verdict(text.format(sums=one), text.format(sums=other), onnxruntime) != "mismatch"


def test_a_steady_column_beside_a_chaotic_one_is_compared() -> None:
    weights = np.random.default_rng(0).normal(0, 1.5, (4, 4)).astype(np.float32)
    items = ", ".join(map(str, weights.ravel()))
    text = f"""(float[4] h, float[100,4] x) => (float[100,8] y)
        <float[4,4] R = {{{{{items}}}}}> {{{{
        hT, y = Scan <num_scan_inputs = 1, body = step (float[4] h_in, float[4] x_t)
            => (float[4] h_out, float[8] y_t) {{{{
            r = MatMul (h_in, R)  {{sum}}  h_out = Tanh (s)
            k = {{steady}} (x_t)  y_t = Concat <axis = 0> (h_out, k) }}}}> (h, x) }}}}"""
    before = text.format(sum="p = Add (r, x_t)  s = Add (p, x_t)", steady="Sin")
    regrouped = text.format(sum="p = Add (x_t, x_t)  s = Add (r, p)", steady="Sin")
    wrong = text.format(sum="p = Add (x_t, x_t)  s = Add (r, p)", steady="Neg")
    assert verdict(before, regrouped) == "verified"
    assert verdict(before, wrong) == "mismatch"


def test_a_case_beyond_the_budget_is_measured_as_long_as_it_may_take() -> None:
    """Where no case was compared within the budget, one may take longer."""
    one, other = (model(chaotic(ALL, step)) for step in (BEFORE, REGROUPED))
    options: dict[str, Any] = {"executors": [REFERENCE], "exact": False, "budget": 0.0}
    assert verify(one, other, **options).verdict == "not-compared"
    assert verify(one, other, **options, patience=20.0).verdict == "verified"


def test_time_that_ends_while_roundings_are_measured_cuts_the_case(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It shows no mismatch, nor that there is none."""

    def late(*arguments: Any, **options: Any) -> Any:
        raise OutOfTime

    monkeypatch.setattr(ErrorBounds, "settled", late)
    found = check(chaotic(ALL, BEFORE), chaotic(ALL, REGROUPED), executors=[REFERENCE], exact=False)
    assert (found.verdict, found.cut[0]) == ("not-compared", "exact values")


def test_what_takes_too_long_to_measure_shows_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def slow(*arguments: Any, **options: Any) -> Any:
        raise NotMeasured("took longer than 40 s")

    monkeypatch.setattr(ErrorBounds, "settled", slow)
    found = check(chaotic(ALL, BEFORE), chaotic(ALL, REGROUPED), executors=[REFERENCE], exact=False)
    assert found.verdict == "verified"  # by cases in which roundings are nothing
    said = "reference: how far roundings go could not be measured: took longer than 40 s"
    assert found.reasons[said] > 3


@pytest.mark.parametrize(("of_finite", "said"), [(True, "verified"), (False, "mismatch")])
def test_infinities_that_overflow_leaves_are_not_told_from_nan(of_finite: bool, said: str) -> None:
    """Sums that are regrouped overflow elsewhere; those of NaN and infinities do not differ."""

    def answer(side: str, feeds: Feeds) -> Any:
        x = np.asarray(feeds["x"])
        finite = bool(np.isfinite(x).all())
        if finite != of_finite or np.abs(x).max(initial=0.0) < 1e4:
            return x
        return np.full(x.shape, np.nan if side == "before" else -np.inf, x.dtype)

    one, other = (model("(float[N] x) => (float[N] y) { y = Tanh (x) }") for _ in range(2))
    one.doc_string, other.doc_string = "before", "after"
    assert verify(one, other, executors=[Pretend(answer)], exact=False).verdict == said


@pytest.mark.parametrize(("largest", "said"), [(1e30, "verified"), (1e3, "mismatch")])
def test_infinities_are_not_told_apart_where_numbers_grow_so_large(
    largest: float, said: str
) -> None:
    """A recurrence may grow without bound on inputs that are small."""

    def answer(side: str, feeds: Feeds) -> Any:
        x = np.asarray(feeds["x"]).copy()
        if not np.isfinite(x).all() or (x * 64 == np.round(x * 64)).all():
            return x
        x[:2] = [largest, np.inf if side == "before" else -2e38][: x.size]
        return x

    one, other = (model("(float[4] x) => (float[4] y) { y = Tanh (x) }") for _ in range(2))
    one.doc_string, other.doc_string = "before", "after"
    assert verify(one, other, executors=[Pretend(answer)], exact=False).verdict == said


@pytest.mark.parametrize(
    ("shape", "made", "node"),
    [
        ("2,10,1", "2,10,2", "DFT (x)"),
        ("1,1,4,4", "1,1,8,8", 'Resize <mode = "linear"> (x, , scales)'),
    ],
)
@pytest.mark.parametrize("factor", [1.0, 1.0001])
def test_what_rounds_its_weights_may_be_off_by_roundings_alone(
    shape: str, made: str, node: str, factor: float
) -> None:
    text = """(float[SHAPE] x) => (float[MADE] y)
        <float[4] scales = {1, 1, 2, 2}, float factor = {FACTOR}> {
            z = NODE y = Mul (z, factor)
        }"""
    text = changed(text, {"SHAPE": shape, "MADE": made, "NODE": node})
    before, after = (changed(text, {"FACTOR": str(number)}) for number in (1.0, factor))
    found = check(model(before, opset=19), model(after, opset=19), exact=False)
    assert found.verdict == ("verified" if factor == 1 else "mismatch")
