"""Recognises the guards that rewrites write: `must`, `must_count`, `guarded` of `spelling`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from onnx import NodeProto

from passes.ir.operators import op_of
from passes.types.value_types import Dims

Producer = Callable[[str], NodeProto | None]
Constant = Callable[[str], npt.NDArray[Any] | None]
Shapes = Callable[[str], Dims | None]


@dataclass(frozen=True)
class Guard:
    """`value`, which is only there where `condition` holds."""

    value: str
    condition: str


def guarded(node: NodeProto, producer: Producer, constant: Constant, dims: Shapes) -> Guard | None:
    """The guard that a node is, None where it is an ordinary one."""
    if op_of(node) == "Reshape" and len(node.input) == 2:
        return _impossible_shape(node, producer, constant, dims)
    if op_of(node) == "Gather":
        return _impossible_index(node, producer, constant)
    return None


def _impossible_shape(
    node: NodeProto, producer: Producer, constant: Constant, dims: Shapes
) -> Guard | None:
    """A value reshaped to its own shape, or to one that has one more on every axis: it has one."""
    made = producer(node.input[0])
    if not dims(node.input[0]) and (made is None or op_of(made) != "Unsqueeze"):
        return None
    choice = producer(node.input[1])
    if choice is None or op_of(choice) != "Where":
        return None
    condition, shape, impossible = choice.input
    own, other = producer(shape), producer(impossible)
    if own is None or op_of(own) != "Shape" or own.attribute or own.input[0] != node.input[0]:
        return None
    if other is None or op_of(other) != "Add" or other.input[0] != shape:
        return None
    return Guard(node.input[0], condition) if _is(constant(other.input[1]), 1) else None


def _impossible_index(node: NodeProto, producer: Producer, constant: Constant) -> Guard | None:
    """A value read as the only row of a list, at 0 or behind it."""
    rows, choice = producer(node.input[0]), producer(node.input[1])
    if rows is None or op_of(rows) != "Unsqueeze" or choice is None or op_of(choice) != "Where":
        return None
    if any(one.name == "axis" and one.i for one in node.attribute):
        return None
    axes = constant(rows.input[1]) if len(rows.input) > 1 else _attribute(rows, "axes")
    condition, there, beyond = choice.input
    fits = _is(axes, 0) and _is(constant(there), 0) and _is(constant(beyond), 1)
    return Guard(rows.input[0], condition) if fits else None


def _attribute(node: NodeProto, name: str) -> npt.NDArray[Any] | None:
    return next((np.array(one.ints) for one in node.attribute if one.name == name), None)


def _is(value: npt.NDArray[Any] | None, number: int) -> bool:
    return value is not None and value.size == 1 and bool(value.item() == number)


def conjuncts(condition: str, producer: Producer) -> Iterator[NodeProto]:
    """The nodes whose outputs must all be true where `condition` is."""
    node = producer(condition)
    if node is None:
        return
    if op_of(node) == "And":
        for name in node.input:
            yield from conjuncts(name, producer)
    elif op_of(node) in ("Identity", "Squeeze"):
        yield from conjuncts(node.input[0], producer)
    else:
        yield node
