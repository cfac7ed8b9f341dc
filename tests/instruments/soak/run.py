"""The loop of the soak: seed after seed, until the models or the time are used up."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.instruments.forked import Death, Limits, forked
from tests.instruments.generate.choices import Choices
from tests.instruments.generate.feeds import draw
from tests.instruments.generate.model import Generated, generate
from tests.instruments.soak.casts import CastExaminer, casts, dealt_cast
from tests.instruments.soak.commands import Command, commands, dealt
from tests.instruments.soak.examine import Examiner
from tests.instruments.soak.shown import write
from tests.instruments.tally import Tally

#: Models that one child does, before another is forked.
_EACH = 200
_LIMITS = Limits(seconds=300)


@dataclass(frozen=True)
class Plan:
    """What is done with the model of each seed.

    `dealing` commands are drawn for it, all are run where that is 0, of the pipelines `only`, if
    any are named. `small`: with few nodes. `odd`: the kinds of things it is to have, or None.
    One of `verified` models is verified by the tool itself, too. `cast`: only element types are
    cast.
    """

    small: bool = False
    dealing: int = 0
    only: Sequence[str] = ()
    odd: Sequence[str] | None = None
    verified: int = 16
    cast: bool = False

    def generated(self, seed: int) -> Generated:
        return generate(Choices.of_seed(seed, small=self.small), self.odd)

    def every(self, generated: Generated) -> list[Command]:
        """The commands of which some are dealt."""
        if self.cast:
            return casts()
        return commands(generated.model, draw(generated, 0))

    def commands(self, generated: Generated, seed: int) -> list[Command]:
        if self.cast and not self.dealing:
            return dealt_cast(seed)
        every = self.every(generated)
        wanted = [one for one in every if not self.only or one.pipeline in self.only]
        return dealt(wanted, seed, self.dealing)

    def examiner(self) -> Examiner | CastExaminer:
        """What looks at the outcomes."""
        return CastExaminer() if self.cast else Examiner()


@dataclass
class Soak:
    """What was found, and the first of each kind of fault: its seed and command."""

    tally: Tally = field(default_factory=Tally)
    first: dict[str, tuple[int, str]] = field(default_factory=dict)
    written: list[Path] = field(default_factory=list)

    def lines(self) -> Iterator[str]:
        yield from self.tally.lines()
        yield from (f"  {path}" for path in self.written)


def soak(
    first: int, count: int, seconds: float, plan: Plan | None = None, folder: Path | None = None
) -> Soak:
    """Examine the models of some seeds, for at most so many seconds, in children.

    The first of each kind of fault is made small and written into `folder`.
    """
    plan, found = plan or Plan(), Soak()
    deadline = time.monotonic() + seconds
    examiner = plan.examiner()  # a child starts its onnxruntime, which ends with it

    def seeds() -> Iterator[int]:
        for seed in range(first, first + count):
            if time.monotonic() < deadline:
                yield seed

    def examine(seed: int) -> dict[str, Any]:
        generated = plan.generated(seed)
        chosen = plan.commands(generated, seed)
        outcome = examiner.examine(generated, chosen, verify=seed % plan.verified == 0)
        findings = {one.key: (one.command.label, one.known) for one in outcome.findings}
        return {"counts": outcome.tally.counts, "findings": findings}

    for seed, said in forked(seeds(), examine, _LIMITS, each=_EACH):
        _add(found, seed, said)
    done = found.tally.number("models")
    kind = f"{'small ' if plan.small else ''}models, {plan.dealing or 'all'} commands each"
    found.tally.runs = [f"{kind}: seeds from {first}, {done} of them"]
    if folder is not None:
        found.written = list(_written(found, plan, examiner, folder))
    return found


def _add(found: Soak, seed: int, said: dict[str, Any] | Death) -> None:
    if isinstance(said, Death):
        said = {
            "counts": {"models": {f"that end in {said.how}": 1}},
            "findings": {said.how: ("", False)},
        }
    for title, counts in said["counts"].items():
        for what, number in counts.items():
            found.tally.count(title, what, number)
    for kind, (label, known) in said["findings"].items():
        kinds = found.tally.known if known else found.tally.faults
        kinds.setdefault(kind, []).append(seed)
        found.first.setdefault(kind, (seed, label))


def _written(
    found: Soak, plan: Plan, examiner: Examiner | CastExaminer, folder: Path
) -> Iterator[Path]:
    """The first of each kind that is not known, made small in a child."""

    def shown(kind: str) -> str:
        seed, label = found.first[kind]
        generated = plan.generated(seed)
        (command,) = (one for one in plan.every(generated) if one.label == label)
        return str(write(folder, seed, kind, command, generated, examiner))

    kinds = [kind for kind in found.tally.faults if found.first[kind][1]]
    for _, path in forked(kinds, shown, _LIMITS):
        if not isinstance(path, Death):
            yield Path(path)
