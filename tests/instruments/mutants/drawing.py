"""Draws faults at lines that run, and models for which each of them does."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

from tests.instruments.mutants.faults import Fault, faults
from tests.instruments.mutants.targets import Target
from tests.instruments.mutants.trial import Run


def drawn_faults(
    rule: Target, plain: Run, count: int, most: int, draw: random.Random
) -> Iterator[tuple[Fault, list[Path]]]:
    """Faults of a rule, each with at most so many models for which its line runs; `plain` tells
    which lines do."""
    reached = {
        module: set[int]().union(*(lines.get(str(file), ()) for lines in plain.lines.values()))
        for module, file in zip(rule.modules, rule.files, strict=True)
    }
    files = dict(zip(rule.modules, map(str, rule.files), strict=True))
    for fault in _drawn(rule, reached, count, draw):
        models = [
            path
            for path in rule.models
            if fault.line in plain.lines[path.name].get(files[fault.module], ())
        ]
        if len(models) > most:
            models = draw.sample(models, most)
        yield fault, models


def _drawn(
    rule: Target, reached: dict[str, set[int]], count: int, draw: random.Random
) -> list[Fault]:
    """As many faults in the rule's own module as in all the others together, if there are any."""
    found: list[Fault] = []
    for module, file in zip(rule.modules, rule.files, strict=True):
        found += faults(module, file.read_text(), reached[module])
    own = [one for one in found if one.module == rule.modules[0]]
    others = [one for one in found if one.module != rule.modules[0]]
    half = min(count // 2 if others else count, len(own))
    return draw.sample(own, half) + draw.sample(others, min(count - half, len(others)))
