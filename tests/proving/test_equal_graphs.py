"""Graphs that make the same calls are equal without being evaluated; others are no equal graphs."""

from __future__ import annotations

import onnx.parser
import pytest

from passes.ir.model import Model
from passes.proving.assumptions import ALIKE
from passes.proving.narrowing import prove
from passes.reports.proof import Proof
from tests.written import changed

HEAD = '<ir_version: 10, opset_import: ["" : 21, "local" : 1]> g '
#: A call of a function with an attribute, of which a node that nobody reads may fail.
CALLED = """(float[N] x, float[N] w) => (float[N] y) { y = local.f <sizes: ints = [-1]> (x, w) }
    <domain: "local", opset_import: ["" : 21]> f <sizes> (p, q) => (r) {
        k = Constant <value_ints: ints = @sizes> () unread = Reshape (p, k) r = Sub (p, q) }"""
#: A function that is called in a body, where values of two levels are captured.
IN_BODIES = """(float[T,2] x, float[2] h, float[2] a, float[2] b) => (float[2] y) {
    y = Scan <num_scan_inputs = 1, body = outer (float[2] s, float[2] r) => (float[2] t) {
        n = Constant <value_int = 2> ()
        t = Loop <body = inner (int64 k, bool c, float[2] u) => (bool d, float[2] v) {
            d = Identity (c) e = local.f (u, a) v = local.f (e, r) }> (n, , s) }> (h, x) }
    <domain: "local", opset_import: ["" : 21]> f (p, q) => (w) { w = Sub (p, q) }"""
#: A function with an operand that may be left out.
OPTIONAL = """(float[N] x, float m) => (float[N] y) { y = local.f (x, m) }
    <domain: "local", opset_import: ["" : 21]> f (p, low, high) => (r) {
        r = Clip (p, low, high) }"""
#: Two draws of random numbers.
RANDOM = """(float[N] x) => (float[N] y) { a = local.f (x) b = local.f (x) y = Sub (a, b) }
    <domain: "local", opset_import: ["" : 21]> f (p) => (r) { r = RandomNormalLike (p) }"""


def proof(before: str, after: str) -> Proof:
    old, new = (Model.load(onnx.parser.parse_model(HEAD + one)) for one in (before, after))
    return prove(old, new, 4.0).proof


@pytest.mark.parametrize(
    ("before", "change"),
    [
        (CALLED, {"f <sizes> (p, q) => (r)": "f <sizes> (s, q) => (r)", "(p,": "(s,"}),
        (IN_BODIES, {"(p, q) => (w) { w =": "(p, q) => (z) { z ="}),
        (OPTIONAL, {"y = local": "z = local", "(x, m) }": "(x, m) y = Identity (z) }"}),
    ],
)
def test_other_names_make_no_difference(before: str, change: dict[str, str]) -> None:
    assert proof(before, changed(before, change)).sentence() == "proven for all sizes"


def test_nothing_is_assumed_of_sizes() -> None:
    assert proof(IN_BODIES, IN_BODIES).assumed == (ALIKE,)


@pytest.mark.parametrize(
    ("before", "change"),
    [
        (CALLED, {"[-1]": "[7]"}),
        (CALLED, {"(x, w)": "(w, x)"}),
        (CALLED, {"r = Sub (p, q)": "r = Sub (q, p)"}),
        (IN_BODIES, {"(u, a)": "(u, b)"}),
        (IN_BODIES, {"(e, r)": "(e, s)"}),
        (IN_BODIES, {"w = Sub (p, q)": "w = Sub (q, p)"}),
        (OPTIONAL, {"local.f (x, m)": "local.f (x, , m)"}),
        (RANDOM, {"y = Sub (a, b)": "y = Sub (a, a)"}),
    ],
)
def test_other_calls_are_no_equal_graphs(before: str, change: dict[str, str]) -> None:
    found = proof(before, changed(before, change))
    assert not found.is_proven
    assert found.code
