"""The steps to versions 8 and 9, run at the old opset and converted."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import helper
from proving import converted, drawn, initializers, ops, parsed, prove, run

from passes.rule import Refused

pytestmark = pytest.mark.sampled

# -- identical steps -----------------------------------------------------------------------


@pytest.mark.parametrize("op", ["Max", "Mean", "Min", "Sum"])
@pytest.mark.parametrize("inputs", ["x", "x, z", "x, z, x"])
def test_variadic_ops_8(op: str, inputs: str) -> None:
    graph = f"(float[2,3] x, float[2,3] z) => (float[2,3] y) {{ y = {op}({inputs}) }}"
    assert ops(prove(graph, opset=7, target=8)) == [op]


@pytest.mark.parametrize(
    ("attributes", "shape"),
    [
        ("kernel_shape = [2, 2]", "2,3,4,4"),
        ("kernel_shape = [3, 3], pads = [1, 1, 1, 1], strides = [2, 2]", "2,3,3,3"),
        ('kernel_shape = [2, 2], auto_pad = "SAME_UPPER"', "2,3,5,5"),
        ('kernel_shape = [2, 2], auto_pad = "VALID", strides = [2, 2]', "2,3,2,2"),
    ],
)
def test_max_pool_8(attributes: str, shape: str) -> None:
    graph = f"(float[2,3,5,5] x) => (float[{shape}] y) {{ y = MaxPool<{attributes}>(x) }}"
    assert ops(prove(graph, opset=7, target=8)) == ["MaxPool"]


@pytest.mark.parametrize("op", ["Greater", "Less"])
def test_comparisons_9(op: str) -> None:
    prove(f"(float[2,3] x, float[3] z) => (bool[2,3] y) {{ y = {op}(x, z) }}", opset=7, target=9)


@pytest.mark.parametrize("slope", ["3", "2,1", "1"])
def test_prelu_9(slope: str) -> None:
    graph = f"(float[2,3] x, float[{slope}] s) => (float[2,3] y) {{ y = PRelu(x, s) }}"
    prove(graph, opset=7, target=9)


@pytest.mark.parametrize(("axis", "shape"), [(0, "1,24"), (1, "2,12"), (3, "24,1")])
def test_flatten_9(axis: int, shape: str) -> None:
    graph = f"(float[2,3,4] x) => (float[{shape}] y) {{ y = Flatten<axis = {axis}>(x) }}"
    prove(graph, opset=7, target=9)


@pytest.mark.parametrize("c", ["2,4", "4", "2,1"])
def test_gemm_9(c: str) -> None:
    prove(
        f"""(float[3,2] a, float[3,4] b, float[{c}] c) => (float[2,4] y)
            {{ y = Gemm<alpha = 0.5, beta = 2.0, transA = 1>(a, b, c) }}""",
        opset=7,
        target=9,
    )


def test_matmul_9() -> None:
    prove(
        "(float[2,3,4] a, float[4,5] b) => (float[2,3,5] y) { y = MatMul(a, b) }",
        opset=7,
        target=9,
    )


@pytest.mark.parametrize(
    ("before", "after"), [("float", "int32"), ("float", "bool"), ("int64", "double")]
)
def test_cast_9(before: str, after: str) -> None:
    to = getattr(onnx.TensorProto, after.upper())
    prove(f"({before}[3] x) => ({after}[3] y) {{ y = Cast<to = {to}>(x) }}", opset=7, target=9)


def test_constant_9() -> None:
    graph = """(float[2] x) => (float[2] y)
        { c = Constant<value = float[2] {1.0, 2.0}>() y = Add(x, c) }"""
    assert ops(prove(graph, opset=7, target=9)) == ["Constant", "Add"]


# -- BatchNormalization-9 ------------------------------------------------------------------


def _batch_normalization(attributes: str, x: str, parameter: str) -> str:
    parameters = ", ".join(f"float[{parameter}] {name}" for name in ("s", "b", "m", "v"))
    return f"""(float[{x}] x, {parameters}) => (float[{x}] y)
        {{ y = BatchNormalization<{attributes}>(x, s, b, m, v) }}"""


VARIANCE = {"3": (3,), "3,4": (3, 4), "3,2,2": (3, 2, 2)}


def _variance(parameter: str) -> dict[str, np.ndarray]:
    size = [int(dim) for dim in parameter.split(",")]
    return {"v": np.random.default_rng(3).uniform(0.5, 2, size).astype(np.float32)}


@pytest.mark.parametrize("x", ["2,3", "2,3,4", "N,3,2,2", "0,3,4"])
@pytest.mark.parametrize("attributes", ["epsilon = 0.1", "spatial = 1, epsilon = 0.1"])
def test_batch_normalization_9_per_channel(attributes: str, x: str) -> None:
    """`spatial = 1`, the default, goes; nothing else changes."""
    graph = _batch_normalization(attributes, x, "3")
    after = prove(graph, opset=7, target=9, feeds=_variance("3"))
    (node,) = after.graph.node
    assert [one.name for one in node.attribute] == ["epsilon"]


@pytest.mark.parametrize(("x", "parameter"), [("2,3,4", "3,4"), ("N,3,2,2", "3,2,2")])
def test_batch_normalization_9_per_activation(x: str, parameter: str) -> None:
    """`spatial = 0` becomes a normalization of the flattened input."""
    graph = _batch_normalization("spatial = 0, epsilon = 0.1", x, parameter)
    after = prove(graph, opset=7, target=9, feeds=_variance(parameter))
    assert ops(after) == ["Flatten", *["Reshape"] * 4, "BatchNormalization", "Reshape"]


def test_batch_normalization_9_per_activation_of_an_empty_batch() -> None:
    graph = _batch_normalization("spatial = 0", "0,3,4", "3,4")
    prove(graph, opset=7, target=9, feeds=_variance("3,4"), places=["main", "function"])


def test_batch_normalization_9_per_activation_of_a_matrix_is_per_channel() -> None:
    graph = _batch_normalization("spatial = 0", "2,3", "3")
    after = prove(graph, opset=7, target=9, feeds=_variance("3"))
    assert ops(after) == ["BatchNormalization"]


@pytest.mark.parametrize("parameter", ["C,4", "3,0"])
def test_batch_normalization_9_per_activation_of_unknown_shape_is_refused(parameter: str) -> None:
    model = parsed(_batch_normalization("spatial = 0", f"2,{parameter}", parameter), 7)
    with pytest.raises(Refused) as refused:
        converted(model, 9)
    assert refused.value.code == "unknown-rank"
    assert refused.value.culprits == ("main/batchnormalization_0",)


def test_batch_normalization_9_training_per_activation_is_refused() -> None:
    model = parsed(
        """(float[2,3,4] x, float[3,4] s) => (float[2,3,4] y, float[3,4] mean)
           { y, mean = BatchNormalization<spatial = 0>(x, s, s, s, s) }""",
        7,
    )
    with pytest.raises(Refused) as refused:
        converted(model, 9)
    assert refused.value.code == "no-equivalent"


# -- Upsample-9 ----------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["float", "int32", "uint8"])
@pytest.mark.parametrize("mode", ["nearest", "linear"])
@pytest.mark.parametrize(
    ("scales", "shape"), [("1.0, 1.0, 2.0, 3.0", "1,2,6,12"), ("1.0, 1.0, 1.5, 1.0", "1,2,4,4")]
)
def test_upsample_9(kind: str, mode: str, scales: str, shape: str) -> None:
    graph = f"""({kind}[1,2,3,4] x) => ({kind}[{shape}] y)
        {{ y = Upsample<mode = "{mode}", scales = [{scales}]>(x) }}"""
    after = prove(graph, opset=7, target=9)
    assert initializers(after) == {"scales": [float(one) for one in scales.split(",")]}
    assert list(after.graph.node[0].input) == ["x", "scales"]


def test_equal_scales_share_an_initializer_in_each_graph() -> None:
    """Two nodes of the main graph share; a body has its own, under a name of its own."""
    model = parsed(
        """(bool go, float[1,1,2,2] x) => (float[1,1,4,4] y, float[1,1,4,4] z, float[1,1,4,4] w) {
            y = Upsample<scales = [1.0, 1.0, 2.0, 2.0]>(x)
            z = Upsample<scales = [1.0, 1.0, 2.0, 2.0]>(x)
            w = If(go) <
                then_branch = yes () => (float[1,1,4,4] a)
                    { a = Upsample<scales = [1.0, 1.0, 2.0, 2.0]>(x) },
                else_branch = no () => (float[1,1,4,4] b)
                    { b = Upsample<scales = [1.0, 1.0, 2.0, 2.0]>(x) }
            >
        }""",
        8,
    )
    after = converted(model, 9)
    onnx.checker.check_model(after, full_check=True)
    assert len(initializers(after)) == 1
    branches = [attribute.g for attribute in after.graph.node[2].attribute]
    names = {one.name for graph in (after.graph, *branches) for one in graph.initializer}
    assert len(names) == 3
    feeds = {**drawn(model), "go": np.array(True)}
    for expected, actual in zip(run(model, feeds), run(after, feeds), strict=True):
        np.testing.assert_array_equal(actual, expected)


def test_a_name_that_is_taken_anywhere_is_not_taken_again() -> None:
    model = parsed(
        "(float[1,1,2,2] scales) => (float[1,1,4,4] y)"
        "{ y = Upsample<scales = [1.0, 1.0, 2.0, 2.0]>(scales) }",
        8,
    )
    assert list(initializers(converted(model, 9))) == ["scales_1"]


def test_name_docs_metadata_and_unknown_attributes_stay() -> None:
    model = parsed(
        "(float[1,2] x) => (float[1,4] y) { y = Upsample<scales = [1.0, 2.0], tag = 5>(x) }", 8
    )
    (node,) = model.graph.node
    node.name, node.doc_string = "up", "twice as wide"
    node.metadata_props.add(key="origin", value="test")
    (after,) = converted(model, 9).graph.node
    assert (after.name, after.doc_string) == ("up", "twice as wide")
    assert after.metadata_props == node.metadata_props
    assert [one.name for one in after.attribute] == ["tag"]


# -- in a function, an attribute may refer to one of the function ---------------------------


def _function_with_reference() -> onnx.ModelProto:
    return onnx.parser.parse_model(
        """
        <ir_version: 8, opset_import: ["": 8, "local": 1]>
        graph (float[1,2] x) => (float[1,4] y) { y = local.Up<by = [1.0, 2.0]>(x) }
        <domain: "local", opset_import: ["": 8]>
        Up <by> (x) => (y) { y = Upsample<scales: floats = @by>(x) }
        """
    )


def test_a_referenced_attribute_cannot_become_an_input_before_opset_12() -> None:
    with pytest.raises(Refused) as refused:
        converted(_function_with_reference(), 9)
    assert refused.value.code == "attribute-reference"
    assert refused.value.culprits == ("local.Up/upsample_0",)


def test_a_referenced_attribute_that_decides_the_form_is_refused() -> None:
    model = onnx.parser.parse_model(
        """
        <ir_version: 8, opset_import: ["": 8, "local": 1]>
        graph (float[2,3] x, float[3] s) => (float[2,3] y) { y = local.Norm<per = 1>(x, s) }
        <domain: "local", opset_import: ["": 8]>
        Norm <per> (x, s) => (y) { y = BatchNormalization<spatial: int = @per>(x, s, s, s, s) }
        """
    )
    with pytest.raises(Refused) as refused:
        converted(model, 9)
    assert refused.value.code == "attribute-reference"


# -- what is no step -----------------------------------------------------------------------


def test_an_op_that_the_model_defines_itself_stays() -> None:
    """A model-local function may have the name of an op of the standard domain."""
    model = parsed("(float[2] x) => (float[2] y) { y = Upsample(x) }", 8)
    model.functions.append(
        helper.make_function(
            "",
            "Upsample",
            ["x"],
            ["y"],
            [helper.make_node("Neg", ["x"], ["y"])],
            [helper.make_opsetid("", 8)],
        )
    )
    assert ops(converted(model, 9)) == ["Upsample"]


def test_an_unknown_op_is_refused_with_its_path() -> None:
    model = parsed("(float[2] x) => (float[2] y) { y = Mish(x) }", 8)
    with pytest.raises(Refused) as refused:
        converted(model, 9)
    assert (refused.value.code, refused.value.culprits) == ("unknown-op", ("main/mish_0",))
