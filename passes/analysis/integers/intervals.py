"""Bounds of numbers that a body computes, floats and conditions included."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
from onnx import NodeProto, TensorProto, helper

from passes.analysis.integers.affine import Affine, single_of
from passes.analysis.integers.integers import Integers
from passes.ir.attributes import attribute
from passes.ir.operators import Registry, op_of
from passes.operators.comparisons import COMPARISONS
from passes.operators.table import traits_of, where

#: The least and the largest value; of a condition, 0 if it may be false and 1 if it may be true.
Interval = tuple[float, float]
_FALSE, _TRUE, _OPEN = (0.0, 0.0), (1.0, 1.0), (0.0, 1.0)
_DEEPEST = 50
_EXACT = float(1 << 53)
_FLOATS = (TensorProto.FLOAT, TensorProto.DOUBLE)
_WHOLE: Mapping[int | None, float] = {
    TensorProto.INT32: float(1 << 31),
    TensorProto.INT64: _EXACT,
}
#: The interval of the output of each operator, from those of its inputs.
_FOLLOWED: Registry[Callable[[NodeProto, list[Interval]], Interval | None]] = Registry()


@dataclass(frozen=True)
class Intervals:
    """Follows single numbers, whatever their shape, back to `start`, which lies in `within`."""

    integers: Integers
    start: Affine
    within: Interval
    _memo: dict[str, Interval | None] = field(default_factory=dict)

    def of(self, name: str, depth: int = 0) -> Interval | None:
        """The interval of a value; None where it is not followed."""
        if name not in self._memo:
            self._memo[name] = None if depth > _DEEPEST else self._computed(name, depth)
        return self._memo[name]

    def _computed(self, name: str, depth: int) -> Interval | None:
        ints = self.integers.inside(name)
        if ints is not None:
            single = single_of(ints)
            return self._of_sum(single) if single is not None else None
        fixed = self.integers.constant_inside(name)
        if fixed is not None:
            plain = fixed.size == 1 and fixed.dtype.kind in "biuf" and np.isfinite(fixed).all()
            return (float(fixed.item()), float(fixed.item())) if plain else None
        node = self.integers.source(name)
        if node is None:
            return None
        follow = _FOLLOWED.get(op_of(node))
        if follow is None:
            return None
        first = 1 if traits_of(node).hands_on else None  # later inputs are axes and shapes
        read = [self.of(operand, depth + 1) for operand in node.input[:first]]
        inputs = [interval for interval in read if interval is not None]
        return follow(node, inputs) if len(inputs) == len(read) else None

    def _of_sum(self, number: Affine) -> Interval | None:
        ahead = (number - self.start).number
        if number.number is not None:
            low = high = float(number.number)
        elif ahead is not None:
            low, high = self.within[0] + ahead, self.within[1] + ahead
        else:
            return None
        return (low, high) if low > -_EXACT and high < _EXACT else None


@_FOLLOWED.enter(*where(lambda row: row.hands_on), "Concat")
def _same(node: NodeProto, inputs: list[Interval]) -> Interval | None:
    return inputs[0] if len(inputs) == 1 else None


@_FOLLOWED.enter("Cast")
def _cast(node: NodeProto, inputs: list[Interval]) -> Interval | None:
    low, high = inputs[0]
    to = attribute(node, "to", TensorProto.UNDEFINED)
    if to in _FLOATS:
        dtype = np.dtype(helper.tensor_dtype_to_np_dtype(to))
        return float(dtype.type(low)), float(dtype.type(high))
    most = _WHOLE.get(to)
    if most is None or not (-most <= low and high < most):
        return None
    return float(int(low)), float(int(high))


@_FOLLOWED.enter("Max", "Or")
def _largest(node: NodeProto, inputs: list[Interval]) -> Interval | None:
    return max(low for low, _ in inputs), max(high for _, high in inputs)


@_FOLLOWED.enter("Min", "And")
def _smallest(node: NodeProto, inputs: list[Interval]) -> Interval | None:
    return min(low for low, _ in inputs), min(high for _, high in inputs)


@_FOLLOWED.enter("Where")
def _where(node: NodeProto, inputs: list[Interval]) -> Interval | None:
    condition, there, otherwise = inputs
    if condition == _TRUE:
        return there
    if condition == _FALSE:
        return otherwise
    return min(there[0], otherwise[0]), max(there[1], otherwise[1])


@_FOLLOWED.enter(*COMPARISONS)
def _compared(node: NodeProto, inputs: list[Interval]) -> Interval | None:
    (low, high), (least, most) = inputs
    possible = {"<": low < most, "=": low <= most and least <= high, ">": high > least}
    holds = {sign in COMPARISONS[op_of(node)] for sign, may_be in possible.items() if may_be}
    return _OPEN if len(holds) != 1 else _TRUE if True in holds else _FALSE


@_FOLLOWED.enter("Not")
def _not(node: NodeProto, inputs: list[Interval]) -> Interval | None:
    low, high = inputs[0]
    return 1 - high, 1 - low
