"""Recurrences in float32, and as they are with all values in half precision."""

from __future__ import annotations

from tests.written import changed

AVERAGE = """<ir_version: 10, opset_import: ["" : 21]>
g (float[T,4] xs) => (float[4] y)
    <float[4] zero = {0, 0, 0, 0}, float kept = {0.999}, float new = {0.001}> {
    y = Scan <num_scan_inputs = 1, body = step (float[4] s_in, float[4] x) => (float[4] s_out) {
        old = Mul (kept, s_in)  more = Mul (new, x)  s_out = Add (old, more)
    }> (zero, xs)
}"""
AVERAGE_IN_HALF = """<ir_version: 10, opset_import: ["" : 21]>
g (float[T,4] xs) => (float[4] y)
    <float[4] zero = {0, 0, 0, 0}, float kept = {0.999}, float new = {0.001}> {
    start = Cast <to = 10> (zero)  xh = Cast <to = 10> (xs)
    k = Cast <to = 10> (kept)  n = Cast <to = 10> (new)
    yh = Scan <num_scan_inputs = 1, body = step (float16[4] s_in, float16[4] x)
        => (float16[4] s_out) {
        old = Mul (k, s_in)  more = Mul (n, x)  s_out = Add (old, more)
    }> (start, xh)
    y = Cast <to = 1> (yh)
}"""
SUM = """<ir_version: 10, opset_import: ["" : 21]>
g (float[T,4] xs) => (float[4] y) <float[4] zero = {0, 0, 0, 0}> {
    y = Scan <num_scan_inputs = 1, body = step (float[4] s_in, float[4] x) => (float[4] s_out) {
        s_out = Add (s_in, x)
    }> (zero, xs)
}"""
SUM_IN_HALF = """<ir_version: 10, opset_import: ["" : 21]>
g (float[T,4] xs) => (float[4] y) <float16[4] zero = {0, 0, 0, 0}> {
    xh = Cast <to = 10> (xs)
    yh = Scan <num_scan_inputs = 1, body = step (float16[4] s_in, float16[4] x)
        => (float16[4] s_out) {
        s_out = Add (s_in, x)
    }> (zero, xh)
    y = Cast <to = 1> (yh)
}"""
#: The same with an input and an output of float16.
SUM_OF_HALVES = changed(
    SUM_IN_HALF,
    {
        "(float[T,4] xs) => (float[4] y)": "(float16[T,4] xs) => (float16[4] y)",
        "Cast <to = 10>": "Identity",
        "Cast <to = 1>": "Identity",
    },
)
