"""Guards that lowering writes for states, and masks for rows of strings, are seen through."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest

from passes.choices import RuleOptions
from passes.engine.schedules import SCHEDULES
from passes.session import Session
from passes.testing import as_model, assert_refused, assert_rewrite

GOLDEN = Path(__file__).parents[3] / "golden_models" / "raise"


def checked_state(was: str = "", becomes: str = "") -> str:
    """A lowered Scan whose state has a guard, one line of it another."""
    text = (GOLDEN / "checked_state.before.onnxtxt").read_text()
    assert was in text
    return text.replace(was, becomes) if was else text


def test_a_state_with_a_guard_is_carried_by_a_scan() -> None:
    result = assert_rewrite(checked_state(), pipeline="raise")
    assert result.report.refusals == []


OTHER_GUARDS = {
    "of another value": ("Shape (s)", "Shape (n)"),
    "sizes with themselves": (
        'Equal ("loop/step/shape", "loop/step/shape_1")',
        'Equal ("loop/step/shape", "loop/step/shape")',
    ),
    "of no size is another": ('("loop/step/not")', '("loop/step/equal")'),
    "one size differs": ('"loop/step/int" =  {0}', '"loop/step/int" =  {1}'),
    "one or the other": ('And ("loop/step/equal_1"', 'Or ("loop/step/equal_1"'),
    "that never fails": (
        '("loop/step/unsqueeze", "loop/step/where")',
        '("loop/step/unsqueeze", "loop/step/shape_4")',
    ),
    "that may succeed": ('"loop/step/ints_1" =  {1}', '"loop/step/ints_1" =  {0}'),
}


@pytest.mark.parametrize(("was", "becomes"), OTHER_GUARDS.values(), ids=OTHER_GUARDS)
def test_another_guard_proves_nothing(was: str, becomes: str) -> None:
    assert_refused(checked_state(was, becomes), "shape-unknown", pipeline="raise")


def string_rows(was: str, becomes: str) -> str:
    text = (GOLDEN / "string_rows.before.onnxtxt").read_text()
    assert was in text
    return text.replace(was, becomes) if was else text


def test_a_mask_that_counts_nothing_is_no_read() -> None:
    model = string_rows("int64[1] value {1}", "int64[1] value {0}")
    result = Session(SCHEDULES["raise"], None, RuleOptions(), None).run(as_model(model))
    assert "Compress" in onnx.printer.to_text(result.model)


def test_a_mask_that_counts_the_rows_is_a_read() -> None:
    result = Session(SCHEDULES["raise"], None, RuleOptions(), None).run(
        as_model(string_rows("", ""))
    )
    assert "Compress" not in onnx.printer.to_text(result.model)


OTHER_SIZES = {
    "of another value": ("Shape (s)", "Shape (x)"),
    "sizes with themselves": ("Shape (s)", "Shape (t)"),
    "that is the last row": ('"loop/step/reducesum")', '"loop/step/one")'),
}


@pytest.mark.parametrize(("was", "becomes"), OTHER_SIZES.values(), ids=OTHER_SIZES)
def test_another_count_proves_nothing(was: str, becomes: str) -> None:
    text = (GOLDEN / "checked_sizes.before.onnxtxt").read_text()
    text = text.replace("int64[1] axis =", 'int64 "loop/step/one" = {0}, int64[1] axis =')
    text = text.replace("float[4,N] a", "float[4,M] a")  # one symbol would be a proof
    assert was in text
    assert_refused(text.replace(was, becomes), "shape-unknown", pipeline="raise")
