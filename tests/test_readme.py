"""The README's tour shows what the commands really print; `--update-golden` writes it anew."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
BLOCK = re.compile(r"```console\n(.*?)```", re.DOTALL)
FILE = re.compile(r"```toml\n# (\S+)\n(.*?)```", re.DOTALL)
SECONDS = re.compile(r"[\d.]+ s of work")


def run(command: str, folder: Path) -> str:
    """What a command of the tour prints, standard error behind standard output."""
    words = shlex.split(command)
    assert words[0] == "python"
    done = subprocess.run(
        [sys.executable, *words[1:]],
        cwd=folder,
        env={**os.environ, "XDG_CACHE_HOME": str(folder / "cache")},
        capture_output=True,
        text=True,
        timeout=300,
    )
    lines = (done.stdout + done.stderr).splitlines()
    return "".join(f"{line.rstrip()}\n" for line in lines)


def replay(block: str, folder: Path) -> str:
    """The block with the real output behind every command."""
    commands = [line[2:] for line in block.splitlines() if line.startswith("$ ")]
    return "".join(f"$ {command}\n{run(command, folder)}" for command in commands)


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
    played = [replay(block, tmp_path) for block in shown]
    timeless = [[SECONDS.sub("some work", block) for block in side] for side in (played, shown)]
    if timeless[0] == timeless[1]:
        return
    if request.config.getoption("--update-golden"):
        blocks = iter(played)
        README.write_text(BLOCK.sub(lambda match: f"```console\n{next(blocks)}```", text))
    else:
        assert played == shown
