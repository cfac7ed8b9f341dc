"""Proofs at drawn sizes: what differs at these sizes is not proven, nor what cancels otherwise."""

from __future__ import annotations

from pathlib import Path

import onnx
import onnx.parser
import pytest

from passes.ir.model import Model
from passes.proving.narrowing import prove
from passes.reports.proof import Draw, Proof, Scope
from tests.instruments.mutants.outcomes import Pair, pairs
from tests.instruments.proven import at_drawn_sizes as prove_at_sizes
from tests.instruments.proven import golden_pairs, sides
from tests.proving.test_false_proofs import FALSE_PROOFS
from tests.proving.test_wrong_pairs import WRONG

BUDGET = 5.0
#: Wrong pairs that are equal at drawn sizes; sums of the last one are in another order.
EQUAL_AT_SIZES = {
    "T > 121": "terms",
    "T mod 16 == 15": "terms",
    "a sum in another order": "field",
    "a float without an upper bound": "reals",
    "a float without bounds, which is finite in onnxruntime": "reals",
    "an addition of 0": "reals",
    "a sum of one element, which makes 0 of -0": "reals",
}
FALSE_AT_OTHER_SIZES = {
    "divided_by_zero_once_more",
    "einsum_broadcasts",
    "einsum_of_one",
    "fits_factor",
    "fits_of_counts",
    "positive_leaks",
    "scale_of_another_axis",
}
FALSE_IN_SIGNS_OF_ZEROS = {"einsum_of_no_sum"}
#: Up to rounding, a zero has no sign.
TRUE_UP_TO_ROUNDING = {"mean_of_one", "minus_zero_gemm", "sum_of_one"}


def models(before: str, after: str) -> tuple[Model, Model]:
    """The models of two graphs of opset 21."""
    head = '<ir_version: 10, opset_import: ["" : 21]> g '
    one, other = (Model.load(onnx.parser.parse_model(head + text)) for text in (before, after))
    return one, other


def proof(before: str, after: str) -> Proof:
    """The proof of two graphs at drawn sizes."""
    return prove_at_sizes(*models(before, after), BUDGET)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_at_drawn_sizes_is_not_proven(name: str) -> None:
    text, right, wrong = WRONG[name]
    found = proof(text.replace("@", right), text.replace("@", wrong))
    if name in EQUAL_AT_SIZES:
        assert found.scope.method == EQUAL_AT_SIZES[name]
        assert found.scope.draws
    else:
        assert not found.is_proven
        assert found.code
    same = proof(text.replace("@", right), text.replace("@", right))
    assert same.scope.method == "terms"


@pytest.mark.filterwarnings("ignore:The onnxtxt format is experimental")
@pytest.mark.sampled(5)
@pytest.mark.parametrize("before", FALSE_PROOFS, ids=lambda path: path.name.partition(".")[0])
def test_what_was_once_proven_falsely_is_not_proven_at_sizes(before: Path) -> None:
    found, name = prove(*sides(before), BUDGET).proof, before.name.partition(".")[0]
    if name in FALSE_AT_OTHER_SIZES:
        assert found.kind in ("sizes", None)  # None where the time is used up
        assert "proven for all" not in found.sentence()
    elif name in FALSE_IN_SIGNS_OF_ZEROS:
        assert found.scope.method == "field"
        assert any("in the sign of a zero" in one for one in found.assumed)
    elif name in TRUE_UP_TO_ROUNDING:
        assert found.scope.method == "reals"
    else:
        assert not found.is_proven


ON_FEW_VALUES = [
    pair
    for pair in pairs()
    if pair.kind in ("values", "precision", "borders", "large neighbours", "whole numbers")
]


@pytest.mark.parametrize("pair", ON_FEW_VALUES, ids=lambda pair: f"{pair.kind}: {pair.name}")
def test_what_few_values_show_is_not_proven_at_sizes(pair: Pair) -> None:
    found = proof(pair.before, pair.after)
    if pair.name == "floats summed up as float16":
        assert found.scope.method == "reals"
    else:
        assert not found.is_proven


UNEQUAL = {
    "what cancels": (
        """(float[N] x) => (float[N] y) {
        o = Constant <value_float = 1.0> () z = Add (x, o) y = Sub (z, o) }""",
        "(float[N] x) => (float[N] y) { y = Identity (x) }",
    ),
    "a variance by moments": (
        """(float[N,3] x) => (float[N,1] y) { a = Constant <value_ints = [1]> ()
        m = ReduceMean (x, a) d = Sub (x, m) y0 = Mul (d, d) y = ReduceMean (y0, a) }""",
        """(float[N,3] x) => (float[N,1] y) { a = Constant <value_ints = [1]> ()
        m = ReduceMean (x, a) mm = Mul (m, m) s = Mul (x, x) q = ReduceMean (s, a)
        y = Sub (q, mm) }""",
    ),
    "a quotient in lowest terms": (
        "(float[N] x) => (float[N] y) { a = Mul (x, x) y = Div (x, a) }",
        "(float[N] x) => (float[N] y) { y = Reciprocal (x) }",
    ),
    "0 times a number that may be infinite": (
        """(float[N] x) => (float[N] y) {
        o = Constant <value_float = 0.0> () y = Mul (x, o) }""",
        """(float[N] x) => (float[N] y) {
        o = Constant <value_float = 0.0> () s = Shape (x) y = Expand (o, s) }""",
    ),
    "a whole number through a double": (
        "(int64[N] x) => (int64[N] y) { y = Identity (x) }",
        "(int64[N] x) => (int64[N] y) { d = Cast <to = 11> (x) y = Cast <to = 7> (d) }",
    ),
    "a sum rounded to another type": (
        "(float16[N] x, float16[N] w) => (float[N] y) { s = Add (x, w) y = Cast <to = 1> (s) }",
        """(float16[N] x, float16[N] w) => (float[N] y) {
        a = Cast <to = 1> (x) b = Cast <to = 1> (w) y = Add (a, b) }""",
    ),
    "random numbers with a seed": (
        """(float[N] x) => (float[N] y) {
        r = Constant <value_float = 0.5> () t = Constant <value = bool {1}> ()
        y = Dropout <seed = 1> (x, r, t) }""",
        "(float[N] x) => (float[N] y) { y = Identity (x) }",
    ),
    "the sign of whole numbers": (
        "(float[N] x, int64 n) => (int64 y) { y = Identity (n) }",
        "(float[N] x, int64 n) => (int64 y) { y = Abs (n) }",
    ),
}


EQUAL_UP_TO_ROUNDING = {
    "what cancels",
    "a variance by moments",
    "0 times a number that may be infinite",
    "a sum rounded to another type",
}


@pytest.mark.parametrize("name", UNEQUAL)
def test_other_numbers_are_not_a_matter_of_order(name: str) -> None:
    found = proof(*UNEQUAL[name])
    if name in EQUAL_UP_TO_ROUNDING:
        assert found.scope.method == "reals"
    else:
        assert found.verdict == "unproven"
        assert found.detail


REGROUPED = {
    "a Loop that adds up, and a sum": (
        """(float[T] x, float h) => (float y) { axes = Constant <value_ints = [0]> ()
        s = ReduceSum <keepdims = 0> (x, axes) y = Add (h, s) }""",
        """(float[T] x, float h) => (float y) {
        y = Scan <num_scan_inputs = 1, body = b (float s, float r) => (float t) {
            t = Add (r, s) }> (h, x) }""",
    ),
    "a sum of products, and a product": (
        "(float[N,2] x, float[2,M] w) => (float[N,M] y) { y = MatMul (x, w) }",
        """(float[N,2] x, float[2,M] w) => (float[N,M] y) {
        a, b = Split <axis = 1, num_outputs = 2> (x) c, d = Split <num_outputs = 2> (w)
        p = Mul (a, c) q = Mul (b, d) y = Add (p, q) }""",
    ),
}


@pytest.mark.parametrize("name", REGROUPED)
def test_sums_in_another_order_are_proven_up_to_it(name: str) -> None:
    found = proof(*REGROUPED[name])
    if name == "a Loop that adds up, and a sum":  # without time 0.0 is added, which -0.0 shows
        assert found.scope.method == "reals"
        return
    assert found.scope.method == "field"
    assert found.scope.bits >= 60
    assert found.scope.executed >= 10
    assert found.sentence().endswith("4 more, up to the order of summation")


def test_the_order_of_a_maximum_decides_the_sign_of_a_zero() -> None:
    one = "(float[N] x, float[N] w) => (float[N] y) { y = Max (x, w) }"
    other = "(float[N] x, float[N] w) => (float[N] y) { y = Max (w, x) }"
    assert proof(one, other).scope.method == "field"
    one, other = (text.replace("float", "int64") for text in (one, other))
    assert proof(one, other).scope.method == "terms"


def test_the_value_of_a_pad_may_be_an_attribute() -> None:
    text = """<ir_version: 4, opset_import: ["" : 10]> g (float[2] x) => (float[3] y) {
        i = Constant <value = int64[1] {1}> () last = Gather (x, i)
        two = Constant <value = float[1] {2}> () y = @ }"""
    padded, number, element = (
        Model.load(onnx.parser.parse_model(text.replace("@", node)))
        for node in (
            "Pad <pads = [0, 1], value = 2.0> (x)",
            "Concat <axis = 0> (x, two)",
            "Concat <axis = 0> (x, last)",
        )
    )
    assert prove_at_sizes(padded, number, BUDGET).scope.method == "terms"
    assert not prove_at_sizes(padded, element, BUDGET).is_proven


def test_the_largest_of_one_operand_is_itself() -> None:
    text = "(float[N] x) => (float[N] y) { @ }"
    found = proof(text.replace("@", "y = Max (x)"), text.replace("@", "y = Identity (x)"))
    assert {draw.shapes for draw in found.scope.draws} >= {(("x", (2,)),), (("x", (0,)),)}


def test_a_condition_on_floats_divides_the_runs() -> None:
    text = """(float[N] x, float c, float d) => (float[N] y) {
        b = Less (c, d) y = If (b) <then_branch = t () => (float[N] r) { r = Neg (x) },
            else_branch = e () => (float[N] q) { @ }> }"""
    right, wrong = text.replace("@", "q = Exp (x)"), text.replace("@", "q = Tanh (x)")
    same = proof(right, right)
    assert same.scope.method == "terms"
    assert same.paths == 2 * len(same.scope.draws)
    assert not proof(right, wrong).is_proven


def test_a_loop_that_floats_end_is_proven_for_a_few_decisions() -> None:
    text = """(float x) => (float y) { n = Constant <value_int = 100> ()
        y = Loop <body = b (int64 i, bool c, float s) => (bool d, float t) {
            t = Mul (s, s) d = Less (t, x) }> (n, , x) }"""
    found = proof(text, text)
    assert found.scope.decisions == 6
    assert "for at most 6 conditions on floats in a run" in found.sentence()


def test_whole_numbers_that_decide_sizes_are_drawn_and_named() -> None:
    text = """(float[2] h, int64 n) => (float[2] y) {
        y = Loop <body = b (int64 i, bool c, float[2] s) => (bool d, float[2] t) {
            t = Tanh (s) d = Identity (c) }> (n, , h) }"""
    found = proof(text, text)
    numbers = {dict(draw.elements)["n"] for draw in found.scope.draws}
    assert {(0,), (1,), (2,), (3,)} <= numbers
    assert "n = 3" in found.rests_on[0]


def test_whole_numbers_that_are_only_computed_with_are_free() -> None:
    text = "(int64[N] a, int64[N] b) => (int64[N] y) { p = Mul (a, b) y = Add (p, a) }"
    found = proof(text, text)
    assert all(not draw.elements for draw in found.scope.draws)


def test_sizes_that_floats_decide_are_not_provable() -> None:
    text = """(float x) => (float[N] y) { z = Constant <value_ints = [1]> ()
        n = Cast <to = 7> (x) s = Reshape (n, z) y = ConstantOfShape (s) }"""
    found = proof(text, text)
    assert (found.verdict, found.code) == ("not-provable", "decision")


def test_parts_of_given_sizes_are_not_provable_without_their_axis() -> None:
    text = """(float[4,3] x) => (float[3] y) { n = Constant <value_int = @> ()
        s = SplitToSequence <keepdims = 0> (x, n) z = ConcatFromSequence <axis = 0> (s)
        e = Constant <value_int = 0> () y = Gather (z, e) }"""
    found = proof(text.replace("@", "1"), text.replace("@", "2"))  # onnxruntime removes the axis
    assert (found.verdict, found.code) == ("not-provable", "operator")


def test_a_sentence_has_the_first_sizes_and_the_lines_after_it_all() -> None:
    few = Scope("terms", (Draw((("x", (2, 2)),)), Draw((("x", (0, 2)),))))
    found = Proof("proven", paths=2, scope=few)
    assert found.sentence() == "proven at sizes x[2,2]; x[0,2]"
    assert found.rests_on == []
    many = Scope("terms", tuple(Draw((("sequence", (size, 8)),)) for size in range(9)))
    found = Proof("proven", paths=9, scope=many)
    named = "sequence[0,8]; sequence[1,8]; sequence[2,8]; 6 more"
    assert found.sentence() == f"proven at sizes {named}"
    assert found.rests_on == [f"sizes: {many.sizes}"]
    assert many.sizes.endswith("sequence[7,8]; sequence[8,8]")


def test_a_sentence_has_the_first_conditions() -> None:
    found = Proof("not-provable", "budget", where=["T >= 1", "B >= 17", "x" * 90, "T >= 2"])
    assert found.sentence() == "not-provable: budget; if T >= 1 and B >= 17 and 2 more"
    found = Proof("not-provable", "budget", where=["x" * 90])
    assert found.sentence() == f"not-provable: budget; if {'x' * 50}..."


def test_the_widest_scope_is_told() -> None:
    text, right, _ = WRONG["another captured value"]
    found = prove(*models(text.replace("@", right), text.replace("@", right)), BUDGET).proof
    assert found.scope.method == "symbolic"
    assert found.sentence() == "proven for all sizes"


@pytest.mark.filterwarnings("ignore:The onnxtxt format is experimental")
@pytest.mark.parametrize(
    ("part", "method"),
    [
        ("/expand/", "field"),
        ("/unroll-partial/", "terms"),
        ("/recognize-cell/lstm.", "field"),
        ("/drop-sequences/", "terms"),
    ],
)
def test_golden_pairs_are_proven_at_sizes(part: str, method: str) -> None:
    proofs = [prove_at_sizes(*sides(path), 10.0) for path in golden_pairs(part)[:4]]
    assert proofs
    assert {one.scope.method for one in proofs} == {method}
    assert all(one.is_proven for one in proofs)


def test_a_bound_of_zero_is_no_maximum_since_zeros_have_signs() -> None:
    clipped = "(float x) => (float y) <float zero = {0}> { y = Clip (x, zero) }"
    assert proof(clipped, clipped.replace("Clip", "Max")).scope.method == "reals"


def test_a_comparison_is_of_sums_as_they_wrap() -> None:
    double = "(int64[N] a) => (bool[N] y) { s = Add (a, a) y = Less (s, a) }"
    none = "(int64[N] a) => (bool[N] y) { s = Sub (a, a) y = Less (a, s) }"
    assert proof(double, none).code == "element"
    assert proof(double, none.replace("Less (a, s)", "Greater (s, a)")).code == "element"


def test_a_bool_that_holds_is_not_one_that_does_not() -> None:
    chosen = """(float[N] x) => (bool y) <bool holds = {1}> { s = ReduceSum (x) z = Identity (s)
        y = Identity (holds) }"""
    assert not proof(chosen, chosen.replace("{1}", "{0}")).is_proven


def test_bounds_that_bound_nothing_are_none() -> None:
    text = "(float x) => (float y) <float low = {-inf}, float high = {inf}> { y = @ }"
    clipped, copied = (text.replace("@", one) for one in ("Clip (x, low, high)", "Identity (x)"))
    assert proof(clipped, copied).scope.method == "terms"
