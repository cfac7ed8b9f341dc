"""docs/operators.md is what the tables say."""

from __future__ import annotations

from pathlib import Path

from passes.support.document import document

PAGE = Path(__file__).parents[2] / "docs/operators.md"


def test_the_document_is_up_to_date() -> None:
    command = "python -m passes.support.document docs/operators.md"
    assert PAGE.read_text() == document(), f"run {command}, and read what changed"
