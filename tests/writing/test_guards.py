"""Guards are recognised where they are what was written, and nowhere else."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

from passes.writing.guards import state_of


def recognised(text: str, axes: np.ndarray | None) -> str | None:
    """The state behind `y`, whose shape is held to that of `old`."""
    graph = onnx.parser.parse_graph(text)
    producers = {node.output[0]: node for node in graph.node}
    constants = {"k": axes}
    return state_of("y", "old", producers.get, constants.get, lambda name: (None, None))


ROW = """g (float[A,B] new, float[C,D] old, int64[1] k) => (y) {
    a = Shape (new) b = Shape (old) same = Equal (a, b) differ = Not (same)
    each = Cast <to = 7> (differ) count = ReduceSum <keepdims = 0> (each)
    rows = Unsqueeze (new, k) y = Gather <axis = 0> (rows, count)
}"""


@pytest.mark.parametrize(
    ("axes", "found"), [(np.array([0]), "new"), (np.array([1]), None), (None, None)]
)
def test_a_state_is_the_only_row_of_a_list(axes: np.ndarray | None, found: str | None) -> None:
    """With other axes, or with those that are computed, the Gather picks a part of it."""
    assert recognised(ROW, axes) == found
