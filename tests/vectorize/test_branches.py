"""If: one branch for all rows, or a choice by row."""

from __future__ import annotations

import numpy as np
import pytest
from looping import prove, refused

from tests.written import changed

pytestmark = pytest.mark.sampled


IF = """
g (bool c, float[2,3] x, float[2,3] w) => (float[] y) {
    y = If (c) <
        then_branch = then () => (float[2,3] t) { t = Add (x, w) },
        else_branch = else () => (float[2,3] e) { e = Neg (w) }>
}
"""


def choice(then: str, otherwise: str = "e = Neg (w)") -> str:
    """`IF` with other nodes in its branches."""
    return changed(IF, {"t = Add (x, w)": then, "e = Neg (w)": otherwise})


@pytest.mark.parametrize("opset", [13, 18, 21])
@pytest.mark.parametrize("carrying", [["x"], ["w"], ["x", "w"]])
@pytest.mark.parametrize("flag", [True, False])
def test_all_rows_take_one_branch(flag: bool, carrying: list[str], opset: int, both: list) -> None:
    made = prove(IF, carrying, {"c": np.array(flag)}, opset=opset, executors=both)
    assert "If" in [node.op_type for node in made.graph.node]


@pytest.mark.parametrize("then", ["t = Neg (x)", "t = Identity (x)"])
@pytest.mark.parametrize("flag", [True, False])
def test_an_output_that_has_the_axis_in_one_branch_only_is_spread_in_the_other(
    flag: bool, then: str, both: list
) -> None:
    prove(choice(then, "e = Exp (w)"), ["x"], {"c": np.array(flag)}, executors=both)


def test_outputs_that_do_not_depend_on_the_row_stay_as_they_are(both: list) -> None:
    text = (
        "g (bool c, float[2] x, float[2] w) => (float[2] y, float[2] z) {"
        "a, b = If (c) <then_branch = t () => (float[2] p, float[2] q) { p = Neg (x) q = Abs (w) },"
        "else_branch = e () => (float[2] r, float[2] s) { r = Neg (w) s = Exp (w) }> "
        "y = Add (a, w) z = Sub (b, w) }"
    )
    made = prove(text, ["x"], executors=both)
    assert [node.op_type for node in made.graph.node].count("Expand") == 1


@pytest.mark.parametrize("opset", [13, 18, 21])
@pytest.mark.parametrize("cond", ["", "[1]"])
@pytest.mark.parametrize("carrying", [["c"], ["c", "x"], ["c", "x", "w"]])
@pytest.mark.parametrize("dims", ["[]", "[2,3]", "[1]", "[N]"])
def test_each_row_takes_its_own_branch(
    dims: str, carrying: list[str], cond: str, opset: int, both: list
) -> None:
    text = changed(IF, {"[2,3]": "" if dims == "[]" else dims, "bool c": f"bool{cond} c"})
    made = prove(text, carrying, sizes=(0, 1, 3, 8), nonempty=False, opset=opset, executors=both)
    assert "If" not in [node.op_type for node in made.graph.node]


KINDS = ["float", "double", "float16", "bool", "string", "int8", "uint8", "int16", "uint16"]
KINDS += ["int32", "uint32", "int64", "uint64", "bfloat16"]


@pytest.mark.parametrize("kind", KINDS)
def test_rows_choose_values_of_every_type(kind: str, both: list) -> None:
    text = changed(choice("t = Identity (x)", "e = Identity (w)"), {"float": kind})
    # What Where has no kernel for is cast once an Edit is spliced, of which this sees nothing.
    lacked = ("bfloat16", "int16", "uint16", "uint64")
    executors = both[:1] if kind in lacked else both
    prove(text, ["c", "x", "w"], sizes=(8,), executors=executors)


def test_nan_inf_and_the_sign_of_zero_stay_in_their_row() -> None:
    odd = np.array([[np.nan, np.inf, -0.0], [-np.inf, 1.0, 0.0]], np.float32)
    text = choice("t = Mul (x, w)", "e = Identity (w)")
    prove(text, ["c", "x", "w"], {"x": odd, "w": odd}, sizes=(8,))


def test_branches_with_weights_of_their_own_and_branches_inside(both: list) -> None:
    text = """
    g (bool c, bool d, float[3] x) => (float[3] y) {
        y = If (c) <
            then_branch = t () => (float[3] t) {
                t = If (d) <
                    then_branch = tt () => (float[3] a) <float[3] k = {1.0, 2.0, 3.0}> {
                        a = Mul (x, k)
                    },
                    else_branch = te () => (float[3] b) { b = Neg (x) }>
            },
            else_branch = e () => (float[3] e) { e = Abs (x) }>
    }
    """
    for carrying in (["x"], ["c", "x"], ["d", "x"], ["c", "d", "x"], ["d"]):
        prove(text, carrying, sizes=(1, 8), executors=both)


def test_floats_may_be_divided_in_a_branch_that_no_row_takes(both: list) -> None:
    prove(choice("t = Div (x, w)"), ["c", "x"], sizes=(8,))


REFUSED = [
    ("not-speculatable", changed(choice("t = Div (x, w)"), {"float": "int64"}), ["c", "x"]),
    (
        "not-speculatable",
        changed(choice("i = Cast <to = 7> (x) t = Gather (w, i)"), {"[2,3]": "[3]"}),
        ["c", "x"],
    ),
    (
        "ragged-rows",
        changed(choice("t = Concat <axis = 0> (x, w)"), {"[2,3] t": "[4,3] t"}),
        ["c", "x"],
    ),
    (
        "ragged-rows",
        changed(choice("t = Neg (x)"), {"[2,3] w": "[N,3] w", "[2,3] e": "[N,3] e"}),
        ["c", "x"],
    ),
    ("random", choice("t = RandomNormal <shape = [2, 3]> ()"), ["x", "w"]),
]


@pytest.mark.parametrize(("code", "text", "carrying"), REFUSED)
def test_a_branch_that_may_fail_or_differ_by_row_is_refused(
    code: str, text: str, carrying: list[str]
) -> None:
    assert refused(text, carrying) == code


def test_a_random_branch_may_not_run_for_all_rows() -> None:
    text = choice("t = RandomNormal <shape = [2, 3]> ()")
    assert refused(text, ["c"]) == "not-speculatable"


def test_optionals_of_tensors_are_looked_at(both: list) -> None:
    text = (
        "g (float[2] x) => (float[2] y, bool b) "
        "{ y = OptionalGetElement (x) b = OptionalHasElement (x) }"
    )
    prove(text, ["x"], executors=both)


@pytest.mark.parametrize("nodes", ["s = SequenceConstruct (x)", "s = SplitToSequence (x)"])
def test_rows_are_not_kept_in_sequences(nodes: str) -> None:
    text = f"g (float[2] x) => (float[N] y) {{ {nodes} y = ConcatFromSequence <axis = 0> (s) }}"
    assert refused(text, ["x"]) == "no-batching-rule"
