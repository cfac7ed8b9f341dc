"""An attribute of a function becomes an input only where it always has a value."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import ModelProto
from proving import converted, drawn, run

import passes
from passes.rule import Refused

pytestmark = pytest.mark.sampled


def _model(calls: str, functions: str) -> ModelProto:
    return onnx.parser.parse_model(
        f"""
        <ir_version: 8, opset_import: ["": 11, "local": 1]>
        graph (float[1,2] x) => (float[2] y) {{ {calls} }}
        {functions}
        """
    )


def _function(head: str, body: str) -> str:
    return f'<domain: "local", opset_import: ["": 11, "local": 1]> {head} (x) => (y) {{ {body} }}'


DROP = _function("Drop <at>", "y = Squeeze<axes: ints = @at>(x)")


def _assert_same(model: ModelProto) -> None:
    after, feeds = converted(model, 26), drawn(model)
    np.testing.assert_array_equal(run(after, feeds)[0], run(model, feeds)[0])


def _assert_refused(model: ModelProto) -> None:
    with pytest.raises(Refused) as refused:
        converted(model, 26)
    assert refused.value.code == "attribute-reference"


def test_every_call_gives_it() -> None:
    _assert_same(_model("y = local.Drop<at = [0]>(x)", DROP))


def test_the_function_has_a_default() -> None:
    model = _model("y = local.Drop(x)", DROP)
    del model.functions[0].attribute[:]
    model.functions[0].attribute_proto.append(onnx.helper.make_attribute("at", [0]))
    _assert_same(model)


def test_one_call_does_not() -> None:
    _assert_refused(_model("a = local.Drop<at = [0]>(x) y = local.Drop(x)", DROP))


def test_a_call_in_a_body_does_not() -> None:
    calls = """a = local.Drop<at = [0]>(x)
        go = Constant<value = bool {1}>()
        y = If(go) <then_branch = t () => (float[2] b) { b = local.Drop(x) },
                    else_branch = e () => (float[2] c) { c = Squeeze(x) }>"""
    _assert_refused(_model(calls, DROP))


def test_a_function_passes_on_what_its_own_caller_may_leave_out() -> None:
    outer = _function("Outer <which>", "y = local.Drop<at: ints = @which>(x)")
    _assert_refused(_model("y = local.Outer<which = [0]>(x)", DROP + outer))


def test_nobody_calls_the_function() -> None:
    _assert_refused(_model("y = Squeeze(x)", DROP))


FILL = '<domain: "local", opset_import: ["": 13]> Drop (x, a) => (y) { y = Squeeze(x, a) }'


def test_a_refusal_in_a_function_names_the_option_that_does_without() -> None:
    """What a call gives is not known in the function, and fixed where it is called."""
    model = _model("y = local.Drop(x, a)", FILL)
    model.opset_import[0].version = 13
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.array([0]), "a"))
    with pytest.raises(passes.NotProduced, match="convert --inline all does without the function"):
        passes.convert(model, opset=11)
    after = passes.convert(model, opset=11, inline=["all"]).model
    assert [node.op_type for node in after.graph.node] == ["Squeeze"]
