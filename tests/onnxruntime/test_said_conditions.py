"""Loops without a condition get one where onnxruntime may inline the branch that they are in."""

from __future__ import annotations

import re

import pytest
from onnx import ModelProto

from passes.ir import scope as scoping
from passes.testing import as_model, assert_rewrite
from tests.written import changed

#: A branch of an If that onnxruntime inlines.
IN_BRANCH = """
<ir_version: 10, opset_import: ["" : 21, "f" : 1]>
g (int64 trips, int64 few, int64[2] row, float[T,2] x) => (int64[N,2] z)
<bool fixed = {1}> {
   z = If (fixed) <then_branch = runs () => (int64[N,2] s) { LOOPS },
      else_branch = rests () => (int64[N,2] n) {
         two = Constant <value_ints = [1, 2]> () n = Reshape (row, two)
      }>
}
"""


def model_of(then: str, before: str = "") -> str:
    """The model with these nodes in the branch, and others before the If."""
    return changed(IN_BRANCH, {"LOOPS": then, "z = If": f"{before} z = If"})


FUNCTION = """
<domain: "f", opset_import: ["" : 21]>
steps (trips, row) => (s) { s_in = Identity (row) %s }
"""


#: A Loop that collects the sums of a row and the number of the iteration.
LOOP = """
   last, s = Loop <body = again (int64 i, bool go, int64[2] r_in)
      => (bool on, int64[2] r_out, int64[2] a) {
      on = Identity (go)
      r_out = Identity (r_in)
      a = Add (r_in, i)
   }> (trips, "", row)
"""


def loop(condition: str) -> str:
    """The Loop with other nodes that compute its condition."""
    return changed(LOOP, {"on = Identity (go)": condition})


def simplified(text: str, pipeline: str = "hoist", **options: object) -> ModelProto:
    """Rewritten, and run in onnxruntime, too, which would not load it."""
    return assert_rewrite(as_model(text), pipeline=pipeline, options=options).model


def heads(model: ModelProto) -> list[list[str]]:
    """What the Loops read, innermost first; `true` for the constant that was added."""
    nodes = [one.node for one in scoping.walk_model(model) if one.node.op_type == "Loop"]
    added = re.compile(r".*/(true|going)(_\d+)?|fixed")
    return [[added.sub("true", name) for name in node.input] for node in nodes]


def test_a_body_that_hands_on_its_condition() -> None:
    model = simplified(model_of(loop("c = Identity (go) on = Identity (c)")))
    assert heads(model) == [["trips", "true"]]


def test_a_body_that_is_always_to_go_on() -> None:
    condition = "on = Constant <value = bool {1}> ()"
    assert heads(simplified(model_of(loop(condition)))) == [["trips", "true"]]


def test_a_body_that_returns_what_it_reads_outside() -> None:
    """`fixed` is a constant of the model, and true."""
    condition = "on = Identity (fixed)"
    assert heads(simplified(model_of(loop(condition)))) == [["trips", "true"]]


@pytest.mark.slow
def test_a_constant_of_the_same_name_around_it_does_not_count() -> None:
    """There, `fixed` is what the Scan scans: it ends the Loop as it did."""
    inner = loop("on = Identity (fixed)") + "sum = ReduceSum <keepdims = 0> (s, one)"
    then = """
       one = Constant <value_ints = [0]> ()
       few_are = Less (row, few)
       s_of_all = Scan <num_scan_inputs = 1, body = step (bool fixed) => (int64[2] o) {
          o = If (fixed) <then_branch = some () => (int64[2] sum) { INNER },
             else_branch = none () => (int64[2] r) { r = Identity (row) }>
       }> (few_are)
       s = Identity (s_of_all)
    """
    then = changed(then, {"INNER": inner})
    assert heads(simplified(model_of(then))) == [["trips", "true"]]


def test_a_condition_that_the_body_computes_still_ends_the_loop() -> None:
    condition = "on = Less (i, few)"
    model = simplified(model_of(loop(condition)))
    assert heads(model) == [["trips", "true"]]


def test_a_condition_that_is_computed_from_the_one_before() -> None:
    condition = "less = Less (i, few) on = Xor (go, less)"
    model = simplified(model_of(loop(condition)))
    assert heads(model) == [["trips", "true"]]


def test_a_condition_in_a_list_of_one() -> None:
    condition = "less = Less (i, few) one = Constant <value_ints = [1]> () on = Reshape (less, one)"
    list_of_one = {"bool go": "bool[1] go", "bool on": "bool[1] on"}
    model = simplified(model_of(changed(loop(condition), list_of_one)))
    assert heads(model) == [["trips", "true"]]


def test_a_loop_in_a_function_that_a_branch_calls() -> None:
    function = FUNCTION % LOOP
    model = simplified(model_of("s = f.steps (trips, row)") + function)
    assert heads(model) == [["trips", "true"]]


def test_loops_that_are_never_inlined_stay_as_they_are() -> None:
    """One in a body of another Loop in a branch, and one in no branch."""
    inner = changed(LOOP, {"last, s =": "last, rows =", "Add (r_in, i)": "Add (k, i)"})
    then = """
       kept, s = Loop <body = around (int64 j, bool go_on, int64[2] k) => (bool more,
          int64[2] k_out, int64[2] sum) {
          more = Identity (go_on)
          INNER
          one = Constant <value_ints = [0]> ()
          sum = ReduceSum <keepdims = 0> (rows, one)
          k_out = Add (k, sum)
       }> (trips, "", row)
    """
    then = changed(then, {"INNER": inner})
    model = simplified(model_of(then))
    assert [head[:2] for head in heads(model)] == [["trips", ""], ["trips", ""]]
    before = changed(LOOP, {"last, s =": "last, s_out ="})
    alone = model_of("s = Identity (s_out)", before)
    assert heads(simplified(alone)) == [["trips", ""]]


def test_the_first_iteration_of_a_loop_that_its_body_ends() -> None:
    """The rest starts only where the first iteration goes on."""
    text = """
    <ir_version: 10, opset_import: ["" : 21]>
    g (int64 trips, int64 few) => (int64[N] s) {
       s = Loop <body = again (int64 i, bool go) => (bool on, int64 a) {
          on = Less (i, few) a = Add (i, few) }> (trips, "")
    }
    """
    (rest,) = heads(simplified(text, "peel", peel="first"))
    assert rest[1:] == ["on/first"]
