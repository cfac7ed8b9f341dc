"""A model from stdin, an outcome to stdout: `-` in place of a path."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from passes.builds.task import Done, Task

#: What stands for stdin or stdout in place of a path.
DASH = "-"


@dataclass(frozen=True)
class Streamed:
    """A task whose streams are files for as long as it takes."""

    task: Task
    to_stdout: bool
    names: tuple[tuple[str, str], ...]

    def named(self, text: str) -> str:
        """A text with `-` for the names of these files."""
        for path, name in self.names:
            text = text.replace(path, name)
        return text

    def deliver(self, done: Done) -> None:
        """Write the outcome to stdout, if that is its destination. Raises OSError."""
        if self.to_stdout and done.output:
            sys.stdout.buffer.write(Path(done.output).read_bytes())
            sys.stdout.buffer.flush()


@contextmanager
def as_files(task: Task) -> Iterator[Streamed]:
    """A task with files in place of stdin and stdout: a model from stdin is written to stdout
    unless an output is named."""
    from_stdin = task.model == DASH
    to_stdout = task.output == DASH or (from_stdin and task.output is None)
    if not from_stdin and not to_stdout:
        yield Streamed(task, False, ())
        return
    with tempfile.TemporaryDirectory() as folder:
        names: list[tuple[str, str]] = []
        if from_stdin:
            model = Path(folder) / "stdin.onnx"
            model.write_bytes(sys.stdin.buffer.read())
            task = replace(task, model=str(model))
            names.append((str(model), "stdin"))
        if to_stdout:
            output = Path(folder) / "stdout.onnx"
            task = replace(task, output=str(output))
            names.append((str(output), "stdout"))
        yield Streamed(task, to_stdout, tuple(names))
