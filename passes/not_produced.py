"""Why a command writes nothing: a rule refused, or the rewrite was not shown to be right."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from onnx import ModelProto

from passes.errors import MISMATCH, NOT_PRODUCED, PassesError
from passes.reports.report import Report
from passes.verify.compare.verdicts import Failure


class NotProduced(PassesError):
    """Rules refused what the requested result needs; nothing is written. Has the report."""

    exit_code = NOT_PRODUCED

    def __init__(self, sentence: str, report: Report) -> None:
        super().__init__(sentence)
        self.report = report


class NotVerified(NotProduced):
    """A rewrite could not be compared in any case (`not-verified`); nothing is written."""


@dataclass(frozen=True)
class Disagreement:
    """Two sides that differ: the path of what was rewritten, by which rules, and the case that
    shows it, if it is no difference of signatures. `exact`: floats were to be equal bit for bit.
    `by_command`: the sides have other inputs, so that only the same command compares them."""

    path: str
    sentence: str
    sides: tuple[ModelProto, ModelProto]
    failure: Failure | None
    rules: Sequence[str]
    exact: bool
    by_command: bool = False


class Mismatch(NotProduced):
    """A rewrite does not agree with the original; nothing is written but a reproducer."""

    exit_code = MISMATCH

    def __init__(self, found: Disagreement, report: Report) -> None:
        where = ": ".join(filter(None, (report.file, found.path)))
        super().__init__(f"{where}: does not agree with the original: {found.sentence}", report)
        self.found = found
        self.sides = found.sides
        self.failure = found.failure
