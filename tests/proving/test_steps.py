"""Loops of another step: an iteration peeled, two at a time, a nest made flat. The right
one is proven, none of those that are wrong in one iteration, capture, state or trip count."""

from __future__ import annotations

from contextlib import suppress

import onnx.parser
import pytest

from passes.proving.terms.arrays import NotProvable
from tests.proving.meaning import disagreement, drawn
from tests.proving.test_wrong_pairs import HEAD, proof
from tests.written import changed

LOOP = """(int64 n, float[2] h, float[2] v, float[2] w) => (float[2] y, float[K,2] z) {
    y, z = Loop <body = b (int64 i, bool c, float[2] s) => (bool d, float[2] t, float[2] u) {
        d = Identity (c) f = Cast <to = 1> (i) m = Mul (s, v) t = Add (m, f)
        u = Sub (s, w) }> (n, , h) }"""

FIRST = """(int64 n, float[2] h, float[2] v, float[2] w) => (float[2] y, float[K,2] z) {
    zero = Constant <value_int = 0> () one = Constant <value_int = 1> ()
    axis = Constant <value_ints = [0]> () some = Less (zero, n)
    y, z = If (some) <then_branch = runs () => (float[2] yr, float[L,2] zr) {
        f0 = Cast <to = 1> (zero) m0 = Mul (h, v) t0 = Add (m0, f0) u0 = Sub (h, w)
        rows = Unsqueeze (u0, axis) left = Sub (n, one)
        yr, rest = Loop <body = b (int64 i, bool c, float[2] s)
            => (bool d, float[2] t, float[2] u) {
            d = Identity (c) j = Add (i, one) f = Cast <to = 1> (j) m = Mul (s, v) t = Add (m, f)
            u = Sub (s, w) }> (left, , t0)
        zr = Concat <axis = 0> (rows, rest) },
    else_branch = none () => (float[2] yn, float[M,2] zn) {
        yn = Identity (h) e = Constant <value_ints = [0, 2]> () zn = ConstantOfShape (e) }> }"""

LAST = """(int64 n, float[2] h, float[2] v, float[2] w) => (float[2] y, float[K,2] z) {
    zero = Constant <value_int = 0> () one = Constant <value_int = 1> ()
    axis = Constant <value_ints = [0]> () some = Less (zero, n)
    y, z = If (some) <then_branch = runs () => (float[2] yr, float[L,2] zr) {
        left = Sub (n, one)
        s1, rest = Loop <body = b (int64 i, bool c, float[2] s)
            => (bool d, float[2] t, float[2] u) {
            d = Identity (c) f = Cast <to = 1> (i) m = Mul (s, v) t = Add (m, f)
            u = Sub (s, w) }> (left, , h)
        f1 = Cast <to = 1> (left) m1 = Mul (s1, v) yr = Add (m1, f1) u1 = Sub (s1, w)
        rows = Unsqueeze (u1, axis) zr = Concat <axis = 0> (rest, rows) },
    else_branch = none () => (float[2] yn, float[M,2] zn) {
        yn = Identity (h) e = Constant <value_ints = [0, 2]> () zn = ConstantOfShape (e) }> }"""

SCAN = """(float[T,2] x, float[2] h, float[2] k) => (float[2] y, float[2] l) {
    y, l = Scan <num_scan_inputs = 1, body = b (float[2] a, float[2] c, float[2] r)
        => (float[2] p, float[2] q) { p = Add (c, r) q = Mul (a, r) }> (h, k, x) }"""

TWO_AT_A_TIME = """(float[T,2] x, float[2] h, float[2] k) => (float[2] y, float[2] l) {
    two = Constant <value_int = 2> () one = Constant <value_int = 1> ()
    axis = Constant <value_ints = [0]> () dims = Shape <end = 1> (x)
    size = Squeeze (dims, axis) rounds = Div (size, two) even = Mul (rounds, two)
    left = Sub (size, even)
    a1, c1 = Loop <body = b (int64 i, bool g, float[2] a, float[2] c)
        => (bool d, float[2] p, float[2] q) {
        d = Identity (g) i0 = Mul (i, two) i1 = Add (i0, one)
        r0 = Gather (x, i0) r1 = Gather (x, i1)
        p0 = Add (c, r0) q0 = Mul (a, r0) p = Add (q0, r1) q = Mul (p0, r1) }> (rounds, , h, k)
    y, l = Loop <body = e (int64 i, bool g, float[2] a, float[2] c)
        => (bool d, float[2] p, float[2] q) {
        d = Identity (g) j = Add (even, i) r = Gather (x, j)
        p = Add (c, r) q = Mul (a, r) }> (left, , a1, c1) }"""

NEST = """(float[T,N,2] x, float[2] h) => (float[2] y) {
    y = Scan <num_scan_inputs = 1, body = o (float[2] s, float[N,2] r) => (float[2] t) {
        t = Scan <num_scan_inputs = 1, body = i (float[2] a, float[2] e) => (float[2] b) {
            m = Mul (a, e) b = Tanh (m) }> (s, r) }> (h, x) }"""

FLAT = """(float[T,N,2] x, float[2] h) => (float[2] y) {
    whole = Constant <value_ints = [-1, 2]> () order = Identity (x)
    rows = Reshape (order, whole) start = Identity (h)
    y = Scan <num_scan_inputs = 1, body = i (float[2] a, float[2] e) => (float[2] b) {
        m = Mul (a, e) b = Tanh (m) }> (start, rows) }"""

WHILE = """(int64 n, float h, float w, float most) => (float y, float[K] z) {
    y, z = Loop <body = b (int64 i, bool c, float s) => (bool d, float t, float u) {
        t = Mul (s, w) d = Less (t, most) u = Neg (s) }> (n, , h) }"""

WHILE_FIRST = """(int64 n, float h, float w, float most) => (float y, float[K] z) {
    zero = Constant <value_int = 0> () one = Constant <value_int = 1> ()
    axis = Constant <value_ints = [0]> () some = Less (zero, n)
    y, z = If (some) <then_branch = runs () => (float yr, float[L] zr) {
        t0 = Mul (h, w) again = Less (t0, most) u0 = Neg (h)
        row = Unsqueeze (u0, axis) left = Sub (n, one)
        yr, rest = Loop <body = b (int64 i, bool c, float s) => (bool d, float t, float u) {
            t = Mul (s, w) d = Less (t, most) u = Neg (s) }> (left, again, t0)
        zr = Concat <axis = 0> (row, rest) },
    else_branch = none () => (float yn, float[M] zn) {
        yn = Identity (h) e = Constant <value_ints = [0]> () zn = ConstantOfShape (e) }> }"""

ENDED = """(int64 n, float[T,2] x, float[2] h, float[2] k) => (float[2] y, float[2] l) {
    axis = Constant <value_ints = [0]> () dims = Shape <end = 1> (x)
    size = Squeeze (dims, axis) trips = Min (n, size)
    y, l = Loop <body = b (int64 i, bool g, float[2] a, float[2] c)
        => (bool d, float[2] p, float[2] q) {
        d = Identity (g) r = Gather (x, i) p = Add (c, r) q = Mul (a, r) }> (trips, , h, k) }"""

MASKED = """(int64 n, float[T,2] x, float[2] h, float[2] k) => (float[2] y, float[2] l) {
    zero = Constant <value_int = 0> () one = Constant <value_int = 1> ()
    e, y, l = Scan <num_scan_inputs = 1, body = b (int64 j, float[2] a, float[2] c, float[2] r)
        => (int64 o, float[2] p, float[2] q) {
        o = Add (j, one) runs = Less (j, n) p0 = Add (c, r) q0 = Mul (a, r)
        p = Where (runs, p0, a) q = Where (runs, q0, c) }> (zero, h, k, x) }"""

COUNTED = """(int64 n, float[6,2] x, float[2] h, float[2,2] w) => (float[2] y) {
    zero = Constant <value_int = 0> () one = Constant <value_int = 1> ()
    e, y = Scan <num_scan_inputs = 1, body = b (int64 j, float[2] s, float[2] r)
        => (int64 o, float[2] t) {
        o = Add (j, one) runs = Less (j, n) m = MatMul (s, w) u = Add (m, r)
        t = Where (runs, u, s) }> (zero, h, x) }"""

NUMBERED = """(int64 n, float[6,2] x, float[2] h, float[2,2] w) => (float[2] y) {
    numbers = Constant <value_ints = [0, 1, 2, 3, 4, 5]> ()
    y = Scan <num_scan_inputs = 2, body = b (float[2] s, float[2] r, int64 j) => (float[2] t) {
        runs = Less (j, n) m = MatMul (s, w) u = Add (m, r) t = Where (runs, u, s) }>
        (h, x, numbers) }"""

GROWS = """(float[T,2] x, float[1,2] h) => (float[K,2] y) {
    axis = Constant <value_ints = [0]> () dims = Shape <end = 1> (x)
    size = Squeeze (dims, axis)
    y = Loop <body = b (int64 i, bool g, float[L,2] s) => (bool d, float[M,2] t) {
        d = Identity (g) r = Gather (x, i) n = Neg (r) row = Unsqueeze (n, axis)
        t = Concat <axis = 0> (s, row) }> (size, , h) }"""

ROWS = """(float[T,2] x, float[1,2] h) => (float[K,2] y) {
    rows = Scan <num_scan_inputs = 1, body = b (float[2] r) => (float[2] n) { n = Neg (r) }> (x)
    y = Concat <axis = 0> (h, rows) }"""

#: A loop, the same in another step, and what makes that wrong.
WRONG = {
    "first: one iteration more": (LOOP, FIRST, {"left = Sub (n, one)": "left = Identity (n)"}),
    "first: one iteration less": (
        LOOP,
        FIRST,
        {"left = Sub (n, one)": "less = Sub (n, one) left = Sub (less, one)"},
    ),
    "first: numbers that begin at 0 again": (LOOP, FIRST, {"j = Add (i, one)": "j = Identity (i)"}),
    "first: another capture": (LOOP, FIRST, {"m = Mul (s, v)": "m = Mul (s, w)"}),
    "first: another capture at first": (LOOP, FIRST, {"m0 = Mul (h, v)": "m0 = Mul (h, w)"}),
    "first: the rest begins anew": (LOOP, FIRST, {"(left, , t0)": "(left, , h)"}),
    "first: it always runs": (LOOP, FIRST, {"Less (zero, n)": "Equal (zero, zero)"}),
    "first: a row one too late": (
        LOOP,
        FIRST,
        {"u = Sub (s, w) }> (left": "u = Sub (t, w) }> (left"},
    ),
    "last: it is missing": (LOOP, LAST, {"yr = Add (m1, f1)": "yr = Identity (s1)"}),
    "last: a number too high": (
        LOOP,
        LAST,
        {"f1 = Cast <to = 1> (left)": "f1 = Cast <to = 1> (n)"},
    ),
    "last: another capture": (LOOP, LAST, {"m1 = Mul (s1, v)": "m1 = Mul (s1, w)"}),
    "last: it always runs": (LOOP, LAST, {"Less (zero, n)": "Equal (zero, zero)"}),
    "last: rows in another order": (LOOP, LAST, {"(rest, rows)": "(rows, rest)"}),
    "two: a row twice": (SCAN, TWO_AT_A_TIME, {"i1 = Add (i0, one)": "i1 = Identity (i0)"}),
    "two: no rest": (SCAN, TWO_AT_A_TIME, {"left = Sub (size, even)": "left = Sub (even, even)"}),
    "two: the rest from the start": (
        SCAN,
        TWO_AT_A_TIME,
        {"j = Add (even, i)": "j = Identity (i)"},
    ),
    "two: states exchanged": (SCAN, TWO_AT_A_TIME, {"(left, , a1, c1)": "(left, , c1, a1)"}),
    "two: states exchanged at first": (
        SCAN,
        TWO_AT_A_TIME,
        {"(rounds, , h, k)": "(rounds, , k, h)"},
    ),
    "two: one state for both": (SCAN, TWO_AT_A_TIME, {"(rounds, , h, k)": "(rounds, , h, h)"}),
    "flat: rows in another order": (
        NEST,
        FLAT,
        {"Identity (x)": "Transpose <perm = [1, 0, 2]> (x)"},
    ),
    "flat: another start": (NEST, FLAT, {"Identity (h)": "Tanh (h)"}),
    "flat: another step": (NEST, FLAT, {"m = Mul (a, e)": "m = Add (a, e)"}),
    "while: the second iteration always runs": (
        WHILE,
        WHILE_FIRST,
        {"(left, again, t0)": "(left, , t0)"},
    ),
    "while: another limit": (WHILE, WHILE_FIRST, {"Less (t0, most)": "LessOrEqual (t0, most)"}),
    "while: the condition of the iteration before": (
        WHILE,
        WHILE_FIRST,
        {"d = Less (t, most)": "d = Less (s, most)"},
    ),
    "while: one iteration more": (
        WHILE,
        WHILE_FIRST,
        {"left = Sub (n, one)": "left = Identity (n)"},
    ),
}


WRONG |= {
    "masked: one iteration more": (ENDED, MASKED, {"Less (j, n)": "LessOrEqual (j, n)"}),
    "masked: one state runs on": (ENDED, MASKED, {"q = Where (runs, q0, c)": "q = Identity (q0)"}),
    "masked: another state is kept": (
        ENDED,
        MASKED,
        {"Where (runs, p0, a)": "Where (runs, p0, c)"},
    ),
    "masked: it runs where it should not": (
        ENDED,
        MASKED,
        {"Where (runs, p0, a)": "Where (runs, a, p0)"},
    ),
    "masked: two limits": (
        ENDED,
        MASKED,
        {
            "Where (runs, q0, c)": "Where (few, q0, c)",
            "o = Add (j, one)": "o = Add (j, one) few = Less (o, n)",
        },
    ),
    "masked: from the end": (
        ENDED,
        MASKED,
        {"runs = Less (j, n)": "runs = Greater (j, n)"},
    ),
    "numbered: from 1": (COUNTED, NUMBERED, {"[0, 1, 2, 3, 4, 5]": "[1, 2, 3, 4, 5, 6]"}),
    "numbered: by 2": (COUNTED, NUMBERED, {"[0, 1, 2, 3, 4, 5]": "[0, 2, 4, 6, 8, 10]"}),
    "numbered: another last one": (COUNTED, NUMBERED, {"4, 5]": "4, 6]"}),
    "numbered: another one": (COUNTED, NUMBERED, {"[0, 1, 2, 3": "[0, 1, 3, 3"}),
    "numbered: backwards": (
        COUNTED,
        NUMBERED,
        {"num_scan_inputs = 2": "num_scan_inputs = 2, scan_input_directions = [0, 1]"},
    ),
    "grows: at the other end": (GROWS, ROWS, {"(h, rows)": "(rows, h)"}),
    "grows: a row less": (GROWS, ROWS, {"Concat <axis = 0> (h, rows)": "Identity (rows)"}),
    "grows: backwards": (
        GROWS,
        ROWS,
        {"num_scan_inputs = 1": "num_scan_inputs = 1, scan_input_directions = [1]"},
    ),
    "grows: the first row again": (
        GROWS,
        ROWS,
        {
            "y = Concat <axis = 0> (h, rows)": """
    twice = Concat <axis = 0> (h, h) y = Concat <axis = 0> (twice, rows)"""
        },
    ),
    "grows: the row before": (GROWS, ROWS, {"n = Neg (r)": "n = Identity (r)"}),
}
#: Each of them, by the first word of the name.
RIGHT = {name.partition(":")[0]: pair[:2] for name, pair in WRONG.items()}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", RIGHT)
def test_loops_of_another_step_are_proven(name: str) -> None:
    pair = RIGHT[name]
    found = proof(*pair)
    assert found.is_proven, found.sentence()
    found = proof(*reversed(pair))
    assert found.is_proven, found.sentence()


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", RIGHT)
def test_what_reads_another_loop_is_worth_the_same(name: str) -> None:
    models = [onnx.parser.parse_model(HEAD + text) for text in RIGHT[name]]
    compared = 0
    for seed in range(12):
        with suppress(NotProvable):
            assert disagreement(models[0], drawn(models[0], seed), models[1]) == ""
            compared += 1
    assert compared


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_in_one_step_is_not_proven(name: str) -> None:
    before, after, change = WRONG[name]
    wrong = changed(after, change)
    for found in (proof(before, wrong), proof(wrong, before)):
        assert not found.is_proven
        assert found.code != "model"
