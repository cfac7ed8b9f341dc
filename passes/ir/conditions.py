"""What a condition is made of, and which constants are true."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy.typing as npt
from onnx import NodeProto, TensorProto

from passes.ir.operators import op_of

_SAME_TRUTH = ("Identity", "Squeeze", "Unsqueeze", "Reshape")


def conjuncts(
    name: str, producer: Callable[[str], NodeProto | None]
) -> Iterator[tuple[NodeProto | None, str]]:
    """What must hold for a condition to hold: the node behind each part, and its name.

    Nothing, where it is omitted.
    """
    if not name:
        return
    node = producer(name)
    while node is not None and _keeps_truth(node):
        name = node.input[0]
        node = producer(name)
    if node is not None and op_of(node) == "And":
        for one in node.input:
            yield from conjuncts(one, producer)
    else:
        yield node, name


def is_true(value: npt.NDArray[Any] | None) -> bool:
    """Whether a fixed value is a condition that holds."""
    if value is None or value.size != 1 or value.dtype.kind not in "biuf":
        return False  # a string that is cast may say 0
    return bool(value.item())


def _keeps_truth(node: NodeProto) -> bool:
    to = next((one for one in node.attribute if one.name == "to"), None)
    to_bool = op_of(node) == "Cast" and to is not None and to.i == TensorProto.BOOL
    return to_bool or op_of(node) in _SAME_TRUTH
