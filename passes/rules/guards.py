"""Recognises the guards that rewrites leave behind: see `spelling.must`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from onnx import NodeProto

Producer = Callable[[str], NodeProto | None]
Constant = Callable[[str], npt.NDArray[Any] | None]


@dataclass(frozen=True)
class Guard:
    """`value`, which is only there where `condition` holds."""

    value: str
    condition: str


def guarded(node: NodeProto, producer: Producer, constant: Constant) -> Guard | None:
    """The guard that a Reshape is, None where it is an ordinary one.

    `spelling.must` reshapes a value to its own shape, or to one that is impossible.
    """
    if node.op_type != "Reshape" or len(node.input) < 2:
        return None
    choice = producer(node.input[1])
    if choice is None or choice.op_type != "Where":
        return None
    condition, shape, impossible = choice.input
    own, other = producer(shape), producer(impossible)
    if own is None or own.op_type != "Shape" or own.attribute or own.input[0] != node.input[0]:
        return None
    if other is None or other.op_type != "Add" or other.input[0] != shape:
        return None
    more = constant(other.input[1])
    if more is None or more.size != 1 or np.any(more != 1):
        return None  # one more on every axis is never as many elements
    return Guard(node.input[0], condition)


def conjuncts(condition: str, producer: Producer) -> Iterator[NodeProto]:
    """The nodes whose outputs must all be true where `condition` is."""
    node = producer(condition)
    if node is None:
        return
    if node.op_type == "And":
        for name in node.input:
            yield from conjuncts(name, producer)
    elif node.op_type in ("Identity", "Squeeze"):
        yield from conjuncts(node.input[0], producer)
    else:
        yield node
