"""docs/opset-steps.md is what the table says; docs/opset-proofs.md has a row for each step."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from prove_steps import TOLD

from passes.converters.document import document
from passes.converters.steps import STEPS

pytestmark = pytest.mark.sampled

DOCS = Path(__file__).parents[2] / "docs"


def test_the_steps_are_up_to_date() -> None:
    page = (DOCS / "opset-steps.md").read_text()
    assert page == document(), "python -m passes.converters.document docs/opset-steps.md"


def test_every_step_was_tried_out_or_says_why_not() -> None:
    text = (DOCS / "opset-proofs.md").read_text()
    rows = re.findall(r"^\| (\w+) \| (\d+) \| (.+) \|$", text, re.MULTILINE)
    assert [(op, int(version)) for op, version, _ in rows] == sorted(STEPS)
    untold = [how for *_, how in rows if how not in TOLD.values() and "not run: " not in how]
    assert untold == []
