"""Loops, branches and functions of equal texts, but with another capture, opset, function, operand
or output; and calls that another path, iteration or loop makes."""

from __future__ import annotations

from tests.proving.wrong_calls import Case

#: A state that doubles its size: no closed form has it.
DOUBLED = """<ir_version: 10, opset_import: ["" : 21]>
    g (int64 n, int64 m, bool e, float[N] h, float[N] k, float[1] v, float[1] w)
        => (float[K] y, float[T,1] z) {
        one = Add (v, w)  two = Sub (v, w)
        y, z = Loop <body = b (int64 i, bool c, float[R] s) => (bool d, float[S] t, float[1] o) {
            d = Identity (e)  p = Concat <axis = 0> (s, s)  t = Add (p, one)
            o = Mul (one, two) }> (n, , h) }"""

LOOPS: dict[str, Case] = {
    "a loop of another trip count": (
        DOUBLED,
        {"(n, , h)": "(m, , h)"},
        {"n": 1, "m": 2, "e": True, "h": [1], "k": [2], "v": [1], "w": [3]},
    ),
    "a loop that may not begin": (
        DOUBLED,
        {"(n, , h)": "(n, e, h)"},
        {"n": 1, "m": 2, "e": False, "h": [1], "k": [2], "v": [1], "w": [3]},
    ),
    "a loop from another state": (
        DOUBLED,
        {"(n, , h)": "(n, , k)"},
        {"n": 1, "m": 2, "e": True, "h": [1], "k": [2], "v": [1], "w": [3]},
    ),
    "a loop whose capture is another value of its name": (
        DOUBLED,
        {"one = Add (v, w)": "one = Mul (v, w)"},
        {"n": 1, "m": 2, "e": True, "h": [1], "k": [2], "v": [1], "w": [3]},
    ),
    "a loop that reads another capture": (
        DOUBLED,
        {"Add (p, one)": "Add (p, two)"},
        {"n": 1, "m": 2, "e": True, "h": [1], "k": [2], "v": [1], "w": [3]},
    ),
    "a loop whose captures are exchanged": (
        DOUBLED,
        {"one = Add (v, w)  two = Sub (v, w)": "two = Add (v, w)  one = Sub (v, w)"},
        {"n": 1, "m": 2, "e": True, "h": [1], "k": [2], "v": [1], "w": [3]},
    ),
    "a loop that captures through a branch": (
        """<ir_version: 10, opset_import: ["" : 21]>
        g (int64 n, bool e, float[N] h, float[1] v, float[1] w) => (float[K] y) {
            a = Add (v, w)
            y = Loop <body = b (int64 i, bool c, float[R] s) => (bool d, float[S] t) {
                d = Identity (c)  p = Concat <axis = 0> (s, s)
                t = If (e) <then_branch = f () => (float[P] q) { q = Add (p, a) },
                    else_branch = j () => (float[Q] r) { r = Neg (p) }> }> (n, , h) }""",
        {"a = Add (v, w)": "a = Sub (v, w)"},
        {"n": 1, "e": True, "h": [1], "v": [1], "w": [3]},
    ),
    "a loop that captures a constant of another value": (
        """<ir_version: 10, opset_import: ["" : 21]>
        g (int64 n, float[N] h) => (float[K] y) <float[1] a = {1}> {
            y = Loop <body = b (int64 i, bool c, float[R] s) => (bool d, float[S] t) {
                d = Identity (c)  p = Concat <axis = 0> (s, s)  t = Add (p, a) }> (n, , h) }""",
        {"a = {1}": "a = {2}"},
        {"n": 1, "h": [1]},
    ),
    "a constant of a body, of another value": (
        """<ir_version: 10, opset_import: ["" : 21]>
        g (int64 n, float[N] h) => (float[K] y) {
            y = Loop <body = b (int64 i, bool c, float[R] s) => (bool d, float[S] t)
                <float[1] a = {1}> {
                d = Identity (c)  p = Concat <axis = 0> (s, s)  t = Add (p, a) }> (n, , h) }""",
        {"a = {1}": "a = {2}"},
        {"n": 1, "h": [1]},
    ),
    "a body of another opset": (
        """<ir_version: 10, opset_import: ["" : 11]>
        g (int64 n, float[A,2,2] h) => (float[K,2,2] y) {
            y = Loop <body = b (int64 i, bool c, float[R,2,2] s) => (bool d, float[S,2,2] t) {
                d = Identity (c)  p = Concat <axis = 0> (s, s)  t = Softmax (p) }> (n, , h) }""",
        {": 11]": ": 13]"},
        {"n": 1, "h": [[[1, 2], [3, 4]]]},
    ),
    "a body that calls another function of the name": (
        """<ir_version: 10, opset_import: ["" : 21, "my" : 1]>
        g (int64 n, float[N] h) => (float[K] y) {
            y = Loop <body = b (int64 i, bool c, float[R] s) => (bool d, float[S] t) {
                d = Identity (c)  p = Concat <axis = 0> (s, s)  t = my.f (p) }> (n, , h) }
        <domain: "my", opset_import: ["" : 21]>
        f (x) => (y) { y = Neg (x) }""",
        {"y = Neg (x)": "y = Abs (x)"},
        {"n": 1, "h": [1]},
    ),
    "a body that calls a function which calls another one": (
        """<ir_version: 10, opset_import: ["" : 21, "my" : 1]>
        g (int64 n, float[N] h) => (float[K] y) {
            y = Loop <body = b (int64 i, bool c, float[R] s) => (bool d, float[S] t) {
                d = Identity (c)  p = Concat <axis = 0> (s, s)  t = my.f (p) }> (n, , h) }
        <domain: "my", opset_import: ["" : 21, "my" : 1]>
        f (x) => (y) { y = my.k (x) }
        <domain: "my", opset_import: ["" : 21]>
        k (x) => (y) { y = Neg (x) }""",
        {"y = Neg (x)": "y = Abs (x)"},
        {"n": 1, "h": [1]},
    ),
    "a function that takes its opset from itself": (
        """<ir_version: 10, opset_import: ["" : 21, "my" : 1]>
        g (int64 n, float[A,2,2] h) => (float[K,2,2] y) {
            y = Loop <body = b (int64 i, bool c, float[R,2,2] s) => (bool d, float[S,2,2] t) {
                d = Identity (c)  p = Concat <axis = 0> (s, s)  t = my.f (p) }> (n, , h) }
        <domain: "my", opset_import: ["" : 11]>
        f (x) => (y) { y = Softmax (x) }""",
        {": 11]": ": 13]"},
        {"n": 1, "h": [[[1, 2], [3, 4]]]},
    ),
    "an attribute of a function that is called in a body": (
        """<ir_version: 10, opset_import: ["" : 21, "my" : 1]>
        g (int64 n, float[N] h) => (float[K] y) {
            y = Loop <body = b (int64 i, bool c, float[R] s) => (bool d, float[S] t) {
                d = Identity (c)  p = Concat <axis = 0> (s, s)
                t = my.f <alpha = 2.0> (p) }> (n, , h) }
        <domain: "my", opset_import: ["" : 21]>
        f <alpha> (x) => (y) { y = Elu <alpha: float = @alpha> (x) }""",
        {"alpha = 2.0": "alpha = 3.0"},
        {"n": 1, "h": [-1]},
    ),
    "random numbers of a body": (
        """<ir_version: 10, opset_import: ["" : 21]>
        g (int64 n, float[N] h) => (float[K] y, float[2] z) {
            y = Loop <body = b (int64 i, bool c, float[R] s) => (bool d, float[S] t) {
                d = Identity (c)  p = Concat <axis = 0> (s, s)
                r = RandomUniformLike (p)  t = Add (p, r) }> (n, , h)
            z = Constant <value = float[2] {1, 2}> () }""",
        """<ir_version: 10, opset_import: ["" : 21]>
        g (int64 n, float[N] h) => (float[K] y, float[2] z) {
            z = Constant <value = float[2] {1, 2}> ()
            unread = RandomUniformLike (z)
            y = Loop <body = b (int64 i, bool c, float[R] s) => (bool d, float[S] t) {
                d = Identity (c)  p = Concat <axis = 0> (s, s)
                r = RandomUniformLike (p)  t = Add (p, r) }> (n, , h) }""",
        {"n": 1, "h": [1]},
    ),
    "another output of a loop": (
        """<ir_version: 10, opset_import: ["" : 21]>
        g (int64 n, float[N] h, float[N] k) => (float[K] y) {
            p, q = Loop <body = b (int64 i, bool c, float[A] s, float[B] t)
                => (bool d, float[C] u, float[D] v) {
                d = Identity (c)  u = Concat <axis = 0> (s, s)  v = Concat <axis = 0> (t, t) }>
                (n, , h, k)
            y = Neg (p) }""",
        {"Neg (p)": "Neg (q)"},
        {"n": 1, "h": [1], "k": [2]},
    ),
    "outputs of a body exchanged": (
        """<ir_version: 10, opset_import: ["" : 21]>
        g (int64 n, float[N] h, float[N] k) => (float[K] y) {
            y, q = Loop <body = b (int64 i, bool c, float[A] s, float[B] t)
                => (bool d, float[C] u, float[D] v) {
                d = Identity (c)  u = Concat <axis = 0> (s, s)  v = Concat <axis = 0> (t, t) }>
                (n, , h, k) }""",
        {"float[C] u, float[D] v": "float[C] v, float[D] u"},
        {"n": 1, "h": [1], "k": [2]},
    ),
    "an attribute of a node of a body": (
        """<ir_version: 10, opset_import: ["" : 21]>
        g (int64 n, float[N] h) => (float[K] y) {
            y = Loop <body = b (int64 i, bool c, float[R] s) => (bool d, float[S] t) {
                d = Identity (c)  p = Concat <axis = 0> (s, s)  t = Elu (p) }> (n, , h) }""",
        {"Elu": "Elu <alpha = 2.0>"},
        {"n": 1, "h": [-1]},
    ),
    "a condition of a body": (
        """<ir_version: 10, opset_import: ["" : 21]>
        g (int64 n, float[N] h) => (float[K] y) <float most = {8}> {
            y = Loop <body = b (int64 i, bool c, float[R] s) => (bool d, float[S] t) {
                t = Concat <axis = 0> (s, s)  m = ReduceSum <keepdims = 0> (s)
                d = Less (m, most) }> (n, , h) }""",
        {"ReduceSum <keepdims = 0> (s)": "ReduceSum <keepdims = 0> (t)"},
        {"n": 9, "h": [1, 1, 1]},
    ),
    "a sequence that is mapped": (
        """<ir_version: 10, opset_import: ["" : 21]>
        g (float[N] x, float[N] w, float[N] v) => (float[K] y) {
            s = SequenceConstruct (x, w)
            t = SequenceMap <body = b (float[M] a) => (float[L] o) { o = Add (a, v) }> (s)
            y = ConcatFromSequence <axis = 0> (t) }""",
        {"Add (a, v)": "Sub (a, v)"},
        {"x": [1], "w": [2], "v": [3]},
    ),
    "a choice between values of other ranks": (
        """<ir_version: 10, opset_import: ["" : 21]>
        g (bool e, float[N] h, float[1] v, float[1] w) => (int64 k, float s) {
            y = If (e) <then_branch = a () => (float[P] p) { p = Add (h, v) },
                else_branch = b () => (float[Q] q) { q = Concat <axis = 0> (h, w) }>
            k = Size (y)  s = ReduceSum <keepdims = 0> (y) }""",
        {"Concat <axis = 0> (h, w)": "Concat <axis = 0> (h, v)"},
        {"e": False, "h": [1], "v": [1], "w": [2]},
    ),
}

MOVED: dict[str, Case] = {
    "before a loop that need not begin": (
        """<ir_version: 10, opset_import: ["" : 21]>
        g (bool e, float[N] x, int64[1] k) => (float[N] y) <int64 n = {3}> {
            y = Loop <body = b (int64 i, bool c, float[N] s) => (bool d, float[N] t) {
                d = Identity (c)  v, j = TopK (x, k)  m = ReduceMax <keepdims = 0> (v)
                t = Add (s, m) }> (n, e, x) }""",
        {"y = Loop": "unread, at = TopK (x, k)  y = Loop"},
        {"e": False, "x": [1], "k": [3]},
    ),
    "before a Scan over nothing": (
        """<ir_version: 10, opset_import: ["" : 21]>
        g (float[T] r, float[N] x, int64[1] k) => (float[T] y) {
            y = Scan <num_scan_inputs = 1, body = b (float a) => (float o) {
                v, j = TopK (x, k)  m = ReduceMax <keepdims = 0> (v)  o = Add (a, m) }> (r) }""",
        {"y = Scan": "unread, at = TopK (x, k)  y = Scan"},
        {"r": [], "x": [1], "k": [3]},
    ),
    "in a loop of one iteration more": (
        """<ir_version: 10, opset_import: ["" : 21]>
        g (int64 n, float[N] x, int64[1] k) => (float[N] y) <int64 one = {1}> {
            m = Max (n, one)
            y = Loop <body = b (int64 i, bool c, float[N] s) => (bool d, float[N] t) {
                d = Identity (c)  v, j = TopK (x, k)  a = ReduceMax <keepdims = 0> (v)
                t = Add (s, a) }> (n, , x) }""",
        {
            "y = Loop": """z = Loop <body = p (int64 h, bool e, float[N] q)
                => (bool f, float[N] r) {
                f = Identity (e)  u, l = TopK (x, k)  r = Neg (q) }> (m, , x)
            y = Loop"""
        },
        {"n": 0, "x": [1], "k": [3]},
    ),
    "under one of two conditions": (
        """<ir_version: 10, opset_import: ["" : 21]>
        g (bool c, bool e, float[N] x, int64[1] k) => (float[N] y) {
            y = If (c) <then_branch = a () => (float[N] p) {
                    p = If (e) <then_branch = f () => (float[N] q) {
                            v, j = TopK (x, k)  m = ReduceMax <keepdims = 0> (v)  q = Add (x, m) },
                        else_branch = h () => (float[N] r) { r = Neg (x) }> },
                else_branch = b () => (float[N] s) { s = Abs (x) }> }""",
        {"p = If (e)": "unread, at = TopK (x, k)  p = If (e)"},
        {"c": True, "e": False, "x": [1], "k": [3]},
    ),
    "after a branch that made it": (
        """<ir_version: 10, opset_import: ["" : 21]>
        g (bool c, float[N] x, int64[1] k) => (float[N] y, float[N] z) {
            y = If (c) <then_branch = a () => (float[N] p) {
                    v, j = TopK (x, k)  m = ReduceMax <keepdims = 0> (v)  p = Add (x, m) },
                else_branch = b () => (float[N] s) { s = Abs (x) }>
            z = If (c) <then_branch = d () => (float[N] q) { q = Neg (x) },
                else_branch = e () => (float[N] r) { r = Exp (x) }> }""",
        {"r = Exp (x)": "w, l = TopK (x, k)  r = Exp (x)"},
        {"c": False, "x": [1], "k": [3]},
    ),
    "a loop as a whole, out of a branch": (
        """<ir_version: 10, opset_import: ["" : 21]>
        g (bool e, int64 n, float[N] h, int64[1] at) => (float[K] y) {
            y = If (e) <then_branch = f () => (float[P] p) {
                    p = Loop <body = b (int64 i, bool c, float[R] s) => (bool d, float[S] t) {
                        d = Identity (c)  q = Gather (s, at)  t = Concat <axis = 0> (s, q) }>
                        (n, , h) },
                else_branch = j () => (float[Q] r) { r = Neg (h) }> }""",
        """<ir_version: 10, opset_import: ["" : 21]>
        g (bool e, int64 n, float[N] h, int64[1] at) => (float[K] y) {
            z = Loop <body = b (int64 i, bool c, float[R] s) => (bool d, float[S] t) {
                d = Identity (c)  q = Gather (s, at)  t = Concat <axis = 0> (s, q) }> (n, , h)
            y = If (e) <then_branch = f () => (float[P] p) { p = Identity (z) },
                else_branch = j () => (float[Q] r) { r = Neg (h) }> }""",
        {"e": False, "n": 1, "h": [1], "at": [5]},
    ),
    "a loop that need not end, out of a branch": (
        """<ir_version: 10, opset_import: ["" : 21]>
        g (bool e, float[N] h) => (float[N] y) <float zero = {0}> {
            y = If (e) <then_branch = f () => (float[N] p) {
                    p = Loop <body = b (int64 i, bool c, float[N] s) => (bool d, float[N] t) {
                        t = Add (s, h)  m = ReduceMax <keepdims = 0> (t)  d = Less (m, zero) }>
                        (, , h) },
                else_branch = j () => (float[N] r) { r = Neg (h) }> }""",
        """<ir_version: 10, opset_import: ["" : 21]>
        g (bool e, float[N] h) => (float[N] y) <float zero = {0}> {
            z = Loop <body = b (int64 i, bool c, float[N] s) => (bool d, float[N] t) {
                t = Add (s, h)  m = ReduceMax <keepdims = 0> (t)  d = Less (m, zero) }> (, , h)
            y = If (e) <then_branch = f () => (float[N] p) { p = Identity (z) },
                else_branch = j () => (float[N] r) { r = Neg (h) }> }""",
        {"e": False, "h": [-1]},
    ),
    "out of a branch within a loop as a whole": (
        """<ir_version: 10, opset_import: ["" : 21]>
        g (int64 n, bool e, float[N] x, int64[1] k) => (float[K] y) {
            y = Loop <body = b (int64 i, bool c, float[R] s) => (bool d, float[S] t) {
                d = Identity (c)
                q = If (e) <then_branch = f () => (float[A] p) {
                        v, j = TopK (x, k)  p = Concat <axis = 0> (s, v) },
                    else_branch = h () => (float[B] r) { r = Neg (s) }>
                t = Concat <axis = 0> (q, q) }> (n, , x) }""",
        {"q = If": "unread, at = TopK (x, k)  q = If"},
        {"n": 1, "e": False, "x": [1], "k": [3]},
    ),
    "out of a Scan within a loop as a whole": (
        """<ir_version: 10, opset_import: ["" : 21]>
        g (int64 n, float[T] r, float[N] x, int64[1] k) => (float[K] y) {
            y = Loop <body = b (int64 i, bool c, float[R] s) => (bool d, float[S] t) {
                d = Identity (c)
                z = Scan <num_scan_inputs = 1, body = w (float a) => (float o) {
                    v, j = TopK (x, k)  m = ReduceMax <keepdims = 0> (v)  o = Add (a, m) }> (r)
                t = Concat <axis = 0> (s, z) }> (n, , x) }""",
        {"z = Scan": "unread, at = TopK (x, k)  z = Scan"},
        {"n": 1, "r": [], "x": [1], "k": [3]},
    ),
    "before a sequence that is mapped": (
        """<ir_version: 10, opset_import: ["" : 21]>
        g (seq(float[N]) s, float[M] x, int64[1] k) => (int64 n) {
            t = SequenceMap <body = w (float[P] a) => (float[Q] o) {
                v, j = TopK (x, k)  o = Concat <axis = 0> (a, v) }> (s)
            n = SequenceLength (t) }""",
        {"t = SequenceMap": "unread, at = TopK (x, k)  t = SequenceMap"},
        {"s": [], "x": [1], "k": [3]},
    ),
    "an element of a sequence before a loop": (
        """<ir_version: 10, opset_import: ["" : 21]>
        g (int64 n, seq(float[N]) s, int64 j) => (int64 y) <int64 zero = {0}> {
            y = Loop <body = b (int64 i, bool c, int64 a) => (bool d, int64 t) {
                d = Identity (c)  v = SequenceAt (s, j)  z = Size (v)  t = Add (a, z) }>
                (n, , zero) }""",
        {"y = Loop": "unread = SequenceAt (s, j)  y = Loop"},
        {"n": 0, "s": [], "j": 0},
    ),
    "an element of a sequence at each iteration": (
        """<ir_version: 10, opset_import: ["" : 21]>
        g (int64 n, seq(float[N]) s, int64 j) => (int64 y) <int64 zero = {0}> {
            y = Loop <body = b (int64 i, bool c, int64 a) => (bool d, int64 t) {
                d = Identity (c)  v = SequenceAt (s, j)  z = Size (v)  t = Add (a, z) }>
                (n, , zero) }""",
        {"SequenceAt (s, j)": "SequenceAt (s, i)"},
        {"n": 2, "s": [[1], [2, 3]], "j": 0},
    ),
    "in a function that a branch calls": (
        """<ir_version: 10, opset_import: ["" : 21, "my" : 1]>
        g (bool c, float[N] x, int64[1] k) => (float[N] y) {
            y = If (c) <then_branch = a () => (float[N] p) { p = my.f (x, k) },
                else_branch = b () => (float[N] s) { s = Abs (x) }> }
        <domain: "my", opset_import: ["" : 21]>
        f (x, k) => (y) { v, j = TopK (x, k)  m = ReduceMax <keepdims = 0> (v)  y = Add (x, m) }""",
        {"y = If (c)": "unread, at = TopK (x, k)  y = If (c)"},
        {"c": False, "x": [1], "k": [3]},
    ),
}

SIMILAR: dict[str, Case] = {
    "a sum in double precision": (
        """<ir_version: 10, opset_import: ["" : 21]>
        g (float[N] x, int64 a) => (float[N] y) {
            t = CumSum (x, a)  y = Identity (t) }""",
        """<ir_version: 10, opset_import: ["" : 21]>
        g (float[N] x, int64 a) => (float[N] y) {
            u = Cast <to = 11> (x)  t = CumSum (u, a)  y = Cast <to = 1> (t) }""",
        {"x": [16777216, 1, 1], "a": 0},
    ),
    "a value of one name that is spread": (
        """<ir_version: 10, opset_import: ["" : 21]>
        g (float[N] x, int64[1] n) => (int64[1] k, float y) {
            t = Identity (x)  u = Softplus (t)  k = Shape (u)
            y = ReduceMax <keepdims = 0> (u) }""",
        {"t = Identity (x)": "t = Tile (x, n)"},
        {"x": [1], "n": [2]},
    ),
    "a threshold for another one": (
        """<ir_version: 10, opset_import: ["" : 21]>
        g (float[1,N,4] b, float[1,1,N] s, int64[1] k, float[1] t) => (int64[K,3] y) {
            y = NonMaxSuppression (b, s, k, t) }""",
        {"(b, s, k, t)": "(b, s, k, , t)"},
        {
            "b": [[[0, 0, 1, 1], [2, 2, 3, 3]]],
            "s": [[[0.9, 0.1]]],
            "k": [2],
            "t": [0.5],
        },
    ),
    "one number of the weights": (
        """<ir_version: 10, opset_import: ["" : 21]>
        g (float[1,1,3] x) => (float[1,1,2] y) <float[1,1,2] w = {1, 2}> { y = Conv (x, w) }""",
        {"{1, 2}": "{1, 3}"},
        {"x": [[[1, 2, 3]]]},
    ),
    "weights of equal bytes and another type": (
        """<ir_version: 10, opset_import: ["" : 21]>
        g (float[N] x) => (float[N] y) <int32[1] w = {1065353216}> {
            a = Cast <to = 1> (w)  y = Mul (x, a) }""",
        {"int32[1] w = {1065353216}": "float[1] w = {1}"},
        {"x": [1]},
    ),
    "a bias that is left out": (
        """<ir_version: 10, opset_import: ["" : 21]>
        g (float[N,1,3] x, float[1,1,2] w, float[1] b) => (float[N,1,2] y) {
            y = Conv (x, w, b) }""",
        {"(x, w, b)": "(x, w)"},
        {"x": [[[1, 2, 3]]], "w": [[[1, 2]]], "b": [1]},
    ),
    "a cubic that is not the default one": (
        """<ir_version: 10, opset_import: ["" : 21]>
        g (float[1,1,4] x, int64[3] to) => (float[A,B,C] y) {
            y = Resize <mode = "cubic"> (x, , , to) }""",
        {'"cubic"': '"cubic", cubic_coeff_a = -0.5'},
        {"x": [[[1, 2, 3, 5]]], "to": [1, 1, 7]},
    ),
    "elements of a sequence exchanged": (
        """<ir_version: 10, opset_import: ["" : 21]>
        g (float[N] x, float[M] w, int64 i) => (float[K] y) {
            s = SequenceConstruct (x, w)  y = SequenceAt (s, i) }""",
        {"(x, w)": "(w, x)"},
        {"x": [1], "w": [2], "i": 0},
    ),
    "a sequence that one branch makes longer": (
        """<ir_version: 10, opset_import: ["" : 21]>
        g (bool c, float[N] x) => (int64 y) {
            s = SequenceConstruct (x)
            t = If (c) <then_branch = a () => (seq(float[N]) p) { p = SequenceInsert (s, x) },
                else_branch = b () => (seq(float[N]) q) { q = Identity (s) }>
            y = SequenceLength (t) }""",
        {"q = Identity (s)": "q = SequenceInsert (s, x)"},
        {"c": False, "x": [1]},
    ),
    "a row of a value of unknown rank": (
        """<ir_version: 10, opset_import: ["" : 21]>
        g (float[N] x, int64[R] s, int64 i, int64 j) => (float y) {
            r = Reshape (x, s)  a = Gather (r, i)  y = ReduceSum <keepdims = 0> (a) }""",
        {"(r, i)": "(r, j)"},
        {"x": [1, 2], "s": [2, 1], "i": 0, "j": 1},
    ),
    "an axis more of a value of unknown rank": (
        """<ir_version: 10, opset_import: ["" : 21]>
        g (float[N] x, int64[R] s) => (int64[K] y) <int64[1] a = {0}> {
            r = Reshape (x, s)  u = Unsqueeze (r, a)  y = Shape (r) }""",
        {"Shape (r)": "Shape (u)"},
        {"x": [1, 2], "s": [2, 1]},
    ),
    "operands of unknown rank exchanged": (
        """<ir_version: 10, opset_import: ["" : 21]>
        g (float[N] x, int64[R] s, float[M] w) => (float y) {
            r = Reshape (x, s)  d = Sub (r, w)  y = ReduceSum <keepdims = 0> (d) }""",
        {"Sub (r, w)": "Sub (w, r)"},
        {"x": [1], "s": [1, 1], "w": [3]},
    ),
}

WHOLE = {**LOOPS, **MOVED, **SIMILAR}
