"""Proofs that a polynomial over whole numbers is not negative: sums of what is known, within a
budget of steps.

Every step subtracts from the goal a multiple of a polynomial that is known not to be negative, so
that a wrong answer is out of reach; whatever is not found within the budget is not proven.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from passes.proving.terms.term import OutOfTime, Sum, Term

_STEPS = 300
#: Of how many atoms a product is made at most, and of how many products a polynomial.
_MOST_FACTORS, _MOST_PRODUCTS = 256, 1 << 14
_DEEPEST = 6


def product(left: Sum, right: Sum) -> dict[tuple[Term, ...], int]:
    """The product of two polynomials. Raises OutOfTime if it has too many parts, or factors."""
    factors = sum(max(map(len, side), default=0) for side in (left, right))
    if factors > _MOST_FACTORS or len(left) * len(right) > _MOST_PRODUCTS:
        raise OutOfTime("a product of whole numbers has too many parts")
    made: dict[tuple[Term, ...], int] = {}
    for one, factor in left.items():
        for other, times in right.items():
            atoms = tuple(sorted(one + other, key=lambda atom: (atom.order, atom.uid)))
            made[atoms] = made.get(atoms, 0) + factor * times
    return made


@dataclass
class Search:
    """One search: `facts` are known not to be negative, `about` tells what an atom is known by,
    `positive` which atoms are not negative."""

    facts: Iterable[Sum]
    about: Callable[[Term], list[Sum]]
    not_negative: Callable[[Term], bool]
    steps: int = _STEPS

    def proves(self, goal: Sum) -> bool:
        """Return whether the goal is shown not to be negative."""
        return self._holds(dict(goal), 1, _DEEPEST, frozenset())

    def _holds(
        self,
        goal: dict[tuple[Term, ...], int],
        scale: int,
        depth: int,
        used: frozenset[tuple[Term, ...]],
    ) -> bool:
        """Return whether `goal`, which is `scale` times the whole number asked for less what is
        known not to be negative, is more than -scale."""
        self.steps -= 1
        bad = [
            mono
            for mono, factor in goal.items()
            if mono and (factor < 0 or not all(map(self.not_negative, mono)))
        ]
        if not bad and goal.get((), 0) > -scale:
            return True
        if not depth or self.steps < 0:
            return False
        bad.sort(key=lambda mono: all(atom.op != "var" for atom in mono))
        targets = bad[:2] or [mono for mono in goal if mono]
        for mono in targets:
            if mono in used and bad:
                continue
            factor = goal[mono]
            for fact in self._known(mono):
                part = fact.get(mono, 0)
                if part * factor <= 0:
                    continue
                times, weight = abs(part), abs(factor)
                rest = {one: times * many for one, many in goal.items()}
                for one, many in fact.items():
                    rest[one] = rest.get(one, 0) - weight * many
                rest = {one: many for one, many in rest.items() if many}
                if self._holds(rest, scale * times, depth - 1, used | {mono}):
                    return True
        return False

    def _known(self, mono: tuple[Term, ...]) -> Iterable[Sum]:
        """The facts about a product: of itself, or of one factor, the others not negative."""
        yield from (fact for fact in self.facts if mono in fact)
        for place, atom in enumerate(mono):
            rest = mono[:place] + mono[place + 1 :]
            if atom in mono[:place] or not all(map(self.not_negative, rest)):
                continue
            yield from (product(fact, {rest: 1}) if rest else fact for fact in self.about(atom))
            if rest:
                yield from (product(f, {rest: 1}) for f in self.facts if (atom,) in f)
