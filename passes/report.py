"""What was done, as data, as text and as JSON."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from passes.operators import op_of
from passes.places import path_of
from passes.purposes import Extra
from passes.rounds import Refusal, Rewritten
from passes.rule import Edit
from passes.verify.verdicts import Verification

Outcome = Literal["rewritten", "refused"]


@dataclass(frozen=True)
class Checked:
    """The verdict on one rewrite or on a whole model, in short."""

    verdict: str
    reason: str
    compared: Mapping[str, int] = field(default_factory=dict)
    crossed: Mapping[str, int] = field(default_factory=dict)
    max_absolute_error: float = 0.0
    max_relative_error: float = 0.0
    max_ulp_error: float = 0.0
    not_run: Sequence[str] = ()
    notes: Sequence[str] = ()

    @classmethod
    def of(cls, verification: Verification) -> Checked:
        """The short form of a verification."""
        tallies = verification.tallies.items()
        return cls(
            verification.verdict,
            verification.reason,
            {name: tally.compared for name, tally in tallies},
            {name: tally.crossed for name, tally in tallies if tally.crossed},
            _as_json(verification.errors.absolute),
            _as_json(verification.errors.relative),
            _as_json(verification.errors.ulp),
            verification.cut,
            verification.notes,
        )

    def __str__(self) -> str:
        cases = [f"{count} cases in {name}" for name, count in self.compared.items() if count]
        cases += [
            f"{count} in {name} against the reference" for name, count in self.crossed.items()
        ]
        if self.verdict != "verified":
            return f"{self.verdict} ({self.reason})"
        if not cases:
            return f"verified: {self.reason}"
        exact = "" if self.max_absolute_error else ", bit-equal"
        return f"verified: {', '.join(cases)}{exact}"


@dataclass(frozen=True)
class Record:
    """One site that a rule considered."""

    rule: str
    path: str
    op: str
    outcome: Outcome
    note: str = ""
    code: str = ""
    sentence: str = ""
    culprits: Sequence[str] = ()
    optional: bool = False
    checked: Checked | None = None
    extras: Sequence[Extra] = ()

    @classmethod
    def rewritten(cls, one: Rewritten, checked: Checked | None) -> Record:
        """The record of a rewrite."""
        node, written = one.node, one.written
        return cls(
            one.rule.name,
            path_of(one.scope, node, one.index),
            op_of(node),
            "rewritten",
            written.note,
            checked=checked,
            extras=written.extras if isinstance(written, Edit) else (),
        )

    @classmethod
    def refused(cls, one: Refusal) -> Record:
        """The record of a refusal."""
        reason, place = one.reason, one.place
        return cls(
            rule=one.rule.name,
            path=place.path,
            op=op_of(place.node),
            outcome="refused",
            code=reason.code,
            sentence=reason.sentence,
            culprits=reason.culprits,
            optional=one.rule.optional,
        )


@dataclass(frozen=True)
class Report:
    """What a command did to a model.

    `opsets` are the versions before and after. `nodes` counts all nodes of the model as it was
    read; those without a record were left as they are. `checked` is the verdict on the whole
    model, None where verification was off. `failure`: why there is no outcome, where no record
    says so; `warnings`: what to know of the outcome; `notes`: what to know of the model as it was
    read.
    """

    command: str
    file: str
    opsets: tuple[int, int]
    nodes: int
    records: Sequence[Record] = ()
    checked: Checked | None = None
    failure: str = ""
    warnings: Sequence[str] = ()
    notes: Sequence[str] = ()

    @property
    def refusals(self) -> list[Record]:
        """The records of what was refused."""
        return [record for record in self.records if record.outcome == "refused"]

    @property
    def unchanged(self) -> bool:
        """Whether the model was left as it is."""
        return self.opsets[0] == self.opsets[1] and not self.records and not self.failure

    def to_json(self) -> str:
        """The report as JSON; the same model and options give the same text."""
        return json.dumps(asdict(self), indent=2, ensure_ascii=False, default=_plain) + "\n"

    def to_text(self) -> str:
        """The report for people: a line a rewrite, steps of the same kind counted."""
        lines = [self._headline(), *(f"  note: {note}" for note in self.notes)]
        lines += _loop_lines(self.records)
        lines += _step_lines(self.records)
        for record in self.refusals:
            lines.append(f"  refused {record.path} ({record.op}): {record.sentence}")
            lines.append(f"          rule {record.rule}, code {record.code}")
        if self.checked is not None:
            lines.append(f"  whole model {self.checked}")
            lines += [f"          note: {note}" for note in self.checked.notes]
            if self.checked.not_run:
                lines.append(f"          out of time for: {', '.join(self.checked.not_run)}")
        return "\n".join(lines)

    def _headline(self) -> str:
        before, after = self.opsets
        name = self.file or "model"
        if self.unchanged and self.checked is None:
            because = f", it is at opset {before}" if self.command == "upgrade" else ""
            return f"{name}: nothing to do{because}"
        if self.command == "verify":
            return f"{name}: opset {before}, against opset {after}"
        versions = f"{before}" if before == after else f"{before} -> {after}"
        return f"{name}: opset {versions}, {self.nodes} nodes"


def _loop_lines(records: Sequence[Record]) -> list[str]:
    return [
        f"  {record.rule}: {record.path} ({record.op}), {record.note}"
        + (f"\n          {record.checked}" if record.checked else "")
        + "".join(f"\n          {extra}" for extra in record.extras)
        for record in records
        if record.outcome == "rewritten" and record.rule != "opset"
    ]


def _step_lines(records: Sequence[Record]) -> list[str]:
    counted = Counter(
        record.note
        for record in records
        if record.outcome == "rewritten" and record.rule == "opset"
    )
    return [f"  opset: {count} x {note}" for note, count in sorted(counted.items())]


def _as_json(error: float) -> float:
    """Of doubles, the difference may be infinite, which JSON cannot say."""
    return min(float(error), sys.float_info.max)


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple | set | frozenset) else str(value)
