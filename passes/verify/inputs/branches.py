"""Seeks inputs on which the Ifs of a rewritten model take both branches.

A rewrite that keeps the original beside a faster form of it is shown right only where the faster
form runs, which may need inputs of a certain kind: decays near one, or small keys.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np
from onnx import ModelProto

from passes.verify.executor import Array, CannotRun, Event, ModelFailed
from passes.verify.inputs.arrays import is_float
from passes.verify.inputs.draw import CannotDraw, Case, Drawer

_SECONDS = 2.0  # a run
_SMALL = 2.0**-4
#: How numbers become such that are near one, or that gates make so.
_SHIFT = 4.0


def cases_by_branch(
    model: ModelProto, drawer: Drawer, *, seconds: float, base_dir: Path | None
) -> list[Case]:
    """Cases that reach branches of Ifs which ordinary ones do not, as far as they are found in
    `seconds`; deterministic but for that."""
    from passes.verify.reference import ReferenceExecutor

    executor, ends = ReferenceExecutor(keep=1), time.monotonic() + seconds
    reached, found = set[Event](), list[Case]()
    for case in _candidates(drawer):
        if time.monotonic() > ends:
            break
        try:
            outcome = executor.run(model, case.feeds, base_dir=base_dir, timeout=_SECONDS)
        except (CannotRun, ModelFailed):
            continue
        taken = {event for event in outcome.reached if event[1] in ("true", "false")}
        if taken - reached:
            found.append(case)
        reached |= taken
    return found


def _candidates(drawer: Drawer) -> Iterator[Case]:
    """The longest of the drawn cases, then ones beside it: small numbers, but for one or two inputs
    that are near one, or large."""
    base = _longest(drawer)
    if base is None:
        return
    yield base
    floats = {
        name: value
        for name, value in base.feeds.items()
        if isinstance(value, np.ndarray) and is_float(value.dtype)
    }
    small = {name: _changed(value, _SMALL, 0.0) for name, value in floats.items()}
    ones = {name: _changed(value, -_SMALL, 1.0, sizes_only=True) for name, value in floats.items()}
    large = {name: _changed(value, 1.0, _SHIFT) for name, value in floats.items()}
    yield _with(base, small, "small numbers")
    for count in (1, 2):
        for names in combinations(floats, count):
            for others, what in ((ones, "near one"), (large, "large")):
                feeds = {**small, **{name: others[name] for name in names}}
                yield _with(base, feeds, f"{', '.join(names)} {what}")


def _longest(drawer: Drawer) -> Case | None:
    """The drawn case with the most elements."""
    drawn = []
    for plan in drawer.plans():
        try:
            drawn.append(drawer.case(plan, 0))
        except CannotDraw:
            continue
    ordinary = [case for case in drawn if case.kind in ("ordinary", "edge")] or drawn
    return max(ordinary, key=_size, default=None)


def _size(case: Case) -> int:
    return sum(value.size for value in case.feeds.values() if isinstance(value, np.ndarray))


def _changed(value: Array, factor: float, added: float, *, sizes_only: bool = False) -> Array:
    """Finite numbers, scaled and moved; `sizes_only`: of their sizes alone, at most one."""
    numbers = np.nan_to_num(value.astype(np.float64), nan=0.0, posinf=1.0, neginf=-1.0)
    numbers = np.clip(np.abs(numbers), 0.0, 1.0) if sizes_only else np.clip(numbers, -4.0, 4.0)
    return np.asarray(numbers * factor + added).astype(value.dtype)


def _with(base: Case, feeds: dict[str, Array], what: str) -> Case:
    label = f"branches: {what}"
    return replace(base, feeds={**base.feeds, **feeds}, kind="edge", exact=False, label=label)
