"""A counter that is compared with a bound in every iteration."""

from __future__ import annotations

from dataclasses import dataclass

from passes.analysis.integers.affine import ITERATION, Affine


@dataclass(frozen=True)
class Comparison:
    """In iteration k: `first` + k * `step` is compared with `bound`.

    `op` is Less, LessOrEqual, Greater or GreaterOrEqual, `elem_type` the type of the counter, or
    the narrower one where the bound is of another, `bound_type`.
    Where they are compared as floats, these tell them apart in the first `most` iterations.
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
        """Whether it holds below the bound."""
        return self.op.startswith("Less")

    @property
    def strict(self) -> bool:
        """Whether it does not hold at the bound."""
        return not self.op.endswith("Equal")

    @property
    def before(self) -> Affine:
        """What would be compared one iteration before the first."""
        return self.first - self.step

    @property
    def room(self) -> Affine:
        """How far it is from one iteration before the first to the bound."""
        return self.bound - self.before if self.upwards else self.before - self.bound

    @property
    def exact_room(self) -> Affine | None:
        """The room, where it is how often it holds from one iteration before the first on."""
        plain = self.strict and abs(self.step) == 1 and self.is_exact_from(self.before)
        return self.room if plain else None

    def is_exact_from(self, start: Affine) -> bool:
        """Whether neither this start nor the bound wraps; so none does as long as it holds."""
        return start.fits(self.elem_type) and self.bound.fits(self.bound_type)

    def lasts(self, trips: Affine | None) -> bool:
        """Whether it ends no loop that has that trip count: as often as it holds, and once more."""
        if trips is None or abs(self.step) != 1 or not self.is_exact_from(self.first):
            return False
        return trips.fits() and (self.room + (0 if self.strict else 1) - trips).least >= 0

    def __str__(self) -> str:
        value = self.first + Affine.of(ITERATION).times(self.step)
        sign = ("<" if self.upwards else ">") + ("" if self.strict else "=")
        return f"{value} {sign} {self.bound}"
