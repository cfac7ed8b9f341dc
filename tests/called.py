"""The whole program, called in this process: Python takes longer to start than most commands."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from collections.abc import Mapping
from subprocess import CompletedProcess
from unittest.mock import patch

from passes.__main__ import main
from passes.cli import running


def called(
    *arguments: str, stdin: bytes = b"", env: Mapping[str, str] | None = None
) -> CompletedProcess[bytes]:
    """What `python -m passes ARGUMENTS` prints and exits with, in the current folder.

    `env` is added to the environment. What the program leaves unhandled is raised.
    """
    streams = [io.TextIOWrapper(io.BytesIO(read), "utf-8") for read in (stdin, b"", b"")]
    code: object = None
    with (
        patch.dict(os.environ, env or {}),
        patch.multiple("sys", argv=["passes", *arguments]),
        patch.multiple("sys", **dict(zip(("stdin", "stdout", "stderr"), streams, strict=True))),
        patch.multiple(running, _FAILURES=[], _WRITTEN=set()),
    ):
        try:
            main()
        except SystemExit as left:
            code = left.code
    assert isinstance(code, int)
    _, stdout, stderr = [_bytes(stream) for stream in streams]
    return CompletedProcess(arguments, code, stdout, stderr)


def called_elsewhere(*arguments: str) -> None:
    """The same in a process of its own, with other hashes of strings; it must exit with 0."""
    command = [sys.executable, "-m", "passes", *arguments]
    environment = {**os.environ, "PYTHONHASHSEED": "1"}  # that of tests is random
    subprocess.run(command, check=True, env=environment, capture_output=True, timeout=120)


def _bytes(stream: io.TextIOWrapper) -> bytes:
    stream.flush()
    written = stream.buffer
    assert isinstance(written, io.BytesIO)
    return written.getvalue()
