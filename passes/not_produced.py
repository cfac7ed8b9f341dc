"""Why a command writes nothing: a rule refused, or the rewrite was not shown to be right."""

from __future__ import annotations

from onnx import ModelProto

from passes.errors import PassesError
from passes.report import Report
from passes.verify.verdicts import Failure


class NotProduced(PassesError):
    """Rules refused what the requested result needs; nothing is written. Has the report."""

    def __init__(self, sentence: str, report: Report) -> None:
        super().__init__(sentence)
        self.report = report


class NotVerified(NotProduced):
    """A rewrite could not be compared in any case (`not-verified`); nothing is written."""


class Mismatch(NotProduced):
    """A rewrite does not agree with the original; nothing is written but a reproducer."""

    def __init__(
        self,
        sentence: str,
        report: Report,
        sides: tuple[ModelProto, ModelProto],
        failure: Failure | None,
    ) -> None:
        super().__init__(sentence, report)
        self.sides = sides
        self.failure = failure
