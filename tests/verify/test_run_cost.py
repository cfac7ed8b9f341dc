"""Drawn trip counts that multiply in nested Loops are kept small, and hopeless runs not begun."""

from __future__ import annotations

import numpy as np
import onnx.parser
import pytest

from passes.verify.reference import ReferenceExecutor
from passes.verify.run_cost import RunCost
from tests.verification import verify

HEAD = '<ir_version: 8, opset_import: ["" : 17]>'


def nest(levels: int, trips: str = "m", condition: str = "", goes_on: str = "Identity") -> str:
    """Loops in one another, whose trip count is an input where no constant is named."""
    body = "t0 = Tanh (s0)"
    for level in range(levels):
        read = f"s{level + 1}" if level + 1 < levels else "x"
        body = f"""t{level + 1} = Loop <body = b{level}
            (int64 i{level}, bool go{level}, float[2] s{level})
            => (bool on{level}, float[2] t{level}) {{
            on{level} = {goes_on} (go{level}) {body} }}> ({trips}, {condition}, {read})"""
    return f"""{HEAD} g (float[2] x, int64 m, bool c) => (float[2] t{levels})
        <int64 one = {{1}}, int64 two = {{2}}> {{ {body} }}"""


def cost(text: str) -> RunCost:
    return RunCost.of(onnx.parser.parse_model(text))


def fed(trips: int, condition: bool = True) -> dict[str, np.ndarray]:
    return {"x": np.ones(2, np.float32), "m": np.array(trips), "c": np.array(condition)}


def test_trip_counts_of_nested_loops_multiply() -> None:
    assert cost(nest(3)).is_affordable(fed(20))
    assert not cost(nest(3)).is_affordable(fed(40))
    assert cost(nest(25)).is_affordable(fed(1))
    assert not cost(nest(25)).is_affordable(fed(2))


def test_loops_that_may_end_earlier_do_not_count() -> None:
    assert cost(nest(25, goes_on="Not")).is_affordable(fed(9))
    assert cost(nest(25, condition="c")).is_affordable(fed(9, condition=False))
    assert not cost(nest(25, condition="c")).is_affordable(fed(9))


def test_what_must_be_is_affordable() -> None:
    assert cost(nest(16, "two")).is_affordable(fed(0))


def grows(scales: str, dims: str = "1,1,C,D", node: str = 'Resize (s, "", scales)') -> RunCost:
    return cost(f"""{HEAD} g (float[1,1,H,W] x, int64 m) => (float[1,1,P,Q] y) <bool yes = {{1}}> {{
        scales = Constant <value = float[4] {{{scales}}}> ()
        y = Loop <body = step (int64 i, bool go, float[1,1,A,B] s) => (bool on, float[{dims}] t) {{
            on = Identity (yes)
            t = {node} }}> (m, yes, x) }}""")


def test_each_iteration_takes_longer_where_what_is_carried_grows() -> None:
    assert grows("1,1,2,2").is_affordable(fed(6))
    assert not grows("1,1,2,2").is_affordable(fed(9))
    assert not grows("1,1,2,2").is_affordable(fed(2**63 - 1))
    assert grows("1,1,1,1").is_affordable(fed(1000))
    assert grows("1,1,2,2", dims="1,1,A,B").is_affordable(fed(1000))
    assert not grows("1,1,2,2", node="Concat <axis = 2> (s, s)").is_affordable(fed(17))
    assert grows("1,1,2,2", node="Concat <axis = 2> (s, x)").is_affordable(fed(1000))


@pytest.mark.parametrize(("trips", "hopeless"), [("one", False), ("two", True), ("m", False)])
def test_a_run_without_end_is_not_begun(trips: str, hopeless: bool) -> None:
    model = onnx.parser.parse_model(nest(28, trips))
    verification = verify(model, model, executors=[ReferenceExecutor()], budget=5)
    assert verification.verdict == ("not-compared" if hopeless else "verified")
    assert ("execute more than 100000000 nodes" in verification.reason) == hopeless
