"""The README's tour shows what the commands really print; `--update-golden` writes it anew."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from tests.transcripts import Shell, timeless

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
BLOCK = re.compile(r"```console\n(.*?)```", re.DOTALL)
FILE = re.compile(r"```toml\n# (\S+)\n(.*?)```", re.DOTALL)


@pytest.mark.slow
def test_the_tour_shows_what_the_commands_print(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    for folder in ("golden_models/binary", "golden_models/exported/torch"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    text = README.read_text()
    shown = BLOCK.findall(text)
    assert len(shown) >= 4
    for name, content in FILE.findall(text):
        (tmp_path / name).write_text(content)
    shell = Shell(tmp_path)
    played = [shell.replay(block) for block in shown]
    if [*map(timeless, played)] == [*map(timeless, shown)]:
        return
    if request.config.getoption("--update-golden"):
        blocks = iter(played)
        README.write_text(BLOCK.sub(lambda match: f"```console\n{next(blocks)}```", text))
    else:
        assert played == shown
