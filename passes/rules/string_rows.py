"""Recognises how a row of strings is read, by a mask: `row` of `spelling` on strings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy.typing as npt
from onnx import NodeProto, numpy_helper

from passes.operators import op_of
from passes.rules.guards import Producer
from passes.rules.integer_ops import attribute

Constant = Callable[[str], npt.NDArray[Any] | None]


@dataclass(frozen=True)
class StringRow:
    """The rows of `tensor` along `axis` whose number is `index`: one, or none where it has none.

    `helpers` are outputs of the nodes that only count the rows and move them to the front.
    """

    tensor: str
    axis: int
    index: str
    helpers: tuple[str, ...]


def string_row(node: NodeProto, producer: Producer, constant: Constant) -> StringRow | None:
    """What a Compress reads whose mask is the number of each row, compared with an index."""
    mask = producer(node.input[1])
    if attribute(node, "axis", None) != 0 or mask is None or op_of(mask) != "Equal":
        return None
    rows = node.input[0]
    numbers, index = mask.input
    counting = _numbers_of(numbers, rows, producer, constant)
    if counting is None:
        return None
    helpers = (mask.output[0], *counting)
    moved = producer(rows)
    if moved is None or op_of(moved) != "Transpose":
        return StringRow(rows, 0, index, helpers)
    perm = next((list(one.ints) for one in moved.attribute if one.name == "perm"), [])
    if not perm or perm[1:] != sorted(perm[1:]):
        return None
    return StringRow(moved.input[0], perm[0], index, (*helpers, rows))


def _numbers_of(
    name: str, rows: str, producer: Producer, constant: Constant
) -> tuple[str, ...] | None:
    """The names on the way from a tensor to the numbers of its rows, None where it is another."""
    found = []
    for op in ("Squeeze", "NonZero", "ConstantOfShape", "Gather", "Shape"):
        node = producer(name)
        if node is None or op_of(node) != op or not _plain(node, constant):
            return None
        found.append(name)
        name = node.input[0]
    return tuple(found) if name == rows else None


def _plain(node: NodeProto, constant: Constant) -> bool:
    """Whether a node on that way does what it must: axis 0, and a filling that is no zero."""
    if op_of(node) == "Gather":
        position = constant(node.input[1])
        return position is not None and position.tolist() == [0] and not attribute(node, "axis", 0)
    if op_of(node) == "ConstantOfShape":
        return any(numpy_helper.to_array(one.t).all() for one in node.attribute)
    return op_of(node) != "Shape" or not node.attribute
