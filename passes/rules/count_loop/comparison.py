"""A counter that is compared with a bound in every iteration."""

from __future__ import annotations

from dataclasses import dataclass

from passes.analysis.integers.affine import ITERATION, Affine
from passes.operators.comparisons import COMPARISONS


@dataclass(frozen=True)
class Comparison:
    """In iteration k: `first` + k * `step` is compared with `bound`.

    `op` is Less, LessOrEqual, Greater or GreaterOrEqual. `elem_type` is the type of the counter, or
    the narrower of the two types where the bound has another one, `bound_type`. A comparison of
    floats is exact in the first `most` iterations.
    """

    op: str
    first: Affine
    step: int
    bound: Affine
    elem_type: int
    bound_type: int
    most: int | None = None

    @property
    def upwards(self) -> bool:
        """True if it holds below the bound."""
        return "<" in COMPARISONS[self.op]

    @property
    def strict(self) -> bool:
        """True if it does not hold at the bound."""
        return "=" not in COMPARISONS[self.op]

    @property
    def before(self) -> Affine:
        """The value that would be compared one iteration before the first."""
        return self.first - self.step

    @property
    def room(self) -> Affine:
        """The distance from one iteration before the first to the bound."""
        return self.bound - self.before if self.upwards else self.before - self.bound

    @property
    def exact_room(self) -> Affine | None:
        """The room, where it is the number of iterations for which the comparison holds, counting
        the one before the first."""
        plain = self.strict and abs(self.step) == 1 and self.is_exact_from(self.before)
        return self.room if plain else None

    def is_exact_from(self, start: Affine) -> bool:
        """Return whether neither this start nor the bound wraps; then the counter does not while it
        holds."""
        return start.fits(self.elem_type) and self.bound.fits(self.bound_type)

    def holds_through(self, trips: Affine | None) -> bool:
        """Return whether it cannot end a loop with that trip count: it holds in all iterations and
        after."""
        if trips is None or abs(self.step) != 1 or not self.is_exact_from(self.first):
            return False
        return trips.fits() and (self.room + (0 if self.strict else 1) - trips).least >= 0

    def __str__(self) -> str:
        value = self.first + Affine.of(ITERATION).times(self.step)
        return f"{value} {COMPARISONS[self.op]} {self.bound}"
