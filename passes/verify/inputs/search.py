"""One search for inputs: a case is changed until a run of a model reaches what is wanted.

A goal is data: what counts as reached, and the moves by which a case is changed (`goals.py`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

from onnx import ModelProto

from passes.verify.executor import Array, CannotRun, ModelFailed, Outcome
from passes.verify.inputs.drawer import Case

#: Steps between two numbers of a move; seconds that a run may take.
_HALVINGS, _SECONDS = 8, 2.0
#: What a run did that counts.
Events = frozenset[Any]


@dataclass(frozen=True)
class Move:
    """A change of some inputs by a number: `change` gives the new ones, `numbers` are tried."""

    label: str
    change: Callable[[float], Mapping[str, Array]]
    numbers: Sequence[float] = (0,)

    def of(self, base: Case, number: float) -> Case:
        """The changed case."""
        feeds = {**base.feeds, **self.change(number)}
        return replace(base, feeds=feeds, kind="edge", exact=False, label=self.label)


@dataclass(frozen=True)
class Goal:
    """What is sought.

    `events` tells what a run did; without it every run counts. `wanted` are whole numbers that are
    sought among the events, also between the numbers of a move; without it any new event counts.
    Each of `moves` is applied to all cases before the next one; no more than `most` cases are made.
    """

    moves: Sequence[Callable[[Case], Iterable[Move]]]
    events: Callable[[Outcome], Events] | None = None
    wanted: frozenset[int] = frozenset()
    most: int = 1_000


class Enough(Exception):
    """Ends a search: all that is wanted is reached, or the budget is used up."""


@dataclass
class Search:
    """Looks for a goal. `run` gives the outcome of a case, None where it does not count. A case
    that reaches more than `reached` is given to `take`, which adds to it and may raise Enough."""

    goal: Goal
    run: Callable[[Case], Outcome | None]
    reached: set[Any]
    take: Callable[[Case, Events], None]
    _tried: int = 0

    def look(self, case: Case) -> Events | None:
        """What a case reaches; None where it does not count. Raises Enough."""
        goal = self.goal
        if self._tried >= goal.most or (goal.wanted and goal.wanted <= self.reached):
            raise Enough
        self._tried += 1
        outcome = self.run(case)
        if outcome is None:
            return None
        events = goal.events(outcome) if goal.events else frozenset({case.label})
        counts = events & goal.wanted if goal.wanted else events
        if goal.events is None or counts - self.reached:
            self.take(case, counts)
        return events

    def change(self, bases: Sequence[Case]) -> None:
        """Look at changed cases. Raises Enough."""
        for moves in self.goal.moves:
            for base in bases:
                for move in moves(base):
                    self._turn(base, move)

    def _turn(self, base: Case, move: Move) -> None:
        """Look at the numbers of a move, and between those around a number that is wanted."""

        @cache
        def reach(number: float) -> int | None:
            events = self.look(move.of(base, number))
            return max(events) if events and self.goal.wanted else None

        def between(low: float, high: float, steps: int) -> None:
            ends = [end for end in (reach(low), reach(high)) if end is not None]
            left = self.goal.wanted - self.reached
            if len(ends) > 1 and steps and any(min(ends) < one < max(ends) for one in left):
                middle = (low + high) / 2
                between(low, middle, steps - 1)
                between(middle, high, steps - 1)

        for low, high in pairwise(sorted(one for one in move.numbers if reach(one) is not None)):
            between(low, high, _HALVINGS)


def sought(
    goal: Goal,
    model: ModelProto,
    bases: Sequence[Case],
    *,
    seconds: float,
    base_dir: Path | None,
) -> list[tuple[Case, Events]]:
    """The cases, and what they reach, that are found in `seconds`, beginning with the `bases`;
    deterministic but for that."""
    from passes.verify.reference import ReferenceExecutor

    executor, end = ReferenceExecutor(keep=1), time.monotonic() + seconds
    found: list[tuple[Case, Events]] = []

    def run(case: Case) -> Outcome | None:
        left = end - time.monotonic()
        if left <= 0:
            raise Enough
        limit = min(_SECONDS, left)
        try:
            return executor.run(model, case.feeds, base_dir=base_dir, timeout=limit)
        except (ModelFailed, CannotRun):
            return None

    def take(case: Case, events: Events) -> None:
        found.append((case, events - search.reached))
        search.reached |= events

    search = Search(goal, run, set(), take)
    with suppress(Enough):
        search.change([base for base in bases if search.look(base) is not None] or bases[:1])
    return found
