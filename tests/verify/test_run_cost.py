"""Trip counts are drawn small where those of nested Loops multiply; endless runs are not begun."""

from __future__ import annotations

import numpy as np
import onnx.parser
import pytest

from passes.verify.reference import ReferenceExecutor
from passes.verify.run_cost import RunCost
from tests.verification import verify
from tests.written import changed

NEST = """
<ir_version: 8, opset_import: ["" : 17]>
g (float[2] x, int64 m, bool c) => (float[2] y) <int64 fixed = {2}>
{
    y = Loop (m, "", x) <body = outer (int64 i, bool go, float[2] s) => (bool on, float[2] t) {
        on = Identity (go)
        t = Loop (m, "", s) <body = middle (int64 i1, bool go1, float[2] s1)
            => (bool on1, float[2] t1) {
            on1 = Identity (go1)
            t1 = Loop (m, "", s1) <body = inner (int64 i2, bool go2, float[2] s2)
                => (bool on2, float[2] t2) {
                on2 = Identity (go2)
                t2 = Tanh (s2)
            }>
        }>
    }>
}
"""
#: The innermost loop of `NEST` with another one in place of its Tanh.
DEEPER = """t_this = Loop (m, "", s_this) <body = deeper
            (int64 i_next, bool go_next, float[2] s_next)
            => (bool on_next, float[2] t_next) {
            on_next = Identity (go_next)
            t_next = Tanh (s_next)
        }>"""


def nest(levels: int) -> str:
    """`NEST` with so many loops in one another, 3 or more."""
    text = NEST
    for level in range(2, levels - 1):
        names = {"_this": f"{level}", "_next": f"{level + 1}"}
        text = changed(text, {f"t{level} = Tanh (s{level})": changed(DEEPER, names)})
    return text


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
    stopping = changed(nest(25), {"Identity (go": "Not (go"})
    assert cost(stopping).is_affordable(fed(9))
    conditional = changed(nest(25), {'Loop (m, ""': "Loop (m, c"})
    assert cost(conditional).is_affordable(fed(9, condition=False))
    assert not cost(conditional).is_affordable(fed(9))


def test_iterations_that_no_input_changes_are_affordable() -> None:
    assert cost(changed(nest(16), {"Loop (m": "Loop (fixed"})).is_affordable(fed(0))


#: An image of which each iteration doubles the height and the width.
DOUBLING = """
<ir_version: 8, opset_import: ["" : 17]>
g (float[1,1,H,W] x, int64 m) => (float[1,1,P,Q] y) <bool yes = {1}>
{
    scales = Constant <value = float[4] {1,1,2,2}> ()
    y = Loop (m, yes, x) <body = step (int64 i, bool go, float[1,1,A,B] s)
        => (bool on, float[1,1,C,D] t) {
        on = Identity (yes)
        t = Resize (s, "", scales)
    }>
}
"""


def test_each_iteration_takes_longer_where_what_is_carried_grows() -> None:
    assert cost(DOUBLING).is_affordable(fed(6))
    assert not cost(DOUBLING).is_affordable(fed(9))
    assert not cost(DOUBLING).is_affordable(fed(2**63 - 1))
    of_one_size = changed(DOUBLING, {"{1,1,2,2}": "{1,1,1,1}"})
    assert cost(of_one_size).is_affordable(fed(1000))
    declared_of_one_size = changed(DOUBLING, {"[1,1,C,D]": "[1,1,A,B]"})
    assert cost(declared_of_one_size).is_affordable(fed(1000))
    resize = 'Resize (s, "", scales)'
    twice_as_high = changed(DOUBLING, {resize: "Concat <axis = 2> (s, s)"})
    assert not cost(twice_as_high).is_affordable(fed(17))
    higher = changed(DOUBLING, {resize: "Concat <axis = 2> (s, x)"})
    assert cost(higher).is_affordable(fed(1000))


@pytest.mark.parametrize(("trips", "hopeless"), [("{1}", False), ("{2}", True), (None, False)])
def test_a_run_without_end_is_not_begun(trips: str | None, hopeless: bool) -> None:
    constant = (
        {"Loop (m": "Loop (fixed", "int64 fixed = {2}": f"int64 fixed = {trips}"} if trips else {}
    )
    model = onnx.parser.parse_model(changed(nest(28), constant))
    verification = verify(model, model, executors=[ReferenceExecutor()], budget=5)
    assert verification.verdict == ("not-compared" if hopeless else "verified")
    assert ("execute more than 100000000 nodes" in verification.reason) == hopeless
