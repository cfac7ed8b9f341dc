"""What cases reached: conditions both ways, loops at 0, 1 and more trips."""

from __future__ import annotations

import onnx
from verified_models import REFERENCE, check, model

import passes
from passes.verify.compare.coverage import untested
from tests.verification import Verification, verify


def branches(
    much: str = "s = ReduceSum<keepdims = 0>(x)  much = Constant<value_float = 900.0>()",
    then: str = "Neg",
) -> str:
    """An If where the sum is above `much`, another where n is 77."""
    return f"""(float[N] x, int64 n) => (float[N] y, float[N] z) {{
    {much}  c = Greater(s, much)
    y = If(c) <then_branch = a () => (float[N] t) {{ t = {then}(x) }},
               else_branch = b () => (float[N] e) {{ e = Exp(x) }}>
    k = Constant<value_int = 77>()  is_k = Equal(n, k)
    z = If(is_k) <then_branch = a () => (float[N] t) {{ t = {then}(x) }},
                  else_branch = b () => (float[N] e) {{ e = Exp(x) }}> }}"""


def left(found: Verification) -> list[str]:
    return [untested(did, path) for (_, did), path in found.unreached.items()]


def loop(trips: str, condition: str = "d = Identity(c)") -> str:
    return f"""(float[N] x, int64 n, bool go) => (float[N] y) {{ {trips}
        y = Loop(m, , x) <body = b (int64 i, bool c, float[N] s) => (bool d, float[N] t) {{
            t = Add(s, s)  {condition} }}> }}"""


def test_conditions_are_sought_both_ways() -> None:
    found = check(branches(), branches())
    assert (found.verdict, left(found)) == ("verified", [])
    wrong = check(branches(), branches(then="Abs"))
    assert wrong.verdict == "mismatch"
    assert [case.status for case in wrong.cases].index("mismatch") == len(wrong.cases) - 1


def test_what_stays_unreached_is_named() -> None:
    never = branches("""
    s2 = Constant<value_float = 1.0>()  s = ReduceSum<keepdims = 0>(x)  much = Add(s, s2)""")
    found = check(never, never)
    assert left(found) in ([], ["a true condition of main/if_4"])
    always = loop("m = Identity(n)", "one = Constant<value_int = 0>()  d = GreaterOrEqual(i, one)")
    assert left(check(always, always)) == ["an end of main/loop_1 by its condition"]


def test_a_loop_of_a_static_trip_count_has_nothing_to_reach() -> None:
    text = loop("m = Constant<value_int = 3>()")
    found = check(text, text)
    assert left(found) == []
    assert found.reached == {((0, 1), "more")}


def test_a_drawn_trip_count_is_0_and_1_and_more() -> None:
    text = loop("m = Identity(n)")
    found = check(text, text)
    assert {did for _, did in found.reached} == {"0", "1", "more"}
    assert left(found) == []


def test_what_a_region_reached_counts_for_the_model() -> None:
    text = """(float[N] x) => (float[N] y) {
        zero = Constant<value_int = 0>()  size = Shape(x)  m = ReduceProd<keepdims = 0>(size)
        big = Constant<value_int = 5000>()  most = Max(m, big)  no = Less(most, zero)
        y = If(no) <then_branch = a () => (float[N] t) { t0 = Neg(x)  t = Abs(t0) },
                    else_branch = b () => (float[N] e) { e0 = Neg(x)  e = Exp(e0) }> }"""
    report = passes.hoist(model(text), executor="reference").report
    assert report.checked is not None
    assert report.checked.verdict == "verified"
    assert report.checked.unreached == []


def masked(small: str, z: str = "Where(small, x, y)") -> str:
    return f"(float[N] x, float[N] y, int64 n) => (float[N] z) {{ {small}  z = {z} }}"


def test_masks_are_sought_both_ways() -> None:
    small = "far = Constant<value_float = 700.0>()  small = Less(x, far)"
    found = check(masked(small), masked(small))
    assert left(found) == []
    assert {((0, 2), "on"), ((0, 2), "partly")} & found.reached
    assert check(masked(small), masked(small, "Identity(x)")).verdict == "mismatch"


def test_a_mask_that_always_holds_is_named_but_where_it_hangs_on_sizes() -> None:
    always = masked("far = Constant<value_int = -1>()  r = Relu(n)  small = Greater(r, far)")
    assert left(check(always, always)) == ["a mask of main/where_3 that does not hold"]
    sizes = masked("far = Shape(x)  small = Equal(far, far)")
    assert left(check(sizes, sizes)) == []


def test_what_functions_do_counts_and_only_of_those_that_are_called() -> None:
    functions = """
    <domain: "my", opset_import: ["" : 17]>
    {name} (x, c) => (y) {{
        y = If(c) <then_branch = a () => (t) {{ t = Neg(x) }},
                   else_branch = b () => (e) {{ e = Exp(x) }}>
    }}"""
    text = (
        """<ir_version: 8, opset_import: ["" : 17, "my" : 1]>
    g (float[N] x) => (float[N] y) <bool c = {1}> { y = my.called(x, c) }"""
        + functions.format(name="called")
        + functions.format(name="uncalled")
    )
    proto = onnx.parser.parse_model(text)
    found = verify(proto, proto, executors=[REFERENCE])
    assert left(found) == ["a false condition of my.called/if_0"]
