"""The steps of Clip, run at the old opset and converted."""

from __future__ import annotations

import numpy as np
import pytest
from calls import calling, prove_call
from onnx.reference import ReferenceEvaluator
from proving import converted, drawn, initializers, ops, parsed, prove, run

from passes.rule import Refused

pytestmark = pytest.mark.sampled

LARGEST = float(np.finfo(np.float32).max)
SPECIAL = np.array([np.nan, np.inf, -np.inf, -0.0, 0.0, 3e38, -3e38, 0.5], np.float32)


def _clip(attributes: str, kind: str = "float") -> str:
    given = f"<{attributes}>" if attributes else ""
    return f"({kind}[8] x) => ({kind}[8] y) {{ y = Clip{given}(x) }}"


@pytest.mark.parametrize("target", [11, 12, 13, 26])
@pytest.mark.parametrize(
    ("attributes", "bounds"),
    [
        ("min = -1.0, max = 1.5", [-1.0, 1.5]),
        ("min = 0.0", [0.0, LARGEST]),
        ("max = 6.0", [-LARGEST, 6.0]),
        ("", [-LARGEST, LARGEST]),
    ],
)
def test_bounds_become_inputs(attributes: str, bounds: list[float], target: int) -> None:
    """A missing bound is the largest float, which clips an infinity."""
    after = prove(_clip(attributes), opset=7, target=target, feeds={"x": SPECIAL})
    assert ops(after) == ["Clip"]
    assert list(initializers(after).values()) == bounds
    assert not after.graph.node[0].attribute


def test_equal_bounds_are_one_initializer() -> None:
    after = prove(_clip("min = 1.0, max = 1.0"), opset=7, target=26)
    assert initializers(after) == {"min": 1.0}


def test_a_scalar_is_clipped() -> None:
    prove("(float x) => (float y) { y = Clip<max = 0.5>(x) }", opset=7, target=26)


def test_the_bounds_of_float16_may_be_infinite() -> None:
    """3.4e38 is more than float16 holds, so Clip-6 without bounds keeps an infinity."""
    feeds = {"x": np.array([np.nan, np.inf, -np.inf, -0.0, 0.0, 65504, -65504, 0.5], np.float16)}
    prove(_clip("", "float16"), opset=7, target=26, feeds=feeds)
    prove(_clip("min = -1.0", "float16"), opset=7, target=26, feeds=feeds)


@pytest.mark.parametrize("attributes", ["", "max = 0.1", "min = 0.1"])
def test_the_bounds_of_double_are_those_of_float(attributes: str) -> None:
    """onnxruntime has no Clip-6 of double; the reference runs it."""
    model = parsed(_clip(attributes, "double"), 7)
    feeds = {"x": np.array([1e300, -1e300, np.inf, -np.inf, np.nan, -0.0, 0.1, 7.0])}
    (expected,) = ReferenceEvaluator(model).run(None, feeds)
    (actual,) = run(converted(model, 26), feeds)
    np.testing.assert_array_equal(actual, expected)


CALLED = "F <low> (x) => (y) { y = Clip<min: float = @low>(x) }"


@pytest.mark.parametrize("kind", ["float", "float16"])
def test_a_referenced_bound_becomes_a_constant_that_refers(kind: str) -> None:
    model = f"({kind}[8] x) => ({kind}[8] y) {{ y = local.F<low = 0.5>(x) }}"
    prove_call(model, CALLED, opset=7, target=26)


def test_a_bound_is_cast_to_the_type_that_each_call_has() -> None:
    """Called with float and float16, the function's input has no type of its own."""
    model = """(float[8] x, float16[8] h) => (float[8] y, float16[8] z)
        { y = local.F<low = 0.5>(x) z = local.F<low = -1.0>(h) }"""
    assert prove_call(model, CALLED, opset=7, target=26) == [
        "Constant",
        "Constant",
        "CastLike",
        "CastLike",
        "Clip",
    ]


def test_a_type_that_is_not_known_is_refused_where_there_is_no_cast_like() -> None:
    model = """(float[8] x, float16[8] h) => (float[8] y, float16[8] z)
        { y = local.F(x) z = local.F(h) }"""
    before = calling(model, "F (x) => (y) { y = Clip<min = 0.0>(x) }", 7)
    with pytest.raises(Refused) as refused:
        converted(before, 13)
    assert refused.value.code == "unknown-type"
    assert drawn(before).keys() == {"x", "h"}


def test_a_bound_that_one_call_leaves_out_is_refused() -> None:
    """Nothing can say whether an attribute is there, nor can its default be the schema's."""
    model = """(float[8] x) => (float[8] y, float[8] z)
        { y = local.F<low = 0.5>(x) z = local.F(x) }"""
    with pytest.raises(Refused) as refused:
        converted(calling(model, CALLED, 7), 26)
    assert refused.value.code == "attribute-reference"
    assert refused.value.culprits == ("local.F/clip_0",)


@pytest.mark.parametrize("kind", ["int8", "uint8", "int64", "uint64", "double"])
def test_clip_12(kind: str) -> None:
    graph = f"({kind}[4] x, {kind} a, {kind} b) => ({kind}[4] y) {{ y = Clip(x, a, b) }}"
    feeds = {"a": np.array(2, kind), "b": np.array(5, kind)}
    assert ops(prove(graph, opset=12, target=26, feeds=feeds)) == ["Clip"]


def test_where_min_is_above_max_the_maximum_wins() -> None:
    feeds = {"a": np.array(2, np.float32), "b": np.array(1, np.float32)}
    graph = "(float[4] x, float a, float b) => (float[4] y) { y = Clip(x, a, b) }"
    prove(graph, opset=11, target=26, feeds=feeds)
