"""The models that are open and the runs on them, each with a process under limits."""

from __future__ import annotations

import secrets
import shutil
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from passes.builds.pool import Ended, Kept, Limits
from passes.commands.checking import Check
from passes.commands.options import Options
from passes.commands.registry import command_of
from passes.errors import End, WrongUsage
from passes.view.asking import REPORT, SAID, Failed, Findings, Perform, Question
from passes.view.worker import MODULE

#: Models that are open, and runs at work, at most.
_MODELS, _RUNS = 12, 4
_STOPPED = "was ended on request"


class TooMany(WrongUsage):
    """So much cannot be open, or at work, at a time."""


class Gone(WrongUsage):
    """There is no such model or run, or not any more."""


@dataclass(frozen=True)
class _Stoppable(Limits):
    """Limits that are exceeded as soon as an event is set."""

    stop: threading.Event = field(default_factory=threading.Event)

    def exceeded(self, seconds: float, memory: Callable[[], int]) -> tuple[End, str] | None:
        return (End.DIED, _STOPPED) if self.stop.is_set() else super().exceeded(seconds, memory)


@dataclass(frozen=True)
class Opened:
    """A model: the path of its file, its `name` for people, the folder of what belongs to it, and
    the process that answers about it; `alone`: it was uploaded, or made by a run."""

    key: str
    path: Path
    name: str
    folder: Path
    alone: bool
    process: Kept[Any]
    stop: threading.Event = field(default_factory=threading.Event)

    def question(self, method: str, given: dict[str, str]) -> Question:
        """A question about it."""
        return Question(f"{self.path}", self.alone, method, given)


@dataclass(frozen=True)
class Run:
    """A command at work on a model, or done; `line` is the command line that does the same."""

    key: str
    model: Opened
    line: str
    folder: Path
    limits: _Stoppable
    answer: Future[Any]
    process: Kept[Any]
    started: float

    def state(self) -> dict[str, Any]:
        """How far it is, or the verdict."""
        known: dict[str, Any] = {"line": self.line, "said": _read(self.folder / SAID)}
        if not self.answer.done():
            return {**known, "seconds": round(time.monotonic() - self.started, 1)}
        found = self.answer.result()
        if isinstance(found, Failed | Ended):
            verdict = "Ended" if isinstance(found, Ended) else "Failed"
            return {**known, "done": {"look": "bad", "verdict": verdict, **_sentence(found)}}
        files = {name: Path(found[name]).name for name in ("output", "reproducer")}
        return {**known, "done": {**found, **files}}

    def end(self) -> None:
        """End it, if it is at work."""
        self.limits.stop.set()

    def file(self, name: str) -> Path:
        """The path of the outcome, the reproducer or the report. Raises Gone."""
        found = self.answer.result() if self.answer.done() else None
        if name == "report" and (self.folder / REPORT).exists():
            return self.folder / REPORT
        if not isinstance(found, dict) or not found.get(name):
            raise Gone(f"the run has no {name}")
        return Path(found[name])


@dataclass
class Desk:
    """What is open and at work; files are in `folder`, and processes work under `limits`."""

    folder: Path
    limits: Limits
    models: dict[str, Opened] = field(default_factory=dict)
    runs: dict[str, Run] = field(default_factory=dict)

    def open(self, path: Path, name: str = "", *, alone: bool = False) -> Opened:
        """Open a model; the oldest one without work is closed if there are many.

        Raises:
            TooMany: all of those are at work.
        """
        if len(self.models) >= _MODELS:
            working = {run.model.key for run in self.runs.values() if not run.answer.done()}
            idle = [one for one in self.models.values() if one.key not in working]
            if not idle:
                raise TooMany(f"{_MODELS} models are at work; end a run first")
            self._close(idle[0])
        key = secrets.token_hex(8)
        folder = self.folder / key
        folder.mkdir()
        opened = Opened(key, path, name or f"{path}", folder, alone, Kept(MODULE))
        self.models[key] = opened
        return opened

    def place(self, name: str) -> Path:
        """A path for an uploaded file, in a folder of its own."""
        folder = self.folder / secrets.token_hex(8)
        folder.mkdir()
        return folder / name

    def model(self, key: str) -> Opened:
        """An open model. Raises Gone."""
        if key not in self.models:
            raise Gone("this model was closed; open it again")
        return self.models[key]

    def run_of(self, key: str) -> Run:
        """A run. Raises Gone."""
        if key not in self.runs:
            raise Gone("there is no such run any more")
        return self.runs[key]

    def ask(self, model: Opened, asked: Question | Findings) -> Future[Any]:
        """The answer of the process of a model."""
        limits = _Stoppable(self.limits.seconds, self.limits.memory, model.stop)
        return model.process.ask(asked, limits)

    def start(self, model: Opened, options: Options | Check, line: str, *, strict: bool) -> Run:
        """Run a command on a model in a process of its own.

        Raises:
            TooMany: others are at work.
        """
        if sum(not run.answer.done() for run in self.runs.values()) >= _RUNS:
            raise TooMany(f"{_RUNS} runs are at work; end one first, or wait")
        key = secrets.token_hex(8)
        folder = model.folder / key
        folder.mkdir()
        ending = f"{options.target}" if isinstance(options, Check) else _ending(options)
        output = folder / "outcome" / f"{model.path.stem}.{ending}{model.path.suffix}"
        output.parent.mkdir()
        asked = Perform(options, f"{model.path}", f"{output}", strict, self._own(model, output))
        limits = _Stoppable(self.limits.seconds, self.limits.memory)
        process = Kept[Any](MODULE)
        answer = process.ask(asked, limits)
        answer.add_done_callback(lambda _: process.close())
        run = Run(key, model, line, folder, limits, answer, process, time.monotonic())
        self.runs[key] = run
        return run

    def _own(self, model: Opened, output: Path) -> tuple[str, ...]:
        """The folders of this desk that no report tells of."""
        folders = [output.parent, model.path.parent]
        return tuple(f"{one}/" for one in folders if self.folder in one.parents)

    def close(self) -> None:
        """End all that is at work, and all processes."""
        for model in [*self.models.values()]:
            self._close(model)

    def _close(self, model: Opened) -> None:
        for run in [run for run in self.runs.values() if run.model is model]:
            run.end()
            del self.runs[run.key]
        model.stop.set()
        model.process.close()
        del self.models[model.key]
        shutil.rmtree(model.folder, ignore_errors=True)
        if self.folder in model.path.parents:
            shutil.rmtree(model.path.parent, ignore_errors=True)


def _ending(options: Options) -> str:
    """The suffix of an outcome, with its opset left open."""
    return command_of(options).ending(options)


def _sentence(found: Failed | Ended) -> dict[str, Any]:
    return {
        "sentence": found.sentence if isinstance(found, Failed) else f"The run {found.sentence}."
    }


def _read(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except OSError:
        return ""
