"""The cases of a verification in their order: given, observed, drawn, and overridden defaults."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from onnx import ModelProto, TensorProto, numpy_helper

from passes.types import signature
from passes.verify.executor import Array, Feeds, Value
from passes.verify.inputs.arrays import DYADIC, is_float
from passes.verify.inputs.drawer import Case, Drawer
from passes.verify.inputs.plans import Plan

#: Overridable defaults that are overridden, one by one.
_OVERRIDES = 8
#: Drawn cases before the first override.
_FIRST = 3


@dataclass(frozen=True)
class Item:
    """A case to come. `make` gives it by the number of the attempt, if it can be drawn `again`;
    it may raise CannotDraw."""

    label: str
    make: Callable[[int], Case]
    again: bool = False


def agenda(
    before: ModelProto, drawer: Drawer, given: Sequence[Feeds], sought: Sequence[Case] = ()
) -> list[Item]:
    """The cases for a model, the most telling first."""
    items = [
        _fixed(Case(feeds, "given", False, f"given inputs {n}")) for n, feeds in enumerate(given)
    ]
    items += map(_fixed, sought)
    items += [_observed(drawer, index) for index in range(drawer.observed())]
    # Without inputs every plan draws the same nothing.
    plans = drawer.plans() if drawer.inputs else drawer.plans()[:1]
    items += [_drawn(drawer, plan) for plan in plans[:_FIRST]]
    items += list(_overrides(before, drawer))
    return items + [_drawn(drawer, plan) for plan in plans[_FIRST:]]


def _fixed(case: Case) -> Item:
    return Item(case.label, lambda attempt: case)


def _observed(drawer: Drawer, index: int) -> Item:
    return Item(f"observed values {index}", lambda attempt: drawer.natural(index))


def _drawn(drawer: Drawer, plan: Plan) -> Item:
    return Item(
        plan.label,
        lambda attempt: drawer.case(plan, attempt),
        plan.kind != "invalid" and not plan.apart,
    )


def _overrides(before: ModelProto, drawer: Drawer) -> Iterator[Item]:
    """One case for each default that a caller may override: who folds one, answers wrongly."""
    constants = {tensor.name: tensor for tensor in before.graph.initializer}
    for value in signature.defaults(before)[:_OVERRIDES]:
        tensor = constants.get(value.name)
        if tensor is not None and tensor.data_location != TensorProto.EXTERNAL:
            yield _override(drawer, value.name, tensor)


def _override(drawer: Drawer, name: str, tensor: TensorProto) -> Item:
    plan = Plan("override", f"{name} overridden")

    def make(attempt: int) -> Case:
        case = drawer.case(plan, attempt)
        feeds: Mapping[str, Value] = {**case.feeds, name: _other(numpy_helper.to_array(tensor))}
        return replace(case, feeds=feeds)

    return Item(plan.label, make, again=True)


def _other(default: Array) -> Array:
    """Values beside a default: other floats, whole numbers one more, bools negated."""
    if default.dtype.kind == "b":
        return np.logical_not(default)
    if default.dtype.kind in "OUS":
        return np.full(default.shape, "overridden", object)
    if is_float(default.dtype) or default.dtype.kind == "c":
        return np.resize(np.array(DYADIC), default.shape).astype(default.dtype)
    return np.asarray(default + default.dtype.type(1)).astype(default.dtype)
