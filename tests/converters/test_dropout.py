"""The steps of Dropout, run at the old opset and converted."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from calls import calling, prove_call
from proving import converted, initializers, ops, parsed, prove, run

from passes.rule import Refused

pytestmark = pytest.mark.sampled


def _dropout(attributes: str, kind: str = "float") -> str:
    return f"({kind}[2,3] x) => ({kind}[2,3] y) {{ y = Dropout{attributes}(x) }}"


@pytest.mark.parametrize("kind", ["float", "double", "float16"])
@pytest.mark.parametrize("attributes", ["", "<ratio = 0.0>", "<ratio = 0.3>"])
@pytest.mark.parametrize("opset", [7, 10])
def test_dropout_without_a_mask(opset: int, attributes: str, kind: str) -> None:
    feeds = {
        "x": np.array([[np.nan, np.inf, -0.0], [1, -2, 0]]).astype(
            {"float": "float32", "double": "float64", "float16": "float16"}[kind]
        )
    }
    after = prove(_dropout(attributes, kind), opset=opset, target=26, feeds=feeds)
    assert ops(after) == ["Dropout"]
    if attributes:
        (ratio,) = initializers(after).values()
        assert ratio == pytest.approx(float(attributes[-4:-1]))


@pytest.mark.parametrize("ratio", [1.0, -0.5, 2.0])
def test_a_ratio_that_12_does_not_take_is_left_out(ratio: float) -> None:
    """It is ignored where nothing trains."""
    after = prove(_dropout(f"<ratio = {ratio}>"), opset=7, target=26)
    assert list(after.graph.node[0].input) == ["x"]


@pytest.mark.parametrize("target", [10, 11, 12, 26])
@pytest.mark.parametrize("kind", ["float", "double", "float16"])
def test_the_mask_has_the_type_and_the_values_it_had(kind: str, target: int) -> None:
    """All false below 12, as onnxruntime has it, where the document of 12 says all true."""
    mask = f"({kind}[2,3] x) => ({kind}[2,3] y, {{}}[2,3] mask) {{{{ y, mask = Dropout(x) }}}}"
    after = prove(mask.format(kind), opset=7, target=target)
    assert ops(after) == ["Dropout", *(["Not"] if target >= 12 else []), "Cast"]
    if target > 10:
        prove(mask.format("bool"), opset=10, target=target)


def test_a_mask_that_is_not_named_is_not_cast() -> None:
    model = parsed(_dropout(""), 7)
    model.graph.node[0].output.append("")
    assert ops(converted(model, 26)) == ["Dropout"]


def test_a_mask_that_is_used() -> None:
    graph = "(float[3] x) => (float[3] z) { y, mask = Dropout<ratio = 0.2>(x) z = Add(y, mask) }"
    prove(graph, opset=7, target=26)


def test_the_ratios_of_a_graph_and_its_body_have_names_of_their_own() -> None:
    """The C++ converter gives both the same name, which is not valid."""
    model = parsed(
        """(bool go, float[2] x) => (float[2] z) {
            y = Dropout<ratio = 0.3>(x)
            z = If(go) <
                then_branch = yes () => (float[2] a) { a = Dropout<ratio = 0.3>(y) },
                else_branch = no () => (float[2] b) { b = Dropout<ratio = 0.3>(x) }
            >
        }""",
        10,
    )
    after = converted(model, 26)
    onnx.checker.check_model(after, full_check=True)
    branches = [attribute.g for attribute in after.graph.node[1].attribute]
    names = {one.name for graph in (after.graph, *branches) for one in graph.initializer}
    assert len(names) == 3
    feeds = {"go": np.array(True), "x": np.ones(2, np.float32)}
    np.testing.assert_array_equal(run(after, feeds), run(model, feeds))


def test_the_ratio_of_the_caller_is_left_out() -> None:
    model = "(float[2] x) => (float[2] y) { y = local.Drop<by = 0.2>(x) }"
    function = "Drop <by> (x) => (y) { y = Dropout<ratio: float = @by>(x) }"
    assert prove_call(model, function, opset=10, target=26) == ["Dropout"]


def test_a_mask_of_unknown_type_is_refused() -> None:
    model = calling(
        "(float[3] x) => (float[3] y) { y = Relu(x) }",
        "F (x) => (y, m) { y, m = Dropout(x) }",
        8,
    )
    with pytest.raises(Refused) as refused:
        converted(model, 10)
    assert refused.value.code == "unknown-type"


@pytest.mark.parametrize("opset", [12, 13])
def test_from_12_on(opset: int) -> None:
    """A ratio of 0 in training drops nothing, so it can be compared."""
    graph = """(float[2,3] x, float ratio, bool training) => (float[2,3] y, bool[2,3] mask)
        { y, mask = Dropout<seed = 5>(x, ratio, training) }"""
    for ratio, training in ((0.0, True), (0.4, False)):
        feeds = {"ratio": np.array(ratio, np.float32), "training": np.array(training)}
        prove(graph, opset=opset, target=26, feeds=feeds)
