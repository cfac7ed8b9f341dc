"""docs/rules.md is what the docstrings say."""

from __future__ import annotations

from pathlib import Path

from passes.commands.explanation import document

RULES = Path(__file__).parents[2] / "docs/rules.md"


def test_the_document_is_up_to_date() -> None:
    assert RULES.read_text() == document(), "python -m passes.commands.explanation docs/rules.md"
