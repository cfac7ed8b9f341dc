"""Which loops and Ifs are alike, how their groups nest, and the pattern of their paths."""

from __future__ import annotations

from fnmatch import fnmatchcase

import pytest
from onnx import parser

from passes.ir.model import Model
from passes.loops.alike import alike, pattern_of


def groups(text: str) -> list[tuple[int, int, str]]:
    """The depth, the number of members and the pattern of each group."""
    found = alike(Model(parser.parse_model(text)))
    return [
        (depth, len(group.places), group.pattern) for top in found for depth, group in top.walk()
    ]


def test_names_and_weights_make_no_difference() -> None:
    assert groups("""
        <ir_version: 8, opset_import: ["" : 16]>
        g (float[T,2] x) => (float[T,2] y) <float[2] w = {0.5, 2}, float[2] v = {3, 4}> {
          [layer_0_rnn] h = Scan <num_scan_inputs = 1,
            body = a (float[2] e) => (float[2] o) { o = Mul (e, w) }> (x)
          [layer_1_rnn] y = Scan <num_scan_inputs = 1,
            body = b (float[2] f) => (float[2] p) { p = Mul (f, v) }> (h)
        }
    """) == [(0, 2, "main/layer_*_rnn")]


@pytest.mark.parametrize(
    "other",
    [
        pytest.param("o = Mul (w, e)", id="another order"),
        pytest.param("o = Add (e, w)", id="another operator"),
        pytest.param("o = Mul (e, e)", id="another operand"),
        pytest.param("o = Mul (e, u)", id="another type"),
        pytest.param("o = Mul (e, one)", id="a number that rules recognise"),
        pytest.param("k = Neg (e) o = Mul (e, w)", id="another node"),
    ],
)
def test_what_makes_loops_different(other: str) -> None:
    model = """
        <ir_version: 8, opset_import: ["" : 16]>
        g (float[T,2] x) => (float[T,2] y)
        <float[1] w = {0.5}, float[1] one = {1}, float[2] u = {2, 2}> {
          h = Scan <num_scan_inputs = 1,
            body = a (float[2] e) => (float[2] o) { o = Mul (e, w) }> (x)
          y = Scan <num_scan_inputs = 1,
            body = b (float[2] e) => (float[2] o) { OTHER }> (h)
        }
    """
    assert len(groups(model.replace("OTHER", "o = Mul (e, w)"))) == 1
    assert len(groups(model.replace("OTHER", other))) == 2


def test_sizes_count_and_symbols_do_not() -> None:
    assert groups("""
        <ir_version: 8, opset_import: ["" : 16]>
        g (float[A,2] a, float[B,2] b, float[7,2] c) => (float[A,2] x, float[B,2] y, float[7,2] z) {
          x = Scan <num_scan_inputs = 1, body = s (float[2] e) => (float[2] o) { o = Neg (e) }> (a)
          y = Scan <num_scan_inputs = 1, body = s (float[2] e) => (float[2] o) { o = Neg (e) }> (b)
          z = Scan <num_scan_inputs = 1, body = s (float[2] e) => (float[2] o) { o = Neg (e) }> (c)
        }
    """) == [(0, 2, "main/scan_*"), (0, 1, "main/scan_2")]


def test_trip_counts_make_a_difference() -> None:
    assert [
        count
        for _, count, _ in groups("""
        <ir_version: 8, opset_import: ["" : 16]>
        g (float x) => (float y) <int64 three = {3}, int64 four = {4}, int64 also_four = {4}> {
          a = Loop <body = b (int64 i, bool c, float s) => (bool d, float t)
            { d = Identity (c) t = Neg (s) }> (three, "", x)
          b = Loop <body = b (int64 i, bool c, float s) => (bool d, float t)
            { d = Identity (c) t = Neg (s) }> (four, "", a)
          y = Loop <body = b (int64 i, bool c, float s) => (bool d, float t)
            { d = Identity (c) t = Neg (s) }> (also_four, "", b)
        }
    """)
    ] == [1, 2]


def test_what_is_in_a_body_is_below_it() -> None:
    """The loop in both branches is in the body of neither loop: it is below the Ifs alone."""
    assert groups("""
        <ir_version: 8, opset_import: ["" : 16]>
        g (bool c, float[T,2] x) => (float[T,2] y) {
          [one] h = If (c) <
            then_branch = t () => (float[T,2] a) {
              [left] a = Scan <num_scan_inputs = 1, body = s (float[2] e) => (float[2] o)
                { o = Neg (e) }> (x)
            },
            else_branch = e () => (float[T,2] b) {
              [right] b = Scan <num_scan_inputs = 1, body = s (float[2] e) => (float[2] o)
                { o = Neg (e) }> (x)
            }>
          [two] y = Scan <num_scan_inputs = 1, body = outer (float[2] row) => (float[2] out) {
            [inner] out = Scan <num_scan_inputs = 1, body = s (float e) => (float o)
              { o = Abs (e) }> (row)
          }> (h)
        }
    """) == [
        (0, 1, "main/one"),
        (1, 2, "main/one.*_branch/*"),
        (0, 1, "main/two"),
        (1, 1, "main/two.body/inner"),
    ]


def test_groups_reach_across_graphs_and_functions() -> None:
    assert groups("""
        <ir_version: 8, opset_import: ["" : 16, "local" : 1]>
        g (float[2,2] x) => (float[2,2] y) {
          h = Scan <num_scan_inputs = 1, body = outer (float[2] row) => (float[2] out) {
            a = Abs (row)
            [twin] out = Scan <num_scan_inputs = 1,
              body = s (float e) => (float o) { o = Neg (e) }> (a)
          }> (x)
          y = Scan <num_scan_inputs = 1, body = outer (float[2] row) => (float[2] out) {
            [twin] out = Scan <num_scan_inputs = 1,
              body = s (float e) => (float o) { o = Neg (e) }> (row)
          }> (h)
        }
    """) == [(0, 1, "main/scan_0"), (0, 2, "main/scan_*.body/twin"), (0, 1, "main/scan_1")]


@pytest.mark.parametrize(
    ("texts", "pattern"),
    [
        (["main/rnn"], "main/rnn"),
        (["main/scan_3", "main/scan_41"], "main/scan_*"),
        (
            ["main//enc/layers.0/rnn/Loop", "main//enc/layers.1/rnn/Loop"],
            "main//enc/layers.*/rnn/Loop",
        ),
        (["main/fwd/rnn", "main/bwd/rnn"], "main/*/rnn"),
        (["main/rnn", "main/block/deep/rnn"], "main/*rnn"),
        (["main/a", "local.f/b_2"], "*"),
        (["main/seq_0.bodies[0]/x", "main/seq_1.bodies[0]/x"], "main/seq_*.bodies?0]/x"),
    ],
)
def test_patterns(texts: list[str], pattern: str) -> None:
    assert pattern_of(texts) == pattern
    assert all(fnmatchcase(text, pattern) for text in texts)
