"""Wrong rewrites that compute with other numbers: signs, overflow, NaN, rounding, broadcasts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

#: A right model, a wrong one (or changes of the right one), inputs that tell them apart.
Case = tuple[str, str | Mapping[str, str], Mapping[str, Any]]

INT64: dict[str, Case] = {
    "the remainder of C": (
        "(int64 n, int64 m) => (int64 y) { y = Mod (n, m) }",
        {"Mod": "Mod <fmod = 1>"},
        {"n": -7, "m": 3},
    ),
    "a division that truncates": (
        """(int64 n) => (int64 y) <int64 four = {4}> {
            r = Mod (n, four)  whole = Sub (n, r)  y = Div (whole, four) }""",
        "(int64 n) => (int64 y) <int64 four = {4}> { y = Div (n, four) }",
        {"n": -7},
    ),
    "the middle of a search": (
        """(int64 low, int64 high) => (int64 middle) <int64 two = {2}> {
            width = Sub (high, low)  half = Div (width, two)  middle = Add (low, half) }""",
        """(int64 low, int64 high) => (int64 middle) <int64 two = {2}> {
            both = Add (low, high)  middle = Div (both, two) }""",
        {"low": -3, "high": 0},
    ),
    "a square in int32": (
        "(int64 n) => (int64 y) { y = Mul (n, n) }",
        """(int64 n) => (int64 y) {
            i = Cast <to = 6> (n)  square = Mul (i, i)  y = Cast <to = 7> (square) }""",
        {"n": 70000},
    ),
    "a hash": (
        """(int64 a, int64 b) => (int64 y) <int64 factor = {31}, int64 prime = {1009}> {
            f = Mul (a, factor)  s = Add (f, b)  y = Mod (s, prime) }""",
        """(int64 a, int64 b) => (int64 y) <int64 factor = {31}, int64 prime = {1009}> {
            f = Mul (a, factor)  r = Mod <fmod = 1> (f, prime)
            s = Add (r, b)  y = Mod <fmod = 1> (s, prime) }""",
        {"a": -5, "b": 3},
    ),
    "a difference of times": (
        """(int64 start, int64 end) => (float y) {
            d = Sub (end, start)  y = Cast <to = 1> (d) }""",
        """(int64 start, int64 end) => (float y) {
            s = Cast <to = 1> (start)  e = Cast <to = 1> (end)  y = Sub (e, s) }""",
        {"start": 5000000000, "end": 5000000001},
    ),
    "the number of bits": (
        """(int64 n) => (int64 bits) <int64 zero = {0}, int64 one = {1}, int64 two = {2}> {
            some = Greater (n, zero)
            rest, bits = Loop <body = step (int64 i, bool c, int64 v, int64 b)
                => (bool d, int64 w, int64 a) {
                w = Div (v, two)  a = Add (b, one)  d = Greater (w, zero)
            }> (, some, n, zero) }""",
        """(int64 n) => (int64 bits) <int64 zero = {0}, int64 one = {1}, float two = {2}> {
            some = Greater (n, zero)  held = Max (n, one)  f = Cast <to = 1> (held)
            l = Log (f)  ltwo = Log (two)  q = Div (l, ltwo)  w = Cast <to = 7> (q)
            b = Add (w, one)  bits = Where (some, b, zero) }""",
        {"n": 2147483647},
    ),
    "steps of a range": (
        """(int64 a, int64 b, int64 c) => (int64 count) {
            r = Range (a, b, c)  count = Size (r) }""",
        """(int64 a, int64 b, int64 c) => (int64 count) <int64 zero = {0}, int64 one = {1}> {
            r = Range (a, b, c)  d = Sub (b, a)  e = Add (d, c)  f = Sub (e, one)
            q = Div (f, c)  count = Max (q, zero) }""",
        {"a": 5, "b": 0, "c": -2},
    ),
}
INT32: dict[str, Case] = {
    "a fixed-point product": (
        """(int32[N] a, int32[N] b) => (int32[N] y) <int64 unit = {65536}> {
            p = Cast <to = 7> (a)  q = Cast <to = 7> (b)  w = Mul (p, q)
            m = Div (w, unit)  y = Cast <to = 6> (m) }""",
        """(int32[N] a, int32[N] b) => (int32[N] y) <int32 unit = {65536}> {
            w = Mul (a, b)  y = Div (w, unit) }""",
        {"a": [70000], "b": [70000]},
    ),
    "a comparison of products": (
        """(int32[N] a, int32[N] b, int32[N] c) => (bool[N] y) {
            p = Cast <to = 7> (a)  q = Cast <to = 7> (b)  r = Cast <to = 7> (c)
            w = Mul (p, q)  y = Greater (w, r) }""",
        """(int32[N] a, int32[N] b, int32[N] c) => (bool[N] y) {
            w = Mul (a, b)  y = Greater (w, c) }""",
        {"a": [50000], "b": [50000], "c": [0]},
    ),
    "a dot product that is summed in a Scan": (
        """(int32[T] a, int32[T] b) => (int64 s) <int64 zero = {0}> {
            s = Scan <num_scan_inputs = 2, body = step (int64 h, int32 u, int32 v) => (int64 g) {
                p = Cast <to = 7> (u)  q = Cast <to = 7> (v)  w = Mul (p, q)  g = Add (h, w)
            }> (zero, a, b) }""",
        """(int32[T] a, int32[T] b) => (int64 s) {
            w = Mul (a, b)  l = Cast <to = 7> (w)  s = ReduceSum <keepdims = 0> (l) }""",
        {"a": [46341], "b": [46341]},
    ),
    "the middle of two": (
        """(int32[N] a, int32[N] b) => (int32[N] y) <int64 two = {2}> {
            p = Cast <to = 7> (a)  q = Cast <to = 7> (b)  s = Add (p, q)
            m = Div (s, two)  y = Cast <to = 6> (m) }""",
        """(int32[N] a, int32[N] b) => (int32[N] y) <int32 two = {2}> {
            s = Add (a, b)  y = Div (s, two) }""",
        {"a": [2000000000], "b": [2000000000]},
    ),
    "the distance of two bytes": (
        """(uint8[N] a, uint8[N] b) => (uint8[N] y) {
            p = Cast <to = 5> (a)  q = Cast <to = 5> (b)  d = Sub (p, q)  m = Abs (d)
            y = Cast <to = 2> (m) }""",
        """(uint8[N] a, uint8[N] b) => (uint8[N] y) {
            d = Sub (a, b)  e = Sub (b, a)  less = Less (d, e)  y = Where (less, d, e) }""",
        {"a": [200], "b": [10]},
    ),
}
FLOAT16: dict[str, Case] = {
    "the mean of two": (
        """(float16[N] a, float16[N] b) => (float16[N] y) <float h = {0.5}> {
            half = Cast <to = 10> (h)
            p = Mul (a, half)  q = Mul (b, half)  y = Add (p, q) }""",
        """(float16[N] a, float16[N] b) => (float16[N] y) <float h = {0.5}> {
            half = Cast <to = 10> (h)
            s = Add (a, b)  y = Mul (s, half) }""",
        {"a": [40000], "b": [40000]},
    ),
    "a mean summed in float16": (
        """(float16[B,2] x) => (float16[B] y) {
            f = Cast <to = 1> (x)  last = Constant <value_ints = [-1]> ()
            m = ReduceMean <keepdims = 0> (f, last)  y = Cast <to = 10> (m) }""",
        """(float16[B,2] x) => (float16[B] y) <float h = {0.5}, int64 a = {0}, int64 b = {1}> {
            half = Cast <to = 10> (h)
            u = Gather <axis = 1> (x, a)  v = Gather <axis = 1> (x, b)  s = Add (u, v)
            y = Mul (s, half) }""",
        {"x": [[60000, 60000]]},
    ),
    "a running mean": (
        """(float16[T,2] x) => (float16[2] y) <float16[2] zero = {0, 0}, float o = {1}> {
            one = Cast <to = 10> (o)  n = Sub (one, one)
            count, y = Scan <num_scan_inputs = 1, body = step (float16 k, float16[2] h,
                float16[2] u) => (float16 l, float16[2] g) {
                l = Add (k, one)  d = Sub (u, h)  e = Div (d, l)  g = Add (h, e)
            }> (n, zero, x) }""",
        """(float16[T,2] x) => (float16[2] y) <float16[2] zero = {0, 0}, float o = {1}> {
            one = Cast <to = 10> (o)  n = Sub (one, one)
            count, s = Scan <num_scan_inputs = 1, body = step (float16 k, float16[2] h,
                float16[2] u) => (float16 l, float16[2] g) {
                l = Add (k, one)  g = Add (h, u)
            }> (n, zero, x)
            m = Max (count, one)  y = Div (s, m) }""",
        {"x": [[40000, 0], [40000, 0]]},
    ),
    "the length of a vector": (
        """(float16[N] a, float16[N] b) => (float16[N] y) {
            p = Cast <to = 1> (a)  q = Cast <to = 1> (b)  pp = Mul (p, p)  qq = Mul (q, q)
            s = Add (pp, qq)  r = Sqrt (s)  y = Cast <to = 10> (r) }""",
        """(float16[N] a, float16[N] b) => (float16[N] y) {
            pp = Mul (a, a)  qq = Mul (b, b)  s = Add (pp, qq)  y = Sqrt (s) }""",
        {"a": [300], "b": [400]},
    ),
    "a bound of half the range": (
        "(float16[N] x) => (float16[N] y) { y = Identity (x) }",
        """(float16[N] x) => (float16[N] y) <float t = {2}, float h = {0.5}> {
            two = Cast <to = 10> (t)  half = Cast <to = 10> (h)
            d = Mul (x, two)  y = Mul (d, half) }""",
        {"x": [40000]},
    ),
}
NEGATIVE_ROWS: dict[str, Case] = {
    "a running maximum that starts at 0": (
        """(float[B,T] x) => (float[B] y) {
            last = Constant <value_ints = [-1]> ()  y = ReduceMax <keepdims = 0> (x, last) }""",
        """(float[B,T] x) => (float[B] y) {
            last = Constant <value_ints = [-1]> ()  low = ReduceMax <keepdims = 0> (x, last)
            zero = Sub (low, low)
            y = Scan <num_scan_inputs = 1, scan_input_axes = [1], body = step (float[B] h,
                float[B] u) => (float[B] g) { g = Max (h, u) }> (zero, x) }""",
        {"x": [[-1, -2]]},
    ),
    "windows that are padded with 0": (
        """(float[B,4] x) => (float[B,2] y) <int64[3] split = {0, 2, 2}> {
            r = Reshape (x, split)  last = Constant <value_ints = [-1]> ()
            y = ReduceMax <keepdims = 0> (r, last) }""",
        """(float[B,4] x) => (float[B,2] y) <int64[3] split = {0, 2, 2}, float zero = {0}> {
            r = Reshape (x, split)  pads = Constant <value_ints = [0, 0, 0, 0, 0, 1]> ()
            p = Pad (r, pads, zero)  last = Constant <value_ints = [-1]> ()
            y = ReduceMax <keepdims = 0> (p, last) }""",
        {"x": [[-1, -2, 3, 4]]},
    ),
    "the best index of what is positive": (
        "(float[B,3] x) => (int64[B] y) { y = ArgMax <axis = 1, keepdims = 0> (x) }",
        "(float[B,3] x) => (int64[B] y) { r = Relu (x)  y = ArgMax <axis = 1, keepdims = 0> (r) }",
        {"x": [[-2, -1, -3]]},
    ),
    "a best score that starts at -10000": (
        """(float[T] x) => (float y) {
            low = Constant <value_float: float = -inf> ()
            y = Scan <num_scan_inputs = 1, body = step (float h, float u) => (float g) {
                g = Max (h, u) }> (low, x) }""",
        {"-inf": "-10000.0"},
        {"x": [-20000, -30000]},
    ),
    "a logarithm of a sum": (
        """(float[B,3] x) => (float[B,1] y) {
            last = Constant <value_ints = [-1]> ()  y = ReduceLogSumExp (x, last) }""",
        """(float[B,3] x) => (float[B,1] y) <float zero = {0}> {
            last = Constant <value_ints = [-1]> ()  m = ReduceMax (x, last)  n = Max (m, zero)
            d = Sub (x, n)  e = Exp (d)  s = ReduceSum (e, last)  l = Log (s)  y = Add (l, n) }""",
        {"x": [[-200, -200, -200]]},
    ),
    "a maximum of integers that starts at -1": (
        """(int64[T] k) => (int64 y) <int64 zero = {0}> {
            low = Constant <value_int = -9223372036854775807> ()
            y = Scan <num_scan_inputs = 1, body = step (int64 h, int64 u) => (int64 g) {
                g = Max (h, u) }> (low, k) }""",
        {"-9223372036854775807": "-1"},
        {"k": [-5, -7]},
    ),
}
ROUNDING: dict[str, Case] = {
    "halves to even": (
        "(float[N] x) => (float[N] y) { y = Round (x) }",
        "(float[N] x) => (float[N] y) <float half = {0.5}> { s = Add (x, half)  y = Floor (s) }",
        {"x": [2.5]},
    ),
    "tenths": (
        """(float[N] x) => (float[N] y) <float ten = {10}> {
            t = Mul (x, ten)  y = Round (t) }""",
        """(float[N] x) => (float[N] y) <float ten = {10}, float half = {0.5}> {
            t = Mul (x, ten)  s = Add (t, half)  y = Floor (s) }""",
        {"x": [0.25]},
    ),
    "a decimal that is equal": (
        """(float[N] x) => (bool[N] y) <float three = {3}, float ten = {10}> {
            d = Div (three, ten)  y = Greater (x, d) }""",
        """(float[N] x) => (bool[N] y) <float three = {3}, float ten = {10}> {
            d = Div (three, ten)  y = GreaterOrEqual (x, d) }""",
        {"x": [0.3]},
    ),
    "a decimal in double": (
        """(double[N] x) => (double[N] y) <double seven = {7}, double ten = {10}> {
            d = Div (seven, ten)  less = Less (x, d)  y = Where (less, d, x) }""",
        """(double[N] x) => (double[N] y) <double seven = {7}, double ten = {10},
            double one = {1}> {
            d = Div (seven, ten)  less = Less (x, d)  m = Max (x, d)  e = Equal (x, d)
            n = Sub (x, one)  u = Where (less, d, m)  y = Where (e, n, u) }""",
        {"x": [0.7]},
    ),
    "whole tenths": (
        """(float[N] x) => (float[N] y) <float ten = {10}, float one = {1}> {
            t = Mul (x, ten)  y = Floor (t) }""",
        """(float[N] x) => (float[N] y) <float ten = {10}, float one = {1}> {
            t = Mul (x, ten)  c = Ceil (t)  y = Sub (c, one) }""",
        {"x": [0.5]},
    ),
    "a quantized half": (
        """(float[N] x) => (uint8[N] y) <float scale = {0.5}, uint8 zero = {128}> {
            y = QuantizeLinear (x, scale, zero) }""",
        """(float[N] x) => (uint8[N] y) <float scale = {0.5}, float zero = {128},
            float half = {0.5},
            float low = {0}, float high = {255}> {
            q = Div (x, scale)  s = Add (q, half)  r = Floor (s)  z = Add (r, zero)
            h = Clip (z, low, high)  y = Cast <to = 2> (h) }""",
        {"x": [0.25]},
    ),
}
NAN: dict[str, Case] = {
    "the larger of two": (
        """(float[N] a, float[N] b) => (float[N] y) {
            more = Greater (a, b)  y = Where (more, a, b) }""",
        """(float[N] a, float[N] b) => (float[N] y) {
            less = LessOrEqual (a, b)  y = Where (less, b, a) }""",
        {"a": ["nan"], "b": [1]},
    ),
    "a comparison that is negated": (
        """(float[N] a, float[N] b) => (bool[N] y) { less = Less (a, b)  y = Not (less) }""",
        "(float[N] a, float[N] b) => (bool[N] y) { y = GreaterOrEqual (a, b) }",
        {"a": [1], "b": ["nan"]},
    ),
    "a mask that multiplies": (
        """(float[N] x, bool[N] keep) => (float[N] y) {
            m = Cast <to = 1> (keep)  y = Mul (x, m) }""",
        """(float[N] x, bool[N] keep) => (float[N] y) <float zero = {0}> {
            y = Where (keep, x, zero) }""",
        {"x": ["inf"], "keep": [False]},
    ),
    "rows whose last column is NaN": (
        """(float[B,3] x) => (float[B] y) <int64 two = {2}, float zero = {0}> {
            c = Gather <axis = 1> (x, two)  bad = IsNaN (c)
            last = Constant <value_ints = [-1]> ()  s = ReduceSum <keepdims = 0> (x, last)
            y = Where (bad, zero, s) }""",
        """(float[B,3] x) => (float[B] y) <float zero = {0}> {
            last = Constant <value_ints = [-1]> ()  s = ReduceSum <keepdims = 0> (x, last)
            bad = IsNaN (s)  y = Where (bad, zero, s) }""",
        {"x": [["nan", 1, 2]]},
    ),
    "a third input that is not looked at": (
        """(float[N] a, float[N] b, float[N] c) => (bool[N] y) {
            p = Equal (a, a)  q = Equal (b, b)  r = Equal (c, c)
            pq = And (p, q)  y = And (pq, r) }""",
        """(float[N] a, float[N] b, float[N] c) => (bool[N] y) {
            p = Equal (a, a)  q = Equal (b, b)  r = Equal (c, c)
            pq = And (p, q)  pr = Or (p, r)  y = And (pq, pr) }""",
        {"a": [1], "b": [1], "c": ["nan"]},
    ),
    "a sum of both infinities": (
        """(float[B,T] x) => (float[B] y) <float one = {1}, float two = {2}> {
            last = Constant <value_ints = [-1]> ()  s = ReduceSum <keepdims = 0> (x, last)
            bad = IsNaN (s)  y = Where (bad, one, two) }""",
        """(float[B,T] x) => (float[B] y) <float one = {1}, float two = {2}, float zero = {0}> {
            last = Constant <value_ints = [-1]> ()  nan = IsNaN (x)  f = Cast <to = 1> (nan)
            n = ReduceSum <keepdims = 0> (f, last)  bad = Greater (n, zero)
            y = Where (bad, one, two) }""",
        {"x": [["inf", "-inf"]]},
    ),
    "equal infinities": (
        "(float[N] a, float[N] b) => (float[N] y) { y = Sub (a, b) }",
        """(float[N] a, float[N] b) => (float[N] y) <float zero = {0}> {
            same = Equal (a, b)  d = Sub (a, b)  y = Where (same, zero, d) }""",
        {"a": ["inf"], "b": ["inf"]},
    ),
    "a row that is masked as a whole": (
        """(float[B,3] x, bool[B,3] keep) => (float[B,3] y) {
            low = Constant <value_float: float = -inf> ()
            m = Where (keep, x, low)  y = Softmax (m) }""",
        """(float[B,3] x, bool[B,3] keep) => (float[B,3] y) <float zero = {0}> {
            low = Constant <value_float: float = -inf> ()
            m = Where (keep, x, low)  s = Softmax (m)  bad = IsNaN (s)
            y = Where (bad, zero, s) }""",
        {"x": [[1, 2, 3]], "keep": [[False, False, False]]},
    ),
    "one NaN beside a weight of 0": (
        """(float[B,2] x, float[B] w) => (float[B] y) <int64 a = {0}, int64 b = {1}> {
            u = Gather <axis = 1> (x, a)  v = Gather <axis = 1> (x, b)  d = Sub (v, u)
            e = Mul (w, d)  y = Add (u, e) }""",
        """(float[B,2] x, float[B] w) => (float[B] y) <int64 a = {0}, int64 b = {1},
            float z = {0}> {
            u = Gather <axis = 1> (x, a)  v = Gather <axis = 1> (x, b)  d = Sub (v, u)
            e = Mul (w, d)  s = Add (u, e)  none = Equal (w, z)  y = Where (none, u, s) }""",
        {"x": [[1, "nan"]], "w": [0]},
    ),
}
BROADCASTS: dict[str, Case] = {
    "sums of the sides of a sum": (
        """(float[A] x, float[C] y) => (float z) {
            s = Add (x, y)  z = ReduceSum <keepdims = 0> (s) }""",
        """(float[A] x, float[C] y) => (float z) {
            s = Add (x, y)  p = ReduceSum <keepdims = 0> (x)  q = ReduceSum <keepdims = 0> (y)
            z = Add (p, q) }""",
        {"x": [1], "y": [1, 2, 3]},
    ),
    "a mean over the first input": (
        """(float[A] x, float[C] y) => (float z) {
            s = Mul (x, y)  z = ReduceMean <keepdims = 0> (s) }""",
        """(float[A] x, float[C] y) => (float z) {
            s = Mul (x, y)  t = ReduceSum <keepdims = 0> (s)  n = Size (x)  f = Cast <to = 1> (n)
            z = Div (t, f) }""",
        {"x": [1], "y": [1, 2, 3]},
    ),
    "rows of the first input alone": (
        """(float[A,2] x, float[C,2] y) => (float[N,2] z) {
            s = Add (x, y)
            z = Scan <num_scan_inputs = 1, body = step (float[2] u) => (float[2] v) {
                v = Tanh (u) }> (s) }""",
        """(float[A,2] x, float[C,2] y) => (float[N,2] z) <int64 zero = {0}> {
            s = Add (x, y)  shape = Shape (x)  n = Gather (shape, zero)
            z = Loop <body = step (int64 i, bool c) => (bool d, float[2] v) {
                d = Identity (c)  u = Gather (s, i)  v = Tanh (u) }> (n, "") }""",
        {"x": [[1, 2]], "y": [[1, 2], [3, 4]]},
    ),
    "conditions by position": (
        """(bool[A] c, float[N] x) => (float[M] y) <float zero = {0}> {
            y = Where (c, x, zero) }""",
        """(bool[A] c, float[N] x) => (float[M] y) <float zero = {0}, int64 one = {1}> {
            y0 = Where (c, x, zero)  n = Size (c)  single = Equal (n, one)
            k = Size (x)  more = Greater (k, one)  bad = And (single, more)
            flipped = Neg (y0)  y = Where (bad, flipped, y0) }""",
        {"c": [True], "x": [1, 2, 3]},
    ),
}
SIZES: dict[str, Case] = {
    "the Softmax of one": (
        "(float[B,T] x) => (float[B,T] y) { y = Softmax (x) }",
        """(float[B,T] x) => (float[B,T] y) <int64 axis = {1}, int64 one = {1}, float f = {1}> {
            s = Softmax (x)  shape = Shape (x)  t = Gather (shape, axis)  single = Equal (t, one)
            y = Where (single, f, s) }""",
        {"x": [["inf"]]},
    ),
    "an infinity alone, centred": (
        """(float[T] x) => (float[T] y) { m = ReduceMean (x)  y = Sub (x, m) }""",
        """(float[T] x) => (float[T] y) <int64 one = {1}, float zero = {0}> {
            m = ReduceMean (x)  d = Sub (x, m)  n = Size (x)  single = Equal (n, one)
            y = Where (single, zero, d) }""",
        {"x": ["inf"]},
    ),
    "the maximum of nothing and an infinity": (
        """(float h, float[T] x) => (float y) {
            y = Scan <num_scan_inputs = 1, body = step (float s, float u) => (float r) {
                r = Max (s, u) }> (h, x) }""",
        """(float h, float[T] x) => (float y) <float low = {-3.0e38}> {
            k = Max (h, low)
            y = Scan <num_scan_inputs = 1, body = step (float s, float u) => (float r) {
                r = Max (s, u) }> (k, x) }""",
        {"h": "-inf", "x": []},
    ),
    "no decay of an infinity": (
        """(float h, float[T] x) => (float y) <float rate = {0.5}> {
            y = Scan <num_scan_inputs = 1, body = step (float s, float u) => (float r) {
                p = Mul (s, rate)  r = Add (p, u) }> (h, x) }""",
        """(float h, float[T] x) => (float y) <float rate = {0.5}, float zero = {0}> {
            last = Scan <num_scan_inputs = 1, body = step (float s, float u) => (float r) {
                p = Mul (s, rate)  r = Add (p, u) }> (h, x)
            z = Mul (h, zero)
            n = Size (x)  k = Cast <to = 9> (n)  keep = Add (last, z)
            y = Where (k, last, keep) }""",
        {"h": "inf", "x": []},
    ),
}

WRITTEN_VALUES = {
    "int64": INT64,
    "int32": INT32,
    "float16": FLOAT16,
    "negative rows": NEGATIVE_ROWS,
    "rounding": ROUNDING,
    "NaN and infinity": NAN,
    "broadcasts": BROADCASTS,
    "special values and sizes": SIZES,
}
