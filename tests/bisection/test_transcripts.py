"""docs/bisect.md shows what the command prints; `--update-golden` writes it anew."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.test_readme import BLOCK, replay

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "bisect.md"


def test_the_page_shows_what_the_commands_print(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    for model in (ROOT / "tests" / "bisection" / "converted").glob("*.onnxtxt"):
        shutil.copy(model, tmp_path)
    text = PAGE.read_text()
    shown = BLOCK.findall(text)
    played = [replay(block, tmp_path) for block in shown]
    if request.config.getoption("--update-golden"):
        blocks = iter(played)
        PAGE.write_text(BLOCK.sub(lambda match: f"```console\n{next(blocks)}```", text))
        return
    assert played == shown
