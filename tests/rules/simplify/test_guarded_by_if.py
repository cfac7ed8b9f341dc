"""A Scan in the branch of an If that is taken only where the Scan runs."""

from __future__ import annotations

import pytest

from passes.commands.schedules import SCHEDULES
from passes.engine.outcome import Pass
from passes.session import Session
from passes.testing import as_model, assert_rewrite
from tests.written import changed

TEXT = """
<ir_version: 8, opset_import: ["" : 18]>
best (float[N,4] x, bool yes) => (float[N,2] y)
   <int64 zero = {0}, int64 minus = {-1}, int64[1] two = {2}, int64[1] first = {0}> {
   size = Shape <start = 0, end = 1> (x)
   wide = Shape <start = 1, end = 2> (x)
   count = Squeeze (size, first)
   width = Squeeze (wide, first)
   some = Greater (count, zero)
   y = If (some) <
      then_branch = run () => (float[N,2] top) {
         read = Softmax (x)
         top = Scan <num_scan_inputs = 1, body = each (float[4] x_t) => (float[2] top_t) {
            top_t, at = TopK (x_t, two)
         }> (x)
      },
      else_branch = none () => (float[N,2] nothing) {
         shape = Constant <value_ints = [0, 2]> ()
         nothing = ConstantOfShape (shape)
      }>
}
"""


def codes(text: str) -> set[str]:
    result = Session([Pass(SCHEDULES["dissolve-map"])], None).run(as_model(text))
    return {record.code for record in result.report.refusals}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Greater (count, zero)", "Greater (count, zero)"),
        ("}> (x)", "}> (read)"),
        ("Greater (count, zero)", "Greater (count, first)"),
    ],
    ids=["the size itself", "of the same shape", "a bound of one item"],
)
def test_it_runs(old: str, new: str) -> None:
    result = assert_rewrite(changed(TEXT, {old: new}), pipeline="dissolve-map", budget=20)
    assert "Scan" not in str(result.model)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Greater (count, zero)", "Greater (count, minus)"),
        ("Greater (count, zero)", "Less (zero, count)"),
        ("Greater (count, zero)", "Greater (width, zero)"),
        ("Greater (count, zero)", "Equal (count, zero)"),
        ("If (some)", "If (yes)"),
    ],
    ids=[
        "may be 0",
        "another spelling",
        "another axis",
        "another op",
        "an input",
    ],
)
def test_it_may_not_run(old: str, new: str) -> None:
    assert codes(changed(TEXT, {old: new})) == {"may-be-empty"}


def test_in_the_other_branch_it_may_not_run() -> None:
    text = """
<ir_version: 8, opset_import: ["" : 18]>
best (float[N,4] x) => (float[N,2] y)
   <int64 zero = {0}, int64[1] two = {2}, int64[1] first = {0}> {
   size = Shape <start = 0, end = 1> (x)
   count = Squeeze (size, first)
   some = Greater (count, zero)
   y = If (some) <
      then_branch = none () => (float[N,2] nothing) {
         shape = Constant <value_ints = [0, 2]> ()
         nothing = ConstantOfShape (shape)
      },
      else_branch = run () => (float[N,2] top) {
         top = Scan <num_scan_inputs = 1, body = each (float[4] x_t) => (float[2] top_t) {
            top_t, at = TopK (x_t, two)
         }> (x)
      }>
}
"""
    assert codes(text) == {"may-be-empty"}


def test_an_outer_if_counts_too() -> None:
    text = """
<ir_version: 8, opset_import: ["" : 18]>
best (float[N,4] x, bool yes) => (float[N,2] y)
   <int64 zero = {0}, int64[1] two = {2}, int64[1] first = {0}> {
   size = Shape <start = 0, end = 1> (x)
   count = Squeeze (size, first)
   some = Greater (count, zero)
   y = If (some) <
      then_branch = run () => (float[N,2] top) {
         top = If (yes) <
            then_branch = go () => (float[N,2] t) {
               t = Scan <num_scan_inputs = 1, body = each (float[4] x_t) => (float[2] top_t) {
                  top_t, at = TopK (x_t, two)
               }> (x)
            },
            else_branch = no () => (float[N,2] u) { u, v = TopK (x, two) }>
      },
      else_branch = none () => (float[N,2] nothing) {
         shape = Constant <value_ints = [0, 2]> ()
         nothing = ConstantOfShape (shape)
      }>
}
"""
    assert codes(text) == set()
