"""The JSON report, version 1: what was run, on what, and what became of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from passes.builds.files import File, files_of
from passes.builds.task import Done, End, Task
from passes.commands.declaring import flags_of, options_of
from passes.commands.options import Options
from passes.commands.registry import command_of
from passes.errors import DONE, NOT_PRODUCED, USAGE
from passes.measuring.measured import Measured
from passes.proving.proof import Proof
from passes.reports.json_values import as_json, read_as
from passes.reports.report import Advice, Checked, Record, Report, Size, Spent
from passes.targets.finding import Finding
from passes.tools import tools

VERSION = 1


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
            for name, option in options_of(type(options)).items()
            if "file" in option.help.shown
        }
        return cls(command_of(options).name, given, flags_of(options))


@dataclass(frozen=True)
class ReportFile:
    """The contents of the report file. `tools` are versions; `input` is the model file and the
    files of its weights, `output` those of the outcome, both empty if there are none; `meanings`
    are those of the codes of refusals; `reproducer` is the folder with both sides of a mismatch.
    The rest is that of `Report`, as far as there is one."""

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
    command: str = ""
    file: str = ""
    opsets: tuple[int, int] = (0, 0)
    sizes: Sequence[Size] = ()
    records: Sequence[Record] = ()
    checked: Checked | None = None
    failure: str = ""
    warnings: Sequence[str] = ()
    notes: Sequence[str] = ()
    ir_versions: tuple[int, int] = (0, 0)
    bound: Sequence[str] = ()
    findings: Sequence[Finding] = ()
    proof: Proof | None = None
    measured: Measured | None = None
    spent: Spent = field(default_factory=Spent)
    advice: Sequence[Advice] = ()
    reproducer: str = ""

    @classmethod
    def of(cls, task: Task, done: Done) -> ReportFile:
        """The report of what became of a task."""
        report = done.report
        rest = {one.name: getattr(report, one.name) for one in fields(Report)} if report else {}
        return cls(
            VERSION,
            tools(),
            done.end,
            done.exit_code,
            done.sentence,
            done.seconds,
            _ran(task),
            task.pipeline.dims,
            files_of(Path(task.model)),
            files_of(Path(done.output)) if done.output else (),
            done.remarks,
            _meanings(report),
            reproducer=done.reproducer,
            **rest,
        )

    @classmethod
    def of_failure(cls, sentence: str, code: int) -> ReportFile:
        """The report of a command that was used such that nothing was run."""
        end = End.USAGE if code == USAGE else End.INVALID
        return cls(VERSION, tools(), end, code, sentence, 0.0, (), {}, (), (), (), {})

    @classmethod
    def of_comparison(
        cls, report: Report, sides: tuple[Path, Path], flags: Sequence[str]
    ) -> ReportFile:
        """The report of two models that were compared."""
        ends = {"verified": End.UNCHANGED, "mismatch": End.MISMATCH}
        checked = report.checked or Checked("not-compared", "nothing was executed")
        end = ends.get(checked.verdict, End.UNVERIFIED)
        rest = {one.name: getattr(report, one.name) for one in fields(Report)}
        before, after = (files_of(side) for side in sides)
        took = checked.seconds
        ran = [Ran("verify", {}, flags)]
        return cls(VERSION, tools(), end, DONE, "", took, ran, {}, before, after, (), {}, **rest)

    @classmethod
    def of_findings(
        cls, model: Path, sentence: str, findings: Sequence[Finding], flags: Sequence[str]
    ) -> ReportFile:
        """The report of a model that was checked for a target."""
        end, code = (End.INCOMPLETE, NOT_PRODUCED) if findings else (End.UNCHANGED, DONE)
        files, ran = files_of(model), [Ran("check", {}, flags)]
        made = cls(VERSION, tools(), end, code, sentence, 0.0, ran, {}, files, (), (), {})
        return replace(made, command="check", file=str(model), findings=findings)

    @classmethod
    def read(cls, values: Mapping[str, Any]) -> ReportFile:
        """The report that JSON holds, as a row of a build does. Raises TypeError."""
        report = read_as(cls, values)
        assert isinstance(report, cls)
        return report

    def to_json(self) -> str:
        """The text of the file."""
        return as_json(asdict(self), indent=2) + "\n"


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


def _meanings(report: Report | None) -> dict[str, str]:
    from passes.cli.explanation import meaning

    refusals = report.refusals if report is not None else []
    pairs = sorted({(record.code, record.rule) for record in refusals})
    return {code: meaning(code, rule) for code, rule in pairs}
