"""The JSON report, version 1: what was run, on what, and what became of it."""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

from passes.builds.files import File, files_of
from passes.builds.task import Done, End, Task
from passes.commands.declaring import options_of
from passes.commands.options import Options
from passes.commands.registry import command_of
from passes.errors import USAGE
from passes.report import Checked, Record, Report, Size
from passes.targets.finding import Finding

VERSION = 1
_TOOLS = {
    "passes": "onnx-passes",
    **{name: name for name in ("onnx", "onnxruntime", "numpy", "openvino", "tract")},
}


@dataclass(frozen=True)
class Ran:
    """A command of the pipeline, with all of its options."""

    command: str
    options: Mapping[str, Any]

    @classmethod
    def of(cls, options: Options) -> Ran:
        """The command that these are the options of."""
        said = {
            name: option.told(getattr(options, name))
            for name, option in options_of(type(options)).items()
            if "file" in option.says.shown
        }
        return cls(command_of(options).name, said)


@dataclass(frozen=True)
class ReportFile:
    """The contents of the report file. `tools` are versions; `input` is the model file and the
    files of its weights, `output` those of the outcome, both empty if there are none; `meanings`
    are those of the codes of refusals. The rest is that of `Report`, as far as there is one."""

    schema_version: int
    tools: Mapping[str, str]
    end: End
    exit_code: int
    error: str
    seconds: float
    commands: Sequence[Ran]
    dims: Mapping[str, int]
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
            [Ran.of(options) for options in task.pipeline.commands],
            task.pipeline.dims,
            files_of(Path(task.model)),
            files_of(Path(done.output)) if done.output else (),
            done.remarks,
            _meanings(report),
            **rest,
        )

    @classmethod
    def of_failure(cls, sentence: str, code: int) -> ReportFile:
        """The report of a command that was used such that nothing was run."""
        end = End.USAGE if code == USAGE else End.INVALID
        return cls(VERSION, tools(), end, code, sentence, 0.0, (), {}, (), (), (), {})

    def to_json(self) -> str:
        """The text of the file."""
        return as_json(asdict(self), indent=2) + "\n"


def as_json(value: Any, indent: int | None = None) -> str:
    """The JSON of plain values, tuples, paths and words."""
    return json.dumps(value, indent=indent, ensure_ascii=False, allow_nan=False, default=str)


@cache
def tools() -> Mapping[str, str]:
    """The versions of Python, of this tool, and of what it runs on, as far as it is installed."""
    found = {"python": platform.python_version()}
    for name, distribution in _TOOLS.items():
        try:
            found[name] = metadata.version(distribution)
        except metadata.PackageNotFoundError:
            if name == "passes":
                from passes import __version__

                found[name] = __version__
    return found


def _meanings(report: Report | None) -> dict[str, str]:
    from passes.cli.explanation import meaning

    refusals = report.refusals if report is not None else []
    pairs = sorted({(record.code, record.rule) for record in refusals})
    return {code: meaning(code, rule) for code, rule in pairs}
