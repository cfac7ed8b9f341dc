"""The parts of a condition, and which constants are true."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy.typing as npt
from onnx import NodeProto, TensorProto

from passes.ir.attributes import attribute
from passes.ir.operators import op_of
from passes.operators.table import traits_of


def conjuncts(
    name: str, producer: Callable[[str], NodeProto | None]
) -> Iterator[tuple[NodeProto | None, str]]:
    """The parts that must hold for a condition to hold: the producer of each, and its name.

    Nothing for an omitted condition.
    """
    if not name:
        return
    node, name = plain(name, producer)
    if node is not None and op_of(node) == "And":
        for part in node.input:
            yield from conjuncts(part, producer)
    else:
        yield node, name


def plain(name: str, producer: Callable[[str], NodeProto | None]) -> tuple[NodeProto | None, str]:
    """Return the producer and the name of a condition before casts and copies."""
    node = producer(name)
    while node is not None and _keeps_truth(node):
        name = node.input[0]
        node = producer(name)
    return node, name


def is_true(value: npt.NDArray[Any] | None) -> bool:
    """Return whether a constant is a condition that holds."""
    if value is None or value.size != 1 or value.dtype.kind not in "biuf":
        return False  # a string that is cast may say 0
    return bool(value.item())


def _keeps_truth(node: NodeProto) -> bool:
    to_bool = op_of(node) == "Cast" and attribute(node, "to", 0) == TensorProto.BOOL
    return to_bool or traits_of(node).hands_on
