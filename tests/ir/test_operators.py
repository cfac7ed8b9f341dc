"""An operator is told by its domain and its name, never by its name alone."""

from __future__ import annotations

import ast
from collections.abc import Callable
from pathlib import Path

import pytest
from onnx import defs, helper

from passes.ir.operators import HOLDERS, Registry, called_key, op_of

ROOT = Path(__file__).parents[2]


def test_an_operator_of_another_domain_is_none_of_onnx() -> None:
    own = helper.make_node("Identity", ["x"], ["y"])
    spelled_out = helper.make_node("Identity", ["x"], ["y"], domain="ai.onnx")
    other = helper.make_node("Identity", ["x"], ["y"], domain="my", overload="2")
    assert [op_of(own), op_of(spelled_out), op_of(other)] == [
        "Identity",
        "Identity",
        "my::Identity",
    ]
    assert called_key(spelled_out) == called_key(own) == ("", "Identity", "")
    assert called_key(other) == ("my", "Identity", "2")


@pytest.mark.slow
def test_nothing_else_reads_op_type() -> None:
    """`node.op_type == "Identity"` would take `my.Identity` for ONNX's."""
    allowed = {
        "passes/ir/operators.py",
        "passes/ir/draft.py",
    }  # a draft is an Operation itself
    reads = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for package in ("passes", "converters")
        for path in sorted((ROOT / package).rglob("*.py"))
        if str(path.relative_to(ROOT)) not in allowed
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute)
        and node.attr == "op_type"
        and isinstance(node.ctx, ast.Load)
    ]
    assert reads == []


def test_no_other_operators_of_onnx_have_bodies() -> None:
    kinds = {defs.OpSchema.AttrType.GRAPH, defs.OpSchema.AttrType.GRAPHS}
    schemas = [one for one in defs.get_all_schemas_with_history() if one.domain == ""]
    assert {
        one.name for one in schemas if any(a.type in kinds for a in one.attributes.values())
    } == HOLDERS


def test_an_operator_has_one_function() -> None:
    functions: Registry[Callable[[int], int]] = Registry()

    @functions.enter("Neg")
    def negative(number: int) -> int:
        return -number

    assert functions["Neg"](2) == negative(2) == -2
    with pytest.raises(ValueError, match="Neg: entered twice"):
        functions.enter("Abs", "Neg")(abs)
    assert functions.keys() == {"Neg"}
