"""What the tests of rules share that move work out of loops: cases, and what is left where."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

HEAD = '<ir_version: 8, opset_import: ["" : 18]>'

#: For tests of (time, axis, back): lengths, axes and directions of what is scanned or collected.
every_length_axis_and_direction = pytest.mark.parametrize(
    ("time", "axis", "back"),
    [
        *(("T", 0, 0), ("T", 0, 1), ("T", 1, 0), ("T", 2, 1), ("T", -1, 0), ("T", -3, 1)),
        *(("1", 1, 1), ("3", 0, 1), ("3", -2, 0)),
    ],
)

#: No iteration, for models of (float[2,3] h0, float[T,2,3] x, int64 at).
NO_TIME = {
    "h0": np.ones((2, 3), np.float32),
    "x": np.ones((0, 2, 3), np.float32),
    "at": np.array(0),
}

#: Lengths of two tensors that are scanned together, and must not be.
UNEQUAL = [(3, 1), (1, 3), (2, 3), (0, 1)]


def feeds_of_lengths(state: str, lengths: tuple[int, int]) -> dict[str, np.ndarray]:
    """For models of (float[3] state, float[T,3] x, float[T,3] z)."""
    x, z = (np.ones((length, 3), np.float32) for length in lengths)
    return {state: np.ones(3, np.float32), "x": x, "z": z}


def ops(model: onnx.ModelProto) -> list[str]:
    """The ops of the main graph."""
    return [node.op_type for node in model.graph.node]


def body(model: onnx.ModelProto) -> onnx.GraphProto:
    """The body of the first loop."""
    loop = next(node for node in model.graph.node if node.op_type in ("Loop", "Scan"))
    return next(attribute.g for attribute in loop.attribute if attribute.name == "body")


def inside(model: onnx.ModelProto) -> list[str]:
    """The ops of the body of the first loop."""
    return [node.op_type for node in body(model).node]
