"""Runs the commands of the documentation, and compares what they print with what it shows."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from contextlib import chdir
from pathlib import Path

from tests.called import called

#: What differs from run to run.
_SECONDS = re.compile(r"[\d.]+ s of work")
#: What an installation is made of, the modules and the metadata, without the network.
_INSTALL = """
import os, sys
from setuptools import setup
os.chdir(sys.argv[1])
setup(script_args=["-q", "build_py", "-d", sys.argv[2], "egg_info", "--egg-base", sys.argv[2]])
"""


class Shell:
    """Runs commands in a folder; what `pip install` installs is importable for later ones."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.code = 0

    def replay(self, block: str) -> str:
        """A block with the real output after every command."""
        commands = [line[2:] for line in block.splitlines() if line.startswith("$ ")]
        return "".join(f"$ {command}\n{self.run(command)}" for command in commands)

    def run(self, command: str) -> str:
        """What a command prints, standard error after standard output."""
        if command == "echo $?":
            return f"{self.code}\n"
        program, *words = shlex.split(command)
        if (program, *words[:2]) == ("python", "-m", "passes"):
            program, words = "passes", words[2:]
        site = self.folder / "site"
        cache = {"XDG_CACHE_HOME": f"{self.folder / 'cache'}"}
        if program == "passes" and not site.exists():
            with chdir(self.folder):
                done = called(*words, env=cache)
        else:
            done = subprocess.run(
                [sys.executable, *self._words(program, words, f"{site}")],
                cwd=self.folder,
                env={
                    **os.environ,
                    **cache,
                    "PYTHONPATH": os.pathsep.join([f"{site}", os.environ.get("PYTHONPATH", "")]),
                },
                capture_output=True,
                timeout=300,
            )
        self.code = done.returncode
        lines = (done.stdout + done.stderr).decode().splitlines()
        return "".join(f"{line.rstrip()}\n" for line in lines)

    def _words(self, program: str, words: list[str], site: str) -> list[str]:
        """What Python is to run; what is no Python program is not shown."""
        if program == "pip":
            command, package = words
            assert command == "install"
            Path(site).mkdir(exist_ok=True)
            return ["-W", "ignore", "-c", _INSTALL, package, site]
        if program == "passes":
            return ["-m", "passes", *words]
        assert program == "python", f"{program!r} cannot be run by a test"
        return words


def timeless(text: str) -> str:
    """Without what differs from run to run."""
    return _SECONDS.sub("some work", text)
