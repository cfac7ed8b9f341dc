"""The steps of Upsample, Resize and GridSample, run at the old opset and converted."""

from __future__ import annotations

import math
from itertools import pairwise, product

import numpy as np
import pytest
from calls import calling, prove_call
from proving import EVERYWHERE, converted, drawn, initializers, ops, parsed, prove, run

from passes.rule import Refused


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

# -- Upsample, and Resize-10, which does the same --------------------------------------------


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


# -- Resize from 11 on ---------------------------------------------------------------------


def _resize_11(attributes: str, scales: str = "1.0, 1.0, 1.6, 0.6") -> str:
    return f"""(float[1,2,5,6] x) => (float[1,2,H,W] y)
        <float[8] roi = {{0.0, 0.0, 0.1, 0.2, 1.0, 1.0, 0.8, 0.9}}, float[4] scales = {{{scales}}}>
        {{ y = Resize<{attributes}>(x, roi, scales) }}"""


COORDINATES = [
    "half_pixel",
    "pytorch_half_pixel",
    "align_corners",
    "asymmetric",
    "tf_crop_and_resize",
]
NEAREST = ["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"]


@pytest.mark.parametrize("coordinates", COORDINATES)
@pytest.mark.parametrize(
    "mode",
    [
        *(f'mode = "nearest", nearest_mode = "{one}"' for one in NEAREST),
        'mode = "linear", extrapolation_value = 3.0',
        'mode = "cubic", cubic_coeff_a = -0.5',
        'mode = "cubic", exclude_outside = 1',
    ],
)
def test_resize_11(coordinates: str, mode: str) -> None:
    graph = _resize_11(f'{mode}, coordinate_transformation_mode = "{coordinates}"')
    after = prove(graph, opset=11, target=26, places=["main"])
    assert list(after.graph.node[0].input) == ["x", "roi", "scales"]


def test_resize_11_everywhere() -> None:
    prove(_resize_11('mode = "linear"'), opset=11, target=26)


@pytest.mark.parametrize(("nearest", "further"), [("floor", "round_prefer_ceil"), ("", "ceil")])
@pytest.mark.parametrize("scales", ["1.0, 1.0, 2.0, 3.0", "1.0, 1.0, 0.5, 1.7"])
def test_half_a_pixel_further_is_another_rounding(nearest: str, further: str, scales: str) -> None:
    """tf_half_pixel_for_nn went with opset 13; the default rounding is round_prefer_floor."""
    rounding = f', nearest_mode = "{nearest}"' if nearest else ""
    graph = _resize_11(f'coordinate_transformation_mode = "tf_half_pixel_for_nn"{rounding}', scales)
    after = prove(graph, opset=11, target=26)
    attributes = {one.name: one.s.decode() for one in after.graph.node[0].attribute}
    assert attributes == {"coordinate_transformation_mode": "half_pixel", "nearest_mode": further}


@pytest.mark.parametrize("rounding", ["floor", "round_prefer_floor"])
def test_half_a_pixel_further_over_many_scales(rounding: str) -> None:
    for numerator, denominator in product(range(1, 12), (1, 2, 3, 5, 6, 7, 10)):
        graph = _resize_11(
            f"""coordinate_transformation_mode = "tf_half_pixel_for_nn",
                nearest_mode = "{rounding}" """,
            f"1.0, 1.0, {numerator / denominator:.9f}, {max(0.2, denominator / numerator):.9f}",
        )
        prove(graph, opset=11, target=26, places=["main"])


@pytest.mark.parametrize("other", ['nearest_mode = "ceil"', 'mode = "linear"'])
def test_half_a_pixel_further_is_refused_where_no_rounding_does_it(other: str) -> None:
    graph = _resize_11(f'coordinate_transformation_mode = "tf_half_pixel_for_nn", {other}')
    with pytest.raises(Refused) as refused:
        converted(parsed(graph, 11), 13)
    assert refused.value.code == "no-equivalent"


@pytest.mark.parametrize("target", [12, 13, 18, 26])
@pytest.mark.parametrize("empty", ["0", "E"])
def test_sizes_stand_alone_from_13_on(empty: str, target: int) -> None:
    graph = f"""(float[1,2,5,6] x, float[{empty}] none, int64[4] sizes) => (float[1,2,H,W] y)
        {{ y = Resize<mode = "linear">(x, none, none, sizes) }}"""
    feeds = {"none": np.zeros(0, np.float32), "sizes": np.array([1, 2, 9, 4])}
    after = prove(graph, opset=11, target=target, feeds=feeds, places=["main", "loop"])
    scales = "none" if target == 12 else ""
    assert list(after.graph.node[0].input) == ["x", "none", scales, "sizes"]


def test_empty_sizes_are_dropped() -> None:
    graph = """(float[1,2,5,6] x) => (float[1,2,10,12] y)
        <float[0] roi = {}, float[4] scales = {1.0, 1.0, 2.0, 2.0}, int64[0] sizes = {}>
        { y = Resize(x, roi, scales, sizes) }"""
    after = converted(parsed(graph, 11), 13)
    assert list(after.graph.node[0].input) == ["x", "roi", "scales"]
    expected = np.repeat(np.repeat(drawn(after)["x"], 2, axis=2), 2, axis=3)
    np.testing.assert_array_equal(run(after, drawn(after))[0], expected)


@pytest.mark.parametrize(
    "attributes",
    [
        'mode = "linear", antialias = 1',
        'mode = "cubic", axes = [2, 3], antialias = 1',
        'axes = [-1, -2], keep_aspect_ratio_policy = "not_larger"',
        'axes = [2, 3], mode = "linear", keep_aspect_ratio_policy = "not_smaller"',
    ],
)
def test_resize_18(attributes: str) -> None:
    sizes = "3, 4" if "axes" in attributes else "1, 2, 3, 4"
    graph = f"""(float[1,2,5,6] x) => (float[1,2,H,W] y) <int64[{sizes.count(",") + 1}] sizes =
        {{{sizes}}}> {{ y = Resize<{attributes}>(x, "", "", sizes) }}""".replace('""', "")
    prove(graph, opset=18, target=26, places=["main", "function"])


def test_the_scales_of_upsample_7_are_those_of_resize() -> None:
    after = converted(parsed(_upsample_7("linear", *GROWING[0], "float"), 7), 26)
    assert initializers(after) == {"scales": [1.0, 1.0, 2.0, 3.0]}


# -- GridSample ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("old", "new"),
    [("", ""), ("bilinear", "linear"), ("bicubic", "cubic"), ("nearest", "nearest")],
)
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("align", [0, 1])
def test_grid_sample_names_its_modes_anew(old: str, new: str, padding: str, align: int) -> None:
    mode = f', mode = "{old}"' if old else ""
    graph = f"""(float[2,3,4,5] x, float[2,3,3,2] grid) => (float[2,3,3,3] y) {{
        y = GridSample<padding_mode = "{padding}", align_corners = {align}{mode}>(x, grid) }}"""
    feeds = {"grid": np.random.default_rng(5).uniform(-1.4, 1.4, (2, 3, 3, 2)).astype(np.float32)}
    after = prove(graph, opset=16, target=26, feeds=feeds, places=["main", "function"])
    modes = [one.s.decode() for one in after.graph.node[0].attribute if one.name == "mode"]
    assert modes == ([new] if new else [])


def test_nearest_half_way_between_two_pixels() -> None:
    """Version 20 says that ties go to the even index; onnxruntime did so before."""
    graph = """(float[1,1,1,4] x, float[1,1,5,2] grid) => (float[1,1,1,5] y)
        { y = GridSample<mode = "nearest", align_corners = 1>(x, grid) }"""
    grid = np.zeros((1, 1, 5, 2), np.float32)
    grid[..., 0] = [-1, -2 / 3, 0, 2 / 3, 1]
    prove(graph, opset=16, target=26, feeds={"grid": grid})


def test_the_mode_of_the_caller_is_refused() -> None:
    model = """(float[1,1,4,4] x, float[1,2,2,2] g) => (float[1,1,2,2] y)
        { y = local.Sample<how = "bilinear">(x, g) }"""
    function = "Sample <how> (x, g) => (y) { y = GridSample<mode: string = @how>(x, g) }"
    with pytest.raises(Refused) as refused:
        converted(calling(model, function, 16), 20)
    assert refused.value.code == "attribute-reference"
