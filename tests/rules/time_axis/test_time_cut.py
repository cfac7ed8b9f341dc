"""The cheapest cut, against every cut there is."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from itertools import combinations

import pytest

from passes.rules.time_axis.time_cut import BEHIND, FRONT, Crossing, Part, behind, in_front

NODES = range(6)


def drawn(seed: int, *, outside: Part) -> tuple[dict[int, int], list[Crossing]]:
    """Gains of the nodes and values between them; some come from, or go to, what cannot move."""
    rng = random.Random(seed)
    gains = {node: rng.randint(-6, 10) for node in NODES}
    crossings = []
    for node in NODES:
        later: list[Part] = [other for other in NODES if other > node and rng.random() < 0.4]
        if outside == BEHIND and rng.random() < 0.3:
            later.append(BEHIND)
        crossings.append(Crossing(node, tuple(later), rng.randint(0, 8)))
    if outside == FRONT:
        readers = tuple(node for node in NODES if rng.random() < 0.3)
        crossings.append(Crossing(FRONT, readers, rng.randint(0, 8)))
    return gains, crossings


def cost(front: Iterable[Part], crossings: Sequence[Crossing]) -> int:
    """What is handed over, where the rest is behind."""
    before = {FRONT, *front}
    return sum(
        crossing.cost
        for crossing in crossings
        if crossing.producer in before and not before.issuperset(crossing.readers)
    )


def closed(front: set[int], crossings: Sequence[Crossing]) -> bool:
    """Whether nothing in front reads what is behind."""
    return all(
        crossing.producer in front or front.isdisjoint(crossing.readers)
        for crossing in crossings
        if crossing.producer != FRONT
    )


def subsets() -> Iterable[set[int]]:
    return (set(chosen) for count in range(7) for chosen in combinations(NODES, count))


@pytest.mark.parametrize("seed", range(30))
def test_in_front_is_the_smallest_of_the_best(seed: int) -> None:
    gains, crossings = drawn(seed, outside=BEHIND)

    def worth(front: set[int]) -> int:
        return sum(gains[node] for node in front) - cost(front, crossings)

    fitting = [subset for subset in subsets() if closed(subset, crossings)]
    best = max(map(worth, fitting))
    found = in_front(gains, crossings)
    assert found == min((one for one in fitting if worth(one) == best), key=len)


@pytest.mark.parametrize("seed", range(30))
def test_behind_is_the_smallest_of_the_best(seed: int) -> None:
    gains, crossings = drawn(seed, outside=FRONT)
    together = [(4, 1), (5, 3)] if seed % 2 else []

    def worth(moved: set[int]) -> int:
        front = set(NODES) - moved
        return sum(gains[node] for node in moved) - cost(front, crossings)

    fitting = [
        subset
        for subset in subsets()
        if closed(set(NODES) - subset, crossings)
        and all((reader in subset) == (producer in subset) for reader, producer in together)
    ]
    best = max(map(worth, fitting))
    found = behind(gains, crossings, together)
    assert found == min((one for one in fitting if worth(one) == best), key=len)
