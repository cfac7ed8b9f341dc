"""`--only`: the loops that were meant as the model was read, wherever rewrites have put them."""

from __future__ import annotations

import re
from pathlib import Path

import onnx
import pytest
from onnx import ModelProto

import passes
from passes.ir import scope
from passes.ir.selection import NothingMatches
from passes.testing import assert_rewrite

SCAN_8 = Path(__file__).parents[2] / "golden_models" / "binary" / "gru.onnx"

THREE = """
<ir_version: 10, opset_import: ["" : 21]>
g (float[2] h) => (float[2] y) <int64 trips = {2}> {
   a = Loop <body = one (int64 i, bool go, float[2] s) => (bool on, float[2] t) {
      on = Identity (go) t = Neg (s) }> (trips, "", h)
   b = Loop <body = two (int64 i, bool go, float[2] s) => (bool on, float[2] t) {
      on = Identity (go) t = Abs (s) }> (trips, "", a)
   y = Loop <body = three (int64 i, bool go, float[2] s) => (bool on, float[2] t) {
      on = Identity (go) t = Exp (s) }> (trips, "", b)
}
"""

# How often the inner loops run is known once the outer one is unrolled.
NESTED = """
<ir_version: 10, opset_import: ["" : 21]>
g (float[2] h) => (float[2] y) <int64 trips = {2}> {
   y = Loop <body = outer (int64 i, bool go, float[2] s) => (bool on, float[2] t) {
      on = Identity (go)
      u = Loop <body = first (int64 j, bool on1, float[2] p) => (bool on2, float[2] q) {
         on2 = Identity (on1) q = Neg (p) }> (i, "", s)
      t = Loop <body = second (int64 k, bool on3, float[2] m) => (bool on4, float[2] n) {
         on4 = Identity (on3) n = Abs (m) }> (i, "", u)
   }> (trips, "", h)
}
"""

PLAIN = '<ir_version: 10, opset_import: ["" : 21]> g (float x) => (float y) { y = Neg (x) }'

# The loops in both branches write values of one name.
BRANCHES = """
<ir_version: 10, opset_import: ["" : 21]>
g (bool c, float[2] h, float[T,2] x) => (float[2] y) {
   y = If (c) <
      then_branch = yes () => (float[2] p) {
         p = Scan <num_scan_inputs = 1, body = one (float[2] s, float[2] e) => (float[2] t) {
            t = Add (s, e) }> (h, x) },
      else_branch = no () => (float[2] p) {
         p = Scan <num_scan_inputs = 1, body = two (float[2] s, float[2] e) => (float[2] t) {
            t = Sub (s, e) }> (h, x) }>
}
"""


def rewritten(
    text: str | ModelProto, *only: str, pipeline: str = "unroll", **options: object
) -> ModelProto:
    return assert_rewrite(text, pipeline=pipeline, options={"only": only, **options}).model


def paths(model: ModelProto, op_type: str = "Loop") -> list[str]:
    return [one.path for one in scope.walk_model(model) if one.node.op_type == op_type]


def ops(model: ModelProto) -> list[str]:
    return [node.op_type for node in model.graph.node]


def test_a_loop_that_moves_to_the_place_of_another_is_not_taken_for_it() -> None:
    """The first becomes two nodes, so that the second stands where the third one stood."""
    after = rewritten(THREE, "main/loop_0", "main/loop_2")
    assert ops(after) == ["Neg", "Neg", "Loop", "Exp", "Exp"]


def test_what_is_left_of_a_loop_is_meant_where_it_was() -> None:
    """The first iteration of a loop stands in front of it; the third loop has moved."""
    after = rewritten(THREE, "main/loop_0", "main/loop_1", pipeline="peel")
    assert ops(after) == ["Neg", "Loop", "Abs", "Loop", "Loop"]


def test_copies_of_a_loop_that_is_not_meant_stay_loops() -> None:
    after = rewritten(NESTED, "main/loop_0")
    assert ops(after) == ["Loop", "Loop", "Loop", "Loop"]


def test_copies_of_a_loop_that_is_meant_are_meant() -> None:
    after = rewritten(NESTED, "main/loop_0", "main/loop_0.body/loop_1")
    assert ops(after) == ["Identity", "Loop", "Neg", "Loop"]
    assert "Loop" not in ops(rewritten(NESTED, "main/loop_0*"))


def test_loops_of_one_name_in_two_branches_are_two() -> None:
    after = rewritten(BRANCHES, "main/if_0.else_branch/*", pipeline="unroll-partial", factor=2)
    assert paths(after, "Scan") == ["main/if_0.then_branch/scan_0"]
    assert all(path.startswith("main/if_0.else_branch/") for path in paths(after))
    assert len(paths(after)) == 2, "the rounds and the rest"


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("pattern", "left"), [("main/scan_0", "Loop"), ("main/scan_0.body/*", "Scan")]
)
def test_what_a_conversion_writes_is_meant_where_the_scan_8_was(pattern: str, left: str) -> None:
    model = onnx.load(SCAN_8)
    options = {"only": (pattern,), "batch": "nest"}
    after = assert_rewrite(model, pipeline="lower", opset=21, options=options, budget=20).model
    assert {*paths(after), *paths(after, "Scan")} == {*paths(after, left)}


def test_nothing_of_it_is_written() -> None:
    for only in ("main/loop_0", "main/loop_0*"):
        assert "passes.only" not in onnx.printer.to_text(rewritten(NESTED, only))


def test_a_loop_is_meant_by_its_name() -> None:
    model = onnx.parser.parse_model(THREE)
    model.graph.node[1].name = "decoder[0]"
    assert ops(rewritten(model, "decoder[0]")) == ["Loop", "Abs", "Abs", "Loop"]
    assert ops(rewritten(model, "deco*")) == ["Loop", "Abs", "Abs", "Loop"]


@pytest.mark.parametrize(
    ("text", "pattern", "sentence"),
    [
        (THREE, "main/loop_7", "main/loop_"),
        (THREE, "main/*/loop_0", "main/loop_0"),
        (NESTED, "main/loop_0/loop_1", "main/loop_0.body/loop_1"),
        (PLAIN, "x", ""),
    ],
)
def test_a_pattern_that_matches_nothing_is_an_error(text: str, pattern: str, sentence: str) -> None:
    model = onnx.parser.parse_model(text)
    nearest = f"the nearest are .*{sentence}" if sentence else "the model has no loop and no branch"
    with pytest.raises(NothingMatches, match=f"matches '{re.escape(pattern)}'; {nearest}"):
        passes.unroll(model, only=[pattern], verify=False)
    if sentence:
        with pytest.raises(NothingMatches):
            passes.unroll(model, only=["main/loop_0", pattern], verify=False)
