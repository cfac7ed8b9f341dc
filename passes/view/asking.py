"""What the page asks of a process: about a model, about a target, or to run a command."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

from passes.commands.checking import Check
from passes.commands.options import Options
from passes.commands.pipeline import Pipeline
from passes.commands.task import Done, Task, perform, with_advice
from passes.errors import DoesNotFit, PassesError
from passes.reports.report_file import ReportFile
from passes.reports.text import described
from passes.view.looking import Look

#: The outcome's report as a page, in the folder of a run.
REPORT = "report.html"
#: What a run is doing, there, too.
SAID = "said"


@dataclass(frozen=True)
class Failed:
    """There is no answer, for a reason that is the input's fault."""

    sentence: str


@dataclass(frozen=True)
class Question:
    """A question about the model at a path, a method of `Look` with its arguments; `alone`: there
    is no file beside it."""

    path: str
    alone: bool
    method: str
    given: Mapping[str, Any] = field(default_factory=dict)

    def answer(self) -> Any:
        """The answer. Raises PassesError."""
        return getattr(_look(self.path, self.alone), self.method)(**self.given)


@cache  # a process answers about one model
def _look(path: str, alone: bool) -> Look:
    return Look.at(Path(path), alone=alone)


@dataclass(frozen=True)
class Findings:
    """The question what is in the way at a target."""

    check: Check

    def answer(self) -> Any:
        """The findings, and what clears them. Raises PassesError."""
        found = self.check.run()
        return {
            "verdict": f"{found}",
            "fits": found.fits,
            "summary": found.summary,
            "findings": described(found.findings),
            "clearing": found.clearing(),
            "fixes": bool(found.remedies) or (found.fits and found.planned),
            "left": len(found.left),
        }


@dataclass(frozen=True)
class Perform:
    """A command on a model, whose outcome is written to `output`; of a check, the commands that
    clear its findings. Progress and the report are written to the folder above that of the outcome;
    `folders` are left out of the paths of the report."""

    options: Options | Check
    model: str
    output: str
    strict: bool
    folders: tuple[str, ...]

    def answer(self) -> Any:
        """The verdict, the report in short, and the paths of the files that were written."""
        from passes.reports.pages.page import page_of
        from passes.reports.pages.writing import as_html, write

        self._say("reading the model")
        own = self.options
        steps = own.run(self._say).fix if isinstance(own, Check) else Pipeline([own])
        task = Task(self.model, steps, self.output, strict=self.strict)
        done = with_advice(task, perform(task, self._say), self._say)
        page = page_of(self._report(task, done))
        write(self._folder / REPORT, self._named(as_html(page)))
        shown = {
            "look": page.banner.look,
            "verdict": page.banner.verdict,
            "sentence": page.banner.sentence,
            "numbers": [asdict(one) for one in page.numbers],
            "remarks": [*page.remarks, *page.findings],
            "next": [*page.remedies],
            "seconds": done.seconds,
        }
        return {**_each(shown, self._named), "output": done.output, "reproducer": done.reproducer}

    def _report(self, task: Task, done: Done) -> ReportFile:
        """The report; of a check, with the findings that are left in the outcome."""
        report = ReportFile.of(task, done)
        if not isinstance(self.options, Check) or not done.output:
            return report
        from passes.session import loaded
        from passes.targets.findings import check
        from passes.targets.profile import load

        left = check(loaded(done.output)[0], load(f"{self.options.target}"))
        return replace(report, findings=left.findings)

    @property
    def _folder(self) -> Path:
        return Path(self.output).parent.parent

    def _say(self, what: str) -> None:
        (self._folder / SAID).write_text(what, "utf-8")

    def _named(self, text: str) -> str:
        for folder in self.folders:
            text = text.replace(folder, "")
        return text


def _each(value: Any, change: Any) -> Any:
    """Plain data with all of its strings changed."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {key: _each(one, change) for key, one in value.items()}
    return [_each(one, change) for one in value] if isinstance(value, list) else value


def answered(asked: Question | Findings | Perform) -> Any:
    """The answer, or Failed."""
    try:
        return asked.answer()
    except DoesNotFit as error:
        return Failed(f"the model: {error}")
    except PassesError as error:
        return Failed(f"{error}")
