"""raise-loop: guards that lowering writes for states."""

from __future__ import annotations

from pathlib import Path

import pytest

from passes.testing import assert_refused, assert_rewrite
from tests.written import changed

GOLDEN = Path(__file__).parents[3] / "golden_models" / "raise"


def golden(name: str) -> str:
    return (GOLDEN / f"{name}.before.onnxtxt").read_text()


def test_a_state_with_a_guard_is_carried_by_a_scan() -> None:
    result = assert_rewrite(golden("checked_state"), pipeline="raise")
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


@pytest.mark.parametrize(("old", "new"), OTHER_GUARDS.values(), ids=OTHER_GUARDS)
def test_another_guard_proves_nothing(old: str, new: str) -> None:
    model = changed(golden("checked_state"), {old: new})
    assert_refused(model, "shape-unknown", pipeline="raise")


OTHER_SIZES = {
    "of another value": ("Shape (s)", "Shape (x)"),
    "sizes with themselves": ("Shape (s)", "Shape (t)"),
    "that is the last row": ('"loop/step/reducesum")', '"loop/step/one")'),
}


@pytest.mark.parametrize(("old", "new"), OTHER_SIZES.values(), ids=OTHER_SIZES)
def test_another_count_proves_nothing(old: str, new: str) -> None:
    changes = {
        "int64[1] axis =": 'int64 "loop/step/one" = {0}, int64[1] axis =',
        "float[4,N] a": "float[4,M] a",  # one symbol would be a proof
        old: new,
    }
    model = changed(golden("checked_sizes"), changes)
    assert_refused(model, "shape-unknown", pipeline="raise")
