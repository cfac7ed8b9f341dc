"""Random sums in loops, regrouped and executed before and after."""

from __future__ import annotations

import random

import pytest

from passes.choices import RuleOptions
from passes.commands.schedules import SCHEDULES
from passes.engine.outcome import Pass
from passes.session import Session
from passes.testing import as_model, assert_rewrite, options_of

pytestmark = pytest.mark.sampled

_PRODUCTS = (
    "MatMul ({h}, R)",
    "Gemm ({h}, R, {early})",
    "Gemm <transB = 1> ({h}, R, {early})",
    "Gemm <beta = 2.0> ({h}, R, {early})",
    "Gemm <transA = 1> ({h}, R, {early})",
    "Gemm ({h}, {h}, {late})",
)
_EARLY = ("x_t", "bias", "out", "m", "row")


def body(seed: int) -> str:
    """Some products of the state, early values, and sums of all these; the last one is a state."""
    draw = random.Random(seed)
    nodes = ["m = Mul (x_t, bias)", "row = MatMul (x_t, out)"]
    late = ["h_in"]
    for i in range(draw.randint(1, 3)):
        text = draw.choice(_PRODUCTS)
        early = draw.choice(_EARLY)
        nodes.append(f"p{i} = " + text.format(h="h_in", early=early, late=draw.choice(late)))
        late.append(f"p{i}")
    if draw.random() < 0.5:
        late.remove("h_in")
    for i in range(draw.randint(2, 6)):
        terms = [draw.choice(late[-4:]), draw.choice((*_EARLY, *late[-3:]))]
        if draw.random() < 0.3:
            terms += draw.choices((*_EARLY, *late), k=draw.randint(0, 2))
        draw.shuffle(terms)
        op = "Add" if len(terms) == 2 and draw.random() < 0.8 else "Sum"
        nodes.append(f"s{i} = {op} ({', '.join(terms)})")
        late.append(f"s{i}")
    return "  ".join(nodes) + f"  s = Add ({late[-1]}, {draw.choice(late)})"


def model(seed: int) -> str:
    """The body in a Scan, or in a Loop that counts."""
    step = f"{body(seed)}  h_out = Clip (s, low, high)"
    inputs = "float[2,2] h0, float[2] bias, float[2,2] R, float[2,2] out"
    limits = "float low = {-2.0}, float high = {2.0}"
    head = '<ir_version: 8, opset_import: ["" : 18]> sums'
    if seed % 3:
        return f"""{head} ({inputs}, float[T,2,2] x) => (float[2,2] h, float[T,2,2] y) <{limits}> {{
            h, y = Scan (h0, x) <num_scan_inputs = 1, body = step
                (float[2,2] h_in, float[2,2] x_t) => (float[2,2] h_out, float[2,2] y_t) {{
                {step}  y_t = Neg (s) }}> }}"""
    return f"""{head} ({inputs}, float[2,2] x_t, int64 n) => (float[2,2] h) <{limits}> {{
        h = Loop (n, , h0) <body = step (int64 i, bool go, float[2,2] h_in)
            => (bool on, float[2,2] h_out) {{ on = Identity (go)  {step} }}> }}"""


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("allowed", [False, True])
def test_random_sums(seed: int, allowed: bool) -> None:
    _assert_regrouped(seed, allowed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10, 40))
@pytest.mark.parametrize("allowed", [False, True])
def test_more_random_sums(seed: int, allowed: bool) -> None:
    _assert_regrouped(seed, allowed)


def _assert_regrouped(seed: int, allowed: bool) -> None:
    """Regrouped once, the sums are left alone, and give the same."""
    options = {"allow_reassociation": "yes"} if allowed else {}
    result = assert_rewrite(model(seed), pipeline="regroup-sum", options=options)
    again = Session([Pass(SCHEDULES["regroup-sum"], options=options_of(options))], None).run(
        result.model
    )
    assert [record for record in again.report.records if record.outcome == "rewritten"] == []


def test_more_than_half_are_regrouped() -> None:
    """So the ones above try something."""
    results = [
        Session(
            [Pass(SCHEDULES["regroup-sum"], options=RuleOptions(allow_reassociation=True))], None
        ).run(as_model(model(seed)))
        for seed in range(40)
    ]
    assert sum(bool(result.report.records) for result in results) > 20
