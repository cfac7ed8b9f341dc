"""The JSON report, version 1: what was run, on what, and what became of it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from passes.commands.declaring import flags_of, options_of
from passes.commands.options import Options
from passes.commands.registry import command_of
from passes.errors import DONE, NOT_PRODUCED, USAGE, BadModel, End
from passes.ir.versions import tools
from passes.reports.json_values import read_as
from passes.reports.report import Checked, Finding, Report, Size

if TYPE_CHECKING:
    from passes.commands.task import Done, Task

VERSION = 1


@dataclass(frozen=True)
class File:
    """A file: its path, its size in bytes, and its SHA-256 in hexadecimal digits."""

    path: str
    bytes: int
    sha256: str

    @classmethod
    def of(cls, path: Path) -> File:
        """Read a file. Raises OSError where that cannot be."""
        return cls(str(path), path.stat().st_size, digest(path))


def digest(path: Path) -> str:
    """The SHA-256 of a file. Raises OSError where it cannot be read."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def files_of(model: Path, read: Callable[[Path], File] = File.of) -> tuple[File, ...]:
    """A model file, and those with its weights; what cannot be read is left out."""
    return tuple(_files(model, read))


def _files(model: Path, read: Callable[[Path], File]) -> Iterator[File]:
    from passes.ir.external_data import external_files
    from passes.ir.model import Model

    try:
        yield read(model)
        if b"location" not in model.read_bytes():
            return  # it refers to no external data, whatever its format
        for file in sorted(external_files(Model.load(model).proto, model.parent)):
            yield read(file)
    except (OSError, BadModel):
        return


@dataclass(frozen=True)
class Ran:
    """A command of the pipeline, with all of its options; `flags` give those that are no defaults
    on the command line."""

    command: str
    options: Mapping[str, Any]
    flags: Sequence[str] = ()

    @classmethod
    def of(cls, options: Options) -> Ran:
        """The command that these are the options of."""
        given = {
            name: option.printed(getattr(options, name))
            for name, option in options_of(type(options), "file").items()
        }
        return cls(command_of(options).name, given, flags_of(options))


@dataclass(frozen=True)
class Run:
    """What was run, and how it ended. `tools` are versions; `input` is the model file and the files
    of its weights, `output` those of the outcome, both empty if there are none; `meanings` are
    those of the codes of refusals."""

    schema_version: int
    tools: Mapping[str, str]
    end: End
    exit_code: int
    error: str
    seconds: float
    commands: Sequence[Ran]
    dims: Mapping[str, int | str]
    input: Sequence[File]
    output: Sequence[File]
    remarks: Sequence[str]
    meanings: Mapping[str, str]


@dataclass(frozen=True)
class ReportFile(Report, Run):
    """The contents of the report file: a report, as far as there is one, and what was run;
    `reproducer` is the folder with both sides of a mismatch."""

    command: str = ""
    file: str = ""
    opsets: tuple[int, int] = (0, 0)
    sizes: Sequence[Size] = ()
    reproducer: str = ""

    @classmethod
    def of(cls, task: Task, done: Done) -> ReportFile:
        """The report of what became of a task."""
        made = cls._of(
            done.end,
            done.exit_code,
            done.sentence,
            done.seconds,
            commands=_ran(task),
            dims=task.pipeline.dims,
            input=files_of(Path(task.model)),
            output=files_of(Path(done.output)) if done.output else (),
            remarks=done.remarks,
            reproducer=done.reproducer,
        )
        return made if done.report is None else made.about(done.report, _meanings(done.report))

    @classmethod
    def of_failure(cls, sentence: str, code: int) -> ReportFile:
        """The report of a command that was used such that nothing was run."""
        return cls._of(End.USAGE if code == USAGE else End.INVALID, code, sentence)

    @classmethod
    def of_comparison(
        cls, report: Report, sides: tuple[Path, Path], flags: Sequence[str]
    ) -> ReportFile:
        """The report of two models that were compared."""
        ends = {"verified": End.UNCHANGED, "within": End.UNCHANGED, "mismatch": End.MISMATCH}
        checked = report.checked or Checked("not-compared", "nothing was executed")
        end = ends.get((report.within or checked).verdict, End.UNVERIFIED)
        before, after = map(files_of, sides)
        ran = [Ran("verify", {}, flags)]
        made = cls._of(end, seconds=checked.seconds, commands=ran, input=before, output=after)
        return made.about(report, {})

    @classmethod
    def of_findings(
        cls, model: Path, sentence: str, findings: Sequence[Finding], flags: Sequence[str]
    ) -> ReportFile:
        """The report of a model that was checked for a target."""
        end, code = (End.INCOMPLETE, NOT_PRODUCED) if findings else (End.UNCHANGED, DONE)
        files, ran = files_of(model), [Ran("check", {}, flags)]
        about: Any = {"command": "check", "file": str(model), "findings": findings}
        return cls._of(end, code, sentence, commands=ran, input=files, **about)

    @classmethod
    def _of(
        cls, end: End, code: int = DONE, sentence: str = "", seconds: float = 0.0, **more: Any
    ) -> ReportFile:
        empty: dict[str, Any] = dict.fromkeys(("commands", "input", "output", "remarks"), ())
        more = {**empty, "dims": {}, "meanings": {}, **more}
        return cls(VERSION, tools(), end, code, sentence, seconds, **more)

    def about(self, report: Report, meanings: Mapping[str, str]) -> ReportFile:
        """The same with a report, and the meanings of the codes of its refusals."""
        own = {one.name: getattr(report, one.name) for one in fields(Report)}
        return replace(self, meanings=meanings, **own)

    @classmethod
    def read(cls, values: Mapping[str, Any]) -> ReportFile:
        """The report that JSON holds, as a row of a build does. Raises Unreadable."""
        report = read_as(cls, values)
        assert isinstance(report, cls)
        return report

    def to_html(self, remedies: Sequence[str] = ()) -> str:
        """The page of the report; `remedies` are what clears its findings."""
        from passes.reports.pages.page import page_of
        from passes.reports.pages.writing import as_html

        return as_html(page_of(self, remedies))


def _ran(task: Task) -> list[Ran]:
    """The commands of a task; the flags of the first have the dims of the pipeline, too, and those
    of a single command the place of the outcome."""
    first, *others = task.pipeline.commands
    ran = [Ran.of(options) for options in (first, *others)]
    flags = [*ran[0].flags, *options_of(type(first))["dims"].flags(task.pipeline.dims or None)]
    if not others:
        flags += ["--strict"] * task.strict + ["--force"] * task.force
        flags += [] if task.output is None else ["--output", task.output]
    return [replace(ran[0], flags=flags), *ran[1:]]


def _meanings(report: Report) -> dict[str, str]:
    from passes.commands.explanation import meaning

    pairs = sorted({(record.code, record.rule) for record in report.refusals})
    return {code: meaning(code, rule) for code, rule in pairs}
