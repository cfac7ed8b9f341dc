"""Calls in loops, branches and functions, and around them."""

from __future__ import annotations

from tests.proving.wrong_calls import Case

FAILING: dict[str, Case] = {
    "a call that may fail before a loop that need not run": (
        """<ir_version: 10, opset_import: ["" : 21]>
        g (int64 n, float[N] x, int64[1] k) => (float[N] y) {
            y = Loop <body = b (int64 i, bool c, float[N] s) => (bool d, float[N] t) {
                d = Identity (c)  v, j = TopK (x, k)  m = ReduceMax <keepdims = 0> (v)
                t = Add (s, m) }> (n, , x) }""",
        """<ir_version: 10, opset_import: ["" : 21]>
        g (int64 n, float[N] x, int64[1] k) => (float[N] y) {
            v, j = TopK (x, k)
            y = Loop <body = b (int64 i, bool c, float[N] s) => (bool d, float[N] t) {
                d = Identity (c)  m = ReduceMax <keepdims = 0> (v)
                t = Add (s, m) }> (n, , x) }""",
        {"n": 0, "x": [1], "k": [3]},
    ),
    "a call that may fail after a loop that need not run": (
        """<ir_version: 10, opset_import: ["" : 21]>
        g (int64 n, float[N] x, int64[1] k) => (float[N] y) {
            y = Loop <body = b (int64 i, bool c, float[N] s) => (bool d, float[N] t) {
                d = Identity (c)  v, j = TopK (x, k)  m = ReduceMax <keepdims = 0> (v)
                t = Add (s, m) }> (n, , x) }""",
        {"(n, , x)": "(n, , x)  unread, place = TopK (x, k)"},
        {"n": 0, "x": [1], "k": [3]},
    ),
    "a call of a branch that another condition chooses": (
        """<ir_version: 10, opset_import: ["" : 21]>
        g (bool c, bool e, float[N,2] x, int64[M,1] i, float[M,2] u) => (float[N,2] y) {
            y = If (c) <then_branch = a () => (float[N,2] p) { p = ScatterND (x, i, u) },
                else_branch = b () => (float[N,2] q) { q = Neg (x) }>
            z = If (e) <then_branch = k () => (float[N,2] r) { r = Identity (x) },
                else_branch = l () => (float[N,2] w) { w = Neg (x) }> }""",
        {"r = Identity (x)": "r = ScatterND (x, i, u)"},
        {"c": False, "e": True, "x": [[1, 2]], "i": [[5]], "u": [[1, 2]]},
    ),
    "a call of both branches, of which one is guarded": (
        """<ir_version: 10, opset_import: ["" : 21]>
        g (bool c, bool e, float[N,2] x, int64[M,1] i, float[M,2] u) => (float[N,2] y) {
            y = If (c) <then_branch = a () => (float[N,2] p) { p = ScatterND (x, i, u) },
                else_branch = b () => (float[N,2] q) {
                    q = If (e) <then_branch = k () => (float[N,2] r) { r = ScatterND (x, i, u) },
                        else_branch = l () => (float[N,2] w) { w = Identity (x) }> }> }""",
        """<ir_version: 10, opset_import: ["" : 21]>
        g (bool c, bool e, float[N,2] x, int64[M,1] i, float[M,2] u) => (float[N,2] y) {
            s = ScatterND (x, i, u)  both = Or (c, e)  y = Where (both, s, x) }""",
        {"c": False, "e": False, "x": [[1, 2]], "i": [[5]], "u": [[1, 2]]},
    ),
    "a call of another loop's iterations": (
        """<ir_version: 10, opset_import: ["" : 21]>
        g (int64 n, int64 m, float[N] x, int64[K,1] i, float[K] u) => (float[N] y, float[N] z) {
            y = Loop <body = b (int64 j, bool c, float[N] s) => (bool d, float[N] t) {
                d = Identity (c)  q = ScatterND (x, i, u)  t = Add (s, q) }> (n, , x)
            z = Loop <body = e (int64 k, bool f, float[N] v) => (bool h, float[N] w) {
                h = Identity (f)  w = Neg (v) }> (m, , x) }""",
        {"w = Neg (v)": "unread = ScatterND (x, i, u)  w = Neg (v)"},
        {"n": 0, "m": 1, "x": [1], "i": [[5]], "u": [2]},
    ),
    "a call of the first iteration, which need not be": (
        """<ir_version: 10, opset_import: ["" : 21]>
        g (int64 n, float[T,2] x, int64[1] k) => (float y) <float zero = {0}> {
            y = Loop <body = b (int64 i, bool c, float s) => (bool d, float t) {
                d = Identity (c)  r = Gather (x, i)  v, j = TopK (r, k)
                m = ReduceMax <keepdims = 0> (v)  t = Add (s, m) }> (n, , zero) }""",
        {
            "zero = {0}>": "zero = {0}, int64 at = {0}>",
            "y = Loop": "row = Gather (x, at)  a, b = TopK (row, k)  y = Loop",
        },
        {"n": 0, "x": [[1, 2]], "k": [3]},
    ),
    "a peeled iteration without its guard": (
        """<ir_version: 10, opset_import: ["" : 21]>
        g (int64 n, float[N] h, int64[K,1] i, float[K] u) => (float[N] y) {
            y = Loop <body = b (int64 j, bool c, float[N] s) => (bool d, float[N] t) {
                d = Identity (c)  t = ScatterND <reduction = "add"> (s, i, u) }> (n, , h) }""",
        """<ir_version: 10, opset_import: ["" : 21]>
        g (int64 n, float[N] h, int64[K,1] i, float[K] u) => (float[N] y) <int64 one = {1}> {
            first = ScatterND <reduction = "add"> (h, i, u)  m = Sub (n, one)
            y = Loop <body = b (int64 j, bool c, float[N] s) => (bool d, float[N] t) {
                d = Identity (c)  t = ScatterND <reduction = "add"> (s, i, u) }> (m, , first) }""",
        {"n": 0, "h": [1], "i": [[0]], "u": [2]},
    ),
    "a mask that may have another length": (
        """<ir_version: 10, opset_import: ["" : 21]>
        g (bool c, float[N] x, bool[M] m) => (float[K] y) {
            y = If (c) <then_branch = a () => (float[K] p) { p = Compress <axis = 0> (x, m) },
                else_branch = b () => (float[L] q) { q = Neg (x) }> }""",
        {"y = If": "unread = Compress <axis = 0> (x, m)  y = If"},
        {"c": False, "x": [1], "m": [False, True]},
    ),
    "a loop without an end that nobody reads": (
        """<ir_version: 10, opset_import: ["" : 21]>
        g (float[N] x, bool e) => (float[N] y) { y = Neg (x) }""",
        {
            "y = Neg (x)": """y = Neg (x)
            unread = Loop <body = b (int64 i, bool c, float[N] s) => (bool d, float[N] t) {
                d = Identity (c)  t = Identity (s) }> (, e, x)"""
        },
        {"x": [1], "e": True},
    ),
    "the largest one of what may be empty": (
        """<ir_version: 10, opset_import: ["" : 21]>
        g (float[N] x) => (float[N] y) { y = Neg (x) }""",
        {"y = Neg (x)": "y = Neg (x)  unread = ArgMax (x)"},
        {"x": []},
    ),
}

ITERATED: dict[str, Case] = {
    "a call on the state after the update": (
        """<ir_version: 10, opset_import: ["" : 21]>
        g (int64 n, float[1,1,2] h, float[1,1,2] w) => (float[T,1,1,1] z) {
            y, z = Loop <body = b (int64 i, bool c, float[1,1,2] s)
                => (bool d, float[1,1,2] t, float[1,1,1] o) {
                d = Identity (c)  t = Add (s, s)  o = Conv (s, w) }> (n, , h) }""",
        {"Conv (s, w)": "Conv (t, w)"},
        {"n": 1, "h": [[[1, 2]]], "w": [[[1, 2]]]},
    ),
    "a call on the initial state in each iteration": (
        """<ir_version: 10, opset_import: ["" : 21]>
        g (int64 n, float[1,1,2] h, float[1,1,2] w) => (float[T,1,1,1] z) {
            y, z = Loop <body = b (int64 i, bool c, float[1,1,2] s)
                => (bool d, float[1,1,2] t, float[1,1,1] o) {
                d = Identity (c)  t = Add (s, s)  o = Conv (s, w) }> (n, , h) }""",
        {"Conv (s, w)": "Conv (h, w)"},
        {"n": 2, "h": [[[1, 2]]], "w": [[[1, 2]]]},
    ),
    "a call on the end of a loop, for one on its begin": (
        """<ir_version: 10, opset_import: ["" : 21]>
        g (int64 n, float[1,1,2] h, float[1,1,2] w) => (float[1,1,1] z) {
            y = Loop <body = b (int64 i, bool c, float[1,1,2] s) => (bool d, float[1,1,2] t) {
                d = Identity (c)  t = Add (s, s) }> (n, , h)
            z = Conv (y, w) }""",
        {"Conv (y, w)": "Conv (h, w)"},
        {"n": 1, "h": [[[1, 2]]], "w": [[[1, 2]]]},
    ),
    "a call whose captured value is another one": (
        """<ir_version: 10, opset_import: ["" : 21]>
        g (float[T,1,1,2] x, float[1,1,2] v, float[1,1,2] w) => (float[T,1,1,1] z) {
            t = Add (v, w)
            z = Scan <num_scan_inputs = 1, body = b (float[1,1,2] r) => (float[1,1,1] o) {
                o = Conv (r, t) }> (x) }""",
        {"Add (v, w)": "Sub (v, w)"},
        {"x": [[[[1, 2]]]], "v": [[[1, 2]]], "w": [[[3, 4]]]},
    ),
    "a capture of a body within a body": (
        """<ir_version: 10, opset_import: ["" : 21]>
        g (int64 n, bool e, float[1,1,2] h, float[1,1,2] v, float[1,1,2] w) => (float[1,1,2] y) {
            y = Loop <body = b (int64 i, bool c, float[1,1,2] s) => (bool d, float[1,1,2] t) {
                d = Identity (c)  k = Add (s, v)
                t = If (e) <then_branch = p () => (float[1,1,2] a) {
                        q = Conv (k, w)  a = Add (k, q) },
                    else_branch = r () => (float[1,1,2] f) { f = Neg (s) }> }> (n, , h) }""",
        {"k = Add (s, v)": "k = Add (h, v)"},
        {"n": 2, "e": True, "h": [[[1, 2]]], "v": [[[1, 2]]], "w": [[[3, 4]]]},
    ),
    "a name of two bodies": (
        """<ir_version: 10, opset_import: ["" : 21]>
        g (bool c, float[1,1,2] x, float[1,1,2] v, float[1,1,2] w) => (float[1,1,1] y) {
            y = If (c) <then_branch = a () => (float[1,1,1] p) {
                    t = Identity (v)  p = Conv (x, t) },
                else_branch = b () => (float[1,1,1] q) {
                    t = Identity (w)  q = Conv (x, t) }> }""",
        """<ir_version: 10, opset_import: ["" : 21]>
        g (bool c, float[1,1,2] x, float[1,1,2] v, float[1,1,2] w) => (float[1,1,1] y) {
            t = Identity (v)
            y = If (c) <then_branch = a () => (float[1,1,1] p) { p = Conv (x, t) },
                else_branch = b () => (float[1,1,1] q) { q = Conv (x, t) }> }""",
        {"c": False, "x": [[[1, 2]]], "v": [[[1, 2]]], "w": [[[3, 4]]]},
    ),
    "a value of a body, and of the graph, of one name": (
        """<ir_version: 10, opset_import: ["" : 21]>
        g (int64 n, float[1,1,2] h, float[1,1,2] w) => (float[T,1,1,1] z) {
            y, z = Loop <body = b (int64 i, bool c, float[1,1,2] s)
                => (bool d, float[1,1,2] u, float[1,1,1] o) {
                d = Identity (c)  t = Conv (s, w)  u = Sub (s, t)  o = Neg (t) }> (n, , h) }""",
        """<ir_version: 10, opset_import: ["" : 21]>
        g (int64 n, float[1,1,2] h, float[1,1,2] w) => (float[T,1,1,1] z) {
            t = Conv (h, w)
            y, z = Loop <body = b (int64 i, bool c, float[1,1,2] s)
                => (bool d, float[1,1,2] u, float[1,1,1] o) {
                d = Identity (c)  u = Sub (s, t)  o = Neg (t) }> (n, , h) }""",
        {"n": 2, "h": [[[1, 2]]], "w": [[[3, 4]]]},
    ),
    "the condition of a loop": (
        """<ir_version: 10, opset_import: ["" : 21]>
        g (int64 n, float[N] h, int64 most) => (float[N] y) {
            y = Loop <body = b (int64 i, bool c, float[N] s) => (bool d, float[N] t) {
                t = Sub (s, h)  z = NonZero (s)  k = Size (z)  d = Less (most, k) }> (n, , h) }""",
        {"NonZero (s)": "NonZero (t)"},
        {"n": 5, "h": [1, 1], "most": 0},
    ),
    "a trip count that NonZero decides": (
        """<ir_version: 10, opset_import: ["" : 21]>
        g (float[N] x, float h) => (float y) {
            z = NonZero (x)  n = Size (z)
            y = Loop <body = b (int64 i, bool c, float s) => (bool d, float t) {
                d = Identity (c)  t = Add (s, s) }> (n, , h) }""",
        {"Size (z)": "Size (x)"},
        {"x": [1, 0], "h": 1},
    ),
    "a trip count that Unique decides": (
        """<ir_version: 10, opset_import: ["" : 21]>
        g (float[N] x, float[M] w, float h) => (float y) {
            a = Unique (x)  b = Unique (w)  n = Size (a)
            y = Loop <body = b (int64 i, bool c, float s) => (bool d, float t) {
                d = Identity (c)  t = Add (s, s) }> (n, , h) }""",
        {"Size (a)": "Size (b)"},
        {"x": [1, 2], "w": [1], "h": 1},
    ),
    "random numbers of each iteration": (
        """<ir_version: 10, opset_import: ["" : 21]>
        g (int64 n, float[2] h) => (float[T,2] z) {
            y, z = Loop <body = b (int64 i, bool c, float[2] s)
                => (bool d, float[2] t, float[2] o) {
                d = Identity (c)  t = Identity (s)  r = RandomUniformLike (s)
                o = Add (r, s) }> (n, , h) }""",
        """<ir_version: 10, opset_import: ["" : 21]>
        g (int64 n, float[2] h) => (float[T,2] z) {
            r = RandomUniformLike (h)
            y, z = Loop <body = b (int64 i, bool c, float[2] s)
                => (bool d, float[2] t, float[2] o) {
                d = Identity (c)  t = Identity (s)  o = Add (r, s) }> (n, , h) }""",
        {"n": 2, "h": [1, 2]},
    ),
    "rows in the other direction": (
        """<ir_version: 10, opset_import: ["" : 21]>
        g (float[T,3] x, int64[1] k) => (float[T,K] z) {
            z = Scan <num_scan_inputs = 1, body = b (float[3] r) => (float[K] o) {
                o, j = TopK (r, k) }> (x) }""",
        {"num_scan_inputs": "scan_output_directions = [1], num_scan_inputs"},
        {"x": [[1, 2, 3], [4, 5, 6]], "k": [1]},
    ),
    "a quantised state of one iteration before": (
        """<ir_version: 10, opset_import: ["" : 21]>
        g (int64 n, float[2] h, float q, float p) => (float[2] y) {
            z = Constant <value = uint8 {0}> ()
            y = Loop <body = b (int64 i, bool c, float[2] s) => (bool d, float[2] t) {
                d = Identity (c)  a = QuantizeLinear (s, q, z)
                e = DequantizeLinear (a, q, z)  t = Add (e, s) }> (n, , h) }""",
        {"DequantizeLinear (a, q, z)": "DequantizeLinear (a, p, z)"},
        {"n": 1, "h": [1, 2], "q": 1, "p": 2},
    ),
}

CHOSEN: dict[str, Case] = {
    "a condition by what is not zero": (
        """<ir_version: 10, opset_import: ["" : 21]>
        g (float[N] x, float[N] w) => (float[N] y) <int64 none = {0}> {
            z = NonZero (x)  k = Size (z)  c = Equal (k, none)
            y = If (c) <then_branch = a () => (float[N] p) { p = Identity (w) },
                else_branch = b () => (float[N] q) { q = Neg (w) }> }""",
        {"NonZero (x)": "NonZero (w)"},
        {"x": [0], "w": [1]},
    ),
    "a value that one branch alone has": (
        """<ir_version: 10, opset_import: ["" : 21]>
        g (bool c, float[1,1,2] x, float[1,1,2] v, float[1,1,2] w)
            => (float[1,1,2] t, float[1,1,1] y) {
            t = If (c) <then_branch = a () => (float[1,1,2] p) { p = Add (v, w) },
                else_branch = b () => (float[1,1,2] q) { q = Sub (v, w) }>
            y = Conv (x, t) }""",
        {"y = Conv (x, t)": "u = Add (v, w)  y = Conv (x, u)"},
        {"c": False, "x": [[[1, 2]]], "v": [[[1, 2]]], "w": [[[3, 4]]]},
    ),
    "equal where a mask holds": (
        """<ir_version: 10, opset_import: ["" : 21]>
        g (bool[N] c, float[N] x, float[N] w, int64 a) => (float[N] y, float[N] z) {
            t = Where (c, x, w)  y = Where (c, t, x)  z = CumSum (t, a) }""",
        {"t = Where (c, x, w)": "t = Identity (x)"},
        {"c": [False], "x": [1], "w": [2], "a": 0},
    ),
    "equal in all rows but the last": (
        """<ir_version: 10, opset_import: ["" : 21]>
        g (float[N] x, int64 a) => (float[M] y, float[N] z)
            <int64[1] last = {-1}, int64[1] first = {0}> {
            n = Neg (x)  t = Identity (x)  y = Slice (t, first, last)  z = CumSum (t, a) }""",
        """<ir_version: 10, opset_import: ["" : 21]>
        g (float[N] x, int64 a) => (float[M] y, float[N] z)
            <int64[1] last = {-1}, int64[1] first = {0}, int64[1] most = {9223372036854775807}> {
            n = Neg (x)  b = Slice (x, first, last)  e = Slice (n, last, most)
            t = Concat <axis = 0> (b, e)  y = Slice (t, first, last)  z = CumSum (t, a) }""",
        {"x": [1, 2], "a": 0},
    ),
    "equal if a loop does not run": (
        """<ir_version: 10, opset_import: ["" : 21]>
        g (int64 n, float[1,1,2] h, float[1,1,2] w) => (float[1,1,2] t, float[1,1,1] z) {
            t = Loop <body = b (int64 i, bool c, float[1,1,2] s) => (bool d, float[1,1,2] u) {
                d = Identity (c)  u = Add (s, w) }> (n, , h)
            z = Conv (t, w) }""",
        {"z = Conv (t, w)": "z = Conv (h, w)"},
        {"n": 1, "h": [[[1, 2]]], "w": [[[3, 4]]]},
    ),
    "a default that a caller may override": (
        """<ir_version: 10, opset_import: ["" : 21]>
        g (float[1,1,2] x, float[1,1,2] w) => (float[1,1,1] y) <float[1,1,2] w = {1, 2}> {
            y = Conv (x, w) }""",
        {"y = Conv (x, w)": "v = Constant <value = float[1,1,2] {1, 2}> ()  y = Conv (x, v)"},
        {"x": [[[1, 2]]], "w": [[[3, 4]]]},
    ),
    "values of one name and other sizes": (
        """<ir_version: 10, opset_import: ["" : 21]>
        g (float[4] x, int64[1] k, int64[1] l) => (int64[1] y) {
            t, i = TopK (x, k)  u = Neg (t)  y = Shape (u) }""",
        {"TopK (x, k)": "TopK (x, l)"},
        {"x": [1, 2, 3, 4], "k": [1], "l": [2]},
    ),
    "a function of one name and another body": (
        """<ir_version: 10, opset_import: ["" : 21, "my" : 1]>
        g (float[1,1,2] x, float[1,1,2] w) => (float[1,1,K] y) { y = my.f (x, w) }
        <domain: "my", opset_import: ["" : 21]>
        f (x, w) => (y) { y = Conv (x, w) }""",
        {"Conv (x, w)": "Conv <pads = [1, 1]> (x, w)"},
        {"x": [[[1, 2]]], "w": [[[3, 4]]]},
    ),
    "a function of another opset": (
        """<ir_version: 10, opset_import: ["" : 21, "my" : 1]>
        g (float[1,2,2] x) => (float[1,2,2] y) { y = my.f (x) }
        <domain: "my", opset_import: ["" : 11]>
        f (x) => (y) { y = Hardmax (x) }""",
        {'["" : 11]': '["" : 13]'},
        {"x": [[[1, 2], [3, 4]]]},
    ),
    "an attribute of a function against its default": (
        """<ir_version: 10, opset_import: ["" : 21, "my" : 1]>
        g (float[N] x) => (float[K] y) { y = my.f (x) }
        <domain: "my", opset_import: ["" : 21]>
        f <sorted: int = 1> (x) => (y) { y = Unique <sorted: int = @sorted> (x) }""",
        {"my.f (x)": "my.f <sorted = 0> (x)"},
        {"x": [2, 1]},
    ),
    "a function that calls another one": (
        """<ir_version: 10, opset_import: ["" : 21, "my" : 1]>
        g (float[N] x, int64 a, int64 n) => (float[N] y) {
            y = Loop <body = b (int64 i, bool c, float[N] s) => (bool d, float[N] t) {
                d = Identity (c)  t = my.f (s, a) }> (n, , x) }
        <domain: "my", opset_import: ["" : 21, "my" : 1]>
        f (x, a) => (y) { t = my.h (x, a)  y = Neg (t) }
        <domain: "my", opset_import: ["" : 21]>
        h (x, a) => (y) { y = CumSum (x, a) }""",
        {"CumSum": "CumSum <reverse = 1>"},
        {"x": [1, 2], "a": 0, "n": 1},
    ),
    "cases that are not proven, of a size and of a product of sizes": (
        """<ir_version: 10, opset_import: ["" : 21]>
        g (float[N] x, float[N,M] w) => (float[N] y, int64 z) {
            n = Size (w)  zero = Constant <value_int = 0> ()  empty = Equal (n, zero)
            z = If (empty) <then_branch = a () => (int64 p) { p = Constant <value_int = 1> () },
                else_branch = b () => (int64 q) { q = Constant <value_int = 2> () }>
            k = Size (x)  two = Constant <value_int = 2> ()  short = LessOrEqual (k, two)
            y = If (short) <then_branch = c () => (float[N] r) { r = Neg (x) },
                else_branch = d () => (float[N] s) { s = Cos (x) }> }""",
        {"r = Neg": "r = Sin", "value_int = 1": "value_int = 3"},
        {"x": [1], "w": [[1]]},
    ),
    "a value of a branch that is named like one of the graph": (
        """<ir_version: 10, opset_import: ["" : 21]>
        g (float[N] x, bool c) => (float[N] y, float[N] z) {
            z = If (c) <then_branch = a () => (float[N] p) { t = Cos (x)  p = Abs (t) },
                else_branch = b () => (float[N] q) { q = Neg (x) }>
            t = Sin (x)  y = Neg (t) }""",
        """<ir_version: 10, opset_import: ["" : 21]>
        g (float[N] x, bool c) => (float[N] y, float[N] z) {
            t = Sin (x)  u = Neg (t)  y = Identity (u)
            z = If (c) <then_branch = a () => (float[N] p) { p = Abs (t) },
                else_branch = b () => (float[N] q) { q = Neg (x) }> }""",
        {"x": [1], "c": True},
    ),
}

BODIES = {**FAILING, **ITERATED, **CHOSEN}
