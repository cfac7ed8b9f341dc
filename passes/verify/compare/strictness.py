"""Which tolerance a case calls for."""

from __future__ import annotations

from dataclasses import dataclass

from onnx import ModelProto

from passes.verify.compare.exactness import rounds, small_enough
from passes.verify.compare.tolerance import BITS, Tolerance
from passes.verify.compare.trial import AUTHORITY
from passes.verify.executor import Outcome
from passes.verify.inputs.draw import Case

#: What two runs of the reference executor may differ by without a look at the arithmetic.
NEAR = Tolerance("near")
#: The same for another executor, whose kernels approximate functions to some absolute error.
NEAR_ELSEWHERE = Tolerance("near", units=16.0, floor=1.0)
#: The same for two executors.
NEAR_ACROSS = Tolerance("near", units=256.0, floor=1.0)


@dataclass(frozen=True)
class Strictness:
    """`exact`: floats must be bit-equal. Otherwise they must be equal numbers on exact draws where
    the arithmetic is exact, and near elsewhere; `rounding`: the arithmetic is not exact."""

    exact: bool
    rounding: bool

    @staticmethod
    def of(before: ModelProto, after: ModelProto, *, exact: bool) -> Strictness:
        """The strictness for a pair of models."""
        return Strictness(exact, not exact and (rounds(before) or rounds(after)))

    def may_round(self, case: Case, expected: Outcome) -> bool:
        """Whether the outcomes of one executor need only be near."""
        rounds = not case.exact or self.rounding or not small_enough(expected)
        return rounds and not self.exact

    def tolerance(self, executor: str, case: Case, expected: Outcome) -> Tolerance:
        """What the outcomes of one executor may differ by."""
        if self.exact:
            return BITS
        if not self.may_round(case, expected):
            return Tolerance("values")
        return NEAR if executor == AUTHORITY else NEAR_ELSEWHERE
