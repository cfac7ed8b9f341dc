"""Chooses the tolerance of a case."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from onnx import ModelProto

from passes.verify.compare.exactness import rounds, small_enough
from passes.verify.compare.tolerance import BITS, Tolerance
from passes.verify.compare.trial import AUTHORITY
from passes.verify.executor import Outcome
from passes.verify.inputs.draw import Case

if TYPE_CHECKING:
    from passes.verify.terms import Terms

#: What two runs of the reference executor may differ by without a look at the arithmetic.
NEAR = Tolerance("near")
#: The same for another executor, whose kernels approximate functions to some absolute error.
NEAR_ELSEWHERE = Tolerance("near", units=16.0, floor=1.0)
#: The same for two executors.
NEAR_ACROSS = Tolerance("near", units=256.0, floor=1.0)


@dataclass(frozen=True)
class Strictness:
    """`exact`: floats must be bit-equal. Otherwise they must be equal numbers on exact draws where
    the arithmetic is exact, and near elsewhere; `rounding`: the arithmetic is not exact. `given` is
    the absolute and the relative error that the user allows everywhere."""

    exact: bool
    rounding: bool
    given: tuple[float, float] | None = None

    @staticmethod
    def of(before: ModelProto, after: ModelProto, terms: Terms) -> Strictness:
        """The strictness for a pair of models."""
        rounding = not terms.exact and (rounds(before) or rounds(after))
        return Strictness(terms.exact, rounding, terms.tolerance)

    def may_round(self, case: Case, expected: Outcome) -> bool:
        """Return whether the outcomes of one executor may differ by rounding."""
        rounds = self.given is not None or not case.exact or self.rounding
        rounds = rounds or not small_enough(expected)
        return rounds and not self.exact

    def tolerance(self, executor: str, case: Case, expected: Outcome) -> Tolerance:
        """Return the difference allowed between the outcomes of one executor."""
        if self.exact:
            return BITS
        if not self.may_round(case, expected):
            return Tolerance("values")
        near = NEAR if executor == AUTHORITY else NEAR_ELSEWHERE
        if self.given is None:
            return near
        absolute, relative = self.given
        return replace(near, absolute=absolute, relative=relative)
