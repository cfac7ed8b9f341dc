"""What proof stops of faults that are seeded into rules, and what execution stops.

Use: `python -m tests.instruments.mutants proofs [RULE ...]`.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import onnx
from onnx import ModelProto

from tests.instruments.mutants.drawing import drawn_faults
from tests.instruments.mutants.judge import difference
from tests.instruments.mutants.targets import Target, target
from tests.instruments.mutants.trial import Outcome, apart, run

_SECONDS = 4.0


@dataclass(frozen=True)
class Stopped:
    """An outcome that a fault changed: whether it is wrong, whether execution stopped it, whether
    it is proven, and whether the outcome without the fault is."""

    rule: str
    fault: str
    model: str
    wrong: bool
    executed: bool
    proven: bool
    right_is_proven: bool

    @property
    def name(self) -> str:
        """Who stopped it."""
        if not self.wrong:
            return "right, proven" if self.proven else "right, not proven"
        if self.proven:
            return "FALSE PROOF"
        told = "both" if self.executed else "proof alone"
        return told if self.right_is_proven else f"{told}, but the right one is not proven either"


def main(rules: Sequence[str], count: int, most: int, seed: int) -> int:
    """Print what only proof stops, and the counts; 1 where something wrong is proven."""
    counts: Counter[str] = Counter()
    for name in rules:
        rule = apart(target, name)
        for one in _tried(rule, count, most, random.Random(seed)):
            counts[one.name] += 1
            if one.wrong and (one.proven or not one.executed):
                print(f"{one.name.upper()} {one.rule} {one.model}: {one.fault}")
        print(name, dict(counts), flush=True)
    return int(counts["FALSE PROOF"] > 0)


def _tried(rule: Target, count: int, most: int, draw: random.Random) -> Iterator[Stopped]:
    plain = run(rule, rule.models, None, trace=True)
    right: dict[str, bool] = {}
    for fault, models in drawn_faults(rule, plain, count, most, draw):
        made = run(rule, models, fault, verify=False)
        verified: dict[str, Outcome] = {}
        for path in models:
            was, outcome = plain.outcomes[path.name], made.outcomes[path.name]
            if outcome.stopped or was.stopped or outcome.digest == was.digest:
                continue  # it makes no model, or no other one
            if not verified:
                verified = run(rule, models, fault).outcomes
            stopped = verified[path.name].stopped == "verification"
            before = onnx.load(path)
            if path.name not in right:
                right[path.name] = apart(_is_proven, before, was.made)
            yield Stopped(
                rule.rule,
                str(fault),
                path.name,
                wrong=stopped or bool(apart(difference, before, outcome.made, _assumed(before))),
                executed=stopped,
                proven=apart(_is_proven, before, outcome.made),
                right_is_proven=right[path.name],
            )


def _assumed(before: ModelProto) -> list[str]:
    said = {entry.key: entry.value for entry in before.metadata_props}
    return [name for name in said.get("option assume", "").split(",") if name]


def _is_proven(before: ModelProto, made: bytes) -> bool:
    from passes.ir.model import Model
    from tests.instruments.proven import for_all_sizes as prove

    return prove(Model.load(before), Model.load(made), _SECONDS).is_proven
