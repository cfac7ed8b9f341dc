"""Sequences and optionals that are read or made otherwise, and values of unknown rank."""

from __future__ import annotations

from tests.proving.wrong_calls import Case

SEQUENCES: dict[str, Case] = {
    "the other end of a sequence": (
        """<ir_version: 10, opset_import: ["" : 21]>
        g (float[N,2] x) => (float[2] y) <int64 first = {0}, int64 last = {-1}> {
            s = SplitToSequence <keepdims = 0> (x)  y = SequenceAt (s, first) }""",
        {"(s, first)": "(s, last)"},
        {"x": [[1, 2], [3, 4]]},
    ),
    "an element that is put first": (
        """<ir_version: 10, opset_import: ["" : 21]>
        g (float[N] x, float[M] w) => (float[K] y) <int64 first = {0}> {
            s = SequenceConstruct (x)  t = SequenceInsert (s, w)
            y = ConcatFromSequence <axis = 0> (t) }""",
        {"(s, w)": "(s, w, first)"},
        {"x": [1], "w": [2]},
    ),
    "the first element erased": (
        """<ir_version: 10, opset_import: ["" : 21]>
        g (float[N] x, float[M] w) => (float[K] y) <int64 first = {0}> {
            s = SequenceConstruct (x, w)  t = SequenceErase (s)
            y = ConcatFromSequence <axis = 0> (t) }""",
        {"Erase (s)": "Erase (s, first)"},
        {"x": [1], "w": [2]},
    ),
    "how many a sequence had": (
        """<ir_version: 10, opset_import: ["" : 21]>
        g (float[N] x) => (int64 y) {
            s = SequenceConstruct (x, x)  t = SequenceErase (s)  y = SequenceLength (t) }""",
        {"Length (t)": "Length (s)"},
        {"x": [1]},
    ),
    "a new axis": (
        """<ir_version: 10, opset_import: ["" : 21]>
        g (float[2] x) => (float[K] y) <int64[1] all = {-1}> {
            s = SequenceConstruct (x, x)  a = ConcatFromSequence <axis = -1> (s)
            y = Reshape (a, all)  }""",
        """<ir_version: 10, opset_import: ["" : 21]>
        g (float[2] x) => (float[K] y) <int64[1] all = {-1}> {
            s = SequenceConstruct (x, x)  a = ConcatFromSequence <axis = -1, new_axis = 1> (s)
            y = Reshape (a, all)  }""",
        {"x": [1, 2]},
    ),
    "a new axis of another number": (
        """<ir_version: 10, opset_import: ["" : 21]>
        g (float[T,2] x, int64 n) => (int64[K] m) {
            e = SequenceEmpty ()
            s = Loop <body = b (int64 i, bool c, seq(float[2]) s) => (bool d, seq(float[2]) t) {
                d = Identity (c)  r = Gather (x, i)  t = SequenceInsert (s, r) }> (n, , e)
            a = ConcatFromSequence <axis = 0, new_axis = 1> (s)  m = Shape (a) }""",
        {"new_axis = 1": "new_axis = 2"},
        {"x": [[1, 2], [3, 4]], "n": 2},
    ),
    "an input that is a sequence, read elsewhere": (
        """<ir_version: 10, opset_import: ["" : 21]>
        g (seq(float[2]) s, int64 i, int64 j) => (float[2] y) { y = SequenceAt (s, i) }""",
        {"(s, i)": "(s, j)"},
        {"s": [[1, 2], [3, 4]], "i": 0, "j": 1},
    ),
    "parts of other sizes": (
        """<ir_version: 10, opset_import: ["" : 21]>
        g (float[4] x, int64[2] n, int64[2] m) => (float[K] y) <int64 first = {0}> {
            s = SplitToSequence (x, n)  y = SequenceAt (s, first) }""",
        {"(x, n)": "(x, m)"},
        {"x": [1, 2, 3, 4], "n": [1, 3], "m": [2, 2]},
    ),
    "an element that may not exist": (
        """<ir_version: 10, opset_import: ["" : 21]>
        g (seq(float[2]) s, int64 i) => (float[2] y) {
            n = SequenceLength (s)  c = Less (i, n)
            y = If (c) <then_branch = a () => (float[2] p) { p = SequenceAt (s, i) },
                else_branch = b () => (float[2] q) {
                    q = Constant <value = float[2] {0, 0}> () }> }""",
        """<ir_version: 10, opset_import: ["" : 21]>
        g (seq(float[2]) s, int64 i) => (float[2] y) {
            n = SequenceLength (s)  c = Less (i, n)  p = SequenceAt (s, i)
            q = Constant <value = float[2] {0, 0}> ()  y = Where (c, p, q) }""",
        {"s": [[1, 2]], "i": 3},
    ),
    "a sequence that grows at its front": (
        """<ir_version: 10, opset_import: ["" : 21]>
        g (float[T,2] x, int64 n) => (float[K,2] y) {
            e = SequenceEmpty ()
            s = Loop <body = b (int64 i, bool c, seq(float[2]) s) => (bool d, seq(float[2]) t) {
                d = Identity (c)  r = Gather (x, i)  t = SequenceInsert (s, r) }> (n, , e)
            y = ConcatFromSequence <axis = 0, new_axis = 1> (s) }""",
        """<ir_version: 10, opset_import: ["" : 21]>
        g (float[T,2] x, int64 n) => (float[K,2] y) {
            e = SequenceEmpty ()
            s = Loop <body = b (int64 i, bool c, seq(float[2]) s) => (bool d, seq(float[2]) t) {
                d = Identity (c)  r = Gather (x, i)  z = Constant <value_int = 0> ()
                t = SequenceInsert (s, r, z) }> (n, , e)
            y = ConcatFromSequence <axis = 0, new_axis = 1> (s) }""",
        {"x": [[1, 2], [3, 4]], "n": 2},
    ),
    "a sequence that gets the state before": (
        """<ir_version: 10, opset_import: ["" : 21]>
        g (float[2] h, int64 n) => (float[K,2] y) {
            e = SequenceConstruct (h)
            a, s = Loop <body = b (int64 i, bool c, float[2] u, seq(float[2]) s)
                => (bool d, float[2] v, seq(float[2]) t) {
                d = Identity (c)  v = Add (u, u)  t = SequenceInsert (s, v) }> (n, , h, e)
            y = ConcatFromSequence <axis = 0, new_axis = 1> (s) }""",
        {"(s, v)": "(s, u)"},
        {"h": [1, 2], "n": 2},
    ),
    "a sequence of one iteration less": (
        """<ir_version: 10, opset_import: ["" : 21]>
        g (float[2] h, int64 n) => (int64 y) {
            e = SequenceConstruct (h)  one = Constant <value_int = 1> ()  m = Max (n, one)
            s = Loop <body = b (int64 i, bool c, seq(float[2]) s) => (bool d, seq(float[2]) t) {
                d = Identity (c)  t = SequenceInsert (s, h) }> (m, , e)
            y = SequenceLength (s) }""",
        {"(m, , e)": "(n, , e)"},
        {"h": [1, 2], "n": 0},
    ),
    "an optional that is empty": (
        """<ir_version: 10, opset_import: ["" : 21]>
        g (float[2] x) => (bool y) { o = Optional (x)  y = OptionalHasElement (o) }""",
        """<ir_version: 10, opset_import: ["" : 21]>
        g (float[2] x) => (bool y) { y = OptionalHasElement () }""",
        {"x": [1, 2]},
    ),
    "the other optional": (
        """<ir_version: 10, opset_import: ["" : 21]>
        g (float[2] x, float[2] w) => (float[2] y) {
            o = Optional (x)  p = Optional (w)  y = OptionalGetElement (o) }""",
        {"Element (o)": "Element (p)"},
        {"x": [1, 2], "w": [3, 4]},
    ),
}

UNKNOWN_RANK: dict[str, Case] = {
    "a value of unknown rank flattened elsewhere": (
        """<ir_version: 10, opset_import: ["" : 21]>
        g (float[N] x, int64[R] s) => (float[A,B] y) {
            r = Reshape (x, s)  y = Flatten <axis = 0> (r) }""",
        {"axis = 0": "axis = 1"},
        {"x": [1, 2], "s": [2, 1]},
    ),
    "another value of unknown rank": (
        """<ir_version: 10, opset_import: ["" : 21]>
        g (float[N] x, int64[R] s, int64[R] t) => (int64[R] y) {
            a = Reshape (x, s)  b = Reshape (x, t)  y = Shape (a) }""",
        {"Shape (a)": "Shape (b)"},
        {"x": [1, 2], "s": [2, 1], "t": [1, 2]},
    ),
    "the axes of a value of unknown rank": (
        """<ir_version: 10, opset_import: ["" : 21]>
        g (float[N] x, int64[R] s) => (float[K] y) <int64[1] all = {-1}> {
            r = Reshape (x, s)  t = Transpose (r)  y = Reshape (r, all) }""",
        {"(r, all)": "(t, all)"},
        {"x": [1, 2, 3, 4], "s": [2, 2]},
    ),
    "what a value of unknown rank is spread to": (
        """<ir_version: 10, opset_import: ["" : 21]>
        g (float[N] x, int64[R] s) => (int64 y) {
            r = Expand (x, s)  a = Neg (r)  y = Size (a) }""",
        {"Size (a)": "Size (x)"},
        {"x": [1, 2], "s": [3, 1]},
    ),
}

SEQUENTIAL = {**SEQUENCES, **UNKNOWN_RANK}
