"""A counter that is compared with a bound in every iteration."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from onnx import TensorProto

from passes.rules.affine import ITERATION, Affine


@dataclass(frozen=True)
class Comparison:
    """In iteration k: `first` + k * `step` is compared with `bound`.

    `op` is Less, LessOrEqual, Greater or GreaterOrEqual, `elem_type` the type of the numbers.
    Where they are compared as floats, these tell them apart in the first `most` iterations.
    """

    op: str
    first: Affine
    step: int
    bound: Affine
    elem_type: int
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

    def lasts(self, trips: Affine | None) -> bool:
        """Whether it ends no loop that has that trip count: as often as it holds, and once more."""
        if trips is None or abs(self.step) != 1:
            return False
        return (self.room + (0 if self.strict else 1) - trips).never_negative

    def __str__(self) -> str:
        value = self.first + Affine.of(ITERATION).times(self.step)
        sign = ("<" if self.upwards else ">") + ("" if self.strict else "=")
        return f"{value} {sign} {self.bound}"


def limits(elem_type: int) -> tuple[int, int]:
    """The least and the largest number of an integer type."""
    info = np.iinfo(np.int32 if elem_type == TensorProto.INT32 else np.int64)
    return int(info.min), int(info.max)
