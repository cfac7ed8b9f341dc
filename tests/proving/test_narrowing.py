"""A proof covers as many inputs as one is found for, and its sentence tells which."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any

import onnx.parser
import pytest

from passes.ir.model import Model
from passes.proving import prover
from passes.proving.certificate import Certificate, DoesNotHold
from passes.proving.loops.relations import Comparison
from passes.proving.narrowing import Executing, prove
from passes.proving.promises import NO_PROMISES, Promises
from passes.reports.proof import Proof, Stated
from tests.written import changed

HEAD = '<ir_version: 10, opset_import: ["" : 21]> g '


def model(graph: str) -> Model:
    return Model.load(onnx.parser.parse_model(HEAD + graph))


def proof(before: str, after: str, promises: Promises = NO_PROMISES) -> Proof:
    return prove(model(before), model(after), 10.0, promises).proof


#: -x, but x at one number of rows.
ROWS = "(float[T] x) => (float[T] y) { y = Neg (x) }"
OTHER_ROWS = """(float[T] x) => (float[T] y) {
    n = Neg (x)
    size = Size (x)
    rows = Constant <value_int = 65> ()
    is_here = Equal (size, rows)
    y = Where (is_here, x, n) }"""
#: As many cosines as an input tells, and one less of more than 8.
STEPS = """(float x, int64 steps) => (float y) {
    y = Loop <body = b (int64 i, bool go, float s) => (bool on, float t) {
        on = Identity (go) t = Cos (s) }> (steps, , x) }"""
FEWER_STEPS = """(float x, int64 steps) => (float y) {
    most = Constant <value_int = 8> ()
    is_more = Greater (steps, most)
    one = Cast <to = 7> (is_more)
    fewer = Sub (steps, one)
    y = Loop <body = b (int64 i, bool go, float s) => (bool on, float t) {
        on = Identity (go) t = Cos (s) }> (fewer, , x) }"""


def test_where_no_size_is_free_a_proof_is_one_for_all_inputs() -> None:
    found = proof(changed(ROWS, {"[T]": "[3]"}), changed(OTHER_ROWS, {"[T]": "[3]"}))
    assert found.sentence() == "proven for all inputs"
    assert (found.kind, found.scope.method) == ("all", "symbolic")


def test_the_budget_holds_after_a_case_whose_sizes_are_excluded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ends: list[float] = []
    path = prover._path

    def noted(compared: Comparison, *others: Any) -> bool:
        ends.append(compared.algebra.terms.end)
        return path(compared, *others)

    monkeypatch.setattr(prover, "_path", noted)
    twice = """(float[T] x) => (float[U] y) {
        n = Neg (x) xx = Concat <axis = 0> (x, x) t = Size (x)
        most = Constant <value_int = 1000> () is_less = Less (t, most)
        y = If (is_less) <
            then_branch = g1 () => (float[V] a) { a = Identity (n) },
            else_branch = g2 () => (float[V] b) { b = Identity (xx) }> }"""
    found = proof(changed(ROWS, {"float[T] y": "float[U] y"}), twice)
    assert found.sentence() == "proven for T in 0..999"
    assert len(ends) > 2
    assert all(map(math.isfinite, ends))


def test_sizes_that_are_free_are_named() -> None:
    assert proof(ROWS, ROWS).sentence() == "proven for all sizes"


def test_the_only_sizes_that_there_are_need_not_be_named() -> None:
    sequence = """(float[4] x) => (float[4] y) {
        parts = Constant <value_ints = [3, 1]> ()
        s = SplitToSequence <axis = 0> (x, parts) y = ConcatFromSequence <axis = 0> (s) }"""
    found = proof(sequence, "(float[4] x) => (float[4] y) { y = Identity (x) }")
    assert found.sentence() == "proven for all inputs"
    assert (found.kind, found.scope.method) == ("all", "terms")


#: Norms of a state, until one is large or some iterations are over.
UNTIL = """(float[2] x) => (float[2] y) {
    most = Constant <value_int = 9> ()
    yes = Constant <value = bool {1}> ()
    large = Constant <value_float = 9.0> ()
    y = Loop <body = b (int64 i, bool go, float[2] s) => (bool on, float[2] t) {
        t = LpNormalization (s)
        sum = ReduceSum <keepdims = 0> (t)
        on = Less (sum, large) }> (most, yes, x) }"""
TOP = """(float[3] x, int64[1] k) => (float[M] y) <int64[1] k = {1}> {
    y, place = TopK (x, k) }"""
TOP_ONE = """(float[3] x, int64[1] k) => (float[M] y) <int64[1] k = {1}> {
    one = Constant <value_ints = [1]> ()
    y, place = TopK (x, one) }"""
RANDOM = "(float[3] x) => (float[3] y) { r = RandomNormalLike (x) y = Add (x, r) }"
JOINED = "(seq(float[3]) x) => (float[N] y) { y = ConcatFromSequence <axis = 0> (x) }"
JOINED_AGAIN = """(seq(float[3]) x) => (float[N] y) {
    a = ConcatFromSequence <axis = 0> (x)
    s = SplitToSequence <axis = 0> (a)
    y = ConcatFromSequence <axis = 0> (s) }"""
#: Pairs without free sizes, of which not all inputs are compared at the only sizes, and a part of
#: what the sentence tells of that.
PARTS = {
    "a default decides": (TOP, TOP_ONE, "k = 1"),
    "conditions on floats are left out": (
        UNTIL,
        changed(UNTIL, {"value_int = 9": "value_int = 10"}),
        "for at most 6 conditions on floats",
    ),
    "numbers are random": (RANDOM, RANDOM, "at sizes x[3]"),
    "a sequence has a drawn length": (JOINED, JOINED_AGAIN, "x of length 2"),
}


@pytest.mark.parametrize("name", PARTS)
def test_a_proof_of_some_inputs_is_none_for_all(name: str) -> None:
    before, after, told = PARTS[name]
    found = proof(before, after)
    assert found.kind == "sizes"
    assert told in found.sentence()


def test_strings_decide_how_many_are_left() -> None:
    """Without "a", of ["a", "b"] one is left."""
    words = """(string[2] x) => (int64[1] n) {
        y = StringNormalizer <stopwords = ["a"]> (x) n = Shape (y) }"""
    two = "(string[2] x) => (int64[1] n) { n = Constant <value_ints = [2]> () }"
    assert not proof(words, two).is_proven


def test_a_range_ends_before_the_size_that_differs() -> None:
    found = proof(ROWS, OTHER_ROWS)
    assert found.sentence() == "proven for T in 0..64"
    assert (found.kind, found.scope.method) == ("sizes", "symbolic")
    assert proof(ROWS, changed(OTHER_ROWS, {"65": "64"})).scope.stated == (Stated("T", 0, 32),)
    assert not proof(ROWS, changed(OTHER_ROWS, {"65": "3"})).is_proven


def test_a_size_that_differs_is_executed_before_a_range_is_proven() -> None:
    found = prove(model(ROWS), model(OTHER_ROWS), executing=Executing("reference", 10))
    assert found.proof.verdict == "disproven"
    assert found.failure is not None


def test_a_range_may_begin_at_one() -> None:
    """The sum of no rows is 0.0."""
    sums = """(float[T,2] x) => (float[2] y) {
        axis = Constant <value_ints = [0]> () y = ReduceSum <keepdims = 0> (x, axis) }"""
    after = """(float[T,2] x) => (float[2] y) {
        axis = Constant <value_ints = [0]> ()
        sum = ReduceSum <keepdims = 0> (x, axis)
        size = Size (x)
        zero = Constant <value_int = 0> ()
        one = Constant <value_float = 1.0> ()
        is_empty = Equal (size, zero)
        y = Where (is_empty, one, sum) }"""
    assert proof(sums, after).sentence() == "proven for T in 1..64"


def test_several_sizes_are_fixed_if_one_is_not_enough() -> None:
    rows = {"[T]": "[T,N]", "65": "31"}
    found = proof(changed(ROWS, {"[T]": "[T,N]"}), changed(OTHER_ROWS, rows))
    assert [one.name for one in found.scope.stated] == ["T", "N"]
    assert all(one.first == 0 and 4 <= one.last < 31 for one in found.scope.stated)


def test_a_trip_count_is_fixed() -> None:
    assert proof(STEPS, FEWER_STEPS).sentence() == "proven for steps in 0..8"
    assert proof(STEPS, FEWER_STEPS, Promises(max_trips=8)).sentence() == (
        "proven for all inputs, under --max-trips 8"
    )


@pytest.mark.slow
def test_a_size_at_which_the_original_fails_is_no_evidence() -> None:
    square = """(float[T] x) => (float[99,99] y) {
        shape = Constant <value_ints = [99, 99]> () y = Reshape (x, shape) }"""
    after = """(float[T] x) => (float[99,99] y) {
        shape = Constant <value_ints = [99, 99]> () n = Neg (x) y = Reshape (n, shape) }"""
    assert not proof(square, after).is_proven


def test_drawn_sizes_that_are_a_range_are_named_as_one() -> None:
    text = "(float[N,1,5] x, float[1,1,2] w) => (float[N,1,4] y) { @ }"
    rows = """c = Conv (x, w) size = Shape <end = 1> (x) four = Constant <value_ints = [4]> ()
        is_here = Equal (size, four) n = Neg (c) y = Where (is_here, n, c)"""
    found = proof(changed(text, {"@": "y = Conv (x, w)"}), changed(text, {"@": rows}))
    assert found.scope.stated[0].name == "N"
    assert found.scope.stated[0].last < 4


def certificate_of(before: str, after: str) -> Certificate:
    one, other = model(before), model(after)
    found = prove(one, other, 10.0)
    return Certificate.read(Certificate.of(one, other, found.proof).to_json())


def test_a_range_of_sizes_has_a_certificate() -> None:
    made = certificate_of(ROWS, changed(OTHER_ROWS, {"65": "100000"}))
    after = model(changed(OTHER_ROWS, {"65": "100000"}))
    assert made.check(model(ROWS), after).sentence() == "proven for T in 0..64"
    for stated in (Stated("T", 5, 4), Stated("N", 0, 4), Stated("T", 0, 10**12)):
        forged = replace(made, scope=replace(made.scope, stated=(stated,)))
        with pytest.raises(DoesNotHold):
            forged.check(model(ROWS), after, 2.0)


def test_a_wider_range_than_is_proven_does_not_hold() -> None:
    made = certificate_of(ROWS, OTHER_ROWS)
    forged = replace(made, scope=replace(made.scope, stated=(Stated("T", 0, 65),)))
    for one in (made, forged):
        with pytest.raises(DoesNotHold, match="disproven by x: float32"):
            one.check(model(ROWS), model(OTHER_ROWS))


def test_the_only_sizes_have_a_certificate() -> None:
    sequence = """(float[4] x) => (float[4] y) {
        parts = Constant <value_ints = [3, 1]> ()
        s = SplitToSequence <axis = 0> (x, parts) y = ConcatFromSequence <axis = 0> (s) }"""
    plain = "(float[4] x) => (float[4] y) { y = Identity (x) }"
    made = certificate_of(sequence, plain)
    assert made.check(model(sequence), model(plain)).sentence() == "proven for all inputs"
    some = certificate_of(TOP, TOP_ONE)
    values = json.loads(some.to_json())
    values["scope"]["static"] = True
    with pytest.raises(DoesNotHold):
        Certificate.read(json.dumps(values)).check(model(TOP), model(TOP_ONE))
