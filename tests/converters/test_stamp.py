"""Opset imports and IR version of a converted model."""

from __future__ import annotations

import onnx
import pytest
from onnx import helper

from passes.converters.stamp import ir_version_for, stamp
from tests.written import changed

pytestmark = pytest.mark.sampled

OLD_BODY = """
    <ir_version: 3, opset_import: ["": 8]>
    graph (bool go, float[2] x, float[2] w) => (float[2] y)
    <float[2] w = {1.0, 2.0}>
    {
        y = If(go) <
            then_branch = yes (float[2] k) => (float[2] a) <float[2] k = {3.0, 4.0}>
                { a = Add(x, k) },
            else_branch = no () => (float[2] b) { b = Add(x, w) }
        >
    }
"""


def _inputs(graph: onnx.GraphProto) -> list[str]:
    return [value.name for value in graph.input]


@pytest.mark.parametrize(("opset", "ir_version"), [(7, 3), (8, 3), (9, 4), (21, 10), (26, 13)])
def test_the_smallest_ir_version_that_fits(opset: int, ir_version: int) -> None:
    assert ir_version_for(opset) == ir_version


def test_an_opset_that_onnx_does_not_know() -> None:
    with pytest.raises(ValueError, match="does not know opset 999"):
        ir_version_for(999)


def test_on_leaving_ir_3_inputs_that_name_an_initializer_go() -> None:
    model = onnx.parser.parse_model(OLD_BODY)
    stamp(model, 9)
    assert (model.ir_version, model.opset_import[0].version) == (4, 9)
    assert _inputs(model.graph) == ["go", "x"]
    assert _inputs(model.graph.node[0].attribute[0].g) == []
    onnx.checker.check_model(model, full_check=True)


def test_at_ir_3_they_stay() -> None:
    model = onnx.parser.parse_model(changed(OLD_BODY, {'"": 8': '"": 7'}))
    stamp(model, 8)
    assert (model.ir_version, model.opset_import[0].version) == (3, 8)
    assert _inputs(model.graph) == ["go", "x", "w"]


def test_from_ir_4_on_they_are_defaults_and_stay() -> None:
    model = onnx.parser.parse_model(changed(OLD_BODY, {"ir_version: 3": "ir_version: 4"}))
    stamp(model, 13)
    assert model.ir_version == 7
    assert _inputs(model.graph) == ["go", "x", "w"]


def test_all_imports_of_the_standard_domain_are_set() -> None:
    model = onnx.parser.parse_model(
        """
        <ir_version: 10, opset_import: ["ai.onnx": 8, "local": 1, "ai.onnx.ml": 2]>
        graph (float[2] x) => (float[2] y) { y = local.Old(x) }
        <domain: "local", opset_import: ["": 8]> Old (x) => (y) { y = Neg(x) }
        <domain: "local", opset_import: ["": 17]> New (x) => (y) { y = Neg(x) }
        """
    )
    stamp(model, 13)
    assert model.ir_version == 10
    assert list(model.opset_import) == [
        helper.make_opsetid("ai.onnx", 13),
        helper.make_opsetid("local", 1),
        helper.make_opsetid("ai.onnx.ml", 2),
    ]
    assert [function.opset_import[0].version for function in model.functions] == [13, 13]
