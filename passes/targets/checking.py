"""`check_target`: the findings of a model at a target, and the pipeline that clears them."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from passes.binding.inputs import Binding
from passes.commands.pipeline import Pipeline
from passes.reports.report import Finding
from passes.session import Source, loaded
from passes.targets.findings import check, verdict
from passes.targets.profile import load
from passes.targets.remedies import Remedy, fixing, plan


@dataclass(frozen=True)
class TargetCheck:
    """The findings of a model at a target: what keeps it from running there.

    `remedies` are the commands that clear findings, in order, and `left` are the findings after
    them; `offered` would clear more, but change roundings or need a promise. `fix` is the pipeline
    that runs the remedies, verified: `result.fix.run(model).save("new.onnx")`.
    """

    target: str
    findings: Sequence[Finding]
    remedies: Sequence[Remedy]
    left: Sequence[Finding]
    offered: Sequence[Remedy]
    fix: Pipeline

    @property
    def fits(self) -> bool:
        """True if the model can run on the target as it is."""
        return not self.findings

    def __str__(self) -> str:
        return verdict(len(self.findings), self.target)


def check_target(
    model: Source,
    target: str | os.PathLike[str],
    *,
    dims: Mapping[str, int | str] | None = None,
    shapes: Mapping[str, Sequence[int | None]] | None = None,
    values: Mapping[str, Any] | None = None,
    max_trips: int | None = None,
) -> TargetCheck:
    """Return what keeps a model from running on a target, and the commands that clear it.

    The target is one by name, or the path of a profile that ends in `.toml`. Nothing is executed.
    The other options are those of the command `check`: facts about the inputs, and the promise
    that no Loop runs more than `max_trips` iterations.

    Raises:
        BadModel: the input is no valid model.
        BadProfile: there is no such target, or its profile has an error.
        CannotBind: an input cannot be bound so.
    """
    profile = load(os.fspath(target))
    read, _ = loaded(model)
    facts = {"dims": dims or {}, "shapes": shapes or {}, "values": values or {}}
    own = {name: tuple(shape) for name, shape in facts["shapes"].items()}
    made = plan(read, profile, Binding(facts["dims"], own, facts["values"]), max_trips)
    return TargetCheck(
        profile.name,
        check(read, profile).findings,
        made.taken,
        made.left.findings,
        made.offered,
        fixing(made, facts),
    )
