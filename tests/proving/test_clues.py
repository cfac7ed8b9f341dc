"""What a proof that fails teaches execution: the inputs on which two models differ."""

from __future__ import annotations

import numpy as np
import onnx.parser
import pytest

from passes.ir.model import Model
from passes.proving.clues import cases_of
from passes.proving.narrowing import Executing, prove
from passes.proving.pair import Pair as Models
from passes.proving.prover import Attempt, attempt
from tests.instruments.mutants.outcomes import Pair, pairs
from tests.proving.test_wrong_pairs import WRONG, timely

HEAD = '<ir_version: 10, opset_import: ["" : 21]> g '
#: Pairs that differ in the last bits, in the sign of a zero, or in onnxruntime alone.
ALIKE = {
    "a float without an upper bound",
    "a float without bounds, which is finite in onnxruntime",
    "an addition of 0",
    "a sum of one element, which makes 0 of -0",
    "a sum in another order",
}
#: Seeded faults, most of them at sizes that no plain draw reaches.
RARE = {
    "T > 128, scanned",
    "B >= 129, scanned",
    "beyond 2,000 elements, scanned",
    "T is odd above 8, moved",
    "Gather of columns",
    "all of 12",
}


def model(graph: str) -> Model:
    return Model.load(onnx.parser.parse_model(HEAD + graph))


def judged(before: str, after: str) -> Attempt:
    return prove(model(before), model(after), executing=Executing("reference", 20))


def wrong(name: str) -> tuple[str, str]:
    text, right, other = WRONG[name]
    return text.replace("@", right), text.replace("@", other)


@pytest.mark.parametrize("name", timely(sorted(set(WRONG) - ALIKE)))
def test_a_wrong_pair_is_disproven(name: str) -> None:
    found = judged(*wrong(name))
    assert (found.proof.verdict, found.proof.code) == ("disproven", "mismatch")
    assert found.failure is not None
    assert len(found.proof.inputs) == len(found.failure.case.feeds)


@pytest.mark.parametrize("name", sorted(ALIKE))
def test_a_pair_that_differs_in_bits_alone_is_not_disproven(name: str) -> None:
    assert judged(*wrong(name)).proof.verdict != "disproven"


@pytest.mark.parametrize(
    "pair", [pair for pair in pairs() if pair.name in RARE], ids=lambda pair: pair.name
)
def test_a_fault_on_rare_inputs_is_disproven(pair: Pair) -> None:
    assert judged(pair.before, pair.after).proof.verdict == "disproven"


def sizes_drawn(before: str, after: str, name: str) -> set[int]:
    """The first sizes of an input in the cases for which the proof of a pair asks."""
    found = attempt(Models.of(model(before), model(after)))
    cases = cases_of(model(before).proto, found.clues)
    return {np.asarray(case.feeds[name]).shape[0] for case in cases}


def test_a_size_is_drawn_on_both_sides_of_a_comparison() -> None:
    assert sizes_drawn(*wrong("T > 121"), "x") >= {2, 122}


def test_a_size_is_drawn_with_the_rest_that_a_division_leaves() -> None:
    assert 15 in {size % 16 for size in sizes_drawn(*wrong("T mod 16 == 15"), "x")}


def test_sizes_are_drawn_whose_product_is_compared() -> None:
    text = """(float[B,T] x) => (float[B,T] y) {
        most = Constant <value_int = 2000> () n = Size (x) g = Greater (n, most)
        z = Neg (x) y = Where (g, @, x) }"""
    found = attempt(Models.of(model(text.replace("@", "x")), model(text.replace("@", "z"))))
    cases = cases_of(model(text.replace("@", "x")).proto, found.clues)
    elements = {np.asarray(case.feeds["x"]).size for case in cases}
    assert min(elements) < 2000 < max(elements)


def test_a_number_is_drawn_that_equals_a_size() -> None:
    text = """(int64 n, float[T] x) => (float[T] y) {
        t = Size (x) e = Equal (t, n) z = Neg (x) y = Where (e, @, x) }"""
    found = judged(text.replace("@", "x"), text.replace("@", "z"))
    assert found.failure is not None
    feeds = found.failure.case.feeds
    assert np.asarray(feeds["n"]) == np.asarray(feeds["x"]).size


def test_a_number_of_another_type_is_drawn_that_equals_a_size() -> None:
    text = """(int32 k, float[T] x) => (float[T] y) {
        n = Cast <to = 7> (k) most = Constant <value_int = 777> () g = Greater (n, most)
        t = Size (x) s = Equal (t, n) e = And (s, g) z = Neg (x) y = Where (e, @, x) }"""
    found = judged(text.replace("@", "x"), text.replace("@", "z"))
    assert found.failure is not None
    feeds = found.failure.case.feeds
    assert np.asarray(feeds["k"]) == np.asarray(feeds["x"]).size > 777


def test_floats_are_drawn_around_a_constant_that_is_compared() -> None:
    text = """(float[T,2] x) => (float[2] y) {
        axes = Constant <value_ints = [0]> () s = ReduceSum <keepdims = 0> (x, axes)
        most = Constant <value_float = 1e20> () g = Greater (s, most) z = Neg (s)
        y = Where (g, @, s) }"""
    found = judged(text.replace("@", "s"), text.replace("@", "z"))
    assert found.failure is not None
    assert np.abs(np.asarray(found.failure.case.feeds["x"])).max() > 1e19


def test_the_largest_numbers_are_not_drawn() -> None:
    """A sum of them is infinite or not, by the order in which it is added up."""
    text = "(float[N] x, float[N] y) => (float[N] z) { z = @ (x, y) }"
    before, after = (model(text.replace("@", op)) for op in ("Add", "Sub"))
    cases = cases_of(before.proto, attempt(Models.of(before, after)).clues)
    drawn = np.concatenate([np.asarray(case.feeds["x"]) for case in cases])
    assert np.isinf(drawn).any()
    assert np.abs(drawn[np.isfinite(drawn)]).max() < 1e19


def test_models_of_other_signatures_are_not_executed() -> None:
    graph = "(float[T] x) => (float[T] @) { @ = Neg (x) }"
    found = judged(graph.replace("@", "y"), graph.replace("@", "z"))
    assert (found.proof.verdict, found.proof.code) == ("unproven", "signature")
