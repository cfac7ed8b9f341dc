"""Wrong rewrites of control flow: trips, conditions, what is hoisted, indices from the end."""

from __future__ import annotations

import numpy as np

from tests.instruments.mutants.written_values import Case

HOISTED: dict[str, Case] = {
    "a Gather before a loop of no trips": (
        """(float[T] x, int64 k, int64 n) => (float y) <float zero = {0}> {
            y = Loop <body = step (int64 i, bool c, float s) => (bool d, float r) {
                d = Identity (c)  e = Gather (x, k)  r = Add (s, e) }> (n, , zero) }""",
        """(float[T] x, int64 k, int64 n) => (float y) <float zero = {0}> {
            e = Gather (x, k)
            y = Loop <body = step (int64 i, bool c, float s) => (bool d, float r) {
                d = Identity (c)  r = Add (s, e) }> (n, , zero) }""",
        {"x": [1, 2], "k": 5, "n": 0},
    ),
    "the first row before a Scan of no rows": (
        """(float[2] h, float[T,2] x) => (float[2] y) <int64 zero = {0}> {
            y = Scan <num_scan_inputs = 1, body = step (float[2] s, float[2] u)
                => (float[2] r) { f = Gather (x, zero)  d = Sub (u, f)  r = Add (s, d)
            }> (h, x) }""",
        """(float[2] h, float[T,2] x) => (float[2] y) <int64 zero = {0}> {
            f = Gather (x, zero)
            y = Scan <num_scan_inputs = 1, body = step (float[2] s, float[2] u)
                => (float[2] r) { d = Sub (u, f)  r = Add (s, d) }> (h, x) }""",
        {"h": [1, 2], "x": np.empty((0, 2))},
    ),
    "a Reshape before an If": (
        """(float[T] x, int64[1] shape, bool c) => (float[N] y) {
            y = If (c) <then_branch = a () => (float[N] p) { p = Reshape (x, shape) },
                else_branch = b () => (float[N] q) { q = Neg (x) }> }""",
        """(float[T] x, int64[1] shape, bool c) => (float[N] y) {
            r = Reshape (x, shape)
            y = If (c) <then_branch = a () => (float[N] p) { p = Identity (r) },
                else_branch = b () => (float[N] q) { q = Neg (x) }> }""",
        {"x": [1, 2], "shape": [3], "c": False},
    ),
}
TRIPS: dict[str, Case] = {
    "fewer than no trips": (
        """(int64 n, float h) => (float y) {
            y = Loop <body = step (int64 i, bool c, float s) => (bool d, float r) {
                d = Identity (c)  r = Cos (s) }> (n, , h) }""",
        """(int64 n, float h) => (float y) {
            m = Abs (n)
            y = Loop <body = step (int64 i, bool c, float s) => (bool d, float r) {
                d = Identity (c)  r = Cos (s) }> (m, , h) }""",
        {"n": -2, "h": 1},
    ),
    "two loops as one": (
        """(int64 n, int64 m) => (int64 y) <int64 zero = {0}, int64 one = {1}> {
            y = Loop <body = outer (int64 i, bool c, int64 s) => (bool d, int64 r) {
                d = Identity (c)
                r = Loop <body = inner (int64 j, bool e, int64 t) => (bool f, int64 u) {
                    f = Identity (e)  u = Add (t, one) }> (m, , s)
            }> (n, , zero) }""",
        """(int64 n, int64 m) => (int64 y) <int64 zero = {0}, int64 one = {1}> {
            nm = Mul (n, m)
            y = Loop <body = inner (int64 j, bool e, int64 t) => (bool f, int64 u) {
                f = Identity (e)  u = Add (t, one) }> (nm, , zero) }""",
        {"n": -2, "m": -3},
    ),
    "a condition that is tested first": (
        """(float h, float limit) => (int64 k) <int64 zero = {0}, int64 one = {1},
            float up = {1.5}> {
            ten = Constant <value_int = 10> ()  yes = Equal (ten, ten)
            s, k = Loop <body = step (int64 i, bool c, float v, int64 a)
                => (bool d, float w, int64 b) {
                w = Add (v, up)  b = Add (a, one)  d = Less (w, limit) }> (ten, yes, h, zero) }""",
        {"Equal (ten, ten)": "Less (h, limit)"},
        {"h": 3, "limit": 1},
    ),
    "a remainder of three": (
        """(float[T] x) => (float y) { y = ReduceSum <keepdims = 0> (x) }""",
        """(float[T] x) => (float y) <int64 zero = {0}, int64[1] four = {4}, int64[1] from = {0}> {
            n = Size (x)  f = Squeeze (four)  q = Div (n, f)  whole = Mul (q, f)  r = Sub (n, whole)
            three = Constant <value_int = 3> ()  odd = Equal (r, three)  less = Sub (n, f)
            last = Constant <value_int = -1> ()  shorter = Add (n, last)
            some = Greater (n, f)  bad = And (odd, some)  e = Where (bad, shorter, n)
            axes = Constant <value_ints = [0]> ()  end = Unsqueeze (e, axes)
            part = Slice (x, from, end)  y = ReduceSum <keepdims = 0> (part) }""",
        {"x": [1, 1, 1, 1, 1, 1, 1]},
    ),
    "the first that exceeds, if none does": (
        """(float[T] x, float limit) => (int64 k) <int64 zero = {0}, int64 one = {1},
            float no = {0}> {
            n = Size (x)  yes = Equal (n, n)
            s, k = Loop <body = step (int64 i, bool c, float v, int64 a)
                => (bool d, float w, int64 b) {
                u = Gather (x, i)  w = Max (v, u)  b = Add (a, one)  d = LessOrEqual (w, limit)
            }> (n, yes, no, zero) }""",
        """(float[T] x, float limit) => (int64 k) <int64 zero = {0}, int64 one = {1},
            float no = {0}> {
            n = Size (x)  yes = Equal (n, n)
            s, k0 = Loop <body = step (int64 i, bool c, float v, int64 a)
                => (bool d, float w, int64 b) {
                u = Gather (x, i)  w = Max (v, u)  b = Add (a, one)  d = LessOrEqual (w, limit)
            }> (n, yes, no, zero)
            below = LessOrEqual (s, limit)  more = Greater (k0, one)  none = And (below, more)
            k = Where (none, one, k0) }""",
        {"x": [1, 2, 3], "limit": 10},
    ),
    "a condition before the loop that is forgotten": (
        """(int64 n, bool go, float h) => (float y) {
            y = Loop <body = step (int64 i, bool c, float s) => (bool d, float r) {
                d = Identity (c)  r = Cos (s) }> (n, go, h) }""",
        {"(n, go, h)": "(n, , h)", "d = Identity (c)": "d = Equal (i, i)"},
        {"n": 2, "go": False, "h": 1},
    ),
    "the last state of a length of 0": (
        """(float[2] h, float[T,2] x, int64 length) => (float[2] y) {
            y = Loop <body = step (int64 i, bool c, float[2] s) => (bool d, float[2] r) {
                d = Identity (c)  u = Gather (x, i)  v = Add (s, u)  r = Tanh (v)
            }> (length, , h) }""",
        """(float[2] h, float[T,2] x, int64 length) => (float[2] y) <int64 one = {1}> {
            n = Max (length, one)
            y = Loop <body = step (int64 i, bool c, float[2] s) => (bool d, float[2] r) {
                d = Identity (c)  u = Gather (x, i)  v = Add (s, u)  r = Tanh (v)
            }> (n, , h) }""",
        {"h": [1, 2], "x": [[1, 1]], "length": 0},
    ),
    "a sum in double": (
        """(int64[T] k) => (int64 y) <int64 zero = {0}> {
            y = Scan <num_scan_inputs = 1, body = step (int64 s, int64 u) => (int64 r) {
                r = Add (s, u) }> (zero, k) }""",
        """(int64[T] k) => (int64 y) {
            f = Cast <to = 11> (k)  s = ReduceSum <keepdims = 0> (f)  y = Cast <to = 7> (s) }""",
        {"k": [9007199254740993]},
    ),
    "a step of zero": (
        """(int64 n) => (int64 y) {
            p = Constant <value_int = 1> ()  z = Constant <value_int = 0> ()
            up = Greater (n, z)
            y = If (up) <then_branch = a () => (int64 u) { u = Identity (p) },
                else_branch = b () => (int64 v) {
                    down = Less (n, z)
                    v = If (down) <then_branch = e () => (int64 w) { w = Neg (p) },
                        else_branch = f () => (int64 q) { q = Identity (z) }> }> }""",
        """(int64 n) => (int64 y) {
            p = Constant <value_int = 1> ()  z = Constant <value_int = 0> ()
            up = Greater (n, z)
            y = If (up) <then_branch = a () => (int64 u) { u = Identity (p) },
                else_branch = b () => (int64 v) { v = Neg (p) }> }""",
        {"n": 0},
    ),
}
ORDER: dict[str, Case] = {
    "a reversed Scan that collects forwards": (
        """(float[2] h, float[T,2] x) => (float[T,2] y) {
            last, y = Scan <num_scan_inputs = 1, scan_input_directions = [1],
                scan_output_directions = [1], body = step (float[2] s, float[2] u)
                => (float[2] r, float[2] o) { r = Add (s, u)  o = Identity (r) }> (h, x) }""",
        {"scan_output_directions = [1]": "scan_output_directions = [0]"},
        {"h": [0, 0], "x": [[1, 2], [3, 4]]},
    ),
    "the row before the first": (
        """(float[T] x) => (float[T] y) <float zero = {0}> {
            last, y = Scan <num_scan_inputs = 1, body = step (float s, float u)
                => (float r, float o) { r = Identity (u)  o = Sub (u, s) }> (zero, x) }""",
        """(float[T] x) => (float[T] y) {
            n = Size (x)  some = Cast <to = 9> (n)
            y = If (some) <then_branch = a () => (float[T] p) {
                end = Constant <value_int = -1> ()  start = Gather (x, end)
                last, p = Scan <num_scan_inputs = 1, body = step (float s, float u)
                    => (float r, float o) { r = Identity (u)  o = Sub (u, s) }> (start, x) },
                else_branch = b () => (float[T] q) { q = Identity (x) }> }""",
        {"x": [1, 2, 3]},
    ),
    "states that are exchanged": (
        """(int64 n, float a, float b) => (float y, float z) {
            y, z = Loop <body = step (int64 i, bool c, float p, float q)
                => (bool d, float r, float s) {
                d = Identity (c)  r = Identity (q)  h = Mul (p, q)  s = Tanh (h)
            }> (n, , a, b) }""",
        {"Mul (p, q)": "Mul (r, q)"},
        {"n": 2, "a": 1, "b": 3},
    ),
    "indices of equal elements": (
        """(float[N] x) => (int64[3] y) {
            three = Constant <value_ints = [3]> ()  v, y = TopK (x, three) }""",
        """(float[N] x) => (int64[3] y) {
            three = Constant <value_ints = [3]> ()  one = Constant <value_ints = [1]> ()
            v, i = TopK (x, three)  w = Unsqueeze (v, one)  e = Equal (w, v)
            f = Cast <to = 7> (e)  j = Mul (f, i)  zero = Constant <value_ints = [1]> ()
            y = ReduceMax <keepdims = 0> (j, zero) }""",
        {"x": [2, 2, 1]},
    ),
}
FROM_THE_END: dict[str, Case] = {
    "an index that is clamped": (
        "(float[T] x, int64 k) => (float y) { y = Gather (x, k) }",
        """(float[T] x, int64 k) => (float y) <int64 zero = {0}> {
            i = Max (k, zero)  y = Gather (x, i) }""",
        {"x": [1, 2], "k": -1},
    ),
    "a start from the end": (
        """(float[T] x, int64[1] k) => (float[N] y) {
            end = Constant <value_ints = [9223372036854775807]> ()  y = Slice (x, k, end) }""",
        """(float[T] x, int64[1] k) => (float[N] y) {
            s = Shape (x)  z = Sub (s, s)  k0 = Max (k, z)  k1 = Min (k0, s)
            first = Squeeze (k1)  n0 = Sub (s, k1)  n = Squeeze (n0)
            y = Loop <body = step (int64 i, bool c) => (bool d, float v) {
                d = Identity (c)  j = Add (first, i)  v = Gather (x, j) }> (n, "") }""",
        {"x": [1, 2, 3], "k": [-1]},
    ),
    "one-hot from the end": (
        """(int64[N] k) => (float[N,5] y) <int64 depth = {5}, float[2] values = {0, 1}> {
            y = OneHot (k, depth, values) }""",
        """(int64[N] k) => (float[N,5] y) <int64[5] all = {0, 1, 2, 3, 4}> {
            last = Constant <value_ints = [-1]> ()  c = Unsqueeze (k, last)  e = Equal (c, all)
            y = Cast <to = 1> (e) }""",
        {"k": [-1]},
    ),
}

WRITTEN_LOOPS = {
    "hoisted": HOISTED,
    "trips": TRIPS,
    "order": ORDER,
    "from the end": FROM_THE_END,
}
