"""If, Loop and Scan on the way down, run at the old opset and converted."""

from __future__ import annotations

import numpy as np
import pytest
from proving import EVERYWHERE, drawn, ops, parsed, run
from proving_down import assert_stopped, prove_down

import passes

pytestmark = pytest.mark.sampled

# -- If ------------------------------------------------------------------------------------

IF = """(bool c, float[2] x) => (float[{given}] y) {{
    y = If (c) <
        then_branch = t () => (float[{then}] a) {{ a = Neg (x) }},
        else_branch = e () => (float[{other}] b) {{ b = Concat <axis = 0> ({x}) }}
    >
}}"""


@pytest.mark.parametrize("target", [13, 11, 9, 7])
def test_if(target: int) -> None:
    graph = IF.format(given=2, then=2, other=2, x="x")
    assert ops(prove_down(graph, opset=17, target=target)) == ["If"]


def test_if_of_two_shapes_stays_at_11() -> None:
    graph = IF.format(given="N", then=2, other=4, x="x, x")
    assert ops(prove_down(graph, opset=17, target=11)) == ["If"]
    assert_stopped(graph, opset=17, target=10, why="the branches give 'y' in two shapes")


SEQUENCES = """(bool c, float[2] x) => (float[2] y) {
    s = If (c) <
        then_branch = t () => (seq(float[2]) a) { a = SequenceConstruct (x) },
        else_branch = e () => (seq(float[2]) b) { b = SequenceConstruct (x, x) }
    >
    zero = Constant <value = int64 {0}> ()
    y = SequenceAt (s, zero)
}"""


def test_if_of_sequences_stays_at_13() -> None:
    prove_down(SEQUENCES, opset=17, target=13)
    assert_stopped(
        SEQUENCES,
        opset=17,
        target=12,
        why="If passes on 's', a sequence, for which it takes opset 13",
    )


def test_if_of_optionals_stays_at_16() -> None:
    graph = """(bool c, float[2] x) => (float[2] y) {
        s = If (c) <
            then_branch = t () => (optional(float[2]) a) { a = Optional (x) },
            else_branch = e () => (optional(float[2]) b) { z = Neg (x) b = Optional (z) }
        >
        y = OptionalGetElement (s)
    }"""
    prove_down(graph, opset=17, target=16, places=["main"])
    assert_stopped(graph, opset=17, target=15, why="an optional, for which it takes opset 16")


# -- Loop ----------------------------------------------------------------------------------

CARRIES_NOTHING = """(int64 n, bool c, float[2] x) => (float[N,2] y) {{
    y = Loop ({trips}) <body = b (int64 i, bool go) => (bool on, float[2] z) {{
        on = Identity (go)
        f = Cast <to = 1> (i)
        z = Add (x, f)
    }}>
}}"""


@pytest.mark.parametrize("trips", ["n, c", "n"])
@pytest.mark.parametrize(("target", "carried"), [(11, 0), (9, 1), (7, 1)])
def test_loop_that_carries_nothing(target: int, carried: int, trips: str) -> None:
    graph = CARRIES_NOTHING.format(trips=trips if "," in trips else "n, ")
    if "," not in trips:
        graph = graph.replace("(n, )", '(n, "")')
    after = prove_down(
        graph, opset=17, target=target, feeds={"n": np.array(3), "c": np.array(True)}
    )
    assert len(after.graph.node[0].input) == 2 + carried


@pytest.mark.parametrize("target", [13, 9, 7])
def test_loop_while(target: int) -> None:
    graph = """(bool c, float[2] x) => (float[2] h) {
        h = Loop ("", c, x) <body = b (int64 i, bool go, float[2] a) => (bool on, float[2] z) {
            f = Cast <to = 1> (i)
            four = Constant <value = float {4}> ()
            on = Less (f, four)
            z = Add (a, f)
        }>
    }"""
    prove_down(graph, opset=17, target=target, feeds={"c": np.array(True)})


def test_loop_over_a_sequence_stays_at_13() -> None:
    graph = """(int64 n, float[2] x) => (float[M] y) {
        s = SequenceConstruct (x)
        t = Loop (n, "", s) <body = b (int64 i, bool go, seq(float[2]) a)
            => (bool on, seq(float[2]) z) {
            on = Identity (go)
            z = SequenceInsert (a, x)
        }>
        y = ConcatFromSequence <axis = 0> (t)
    }"""
    prove_down(graph, opset=17, target=13, feeds={"n": np.array(3)})
    assert_stopped(
        graph, opset=17, target=11, why="Loop passes on 's', a sequence, for which it takes opset 1"
    )


# -- Scan ----------------------------------------------------------------------------------

SCAN = """(float[2] h, float[{x}] x, float[3,2] w) => (float[2] g, float[{y}] y, float[3,2] v) {{
    g, y, v = Scan <num_scan_inputs = 2, {said}
        body = b (float[2] a, float[{e}] e, float[2] u) => (float[2] z, float[{e}] f, float[2] k) {{
            z = Add (a, u)
            f = Neg (e)
            k = Identity (a)
        }}
    > (h, x, w)
}}"""
AXES = [
    ("3,4", "3,4", "4", ""),
    ("4,3", "4,3", "4", "scan_input_axes = [1, 0], scan_output_axes = [1, 0],"),
    ("5,4,3", "5,3,4", "5,4", "scan_input_axes = [-1, -2], scan_output_axes = [-2, 0],"),
    ("3,4", "3,4", "4", "scan_input_directions = [1, 0],"),
    ("3,4", "3,4", "4", "scan_output_directions = [1, 0],"),
    (
        "4,3",
        "4,3",
        "4",
        "scan_input_axes = [-1, 0], scan_output_axes = [-1, 0], scan_output_directions = [1, 1], "
        "scan_input_directions = [0, 1],",
    ),
    ("3", "3", "", ""),
]


@pytest.mark.parametrize(("x", "y", "e", "said"), AXES)
def test_scan(x: str, y: str, e: str, said: str) -> None:
    graph = SCAN.format(x=x, y=y, e=e, said=said)
    if not e:
        graph = graph.replace("float[]", "float")
    after = ops(prove_down(graph, opset=17, target=10, places=EVERYWHERE[:4]))
    assert "Scan" in after
    assert "-" not in str(after)


@pytest.mark.parametrize("target", [8, 7])
def test_below_opset_9_a_scan_has_to_be_lowered_first(target: int) -> None:
    graph = SCAN.format(x="3,4", y="3,4", e="4", said="")
    assert_stopped(
        graph,
        opset=17,
        target=target,
        why=r"opset 9 is the lowest with a Scan that has no batch axis .* \[no-equivalent\]$",
    )
    before = parsed(graph, 17)
    after = passes.convert(passes.lower(before), opset=target, verify=False).model
    feeds = drawn(before)
    for expected, actual in zip(run(before, feeds), run(after, feeds), strict=True):
        np.testing.assert_array_equal(actual, expected)


def test_scan_of_what_has_no_known_rank() -> None:
    graph = """(float[6] x, int64[R] s) => (float[A,B] y) {
        u = Reshape (x, s)
        y = Scan <num_scan_inputs = 1, scan_input_axes = [-1],
            body = b (float[E] e) => (float[E] f) { f = Neg (e) }> (u)
    }"""
    assert_stopped(graph, opset=17, target=9, why="the rank of 'u' is not known")
