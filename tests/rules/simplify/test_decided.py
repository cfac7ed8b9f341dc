"""inline-if: conditions that sizes and constants decide, and those that only the run decides."""

from __future__ import annotations

import pytest

import passes
from passes.testing import as_model
from tests.written import changed

ASKING = """
<ir_version: 10, opset_import: ["" : 17]>
g (float[SIZES] x, float[N,2] z, bool b, bool[K] bs, int64 n) => (float[M,2] y)
   <int64 zero = {0}, int64 one = {1}, int64 big = {4294967296}, int64 minus = {-1}>
{
   s = Shape (x)
   d = Gather <axis = 0> (s, zero)
   CONDITION
   y = If (c) <then_branch = t () => (p) { p = Neg (z) }, else_branch = e () => (q) { q = Abs (z) }>
}
"""


def op_that_is_left(condition: str, sizes: str = "N,2") -> str:
    """The branch that `condition` takes, Neg or Abs; If where it is not decided."""
    text = changed(ASKING, {"CONDITION": condition, "SIZES": sizes})
    model = passes.simplify(as_model(text)).model
    return model.graph.node[-1].op_type


@pytest.mark.parametrize(
    ("condition", "sizes", "op"),
    [
        ("c = Equal (d, one)", "1,2", "Neg"),
        ("c = Equal (d, one)", "3,2", "Abs"),
        ("k = Size (x) c = Equal (k, zero)", "0,N", "Neg"),
        ("t = Shape (z) k = Gather <axis = 0> (t, zero) c = Less (k, d)", "N,2", "Abs"),
        ("c = GreaterOrEqual (d, zero)", "N,2", "Neg"),
        ("e = Equal (d, minus) c = And (b, e)", "N,2", "Abs"),
        ("i = Cast <to = 6> (d) f = Cast <to = 11> (i) c = Cast <to = 9> (f)", "3,2", "Neg"),
        ("k = Mul (n, big) m = Mul (k, big) c = Less (m, one)", "N,2", "Neg"),
        ("e = Equal (d, d) k = Xor (e, e) c = Not (k)", "N,2", "Neg"),
    ],
)
def test_sizes_decide(condition: str, sizes: str, op: str) -> None:
    assert op_that_is_left(condition, sizes) == op


@pytest.mark.parametrize(
    ("condition", "sizes", "why"),
    [
        ("c = Equal (d, one)", "L,2", "any size may be 1"),
        ("t = Shape (z) k = Gather <axis = 0> (t, zero) c = Equal (k, d)", "L,2", "two symbols"),
        ("k = Sub (d, one) c = Less (k, zero)", "N,2", "none may be left"),
        ("k = Mul (n, big) c = Less (k, one)", "N,2", "the product may wrap"),
        ("k = Add (n, one) c = Greater (k, n)", "N,2", "the sum may wrap"),
        ("e = Equal (d, minus) k = And (bs, e) c = Squeeze (k)", "N,2", "of no known size"),
        ("k = Cast <to = 7> (b) c = Equal (k, one)", "N,2", "a condition"),
    ],
)
def test_the_run_decides(condition: str, sizes: str, why: str) -> None:
    assert op_that_is_left(condition, sizes) == "If", why


def test_a_caller_may_override_a_default() -> None:
    text = """
    <ir_version: 10, opset_import: ["" : 17]>
    g (float[2] x, int64 k) => (float[2] y) <int64 k = {1}, int64 one = {1}> {
       c = Equal (k, one)
       y = If (c) <then_branch = t () => (p) { p = Neg (x) },
                   else_branch = e () => (q) { q = Abs (x) }>
    }
    """
    assert [node.op_type for node in passes.simplify(as_model(text)).model.graph.node][-1] == "If"


def test_an_attribute_that_the_caller_gives_decides_nothing() -> None:
    text = """
    <ir_version: 10, opset_import: ["" : 17, "my" : 1]>
    g (float[2] x) => (float[2] y) { y = my.f <k = 1> (x) }
    <domain: "my", opset_import: ["" : 17]>
    f <k> (x) => (y) {
       one = Constant <value_int = 1> ()
       given = Constant <value_int : int = @k> ()
       c = Equal (given, one)
       y = If (c) <then_branch = t () => (p) { p = Neg (x) },
                   else_branch = e () => (q) { q = Abs (x) }>
    }
    """
    (function,) = passes.simplify(as_model(text)).model.functions
    assert function.node[-1].op_type == "If"


def test_a_function_that_is_called_with_two_sizes_decides_nothing() -> None:
    text = """
    <ir_version: 10, opset_import: ["" : 17, "my" : 1]>
    g (float[1] x, float[2] z) => (y, w) { y = my.f (x) w = my.f (z) }
    <domain: "my", opset_import: ["" : 17]>
    f (x) => (y) {
       one = Constant <value_int = 1> ()
       k = Size (x)
       c = Equal (k, one)
       y = If (c) <then_branch = t () => (p) { p = Neg (x) },
                   else_branch = e () => (q) { q = Abs (x) }>
    }
    """
    (function,) = passes.simplify(as_model(text)).model.functions
    assert function.node[-1].op_type == "If"


@pytest.mark.parametrize("length", [40, 300])
def test_long_chains_end(length: int) -> None:
    steps = [f"e{i} = Or (e{i - 1}, b) x{i} = Neg (x{i - 1})" for i in range(1, length)]
    chain = f"e0 = Equal (d, d) x0 = Neg (z) {' '.join(steps)} c = Identity (e{length - 1})"
    assert op_that_is_left(chain) == ("Neg" if length < 64 else "If")


#: One If of the chain below, which reads the result of the one before.
ASKING_AGAIN = """
   s_this = Shape (y_last)
   d_this = Gather <axis = 0> (s_this, zero)
   c_this = Equal (d_this, one)
   y_this = If (c_this) <then_branch = t_this () => (p_this) { p_this = Neg (y_last) },
                         else_branch = e_this () => (q_this) { q_this = Abs (y_last) }>
"""
CHAIN = """
<ir_version: 10, opset_import: ["" : 17]>
g (float[1,N] y0) => (float[1,N] y199) <int64 zero = {0}, int64 one = {1}>
{
   CHAIN_OF_IFS
}
"""


@pytest.mark.slow
def test_a_chain_of_ifs_is_a_chain_of_branches() -> None:
    ifs = [changed(ASKING_AGAIN, {"_this": f"{i}", "_last": f"{i - 1}"}) for i in range(1, 200)]
    model = as_model(changed(CHAIN, {"CHAIN_OF_IFS": "".join(ifs)}))
    result = passes.simplify(model, verify_budget=5)
    assert {node.op_type for node in result.model.graph.node} <= {"Neg", "Shape"}
