"""Calls of model-local functions become bodies: names, attributes, what is left out, what goes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx
import pytest
from onnx import FunctionProto, ModelProto, helper, parser
from onnx.reference import ReferenceEvaluator

import passes
from passes.ir.scope import walk_model
from passes.rules.inline_function.chosen import UnknownFunction
from passes.testing import assert_rewrite
from tests.written import changed

CHAIN = """<ir_version: 10, opset_import: ["" : 18, "my" : 1]>
    g (float[N] x) => (float[N] y) { y = my.c (x) }
    <domain: "my", opset_import: ["" : 18, "my" : 1]> c (x) => (y) { t = my.b (x) y = my.b (t) }
    <domain: "my", opset_import: ["" : 18, "my" : 1]> b (x) => (y) { t = my.a (x) y = Neg (t) }
    <domain: "my", opset_import: ["" : 18]> a (x) => (y) { t = Exp (x) y = Tanh (t) }
    <domain: "my", opset_import: ["" : 18]> alone (x) => (y) { y = Abs (x) }"""


def inlined(model: ModelProto | str, *names: str) -> ModelProto:
    """The verified outcome with these functions inlined."""
    return assert_rewrite(model, pipeline="convert", options={"inline": names or ("all",)}).model


def ops(model: ModelProto) -> list[str]:
    return [place.node.op_type for place in walk_model(model)]


def functions(model: ModelProto) -> list[str]:
    return [function.name for function in model.functions]


class TestWhichFunctions:
    def test_all_at_any_depth(self) -> None:
        model = inlined(CHAIN)
        assert ops(model) == ["Exp", "Tanh", "Neg"] * 2
        assert functions(model) == []
        assert [one.domain for one in model.opset_import] == [""]

    @pytest.mark.parametrize("name", ["b", "my::b"])
    def test_by_name(self, name: str) -> None:
        model = inlined(CHAIN, name)
        assert functions(model) == ["c", "a", "alone"]
        assert [node.op_type for node in model.functions[0].node] == ["a", "Neg", "a", "Neg"]
        assert [node.op_type for node in model.graph.node] == ["c"]

    def test_several(self) -> None:
        assert functions(inlined(CHAIN, "c", "a")) == ["b", "alone"]

    def test_what_only_a_dropped_function_calls_goes_with_it(self) -> None:
        uncalled = changed(CHAIN, {"y = my.c (x)": "y = Abs (x)"})
        result = passes.convert(parser.parse_model(uncalled), inline=["c"])
        assert functions(result.model) == ["alone"]
        assert not result.report.unchanged

    def test_a_function_that_there_is_not(self) -> None:
        sentence = "the model has no function 'd'; the nearest are "
        with pytest.raises(UnknownFunction, match=sentence):
            passes.convert(parser.parse_model(CHAIN), inline=["d"])

    @pytest.mark.parametrize(
        ("ir_version", "kept"),
        [(7, []), (8, ["plain"]), (9, ["plain", "scaled"]), (10, ["plain", "scaled", "more"])],
    )
    def test_those_that_the_ir_version_cannot_hold(
        self, ir_version: int, kept: Sequence[str]
    ) -> None:
        model = parser.parse_model(
            """<ir_version: 10, opset_import: ["" : 18, "my" : 1]>
            g (float[N] x) => (float[N] y) { a = my.plain (x) b = my.scaled (a) y = my.more:v (b) }
            <domain: "my", opset_import: ["" : 18]> plain (x) => (y) { y = Exp (x) }
            <domain: "my", opset_import: ["" : 18]>
            scaled <by: float = 2.0> (x) => (y) { y = Elu <alpha: float = @by> (x) }
            <domain: "my", overload: "v", opset_import: ["" : 18]> more (x) => (y) { y = Neg (x) }
            """
        )
        result = passes.convert(model, ir_version=ir_version)
        assert result.model.ir_version == ir_version
        assert functions(result.model) == kept


class TestTheBody:
    def test_names_that_the_caller_has_stay_its_own(self) -> None:
        model = inlined(
            """<ir_version: 10, opset_import: ["" : 18, "my" : 1]>
            g (float[N] x, float[N] t) => (float[N] y, float[N] u) {
                "y/t" = Neg (t)
                y = my.f (x, "y/t")
                u = my.f (y, x)
            }
            <domain: "my", opset_import: ["" : 18]>
            f (t, x) => (y) { y1 = Exp (t) y = Sub (y1, x) }"""
        )
        assert [list(node.output) for node in model.graph.node] == [
            ["y/t"], ["y/y1"], ["y"], ["u/y1"], ["u"],
        ]  # fmt: skip

    def test_a_graph_that_the_call_hands_over_sees_what_the_caller_sees(self) -> None:
        """onnxruntime takes no such call, and nothing infers its types."""
        branch = parser.parse_graph("b () => (float[2] r) { t = Exp (x) r = Mul (t, t) }")
        other = parser.parse_graph("b () => (float[2] r) { r = Identity (x) }")
        function = FunctionProto(
            domain="my", name="choose", input=["x"], output=["y"], attribute=["then", "else"]
        )
        function.opset_import.add(domain="", version=18)
        chosen = helper.make_node("If", ["x"], ["t"])
        for name, given in (("then_branch", "then"), ("else_branch", "else")):
            kind = onnx.AttributeProto.GRAPH
            chosen.attribute.add(name=name, ref_attr_name=given, type=kind)
        function.node.extend([chosen, helper.make_node("Neg", ["t"], ["y"])])
        model = parser.parse_model(
            """<ir_version: 10, opset_import: ["" : 18, "my" : 1]>
            g (bool c, float[2] x) => (float[2] y) { y = my.choose (c) }"""
        )
        model.graph.node[0].attribute.append(helper.make_attribute("then", branch))
        model.graph.node[0].attribute.append(helper.make_attribute("else", other))
        model.functions.append(function)
        after = passes.convert(model, inline=["all"], verify=False).model
        x = np.array([1, 2], np.float32)
        (y,) = ReferenceEvaluator(after).run(None, {"c": np.array(True), "x": x})
        np.testing.assert_allclose(y, -(np.exp(x) ** 2), rtol=1e-6)
        assert after.graph.node[0].attribute[0].g.node[0].input == ["x"]

    def test_what_is_declared_of_its_values_goes_along_with_sizes_of_its_own(self) -> None:
        model = parser.parse_model(
            """<ir_version: 10, opset_import: ["" : 18, "my" : 1]>
            g (float[2] x, float[3] z) => (float[2] y, float[3] u) { y = my.f (x) u = my.f (z) }
            <domain: "my", opset_import: ["" : 18]>
            f (x) => (y) { t = Exp (x) y = Neg (t) }"""
        )
        declared = helper.make_tensor_value_info("t", onnx.TensorProto.FLOAT, ["N"])
        model.functions[0].value_info.append(declared)
        after = inlined(model)
        assert {
            value.name: value.type.tensor_type.shape.dim[0].dim_param
            for value in after.graph.value_info
        } == {"y/t": "y/N", "u/t": "u/N"}

    def test_nodes_keep_their_names_behind_that_of_the_call(self) -> None:
        model = inlined(
            """<ir_version: 10, opset_import: ["" : 18, "my" : 1]>
            g (float[N] x) => (float[N] y) { [first] t = my.f (x) [second] y = my.f (t) }
            <domain: "my", opset_import: ["" : 18]> f (x) => (y) { [inner] y = Neg (x) }"""
        )
        assert [node.name for node in model.graph.node] == ["first/inner", "second/inner"]

    def test_a_body_in_an_if_in_a_function(self) -> None:
        model = inlined(
            """<ir_version: 10, opset_import: ["" : 18, "my" : 1]>
            g (bool c, float[N] x) => (float[N] y) { y = my.g (c, x) }
            <domain: "my", opset_import: ["" : 18, "my" : 1]>
            g (c, x) => (y) {
                s = Exp (x)
                y = If (c) <
                    then_branch = a () => (float[N] p) { p = my.f (s, x) },
                    else_branch = b () => (float[N] q) { t = my.f (x, s) q = Neg (t) }
                >
            }
            <domain: "my", opset_import: ["" : 18]> f (t, x) => (y) { s = Sub (t, x) y = Abs (s) }
            """
        )
        assert sorted(ops(model)) == ["Abs", "Abs", "Exp", "If", "Neg", "Sub", "Sub"]

    def test_as_onnx_does_it(self) -> None:
        from onnx.inliner import inline_local_functions

        model = parser.parse_model(CHAIN)
        x = {"x": np.linspace(-3, 3, 7, dtype=np.float32)}
        (theirs,) = ReferenceEvaluator(inline_local_functions(model)).run(None, x)
        (ours,) = ReferenceEvaluator(inlined(model)).run(None, x)
        np.testing.assert_array_equal(ours, theirs)


class TestThroughTheOpsets:
    def test_a_step_that_depends_on_an_attribute_of_the_function(self) -> None:
        """Which axis Softmax-13 takes decides what it is in opset 11."""
        model = parser.parse_model(
            """<ir_version: 9, opset_import: ["" : 13, "my" : 1]>
            g (float[2,3,4] x) => (float[2,3,4] y) { y = my.f <at = 1> (x) }
            <domain: "my", opset_import: ["" : 13]>
            f <at> (x) => (y) { y = Softmax <axis: int = @at> (x) }"""
        )
        with pytest.raises(passes.NotProduced, match=r"my\.f/softmax_0: .*attribute-reference"):
            passes.convert(model, opset=11)
        result = passes.convert(model, opset=11, inline=["all"])
        assert result.report.checked is not None
        assert result.report.checked.verdict == "verified"

    def test_functions_go_down_with_the_model(self) -> None:
        model = parser.parse_model(CHAIN)
        after = passes.convert(model, opset=13).model
        assert functions(after) == ["c", "b", "a", "alone"]
        assert after.functions[2].opset_import[0].version == 13
        assert after.ir_version == 8


def test_a_function_that_calls_itself_is_no_valid_model() -> None:
    model = parser.parse_model(changed(CHAIN, {"y = Tanh (t)": "y = my.c (t)"}))
    with pytest.raises(passes.BadModel, match="functions call each other in a circle"):
        passes.convert(model, inline=["all"])


def test_neither_is_one_in_the_place_of_a_standard_operator() -> None:
    model = parser.parse_model(
        """<ir_version: 10, opset_import: ["" : 18]>
        g (float[N] x) => (float[N] y) { y = Neg (x) }
        <domain: "", opset_import: ["" : 18]> Neg (x) => (y) { y = Abs (x) }"""
    )
    with pytest.raises(passes.BadModel, match="has the name of ONNX's own operator Neg"):
        passes.convert(model, inline=["all"])


def test_a_body_that_maps_a_sequence() -> None:
    """What its body gives are elements of what it gives."""
    model = inlined(
        """<ir_version: 10, opset_import: ["" : 18, "my" : 1]>
        g (seq(float[2]) s) => (seq(float[2]) y) { y = my.f (s) }
        <domain: "my", opset_import: ["" : 18]>
        f (s) => (y) { y = SequenceMap (s) <body = b (float[2] x) => (float[2] r) { r = Neg (x) }> }
        """
    )
    assert ops(model) == ["Neg", "SequenceMap"]
