"""What an IR version holds, and which one a converted model gets."""

from __future__ import annotations

from collections.abc import Callable

import onnx
import pytest
from onnx import ModelProto, TensorProto, helper, parser

import passes
from passes.converters import ir_version
from passes.converters.ir_version import ELEMENT_TYPES, Feature, needs
from tests.written import changed

PLAIN = """<ir_version: 14, opset_import: ["" : 13, "my" : 1]>
    g (float[2] x) => (float[2] y) <float[2] w = {1.0, 2.0}> { [add] y = Add (x, w) }"""
CALLING = """<ir_version: 14, opset_import: ["" : 13, "my" : 1]>
    g (float[2] x) => (float[2] y) { y = my.f (x) }
    <domain: "my", opset_import: ["" : 13]> f (x) => (y) { y = Neg (x) }"""


def plain() -> ModelProto:
    return parser.parse_model(PLAIN)


def calling() -> ModelProto:
    return parser.parse_model(CALLING)


def sparse() -> ModelProto:
    model = plain()
    one = model.graph.sparse_initializer.add(dims=[2])
    one.values.CopyFrom(helper.make_tensor("s", TensorProto.FLOAT, [1], [1.0]))
    one.indices.CopyFrom(helper.make_tensor("i", TensorProto.INT64, [1], [0]))
    return model


def with_(change: Callable[[ModelProto], object], model: ModelProto) -> ModelProto:
    change(model)
    return model


def typed(type_: onnx.TypeProto) -> ModelProto:
    return with_(lambda m: m.graph.value_info.add(name="v").type.CopyFrom(type_), plain())


TENSOR = helper.make_tensor_type_proto(TensorProto.FLOAT, [2])
HELD: dict[Feature, Callable[[], ModelProto]] = {
    ir_version.DEFAULT_INPUT: lambda: with_(
        lambda m: m.graph.input.add(name="w").type.CopyFrom(TENSOR), plain()
    ),
    ir_version.QUANTIZATION: lambda: with_(
        lambda m: m.graph.quantization_annotation.add(tensor_name="x"), plain()
    ),
    ir_version.SPARSE: sparse,
    ir_version.TRAINING: lambda: with_(lambda m: m.training_info.add(), plain()),
    ir_version.FUNCTION: calling,
    ir_version.OPTIONAL_TYPE: lambda: typed(helper.make_optional_type_proto(TENSOR)),
    ir_version.SPARSE_TYPE: lambda: typed(
        helper.make_sparse_tensor_type_proto(TensorProto.FLOAT, [2])
    ),
    ir_version.TYPE_ATTRIBUTE: lambda: with_(
        lambda m: m.graph.node[0].attribute.append(helper.make_attribute("type", TENSOR)), plain()
    ),
    ir_version.FUNCTION_DEFAULT: lambda: with_(
        lambda m: m.functions[0].attribute_proto.append(helper.make_attribute("a", 1)), calling()
    ),
    ir_version.OVERLOAD: lambda: parser.parse_model(
        changed(CALLING, {"my.f (x)": "my.f:v (x)", '"my", opset': '"my", overload: "v", opset'})
    ),
    ir_version.FUNCTION_TYPES: lambda: with_(
        lambda m: m.functions[0].value_info.add(name="y"), calling()
    ),
    ir_version.METADATA: lambda: with_(
        lambda m: m.graph.node[0].metadata_props.add(key="a", value="b"), plain()
    ),
    ir_version.DEVICES: lambda: with_(
        lambda m: m.graph.node[0].device_configurations.add(configuration_id="c"), plain()
    ),
    **{
        feature: lambda code=code: typed(helper.make_tensor_type_proto(code, [2]))
        for code, feature in ELEMENT_TYPES.items()
    },
}
_ROWS = [value for value in vars(ir_version).values() if isinstance(value, Feature)]


def test_every_row_is_held_against_a_model() -> None:
    assert set(HELD) == {*_ROWS, *ELEMENT_TYPES.values()}


def test_every_element_type_that_came_after_ir_3_has_a_row() -> None:
    names = {name for name, code in TensorProto.DataType.items() if code > TensorProto.COMPLEX128}
    assert names == {TensorProto.DataType.Name(code) for code in ELEMENT_TYPES}


@pytest.mark.parametrize("feature", HELD, ids=lambda feature: feature.what)
class TestARow:
    def test_is_found(self, feature: Feature) -> None:
        found = {need.feature for need in needs(HELD[feature]())}
        assert feature in found
        assert {one.version for one in found} <= {feature.version, 8}

    def test_is_refused_with_its_place_or_dropped(self, feature: Feature) -> None:
        model, below = HELD[feature](), feature.version - 1
        fitted = ir_version.fit(model, model, below, exact=True, drop=False)
        path, _, code, sentence = fitted.refused[-1]
        assert path.startswith(("main", "my.f"))
        assert code == ("ir-metadata" if feature.metadata else "ir-version")
        assert f"it {feature.what}, which came with IR version {feature.version}, not" in sentence
        assert fitted.model.ir_version == 14
        dropped = ir_version.fit(model, model, below, exact=True, drop=True)
        assert bool(dropped.refused) == (not feature.metadata)
        if feature.metadata:
            assert dropped.model.ir_version == below
            assert all(need.feature.version <= below for need in needs(dropped.model))
            assert dropped.notes[0].startswith(f"dropped, as IR version {below} cannot hold it: ")

    def test_is_held_by_its_own_version(self, feature: Feature) -> None:
        model = HELD[feature]()
        fitted = ir_version.fit(model, model, feature.version, exact=True, drop=False)
        assert not fitted.refused
        assert fitted.model.ir_version == feature.version


class TestInitializersOfIr3:
    """The one row that onnx's checker knows."""

    BODY = """<ir_version: 8, opset_import: ["" : 8]>
        g (bool go, float[2] x) => (float[2] y) <float[2] w = {1.0, 2.0}> {
            y = If (go) <
                then_branch = t () => (float[2] a) <float[2] k = {3.0, 4.0}> { a = Add (x, k) },
                else_branch = e () => (float[2] b) { b = Add (x, w) }
            >
        }"""

    def test_are_inputs_there_and_no_others(self) -> None:
        model = parser.parse_model(self.BODY)
        model.ir_version = 3
        with pytest.raises(onnx.checker.ValidationError, match="w in initializer but not in graph"):
            onnx.checker.check_model(model)
        result = passes.convert(parser.parse_model(self.BODY), ir_version=3)
        onnx.checker.check_model(result.model, full_check=True)
        assert [value.name for value in result.model.graph.input] == ["go", "x", "w"]
        checked = result.report.checked
        assert checked is not None
        assert checked.verdict == "verified"
        assert min(checked.compared.values()) > 0
        again = passes.convert(result.model, ir_version=8).model
        assert again == parser.parse_model(self.BODY)

    def test_a_default_that_callers_may_override_is_none_there(self) -> None:
        model = parser.parse_model(self.BODY)
        model.graph.input.add(name="w").type.CopyFrom(TENSOR)
        with pytest.raises(passes.NotProduced, match="main/w: it is an input with a default"):
            passes.convert(model, ir_version=3)
        assert passes.convert(model, opset=7).model.ir_version == 4


class TestWithoutBeingNamed:
    @pytest.mark.parametrize(("opset", "expected"), [(12, 7), (10, 5), (8, 3)])
    def test_it_is_the_smallest_that_an_older_opset_needs(self, opset: int, expected: int) -> None:
        result = passes.convert(plain(), opset=opset)
        assert result.model.ir_version == expected
        assert result.report.ir_versions == (14, expected)
        assert f"opset 13 -> {opset}, IR version 14 -> {expected}, " in result.report.to_text()

    def test_it_is_none_that_is_newer_than_the_models(self) -> None:
        model = plain()
        model.ir_version = 6
        assert passes.convert(model, opset=12).model.ir_version == 6

    def test_what_the_model_holds_keeps_it_up_and_the_report_says_so(self) -> None:
        model = HELD[ir_version.METADATA]()
        result = passes.convert(model, opset=12)
        assert result.model.ir_version == 10
        note = "IR version 10, where opset 12 needs 7: main/add has metadata_props"
        assert result.report.notes == [note]
        dropped = passes.convert(model, opset=12, drop_metadata=True)
        assert dropped.model.ir_version == 7

    def test_on_the_way_up_it_stays_or_is_what_the_opset_needs(self) -> None:
        model = plain()
        model.ir_version = 7
        assert passes.convert(model, opset=14).model.ir_version == 7
        assert passes.convert(model, opset=21).model.ir_version == 10

    def test_for_a_release_it_is_at_most_what_that_loads(self) -> None:
        result = passes.convert(plain(), for_="onnxruntime==1.17")
        assert (result.report.opsets, result.model.ir_version) == ((13, 20), 9)
        calls = passes.convert(calling(), for_="onnxruntime==1.8")
        assert (calls.report.opsets, calls.model.ir_version) == ((13, 14), 7)
        assert not calls.model.functions


def test_what_is_converted_to_no_other_opset_stays_at_its_own() -> None:
    result = passes.convert(plain(), ir_version=9)
    assert result.report.opsets == (13, 13)
    assert result.model.opset_import[0].version == 13
    assert not result.report.unchanged
    same = passes.convert(plain(), ir_version=14)
    assert same.report.unchanged


def test_other_domains_keep_their_version_and_the_report_says_so() -> None:
    model = parser.parse_model(
        """<ir_version: 10, opset_import: ["" : 21, "ai.onnx.ml" : 5, "other" : 7]>
        g (float[2,2] x) => (float[2,2] y) {
            t = ai.onnx.ml.Scaler <offset = [1.0], scale = [2.0]> (x)
            y = Neg (t)
        }"""
    )
    result = passes.convert(model, opset=17)
    assert result.report.notes == ["ai.onnx.ml stays at version 5, opset 17 goes with 3"]
    assert {one.domain: one.version for one in result.model.opset_import} == {
        "": 17,
        "ai.onnx.ml": 5,
        "other": 7,
    }
    assert not passes.convert(model, opset=22).report.notes


def test_nothing_vouches_for_a_model_that_no_executor_runs() -> None:
    model = parser.parse_model(
        """<ir_version: 10, opset_import: ["" : 13, "other" : 1]>
        g (float[2] x) => (float[2] y) { y = other.Unknown (x) }"""
    )
    with pytest.raises(passes.NotVerified, match="no case could be compared"):
        passes.convert(model, ir_version=9)
    assert passes.convert(model, ir_version=9, allow_unverified=True).model.ir_version == 9
