"""Sequences, TopK and Einsum of rows: the right model after is proven for all sizes, none of those
that are wrong in one place is."""

from __future__ import annotations

import pytest

from passes.choices import ProofScope
from tests.proving.test_wrong_pairs import proof
from tests.written import changed

#: States that a loop appends to a sequence, joined along a new axis.
STATES = """(float[T,3] x, float[3] h) => (float[T,3] y) {
    e = Constant <value_ints = [0]> () d = Shape <end = 1> (x) n = Squeeze (d, e)
    none = SequenceEmpty ()
    last, all = Loop <body = l (int64 i, bool c, float[3] s, seq(float[3]) q)
        => (bool g, float[3] t, seq(float[3]) r) {
        g = Identity (c) a = Gather (x, i) b = Mul (s, h) t = Add (a, b)
        r = SequenceInsert (q, t) }> (n, , h, none)
    y = ConcatFromSequence <axis = 0, new_axis = 1> (all) }"""
#: The same states, collected by a Scan.
COLLECTED = """(float[T,3] x, float[3] h) => (float[T,3] y) {
    last, y = Scan <num_scan_inputs = 1, body = l (float[3] s, float[3] a)
        => (float[3] t, float[3] u) {
        b = Mul (s, h) t = Add (a, b) u = Identity (t) }> (h, x) }"""

#: A model before, one after that is right, and what makes it wrong.
PAIRS: dict[str, tuple[str, str, list[dict[str, str]]]] = {
    "states in a sequence": (
        STATES,
        COLLECTED,
        [
            {"u = Identity (t)": "u = Identity (s)"},
            {"Mul (s, h)": "Mul (s, s)"},
            {"last, y": "last, z", "(h, x) }": "(h, x) y = Abs (z) }"},
        ],
    ),
    "states in a sequence that is never empty": (
        STATES,
        changed(STATES, {"(all) }": "(all) m = SequenceLength (all) }"}),
        [
            {"SequenceInsert (q, t)": "SequenceInsert (q, s)"},
            {"SequenceInsert (q, t)": "SequenceInsert (none, t)"},
            {"axis = 0, new_axis = 1> (all)": "axis = 0, new_axis = 1> (none)"},
        ],
    ),
    "rows": (
        """(float[T,3] x) => (float[3,T] y) { s = SplitToSequence <axis = 0, keepdims = 0> (x)
        y = ConcatFromSequence <axis = 1, new_axis = 1> (s) }""",
        """(float[T,3] x) => (float[3,T] y) { y = Transpose <perm = [1, 0]> (x) }""",
        [
            {
                "y = Transpose <perm = [1, 0]> (x)": """w = Constant <value_ints = [3, -1]> ()
                y = Reshape (x, w)"""
            },
            {"y = Transpose <perm = [1, 0]> (x)": "t = Neg (x) y = Transpose <perm = [1, 0]> (t)"},
        ],
    ),
    "blocks": (
        """(float[T,3] x, float[T,3] z) => (float[T,6] y) { s = SequenceConstruct (x, z)
        y = ConcatFromSequence <axis = -1> (s) }""",
        "(float[T,3] x, float[T,3] z) => (float[T,6] y) { y = Concat <axis = 1> (x, z) }",
        [
            {"(x, z) }": "(z, x) }"},
            {"y = Concat <axis = 1> (x, z)": "y = Concat <axis = 1> (x, x)"},
        ],
    ),
    "an element from the end": (
        """(float[T,3] x) => (float[3] y) { m = Constant <value_int = -1> ()
        s = SplitToSequence <axis = 0, keepdims = 0> (x) y = SequenceAt (s, m) }""",
        """(float[T,3] x) => (float[3] y) { m = Constant <value_int = -1> () y = Gather (x, m) }""",
        [{"value_int = -1": "value_int = 0"}, {"value_int = -1": "value_int = -2"}],
    ),
    "the largest of rows": (
        """(float[T,4] x) => (float[T,2] y, int64[T,2] z) { k = Constant <value_ints = [2]> ()
        e = Constant <value_ints = [0]> () d = Shape <end = 1> (x) n = Squeeze (d, e)
        yes = Constant <value = bool {1}> ()
        y, z = Loop <body = l (int64 i, bool c) => (bool g, float[2] v, int64[2] w) {
            g = Identity (c) a = Gather (x, i) v, w = TopK (a, k) }> (n, yes) }""",
        """(float[T,4] x) => (float[T,2] y, int64[T,2] z) { k = Constant <value_ints = [2]> ()
        y, z = TopK (x, k) }""",
        [
            {"y, z = TopK (x, k)": "y, z = TopK <largest = 0> (x, k)"},
            {"y, z = TopK (x, k)": "y, z = TopK <sorted = 0> (x, k)"},
            {
                "value_ints = [2]": "value_ints = [3]",
                "y, z = TopK (x, k)": """e = Constant <value_ints = [0]> ()
                two = Constant <value_ints = [2]> () axis = Constant <value_ints = [1]> ()
                a, b = TopK (x, k) y = Slice (a, e, two, axis) z = Slice (b, e, two, axis)""",
            },
        ],
    ),
    "products of rows": (
        """(float[T,B,2] x, float[T,B,3] w) => (float[T,B,2,3] y) {
        e = Constant <value_ints = [0]> () d = Shape <end = 1> (x) n = Squeeze (d, e)
        yes = Constant <value = bool {1}> ()
        y = Loop <body = l (int64 i, bool c) => (bool g, float[B,2,3] v) {
            g = Identity (c) a = Gather (x, i) b = Gather (w, i)
            v = Einsum <equation = "bi,bj->bij"> (a, b) }> (n, yes) }""",
        """(float[T,B,2] x, float[T,B,3] w) => (float[T,B,2,3] y) {
        y = Einsum <equation = "tbi,tbj->tbij"> (x, w) }""",
        [
            {
                'y = Einsum <equation = "tbi,tbj->tbij"> (x, w)': """
                e = Constant <value_ints = [3]> () f = Constant <value_ints = [2]> ()
                a = Unsqueeze (x, e) b = Unsqueeze (w, f) y = Mul (a, b)"""
            },
            {"y = Einsum": "v = Neg (w) y = Einsum", "(x, w) }": "(x, v) }"},
        ],
    ),
}


@pytest.mark.parametrize("name", PAIRS)
def test_the_right_one_is_proven(name: str) -> None:
    before, after, _ = PAIRS[name]
    found = proof(before, after)
    assert (found.sentence(), found.kind) == ("proven for all sizes", ProofScope.all)


@pytest.mark.parametrize(
    ("name", "fault"),
    [(name, fault) for name, (*_, faults) in PAIRS.items() for fault in faults],
    ids=str,
)
def test_a_wrong_one_is_not_proven_for_all_sizes(name: str, fault: dict[str, str]) -> None:
    before, after, _ = PAIRS[name]
    found = proof(before, changed(after, fault))
    assert found.kind != ProofScope.all
    assert found.code != "model"
