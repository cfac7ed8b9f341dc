"""The command `cast`: what it may be asked for, and how it runs among other commands."""

from __future__ import annotations

import onnx
import pytest
from onnx import TensorProto

import passes
from passes.choices import Retyping
from passes.commands.casting import Cast
from passes.commands.pipeline import Pipeline
from passes.commands.rewriting import Simplify, Unroll, Upgrade
from passes.errors import NotProduced, NotVerified
from passes.session import CannotProve, Result
from passes.testing import as_model, options_of
from tests.written import changed

#: Three steps of a cell without a sum, so that all of it may be in half precision.
CELL = """
    <ir_version: 8, opset_import: ["" : 17]>
    g (float[N] h, float[3,N] x) => (float[N] y) <float[1] w = {0.5}> {
      y = Scan <num_scan_inputs = 1, body = step (float[N] s, float[N] a) => (float[N] t) {
        b = Mul (s, w)
        c = Max (a, b)
        t = Tanh (c)
      }> (h, x)
    }
"""
FUNCTION = """
    <ir_version: 8, opset_import: ["" : 17, "my" : 1]>
    g (float[2] x) => (float[2] y) { y = my.f (x) }
    <domain: "my", opset_import: ["" : 17]> f (x) => (y) { t = Tanh (x) y = Neg (t) }
"""
#: A sum of which next to nothing is left.
CANCELS = """
    <ir_version: 8, opset_import: ["" : 17]>
    g (float[64] x) => (float[64] y) <float hundred = {100}> {
      a = Tanh (x)
      b = Add (a, hundred)
      y = Sub (b, hundred)
    }
"""
FAST = {"executor": "reference", "verify_budget": 5}


def types_of(model: onnx.ModelProto) -> set[int]:
    """The types of the inputs and outputs of a model."""
    ends = [*model.graph.input, *model.graph.output]
    return {one.type.tensor_type.elem_type for one in ends}


def operators(result: Result) -> list[str]:
    return [node.op_type for node in result.model.graph.node]


class TestOptions:
    @pytest.mark.parametrize(
        ("options", "sentence"),
        [
            ({}, "name a type: to, weights or int32"),
            ({"keep": ["Exp"], "int32": True}, "keep goes with to"),
            ({"half": ["Exp"], "weights": "int8"}, "half goes with to"),
            ({"to": "float16", "prove": True}, "nothing is proven"),
            ({"to": "float16", "certify": True}, "nothing is proven"),
            ({"to": "float16", "max_error": 1e-3, "verify": False}, "needs verification"),
            ({"to": "float16", "max_error": -1.0}, "must be 0 or more"),
            ({"to": "float64"}, "not one of float16, bfloat16"),
        ],
    )
    def test_what_no_cast_can_have(self, options: dict[str, object], sentence: str) -> None:
        with pytest.raises(ValueError, match=sentence):
            Cast(**options)  # type: ignore[arg-type]  # no option has this value

    def test_they_are_those_of_the_schedule(self) -> None:
        asked = Cast(to="float16", keep=["Exp", "main/*"], int32=True, max_error=1e-3)
        written = "to=float16; keep=Exp,main/*; int32=yes; max_error=1e-3"
        assert asked.for_rules().retyping == options_of({"retyping": written}).retyping
        assert asked.for_rules().retyping == Retyping(
            "float16", keep=("Exp", "main/*"), int32=True, max_error=1e-3
        )


class TestAlone:
    def test_the_report_tells_how_far_the_outputs_are_off(self) -> None:
        result = passes.cast(as_model(CELL), to="float16", **FAST)
        (cast,) = result.report.casts
        assert (cast.before, cast.after) == ("float32", "float16")
        assert cast.values[0] == cast.values[1]
        assert result.report.within is not None
        assert 0 < result.report.within.error < 1e-2
        assert types_of(result.model) == {TensorProto.FLOAT}

    def test_inputs_and_outputs_are_cast_on_request(self) -> None:
        result = passes.cast(as_model(CELL), to="float16", io="cast", verify=False)
        assert types_of(result.model) == {TensorProto.FLOAT16}
        assert operators(result) == ["Scan"]

    def test_nothing_is_executed_without_verification(self) -> None:
        report = passes.cast(as_model(CELL), to="float16", verify=False).report
        assert report.within is None

    def test_nodes_keep_their_type_until_the_error_is_allowed(self) -> None:
        report = passes.cast(as_model(CANCELS), to="float16", max_error=2e-3, **FAST).report
        assert report.within is not None
        assert report.within.holds
        assert "main/sub_2" in report.within.raised
        (cast,) = report.casts
        assert 0 < cast.values[0] < cast.values[1]
        assert "max-error" in {one.code for one in cast.kept}

    def test_a_node_that_overflows_keeps_its_type(self) -> None:
        large = "k = Constant <value_float = 1000.0> () a = Mul (x, k) t = Mul (a, a)"
        square = changed(FUNCTION, {"t = Tanh (x)": large, "Neg": "Sqrt"})
        result = passes.cast(as_model(square), to="float16", max_error=1e-2, **FAST)
        (cast,) = result.report.casts
        assert {one.code for one in cast.kept} <= {"max-error", "surrounded"}
        assert cast.changes
        within = result.report.within
        assert within is not None
        assert within.holds
        assert len(within.raised) == 1

    def test_an_error_that_half_precision_never_has_is_refused(self) -> None:
        with pytest.raises(NotProduced, match=r"unless all nodes are in float32 \[max-error\]"):
            passes.cast(as_model(FUNCTION), to="float16", max_error=1e-9, **FAST)

    def test_an_error_that_cannot_be_had_is_refused(self) -> None:
        with pytest.raises(NotProduced, match=r"not within 1e-09: .* \[max-error\]") as refused:
            passes.cast(as_model(CELL), to="float16", io="cast", max_error=1e-9, **FAST)
        assert refused.value.report.within is not None
        assert not refused.value.report.within.holds

    def test_functions_are_inlined(self) -> None:
        result = passes.cast(as_model(FUNCTION), to="float16", **FAST)
        assert operators(result) == ["Cast", "Tanh", "Neg", "Cast"]
        assert not result.model.functions

    def test_a_model_without_floats_stays_as_it_is(self) -> None:
        whole = changed(FUNCTION, {"float[2]": "int64[2]", "t = Tanh (x) ": "t = Abs (x) "})
        result = passes.cast(passes.convert(as_model(whole), inline=["all"]).model, to="float16")
        assert result.report.unchanged

    def test_what_is_not_executed_is_not_written(self) -> None:
        foreign = changed(CELL, {'"" : 17': '"" : 17, "my" : 1', "Tanh": "my.Foo"})
        with pytest.raises(NotVerified, match="not-verified"):
            passes.cast(as_model(foreign), to="float16", **FAST)
        result = passes.cast(as_model(foreign), to="float16", allow_unverified=True, **FAST)
        assert result.report.within is not None
        assert result.report.within.failure


class TestOpset:
    def test_bfloat16_converts_an_older_model(self) -> None:
        result = passes.cast(as_model(CELL), to="bfloat16", verify=False)
        assert result.report.opsets == (17, 22)

    def test_a_newer_model_keeps_its_own(self) -> None:
        newer = changed(CELL, {'"" : 17': '"" : 23'})
        assert passes.cast(as_model(newer), to="bfloat16", verify=False).report.opsets == (23, 23)

    def test_float16_converts_none(self) -> None:
        assert passes.cast(as_model(CELL), to="float16", verify=False).report.opsets == (17, 17)

    def test_another_opset_is_taken_on_request(self) -> None:
        result = passes.cast(as_model(CELL), to="bfloat16", opset=18, verify=False)
        assert result.report.opsets == (17, 18)

    def test_loops_need_opset_16_for_bfloat16(self) -> None:
        old = changed(CELL, {'"" : 17': '"" : 13'})
        with pytest.raises(NotProduced, match=r"no bfloat16 below opset 16") as refused:
            passes.cast(as_model(old), to="bfloat16", opset=14, verify=False)
        assert refused.value.report.refusals[0].code == "opset"


class TestInAPipeline:
    def test_what_is_before_and_after_it_is_verified(self) -> None:
        steps = [Upgrade(opset=18, executor="reference"), Cast(to="float16"), Unroll(), Simplify()]
        report = Pipeline(steps).run(as_model(CELL)).report
        assert report.command == "upgrade, cast, unroll, simplify"
        assert report.checked is not None
        assert report.checked.verdict == "verified"
        assert [one.after for one in report.casts] == ["float16"]
        assert report.within is not None
        verdicts = {one.rule: one.checked for one in report.rewrites}
        assert verdicts["unroll"] is not None
        assert verdicts["unroll"].verdict == "verified"
        assert report.sizes[1].loops == 0
        assert report.opsets == (17, 18)

    def test_two_casts_have_one_report(self) -> None:
        steps = [Cast(to="float16", executor="reference"), Cast(int32=True)]
        report = Pipeline(steps).run(as_model(CELL)).report
        assert report.command == "cast, cast"
        assert report.casts[0].after == "float16"
        assert report.within is not None

    def test_dims_are_bound_once(self) -> None:
        steps = [Cast(to="float16", dims={"N": 2}, verify=False), Unroll(dims={"N": 2})]
        result = Pipeline(steps).run(as_model(CELL))
        assert result.report.bound
        assert result.model.graph.output[0].type.tensor_type.shape.dim[0].dim_value == 2

    def test_what_is_refused_after_it_has_the_whole_report(self) -> None:
        steps = [Cast(to="float16", verify=False), Upgrade(opset=16)]
        with pytest.raises(NotProduced, match="opset 16 was asked for") as refused:
            Pipeline(steps).run(as_model(CELL))
        assert refused.value.report.command == "cast, upgrade"
        assert len(refused.value.report.casts) == 1

    def test_nothing_is_proven(self) -> None:
        with pytest.raises(CannotProve, match="nothing is proven"):
            Pipeline([Simplify(prove=True), Cast(to="float16")]).run(as_model(CELL))
