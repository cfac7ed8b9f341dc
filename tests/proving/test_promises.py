"""Promises of the user are facts of the original: proofs use them, and no inputs that break them
are executed."""

from __future__ import annotations

from pathlib import Path

import onnx
import onnx.parser
import pytest
from onnx import ModelProto

import passes
from passes.choices import Assumption, RuleOptions
from passes.ir.model import Model
from passes.proving.promises import Promises
from tests.instruments.proven import at_drawn_sizes as prove_at_sizes
from tests.instruments.proven import for_all_sizes as prove
from tests.written import changed

GOLDEN = Path(__file__).parents[2] / "golden_models"

HEAD = '<ir_version: 10, opset_import: ["" : 21]> g '

SUM = """<ir_version: 10, opset_import: ["" : 21]>
g (float h, int64 trips) => (float y) {
   y = Loop <body = step (int64 i, bool go, float s) => (bool on, float t) {
      on = Identity (go)
      t = Neg (s)
   }> (trips, "", h)
}"""

#: Two iterations of it, each if there is one.
TWO = """<ir_version: 10, opset_import: ["" : 21]>
g (float h, int64 trips) => (float y) {
   zero = Constant <value_int = 0> ()
   one = Constant <value_int = 1> ()
   first = Greater (trips, zero)
   second = Greater (trips, one)
   a = Neg (h)
   b = Neg (a)
   c = Where (second, b, a)
   y = Where (first, c, h)
}"""

ROWS = """<ir_version: 10, opset_import: ["" : 21]>
g (float[T] x, float[N] weights) => (float[T] y) {
   first = Constant <value_int = 0> ()
   y = Scan <num_scan_inputs = 1, body = step (float r) => (float o) {
      w = Gather (weights, first)
      o = Mul (r, w)
   }> (x)
}"""

#: The weight is read if there is no row, too.
HOISTED = """<ir_version: 10, opset_import: ["" : 21]>
g (float[T] x, float[N] weights) => (float[T] y) {
   first = Constant <value_int = 0> ()
   w = Gather (weights, first)
   y = Scan <num_scan_inputs = 1, body = step (float r) => (float o) { o = Mul (r, w) }> (x)
}"""


def parsed(text: str) -> ModelProto:
    return onnx.parser.parse_model(text)


def pair(before: str, after: str) -> tuple[Model, Model]:
    return Model.load(parsed(before)), Model.load(parsed(after))


def golden(name: str) -> tuple[ModelProto, ModelProto]:
    before, after = (GOLDEN / f"{name}.{side}.onnxtxt" for side in ("before", "after"))
    return onnx.load(before), onnx.load(after)


def test_a_loop_runs_no_more_often_than_promised() -> None:
    assert prove(*pair(SUM, TWO)).code == "element"
    proof = prove(*pair(SUM, TWO), promises=Promises(max_trips=2))
    assert proof.is_proven
    assert proof.sentence().endswith("for all inputs, under --max-trips 2")
    told = "promised: --max-trips 2: no Loop of unknown trip count runs over 2 iterations"
    assert told in proof.rests_on


def test_more_than_the_outcome_has_is_no_promise_that_helps() -> None:
    assert not prove(*pair(SUM, TWO), promises=Promises(max_trips=3)).is_proven


def test_no_input_is_empty() -> None:
    assert prove(*pair(ROWS, HOISTED)).code == "fails"
    proof = prove(*pair(ROWS, HOISTED), promises=Promises(non_empty=True))
    assert proof.is_proven
    assert "under --assume non-empty" in proof.sentence()


def test_inputs_that_break_a_promise_disprove_nothing() -> None:
    before, after = parsed(SUM), parsed(TWO)
    assert passes.prove(before, after, executor="reference").verdict == "disproven"
    assert passes.prove(before, after, executor="reference", max_trips=2).is_proven
    with pytest.raises(ValueError, match="executor is 'numpy', not one of reference, onnxruntime"):
        passes.prove(before, after, executor="numpy", max_trips=2)
    three = changed(TWO, {"Greater (trips, one)": "Greater (trips, zero)"})
    found = passes.prove(before, parsed(three), executor="reference", max_trips=2)
    assert found.verdict == "disproven"
    assert "trips: int64[] = 1" in found.inputs


def test_inputs_that_break_a_promise_are_not_drawn() -> None:
    promised = Promises(max_trips=2)
    assert prove_at_sizes(*pair(SUM, TWO), promises=promised).is_proven
    assert prove_at_sizes(*pair(SUM, TWO)).code == "element"


def test_the_most_iterations_that_a_promise_allows_are_drawn() -> None:
    before = parsed(changed(SUM, {"Neg (s)": "Cos (s)"}))
    after = parsed(changed(TWO, {"Neg (h)": "Cos (h)", "Neg (a)": "Cos (a)"}))
    assert passes.prove(before, after, max_trips=2).is_proven
    found = passes.prove(before, after, max_trips=3, executor="reference")
    assert found.verdict == "disproven"
    assert "trips: int64[] = 3" in found.inputs


def test_a_known_trip_count_is_not_promised() -> None:
    five = changed(
        SUM, {"y = Loop": "five = Constant <value_int = 5> () y = Loop", "(trips,": "(five,"}
    )
    other = changed(five, {"Neg (s)": "Abs (s)"})
    assert prove(*pair(five, five), promises=Promises(max_trips=2)).is_proven
    assert prove(*pair(five, other), promises=Promises(max_trips=2)).code == "element"


def test_a_promise_that_no_inputs_keep_proves_nothing() -> None:
    none = changed(ROWS, {"float[N] weights": "float[0] weights"})
    other = changed(HOISTED, {"float[N] weights": "float[0] weights"})
    assert prove(*pair(none, other), promises=Promises(non_empty=True)).code == "promise"


def test_promises_of_commands_one_after_the_other() -> None:
    options = [
        RuleOptions(max_trips=8, dims={"T": 4}),
        RuleOptions(assume=(Assumption.non_empty,), max_trips=5),
    ]
    given = ("--dim T=4: both models are bound to it",)
    assert Promises.of(options) == Promises(5, non_empty=True, given=given)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The onnxtxt format is experimental")
def test_a_rewrite_is_proven_under_its_own_options() -> None:
    before, _ = golden("unroll/check_output")
    told = {"max_trips": 2, "check_output": "enough"}
    done = passes.unroll(before, **told, executor="reference", require_proof="all")
    assert done.report.proof is not None
    assert done.report.proof.promised
    again = passes.prove(before, done, **told, executor="reference")
    assert again.is_proven


@pytest.mark.filterwarnings("ignore:The onnxtxt format is experimental")
def test_models_are_bound_as_the_command_bound_them() -> None:
    facts = {"shapes": {"x": (1, 576)}, "values": {"rate": 16000}}
    assert passes.prove(*golden("simplify/bound"), executor="reference").code == "signature"
    proof = passes.prove(*golden("simplify/bound"), executor="reference", **facts)
    assert proof.is_proven
    assert "under --shape x, --set rate" in proof.sentence()


def test_an_original_that_always_breaks_a_promise_is_not_executed() -> None:
    """It runs T + 3 iterations: the guard of the promise fails, whatever T is."""
    size = "dims = Shape (h) size = Squeeze (dims) three = Constant <value_int = 3> ()"
    more = changed(
        SUM,
        {
            "float h, int64 trips": "float[T] h",
            "float y)": "float[T] y)",
            "y = Loop": f"{size} trips = Add (size, three) y = Loop",
            "float s": "float[T] s",
            "float t)": "float[T] t)",
        },
    )
    other = HEAD + "(float[T] h) => (float[T] y) { y = Abs (h) }"
    found = passes.prove(parsed(more), parsed(other), max_trips=2, executor="reference")
    assert found.code == "promise"


def test_an_original_that_never_answers_at_a_given_size_proves_nothing() -> None:
    four = (
        HEAD
        + """(float[T] x) => (float[K] y) {
        sizes = Constant <value_ints = [4]> () y = Reshape (x, sizes) }"""
    )
    other = HEAD + "(float[T] x) => (float[K] y) { y = Abs (x) }"
    found = passes.prove(parsed(four), parsed(other), dims={"T": 3}, executor="reference")
    assert found.code == "promise"
    assert passes.prove(parsed(four), parsed(four), dims={"T": 4}).is_proven
