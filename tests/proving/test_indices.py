"""Elements that are read and written at computed indices, buffers of loops, extremes
and counts: the right model after is proven, none of those that are wrong in one place is."""

from __future__ import annotations

import pytest

from tests.proving.test_wrong_pairs import proof
from tests.written import changed

#: A model before, one after that is right, and what makes it wrong.
PAIRS: dict[str, tuple[str, str, list[dict[str, str]]]] = {
    "a buffer": (
        """(float[T,2] x) => (float[T,2] y) {
        e = Constant <value_ints = [0]> () f = Constant <value_ints = [1,1]> ()
        d = Shape <end = 1> (x) n = Squeeze (d, e) s = Shape (x) b = ConstantOfShape (s)
        y = Loop <body = l (int64 i, bool c, float[T,2] a) => (bool g, float[T,2] z) {
            g = Identity (c) r = Gather (x, i) v = Neg (r) u = Unsqueeze (v, e)
            j = Reshape (i, f) z = ScatterND (a, j, u) }> (n, , b) }""",
        "(float[T,2] x) => (float[T,2] y) { o = Constant <value_float = -1.0> () y = Neg (x) }",
        [
            {"Neg": "Abs"},
            {"y = Neg (x)": "z = Sub (o, o) y = Sub (z, x)"},
            {"y = Neg (x)": "z = Add (x, o) y = Sub (o, z)"},
        ],
    ),
    "a buffer that one row is left of": (
        """(float[T,2] x, float[T,2] b) => (float[T,2] y) {
        e = Constant <value_ints = [0]> () f = Constant <value_ints = [1,1]> ()
        m = Constant <value_ints = [-1]> () w = Constant <value_int = 1> ()
        d = Shape <end = 1> (x) t = Squeeze (d, e) n = Sub (t, w)
        y = Loop <body = l (int64 i, bool c, float[T,2] a) => (bool g, float[T,2] z) {
            g = Identity (c) r = Gather (x, i) k = Add (i, w) o = Gather (a, k) v = Sub (r, o)
            u = Unsqueeze (v, e) j = Reshape (k, f) z = ScatterND (a, j, u) }> (n, , b) }""",
        """(float[T,2] x, float[T,2] b) => (float[T,2] y) {
        e = Constant <value_ints = [0]> () w = Constant <value_ints = [1]> ()
        m = Constant <value_ints = [-1]> () z = Constant <value_ints = [9223372036854775807]> ()
        first = Slice (b, e, w, e) old = Slice (b, w, z, e) new = Slice (x, e, m, e)
        v = Sub (new, old) y = Concat <axis = 0> (first, v) }""",
        [
            {"new = Slice (x, e, m, e)": "new = Slice (x, w, z, e)"},
            {"first = Slice (b, e, w, e)": "first = Slice (x, e, w, e)"},
            {"Sub (new, old)": "Sub (old, new)"},
            {"(first, v)": "(v, first)"},
        ],
    ),
    "a row that is read after it is written": (
        """(float[T] b) => (float[T] y) {
        e = Constant <value_ints = [0]> () f = Constant <value_ints = [1,1]> ()
        w = Constant <value_int = 1> () d = Shape <end = 1> (b) t = Squeeze (d, e) n = Sub (t, w)
        y = Loop <body = l (int64 i, bool c, float[T] a) => (bool g, float[T] z) {
            g = Identity (c) k = Add (i, w) r = Gather (a, i) v = Neg (r) u = Unsqueeze (v, e)
            j = Reshape (k, f) z = ScatterND (a, j, u) }> (n, , b) }""",
        """(float[T] b) => (float[T] y) {
        e = Constant <value_ints = [0]> () f = Constant <value_ints = [1,1]> ()
        w = Constant <value_int = 1> () d = Shape <end = 1> (b) t = Squeeze (d, e) n = Sub (t, w)
        y = Loop <body = l (int64 i, bool c, float[T] a) => (bool g, float[T] z) {
            g = Identity (c) k = Add (w, i) r = Gather (a, i) v = Neg (r) u = Unsqueeze (v, e)
            j = Reshape (k, f) z = ScatterND (a, j, u) }> (n, , b) }""",
        [
            {"r = Gather (a, i)": "r = Gather (b, i)"},
            {"r = Gather (a, i)": "r = Gather (a, k)"},
            {"Reshape (k, f)": "Reshape (i, f)"},
        ],
    ),
    "indices of elements": (
        "(float[N,3] x, int64[K] i) => (float[N,K] y) { y = Gather <axis = -1> (x, i) }",
        """(float[N,3] x, int64[K] i) => (float[N,K] y) {
        e = Constant <value_ints = [0]> () n = Shape <end = 1> (x) k = Shape (i)
        s = Concat <axis = 0> (n, k) u = Unsqueeze (i, e) j = Expand (u, s)
        y = GatherElements <axis = 1> (x, j) }""",
        [
            {"axis = 1> (x, j)": "axis = 0> (x, j)"},
            {"y = GatherElements": "a = Abs (j) y = GatherElements", "(x, j)": "(x, a)"},
            {"y = GatherElements": "v = Neg (x) y = GatherElements", "(x, j)": "(v, j)"},
        ],
    ),
    "a count that is 0": (
        """(int64[N] x) => (bool y) {
        z = Constant <value_int = 0> () c = Less (z, x) k = Cast <to = 7> (c)
        s = ReduceSum <keepdims = 0> (k) y = Equal (s, z) }""",
        """(int64[N] x) => (bool y) {
        z = Constant <value_int = 0> () o = Constant <value_int = 1> () c = Less (z, x)
        k = Cast <to = 7> (c) s = ReduceSum <keepdims = 0> (k) y = LessOrEqual (s, z) }""",
        [
            {"LessOrEqual (s, z)": "LessOrEqual (s, o)"},
            {"LessOrEqual (s, z)": "Less (s, z)"},
            {"c = Less (z, x)": "c = LessOrEqual (z, x)"},
        ],
    ),
    "rows of a batch": (
        """(float[B,T,2] x, int64[B,K] i) => (float[B,K,2] z) {
        z = Scan <num_scan_inputs = 2, body = b (float[T,2] r, int64[K] j) => (float[K,2] u) {
            u = Gather (r, j) }> (x, i) }""",
        """(float[B,T,2] x, int64[B,K] i) => (float[B,K,2] z) {
        o = Constant <value_ints = [-1]> () w = Constant <value_int = 1> ()
        j = Unsqueeze (i, o) z = GatherND <batch_dims = 1> (x, j) }""",
        [
            {"Unsqueeze (i, o)": "Unsqueeze (k, o)", "j =": "k = Abs (i) j ="},
            {"Unsqueeze (i, o)": "Unsqueeze (k, o)", "j =": "k = Max (i, o) j ="},
            {"Unsqueeze (i, o)": "Unsqueeze (k, o)", "j =": "k = Sub (i, w) j ="},
        ],
    ),
    "a row in place of another": (
        """(float[N,2] x, int64[1,1] i, float[1,2] u) => (float[N,2] y) {
        y = ScatterND (x, i, u) }""",
        """(float[N,2] x, int64[1,1] i, float[1,2] u) => (float[N,2] y) {
        zero = Constant <value_int = 0> () one = Constant <value_int = 1> ()
        e = Constant <value_ints = [0]> () d = Shape <end = 1> (x) n = Squeeze (d, e)
        k = GatherND (x, i) r = Range (zero, n, one) c = Constant <value_ints = [1]> ()
        q = Unsqueeze (r, c) below = Less (i, zero) up = Add (i, n) p = Where (below, up, i)
        here = Equal (q, p) y = Where (here, u, x) }""",
        [
            {"Where (below, up, i)": "Identity (i)"},
            {"Equal (q, p)": "LessOrEqual (q, p)"},
            {"Where (here, u, x)": "Where (here, x, u)"},
            {"Less (i, zero)": "Less (zero, i)"},
        ],
    ),
    "the place of an extreme": (
        "(int64[7] x) => (bool y) { n = Size (x) y = Equal (n, n) }",
        """(int64[7] x) => (bool y) {
        h = Constant <value_int = 9> () n = Size (x) low = Constant <value_int = 0> ()
        e = Constant <value_ints = [0]> ()
        v = Clip (x, low, h) r = Concat <axis = 0> (v, e) a = ArgMax <axis = 0, keepdims = 0> (r)
        y = Less (a, n) }""",
        [
            {"keepdims = 0": "keepdims = 0, select_last_index = 1"},
            {"ArgMax": "ArgMin"},
            {"low = Constant <value_int = 0>": "low = Constant <value_int = -1>"},
        ],
    ),
    "an extreme of indices": (
        """(float[M] w, int64[12] i) => (float[12] g, bool y) {
        g = Gather (w, i) m = Size (w) y = Equal (m, m) }""",
        """(float[M] w, int64[12] i) => (float[12] g, bool y) {
        g = Gather (w, i) m = Size (w) j = Neg (i) r = ReduceMax <keepdims = 0> (i)
        y = Less (r, m) }""",
        [
            {"ReduceMax <keepdims = 0> (i)": "ReduceMax <keepdims = 0> (j)"},
            {"Less (r, m)": "LessOrEqual (m, r)"},
            {
                "Less (r, m)": "Less (s, m)",
                "y =": "o = Constant <value_int = 1> () s = Add (r, o) y =",
            },
        ],
    ),
    "a product by its equation": (
        """(float[T,3] x, float[3,2] w) => (float[T,2] y) {
        y = Scan <num_scan_inputs = 1, body = b (float[3] r) => (float[2] u) {
            u = MatMul (r, w) }> (x) }""",
        """(float[T,3] x, float[3,2] w) => (float[T,2] y) {
        y = Einsum <equation = "kj,ik->ij"> (w, x) }""",
        [
            {"(w, x)": "(w, v)", "y =": "v = Abs (x) y ="},
            {"kj,ik->ij": "kj,il->ij"},
            {"(w, x)": "(v, x)", "y =": "v = Neg (w) y ="},
        ],
    ),
    "a small counter": (
        """(float[T] x, int32[1] n) => (int32 k, bool[T] y) {
        o = Constant <value = int32 {1}> () first = Constant <value = int32 {0}> ()
        e = Constant <value_ints = [0]> ()
        k, y = Scan <num_scan_inputs = 1, body = b (int32 a, float r) => (int32 b, bool u) {
            b = Add (a, o) m = Squeeze (n, e) u = Less (a, m) }> (first, x) }""",
        """(float[T] x, int32[1] n) => (int32 k, bool[T] y) {
        z = Constant <value_int = 0> () o = Constant <value_int = 1> () t = Size (x)
        k = Cast <to = 6> (t) r = Range (z, t, o) m = Cast <to = 7> (n) y = Less (r, m) }""",
        [
            {"Cast <to = 6> (t)": "Cast <to = 6> (u)", "k =": "u = Sub (t, o) k ="},
            {"y = Less": "y = LessOrEqual"},
            {"m = Cast <to = 7> (n)": "h = Cast <to = 3> (n) m = Cast <to = 7> (h)"},
        ],
    ),
    "a small counter that may wrap": (
        """(int64 n, int8 s) => (int8 k, int8[T] y) {
        o = Constant <value = int8 {1}> ()
        k, y = Loop <body = b (int64 i, bool c, int8 a) => (bool d, int8 b, int8 u) {
            d = Identity (c) b = Add (a, o) u = Max (a, s) }> (n, , s) }""",
        """(int64 n, int8 s) => (int8 k, int8[T] y) {
        o = Constant <value = int8 {1}> ()
        k, y = Loop <body = b (int64 i, bool c, int8 a) => (bool d, int8 b, int8 u) {
            d = Identity (c) b = Add (o, a) u = Max (a, s) }> (n, , s) }""",
        [
            {"u = Max (a, s)": "u = Identity (a)"},
            {"u = Max (a, s)": "p = Less (a, s) u = Where (p, a, a)", "Add (o, a)": "Add (s, a)"},
            {"d = Identity (c)": "d = LessOrEqual (s, a)"},
        ],
    ),
    "a counter that may overflow": (
        """(int64 n, int64 s, float x) => (int64 k, float y) {
        o = Constant <value_int = 1> ()
        k, y = Loop <body = b (int64 i, bool c, int64 a, float v) => (bool d, int64 e, float w) {
            d = Identity (c) e = Add (a, o) f = Cast <to = 1> (a) w = Add (v, f)
            }> (n, , s, x) }""",
        """(int64 n, int64 s, float x) => (int64 k, float y) {
        o = Constant <value_int = 1> ()
        k, y = Loop <body = b (int64 i, bool c, int64 a, float v) => (bool d, int64 e, float w) {
            d = Identity (c) e = Add (o, a) t = Add (s, i) f = Cast <to = 1> (t) w = Add (v, f)
            }> (n, , s, x) }""",
        [
            {"d = Identity (c) e = Add (o, a)": "e = Add (o, a) d = Less (a, e)"},
            {"d = Identity (c)": "d = LessOrEqual (s, a)"},
            {"f = Cast <to = 1> (t)": "g = Max (t, s) f = Cast <to = 1> (g)"},
            {
                "e = Add (o, a) t = Add (s, i)": """t = Add (s, i) g = Less (t, s)
                h = Cast <to = 7> (g) p = Add (o, a) e = Add (p, h)"""
            },
        ],
    ),
    "a bound beside another condition": (
        """(float[T] x, float m) => (float s, int64[K] k) {
        e = Constant <value_ints = [0]> () d = Shape <end = 1> (x) n = Squeeze (d, e)
        w = Constant <value_int = 1> () o = Constant <value_int = 0> () r = Greater (n, o)
        most = Constant <value_int = 9223372036854775807> ()
        f = Constant <value_float = 0.0> ()
        s, k = Loop <body = b (int64 i, bool c, float a) => (bool g, float t, int64 j) {
            v = Gather (x, i) t = Add (a, v) p = Add (i, w) q = Less (p, n) h = Less (t, m)
            g = And (q, h) j = Identity (i) }> (most, r, f) }""",
        """(float[T] x, float m) => (float s, int64[K] k) {
        e = Constant <value_ints = [0]> () d = Shape <end = 1> (x) n = Squeeze (d, e)
        f = Constant <value_float = 0.0> () r = Constant <value = bool {1}> ()
        s, k = Loop <body = b (int64 i, bool c, float a) => (bool g, float t, int64 j) {
            v = Gather (x, i) t = Add (a, v) g = Less (t, m) j = Identity (i) }> (n, r, f) }""",
        [
            {"g = Less (t, m)": "g = Less (a, m)"},
            {"g = Less (t, m)": "g = LessOrEqual (t, m)"},
            {"(n, r, f) }": "(p, r, f) }", "r = Const": "w = Size (m) p = Sub (n, w) r = Const"},
            {"g = Less (t, m)": "g = Identity (c)"},
        ],
    ),
}


@pytest.mark.parametrize("name", PAIRS)
def test_the_right_one_is_proven(name: str) -> None:
    before, after, _ = PAIRS[name]
    assert proof(before, after).is_proven


@pytest.mark.parametrize(
    ("name", "number"),
    [(name, n) for name, (*_, wrong) in PAIRS.items() for n in range(len(wrong))],
)
def test_a_wrong_one_is_not(name: str, number: int) -> None:
    before, after, wrong = PAIRS[name]
    found = proof(before, changed(after, wrong[number]))
    assert not found.is_proven
    assert found.code != "model"
