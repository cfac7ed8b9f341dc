"""What a function writes is recognised, as each opset spells it, and nothing else."""

from __future__ import annotations

import onnx
import pytest
from onnx import numpy_helper

from passes.writing.guards import must_count, operands_of
from tests.written import changed

GUARD = """g (int64 n, bool c) => (y) <int64[1] first = {0}, int64 none = {0}, int64 one = {1}> {
    rows = Unsqueeze (n, first) at = Where (c, none, one) y = Gather <axis = 0> (rows, at)
}"""
OLDER = changed(GUARD, {"Unsqueeze (n, first)": "Unsqueeze <axes = [0]> (n)"})


def operands(text: str, **known: str) -> dict[str, str] | None:
    """The operands of the guard that computes `y`."""
    graph = onnx.parser.parse_graph(text)
    producers = {node.output[0]: node for node in graph.node}
    constants = {one.name: numpy_helper.to_array(one) for one in graph.initializer}
    return operands_of(must_count, "y", producers.get, constants.get, **known)


@pytest.mark.parametrize("text", [GUARD, OLDER])
def test_a_guard_is_recognised_in_each_spelling(text: str) -> None:
    assert operands(text) == {"value": "n", "condition": "c"}


@pytest.mark.parametrize(
    ("part", "other"),
    [
        ("first = {0}", "first = {1}"),
        ("int64 none = {0}", "int64[1] none = {0}"),
        ("one = {1}", "one = {0}"),
        ("axis = 0", "axis = 1"),
        ("axis = 0", "axis: int = @axis"),
        ("Where (c, none, one)", "Where (c, one, none)"),
        ("Where (c, none, one)", "Identity (none)"),
    ],
)
def test_what_differs_in_any_part_is_none(part: str, other: str) -> None:
    assert operands(changed(GUARD, {part: other})) is None


def test_a_known_operand_must_be_the_one_that_is_read() -> None:
    assert operands(GUARD, value="n") is not None
    assert operands(GUARD, value="c") is None
