"""The steps of Upsample and of Resize-10, run at the old opset and converted."""

from __future__ import annotations

import math
from itertools import pairwise, product

import numpy as np
import pytest
from calls import calling, prove_call
from proving import EVERYWHERE, converted, initializers, ops, parsed, prove

from passes.rule import Refused

pytestmark = pytest.mark.sampled


def _floats(values: tuple[float, ...]) -> str:
    return ", ".join(str(float(value)) for value in values)


def _shape(sizes: tuple[int, ...]) -> str:
    return ",".join(map(str, sizes))


def _resized(sizes: tuple[int, ...], scales: tuple[float, ...]) -> tuple[int, ...]:
    """floor(size * scale), with float scales."""
    return tuple(
        math.floor(size * np.float32(scale)) for size, scale in zip(sizes, scales, strict=True)
    )


def _upsample_7(mode: str, x: tuple[int, ...], scales: tuple[float, ...], kind: str) -> str:
    y = _shape(_resized(x, scales))
    return f"""({kind}[{_shape(x)}] x) => ({kind}[{y}] y)
        {{ y = Upsample<mode = "{mode}", scales = [{_floats(scales)}]>(x) }}"""


def _resize_10(mode: str, x: tuple[int, ...], scales: tuple[float, ...], kind: str) -> str:
    y = ",".join("ABCDEF"[: len(x)])
    return f"""({kind}[{_shape(x)}] x) => ({kind}[{y}] y)
        <float[{len(x)}] scales = {{{_floats(scales)}}}>
        {{ y = Resize<mode = "{mode}">(x, scales) }}"""


GROWING = [
    ((1, 2, 3, 4), (1, 1, 2, 3)),
    ((1, 2, 3, 4), (1, 1, 1.5, 2.7)),
    ((1, 2, 1, 5), (1, 1, 3, 1.3)),
    ((5, 7), (2, 2.5)),
    ((2, 3, 5), (1, 1.4, 3.3)),
]
SHRINKING = [
    ((1, 2, 5, 7), (1, 1, 0.6, 0.5)),
    ((1, 2, 5, 7), (1, 1, 1, 0.3)),
    ((9, 7), (0.6, 0.45)),
]
BOTH = [
    ((1, 2, 5, 7), (1, 1, 0.6, 1.7)),
    ((5, 7), (1.3, 0.7)),
    ((1, 5, 7, 2), (1, 1.5, 0.7, 1)),
    ((4, 4), (1.2, 0.5)),  # the axis that grows keeps its size
]
ANY_RANK = [((7,), (1.7,)), ((1, 2, 3, 2, 3, 2), (2, 1, 1.5, 1, 1.3, 2))]


@pytest.mark.parametrize("mode", ["nearest", "linear"])
@pytest.mark.parametrize(("x", "scales"), GROWING)
def test_upsample_becomes_resize(x: tuple[int, ...], scales: tuple[float, ...], mode: str) -> None:
    """Positions are i / scale, as they were: the C++ converter reads (i + 0.5) / scale - 0.5."""
    after = prove(_upsample_7(mode, x, scales, "float"), opset=7, target=26)
    assert ops(after) == ["Resize"]
    assert list(after.graph.node[0].input) == ["x", "", "scales"]
    prove(_upsample_7(mode, x, scales, "float"), opset=7, target=10)


@pytest.mark.parametrize(("x", "scales"), ANY_RANK)
def test_upsample_by_nearest_at_any_rank(x: tuple[int, ...], scales: tuple[float, ...]) -> None:
    prove(_upsample_7("nearest", x, scales, "float"), opset=7, target=26)


@pytest.mark.parametrize("mode", ["nearest", "linear"])
def test_upsample_by_scales_that_are_not_known(mode: str) -> None:
    """They are not less than 1, so one Resize does it."""
    graph = f"""(float[1,2,5,7] x, float[4] scales) => (float[1,2,H,W] y)
        {{ y = Upsample<mode = "{mode}">(x, scales) }}"""
    feeds = {"scales": np.array([1, 1, 1.3, 2], np.float32)}
    assert ops(prove(graph, opset=9, target=26, feeds=feeds)) == ["Resize"]


@pytest.mark.parametrize("mode", ["nearest", "linear"])
@pytest.mark.parametrize("kind", ["int32", "uint8"])
def test_upsample_of_integers(kind: str, mode: str) -> None:
    prove(_upsample_7(mode, (1, 2, 3, 4), (1, 1, 1.5, 2.7), kind), opset=7, target=26)


@pytest.mark.parametrize("target", [11, 12, 13, 18, 19, 26])
@pytest.mark.parametrize("mode", ["nearest", "linear"])
@pytest.mark.parametrize(("x", "scales"), [GROWING[1], SHRINKING[0]])
def test_resize_10(x: tuple[int, ...], scales: tuple[float, ...], mode: str, target: int) -> None:
    places = EVERYWHERE if target == 26 else ["main"]
    after = prove(_resize_10(mode, x, scales, "float"), opset=10, target=target, places=places)
    assert ops(after) == ["Resize"]


@pytest.mark.parametrize("mode", ["nearest", "linear"])
@pytest.mark.parametrize(("x", "scales"), [*GROWING, *SHRINKING, *BOTH])
def test_resize_10_up_and_down(x: tuple[int, ...], scales: tuple[float, ...], mode: str) -> None:
    graph = _resize_10(mode, x, scales, "float")
    prove(graph, opset=10, target=26, places=["main", "function"])


def test_nearest_rounds_up_where_it_shrinks_and_down_where_it_grows() -> None:
    """Resize-11 rounds one way, so an axis that shrinks and one that grows take two."""
    after = prove(_resize_10("nearest", *BOTH[0], "float"), opset=10, target=26)
    assert ops(after).count("Resize") == 2
    rounding = [
        one.s.decode()
        for node in after.graph.node
        for one in node.attribute
        if one.name == "nearest_mode"
    ]
    assert rounding == ["ceil", "floor"]


@pytest.mark.parametrize(
    "scales",
    [GROWING[1][1], SHRINKING[0][1], BOTH[0][1], (1, 1, 1.1, 1.1), (1, 1, 1.1, 0.5), (1, 1, 1, 1)],
)
@pytest.mark.parametrize("mode", ["nearest", "linear"])
def test_resize_10_by_scales_that_are_not_known(mode: str, scales: tuple[float, ...]) -> None:
    graph = f"""(float[1,2,5,7] x, float[4] scales) => (float[1,2,H,W] y)
        {{ y = Resize<mode = "{mode}">(x, scales) }}"""
    feeds = {"scales": np.array(scales, np.float32)}
    after = prove(graph, opset=10, target=26, feeds=feeds)
    assert ops(after).count("Resize") == (2 if mode == "nearest" else 1)


@pytest.mark.parametrize("mode", ["nearest", "linear"])
@pytest.mark.parametrize("target", [11, 13, 18, 19])
def test_resize_10_over_many_scales(mode: str, target: int) -> None:
    """i / scale comes close to whole numbers, where rounding could go the other way."""
    sizes, scales = (2, 3, 5, 8), [n / d for n, d in product(range(1, 8), (1, 3, 5, 7, 10))]
    for size, (high, wide) in product(sizes, pairwise(scales)):
        if min(size * high, size * wide) < 1:
            continue
        graph = _resize_10(mode, (1, 1, size, size), (1, 1, high, wide), "float")
        prove(graph, opset=10, target=target, places=["main"])


def test_the_mode_of_the_caller_may_be_either_where_one_resize_is_enough() -> None:
    model = '(float[1,1,2,3] x) => (float[1,1,4,6] y) { y = local.Up<how = "linear">(x) }'
    function = """Up <how> (x) => (y) {
        s = Constant<value = float[4] {1.0, 1.0, 2.0, 2.0}>()
        y = Resize<mode: string = @how>(x, s)
    }"""
    assert prove_call(model, function, opset=10, target=26) == ["Constant", "Resize"]
    with pytest.raises(Refused) as refused:
        converted(calling(model, function.replace("2.0, 2.0", "2.0, 0.5"), 10), 26)
    assert refused.value.code == "attribute-reference"


def test_the_scales_of_upsample_7_are_those_of_resize() -> None:
    after = converted(parsed(_upsample_7("linear", *GROWING[0], "float"), 7), 26)
    assert initializers(after) == {"scales": [1.0, 1.0, 2.0, 3.0]}


def test_the_scales_of_the_caller() -> None:
    model = """(float[1,1,2,3] x) => (float[1,1,4,6] y)
        { y = local.Up<by = [1.0, 1.0, 2.0, 2.0]>(x) }"""
    function = "Up <by> (x) => (y) { y = Upsample<scales: floats = @by>(x) }"
    assert prove_call(model, function, opset=8, target=26) == ["Constant", "Resize"]
