"""The steps of Resize from 11 on, and of GridSample, run at the old opset and converted."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from calls import calling
from proving import converted, drawn, parsed, prove, run

from passes.rule import Refused

pytestmark = pytest.mark.sampled

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
