"""The one straight line: load, check, apply rules, verify, check, save, report."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from onnx import ModelProto

from passes import scope as scoping
from passes.check import check
from passes.engine import Engine, Round
from passes.errors import PassesError
from passes.model import Model
from passes.pipelines import rules_of
from passes.report import Checked, Record, Report
from passes.verify.verdicts import Failure

Source = ModelProto | str | os.PathLike[str]
Progress = Callable[[str], None]


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


@dataclass(frozen=True)
class Verifying:
    """How to verify. `budget` in seconds; `executor` one of reference, onnxruntime, both;
    `assume` what the rewrites took for granted."""

    executor: str = "both"
    budget: float = 60.0
    seed: int = 0
    inputs: str | os.PathLike[str] | None = None
    allow_unverified: bool = False
    assume: Sequence[str] = ()


@dataclass(frozen=True)
class Result:
    """A model that was rewritten and verified, and what was done to it."""

    model: ModelProto
    report: Report
    base_dir: Path | None = None


@dataclass(frozen=True)
class Session:
    """One command on one model."""

    command: str
    target: int | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    verifying: Verifying | None = field(default_factory=Verifying)
    progress: Progress | None = None

    def run(self, source: Source) -> Result:
        """Take a model through the pipeline of the command; `source` is never changed.

        Raises:
            BadModel: the input is no valid model.
            NotProduced: a rule that the result depends on refused.
            NotVerified: no case of a rewrite could be compared.
            Mismatch: a rewrite disagrees with the original.
        """
        self._say("loading")
        model = Model.load(source)
        check(model)
        self._say("rewriting")
        engine = Engine(rules_of(self.command), self.target, self.options, self.progress)
        rounds = engine.fixpoint(model)
        report = self._report(model, rounds)
        if report.refusals:
            raise NotProduced(_refused(report), report)
        proto = self._finished(model, rounds[-1])
        if proto is not model.proto:
            check(Model(proto, model.path))
            report = self._verified(model, rounds, proto, report)
        return Result(proto, report, model.base_dir)

    def _finished(self, model: Model, last: Round) -> ModelProto:
        """The outcome with the opset that it is written in."""
        if self.target is None or _at_opset(model, self.target):
            return last.proto
        from converters.stamp import stamp

        proto = last.proto
        if proto is model.proto:
            proto = ModelProto()
            proto.CopyFrom(model.proto)
        stamp(proto, self.target)
        last.proto = proto
        return proto

    def _report(self, model: Model, rounds: Sequence[Round]) -> Report:
        records = [Record.rewritten(one, None) for round_ in rounds for one in round_.rewritten]
        records += [Record.refused(one) for round_ in rounds for one in round_.refused]
        before = model.opset()
        after = before if self.target is None else max(before, self.target)
        return Report(self.command, model.file, (before, after), _count(model.proto), records)

    def _verified(
        self, model: Model, rounds: Sequence[Round], proto: ModelProto, report: Report
    ) -> Report:
        if self.verifying is None:
            return report
        from passes.verifying import verify_rounds

        self._say("verifying")
        verdicts = verify_rounds(model, rounds, proto, self.verifying, self._say)
        records = [
            replace(record, checked=checked)
            for record, checked in zip(report.records, verdicts.rewrites, strict=True)
        ]
        report = replace(report, records=records, checked=verdicts.whole)
        if verdicts.mismatch is not None:
            path, sentence, sides, failure = verdicts.mismatch
            raise Mismatch(f"{path}: {sentence}", report, sides, failure)
        if verdicts.unverified and not self.verifying.allow_unverified:
            raise NotVerified(_not_verified(verdicts.unverified), report)
        return report

    def _say(self, what: str) -> None:
        if self.progress is not None:
            self.progress(what)


def _at_opset(model: Model, target: int) -> bool:
    owners = [None, *model.proto.functions]
    return all((model.opset(owner) or target) >= target for owner in owners)


def _count(model: ModelProto) -> int:
    return sum(
        len(graph.node)
        for _, owner in scoping.owners(model)
        for graph in scoping.graphs_below(owner)
    )


def _refused(report: Report) -> str:
    refusals = report.refusals
    first = refusals[0]
    more = f" (and {len(refusals) - 1} more)" if len(refusals) > 1 else ""
    place = ": ".join(part for part in (report.file, first.path) if part)
    return f"{place}: {first.sentence} [{first.code}]{more}"


def _not_verified(unverified: Sequence[tuple[str, Checked]]) -> str:
    path, checked = unverified[0]
    more = f" (and {len(unverified) - 1} more)" if len(unverified) > 1 else ""
    return (
        f"{path}: no case could be compared, {checked.reason}{more} [not-verified]; "
        "--allow-unverified writes the model all the same"
    )
