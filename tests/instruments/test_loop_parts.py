"""The table of the parts of loops that rules support is what the golden models show."""

from __future__ import annotations

import pytest

from passes.commands.explanation import LOOP_PARTS, explanation, loop_parts
from tests.instruments.loop_parts import answers, measured, table
from tests.test_golden import FOLDER


def test_parts_that_are_rewritten_and_parts_that_are_refused() -> None:
    paths = (
        "raise/backwards.before.onnxtxt",
        "raise/computed_condition.refused.onnxtxt",
        "lower/scan_8.before.onnxtxt",
    )
    found = [answer for path in paths for answer in answers(FOLDER / path)]
    columns, _, *rows = (
        [cell.strip() for cell in line.split("|")] for line in table(found).splitlines()
    )
    cells = {row[1].strip("`"): dict(zip(columns, row, strict=True)) for row in rows}
    assert list(cells) == ["lower-scan", "raise-loop", "scan-8"]
    assert {rule: row["carried"] for rule, row in cells.items()} == {
        "lower-scan": "S",
        "raise-loop": "L",
        "scan-8": "8",
    }
    assert cells["raise-loop"]["ended by a condition"] == "not L: `condition`"
    assert cells["raise-loop"]["possibly no iteration"] == "L"  # no refusal names it
    assert cells["lower-scan"]["bodies in bodies"] == "S"
    assert cells["scan-8"]["`sequence_lens`"] == ""


def test_a_rule_is_explained_with_the_parts() -> None:
    assert loop_parts("lower-scan")["reversed"] == "S"
    text = explanation("lower-scan")
    assert text is not None
    assert "\n- reversed: S\n" in text
    assert loop_parts("opset") == {}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The onnxtxt format is experimental")
def test_the_table_is_up_to_date() -> None:
    assert LOOP_PARTS.read_text() == measured(), "python -m tests.instruments.loop_parts"
