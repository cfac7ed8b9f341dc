"""The findings of a model at a target, and the pipeline that clears them, as data and as text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from passes.commands.pipeline import Pipeline
from passes.reports.json_values import document
from passes.reports.report import Finding
from passes.reports.text import described
from passes.reports.words import aligned
from passes.targets.findings import verdict
from passes.targets.remedies import Remedy, RemedyKind

#: What a remedy of each kind demands.
_KINDS = {
    RemedyKind.EXACT: " without changing results",
    RemedyKind.REGROUPS: ", regrouping sums",
    RemedyKind.PRECISION: " in another precision",
    RemedyKind.PROMISE: " with a promise of yours",
}


@dataclass(frozen=True)
class TargetCheck:
    """The findings of a model at a target: what keeps it from running there.

    `remedies` are the commands that clear findings, in order, and `left` are the findings after
    them; `offered` would clear more, but change roundings or need a promise. `fix` is the pipeline
    that runs the remedies, verified: `result.fix.run(model).save("new.onnx")`. `missing` are
    options that may clear more, but whose values only the user knows; `summary` describes the
    target. `planned` is false if there was nothing to clear. `precision` tells of a model in
    float32 that the target computes in it.
    """

    target: str
    findings: Sequence[Finding]
    remedies: Sequence[Remedy]
    left: Sequence[Finding]
    offered: Sequence[Remedy]
    fix: Pipeline
    missing: Sequence[str] = ()
    summary: str = ""
    planned: bool = True
    precision: str = ""

    @property
    def fits(self) -> bool:
        """True if the model can run on the target as it is."""
        return not self.findings

    def __str__(self) -> str:
        return verdict(len(self.findings), self.target)

    def to_text(self, file: str) -> str:
        """The findings in the model of a file, and the remedies."""
        lines = [f"  {line}" for line in described(self.findings)]
        return "\n".join([f"{file}: {self}, {self.summary}", *lines, *self.clearing()])

    def clearing(self) -> list[str]:
        """A line for each remedy."""
        lines = [f"fixes {_told(remedy)}" for remedy in self.remedies]
        lines += [f"would fix {_told(remedy, ' more')}" for remedy in self.offered]
        more = "more" if lines else "some"
        lines += [f"may fix {more}, if you know it: {option}" for option in self.missing]
        return [*lines, *filter(None, [self.precision])]

    def to_json(self, file: str) -> str:
        """All of it but the pipeline."""
        report: dict[str, Any] = {
            "schema_version": 1,
            "file": file,
            "target": self.target,
            "fits": self.fits,
            "precision": self.precision,
            "findings": [asdict(finding) for finding in self.findings],
        }
        if self.planned:
            report["remedies"] = [
                {"command": str(one), "kind": one.kind, "cleared": one.cleared, "taken": taken}
                for taken, remedies in ((True, self.remedies), (False, self.offered))
                for one in remedies
            ]
            report["left"] = [asdict(finding) for finding in self.left]
            report["missing"] = list(self.missing)
        return document(report)


def _told(remedy: Remedy, more: str = "") -> str:
    return f"{sum(remedy.cleared.values())}{more}{_KINDS[remedy.kind]}: {remedy}"


@dataclass(frozen=True)
class Matrix:
    """The findings of the model of a file at every target."""

    file: str
    targets: Mapping[str, Sequence[Finding]]

    def to_text(self) -> str:
        """A line for each target: the findings by kind, with their counts."""
        rows = [[name, _counts(found)] for name, found in self.targets.items()]
        return "\n".join([f"{self.file}:", *aligned(rows)])

    def to_json(self) -> str:
        """The findings by target."""
        return document(self)


def _counts(findings: Sequence[Finding]) -> str:
    counted = Counter(f"{one.op or 'model'} ({one.code})" for one in findings)
    return ", ".join(f"{count} x {name}" for name, count in counted.items()) or "fits"
