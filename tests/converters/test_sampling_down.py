"""Resize, GridSample, AffineGrid, Col2Im and Fourier transforms on their way to older opsets."""

from __future__ import annotations

from itertools import product

import numpy as np
import onnx
import pytest
from proving import EVERYWHERE, converted, initializers, ops, parsed, prove
from refusing import refusal

from passes.verify.reference import ReferenceExecutor

pytestmark = pytest.mark.sampled

ROUNDING = 1e-5
#: In a function what is fixed outside of it is not known.
OUTSIDE = ("main", "if", "loop")

# -- Resize --------------------------------------------------------------------------------


def _resize(attributes: str, scales: str = "1.0, 1.0, 2.0, 1.5", kind: str = "float") -> str:
    return f"""({kind}[1,2,4,6] x) => ({kind}[1,2,H,W] y) <float[4] scales = {{{scales}}}>
        {{ y = Resize<{attributes}>(x, , scales) }}"""


COORDINATES = ["half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric"]
MODES = [
    *(
        f'mode = "nearest", nearest_mode = "{one}"'
        for one in ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")
    ),
    'mode = "linear"',
    'mode = "cubic", cubic_coeff_a = -0.5',
    'mode = "cubic", exclude_outside = 1',
]


@pytest.mark.parametrize("scales", ["1.0, 1.0, 2.0, 1.5", "1.0, 1.0, 0.5, 1.0", "1.0, 1.0, 3, 2"])
@pytest.mark.parametrize(("mode", "coordinates"), [*product(MODES, COORDINATES)])
def test_a_resize_of_known_sizes(mode: str, coordinates: str, scales: str) -> None:
    graph = _resize(f'{mode}, coordinate_transformation_mode = "{coordinates}"', scales)
    for target in (12, 10, 9, 7):
        prove(graph, opset=18, target=target, places=["main"], rtol=ROUNDING)


@pytest.mark.parametrize("target", [11, 10, 9, 8])
def test_a_resize_everywhere(target: int) -> None:
    prove(_resize('mode = "linear"'), opset=13, target=target, rtol=ROUNDING, places=OUTSIDE)


@pytest.mark.parametrize(
    ("attributes", "scales"),
    [
        ('coordinate_transformation_mode = "asymmetric", nearest_mode = "floor"', "1, 1, 1.5, 2"),
        ('coordinate_transformation_mode = "half_pixel"', "1, 1, 3, 2"),
        ('mode = "linear", coordinate_transformation_mode = "asymmetric"', "1, 1, 1.5, 2"),
    ],
)
def test_a_resize_that_older_opsets_know_stays_for_any_size(attributes: str, scales: str) -> None:
    graph = _resize(attributes, scales).replace("1,2,4,6", "1,2,A,B")
    feeds = {"x": np.random.default_rng(1).normal(size=(1, 2, 3, 5)).astype(np.float32)}
    after = prove(graph, opset=13, target=10, feeds=feeds, places=["main"])
    assert ops(after) == ["Resize"]
    for target in (9, 7):
        after = prove(graph, opset=13, target=target, feeds=feeds, places=OUTSIDE)
        assert ops(after) == ["Upsample"]
    assert [one.name for one in after.graph.node[0].attribute][-1] == "scales"


@pytest.mark.parametrize("kind", ["int32", "uint8"])
def test_elements_of_any_type_are_picked(kind: str) -> None:
    after = prove(
        _resize('mode = "nearest"', "1, 1, 0.5, 1.5", kind), opset=13, target=9, places=OUTSIDE
    )
    assert ops(after) == ["Gather", "Gather", "Identity"]


def test_an_infinity_stays_where_it_is() -> None:
    x = np.arange(48, dtype=np.float32).reshape(1, 2, 4, 6)
    x[0, 0, 0, 0] = np.inf
    graph = _resize('mode = "linear"')
    prove(graph, opset=13, target=9, feeds={"x": x}, rtol=ROUNDING, places=["main"])


@pytest.mark.parametrize("target", [12, 10, 9])
def test_sizes(target: int) -> None:
    graph = """(float[1,2,4,6] x) => (float[1,2,H,W] y) <int64[4] sizes = {1, 2, 9, 4}>
        { y = Resize<mode = "linear">(x, , , sizes) }"""
    prove(graph, opset=13, target=target, rtol=ROUNDING, places=OUTSIDE)


@pytest.mark.parametrize("target", [17, 12])
@pytest.mark.parametrize(
    ("attributes", "sizes"),
    [
        ("axes = [-1, 2]", "9, 3"),
        ('axes = [2, 3], keep_aspect_ratio_policy = "not_larger"', "8, 13"),
        ('axes = [2, 3], keep_aspect_ratio_policy = "not_smaller"', "7, 12"),
    ],
)
def test_axes_and_policies(attributes: str, sizes: str, target: int) -> None:
    graph = f"""(float[1,2,4,6] x) => (float[1,2,H,W] y) <int64[2] sizes = {{{sizes}}}>
        {{ y = Resize<{attributes}, mode = "linear">(x, , , sizes) }}"""
    prove(graph, opset=18, target=target, places=OUTSIDE)


@pytest.mark.parametrize("given", ["float[2] s", "int64[2] s"])
def test_axes_of_what_is_not_known(given: str) -> None:
    call = "(x, , s)" if "float" in given else "(x, , , s)"
    graph = f"""(float[1,2,A,6] x, {given}) => (float[1,2,H,W] y)
        {{ y = Resize<axes = [3, 2], mode = "linear">{call} }}"""
    values = {"s": np.array([2, 3], np.float32 if "float" in given else np.int64)}
    prove(graph, opset=18, target=13, feeds=values)


def test_the_regions_of_named_axes() -> None:
    graph = """(float[1,2,4,6] x) => (float[1,2,H,W] y)
        <float[4] roi = {0.1, 0.2, 0.8, 0.9}, float[2] s = {2, 3}>
        { y = Resize<axes = [3, 2], mode = "linear",
            coordinate_transformation_mode = "tf_crop_and_resize">(x, roi, s) }"""
    prove(graph, opset=18, target=13)


@pytest.mark.parametrize("scales", ["1, 1, 2, 3", "1, 1, 1.3, 1.7"])
def test_half_pixel_symmetric(scales: str) -> None:
    for mode, target in product(("linear", "cubic"), (18, 9)):
        attributes = f'coordinate_transformation_mode = "half_pixel_symmetric", mode = "{mode}"'
        prove(_resize(attributes, scales), opset=19, target=target, rtol=1e-4, places=["main"])


@pytest.mark.parametrize(
    ("graph", "opset", "target", "words"),
    [
        (_resize('mode = "linear", antialias = 1', "1, 1, 0.5, 1"), 18, 17, "may shrink an axis"),
        (
            _resize('mode = "linear"').replace("4,6", "A,B"),
            13,
            10,
            "unknown-rank: the size of axis 2 of 'x' is not known",
        ),
        (_resize('mode = "linear"', kind="int32"), 13, 10, "int32 is rounded otherwise"),
        (
            _resize(
                'mode = "linear", coordinate_transformation_mode = "align_corners"', "1,1,1.3,2"
            ),
            13,
            10,
            "runtimes differ in the corners of a fractional size",
        ),
        (
            """(float[1,2,4,6] x, float[4] s) => (float[1,2,H,W] y) {
            y = Resize<mode = "linear">(x, , s) }""",
            13,
            10,
            "not-constant: which elements Resize reads",
        ),
        (
            """(float[1,1,4,6] x) => (float[1,1,H,W] y) <int64[2] s = {7, 11}>
            { y = Resize<axes = [2, 3], keep_aspect_ratio_policy = "not_larger">(x, , , s) }""",
            18,
            17,
            "Resize-13 takes no scales beside the sizes",
        ),
        (
            """(float[4,4] x) => (float[H,W] y) <float[2] s = {0.5, 2.0}>
            { y = Resize(x, s) }""",
            10,
            9,
            "Upsample-9 does not shrink, and other axes grow",
        ),
        (
            "(float[4,4] x, float[2] s) => (float[H,W] y) { y = Upsample(x, s) }",
            9,
            8,
            "not-constant: Upsample takes scales from 's'",
        ),
    ],
)
def test_what_resize_cannot_say(graph: str, opset: int, target: int, words: str) -> None:
    assert words in refusal(graph, opset=opset, target=target)


# -- GridSample, AffineGrid and Col2Im -----------------------------------------------------


@pytest.mark.parametrize("mode", ["", ', mode = "cubic"', ', mode = "nearest"'])
def test_grid_sample_names_its_modes_as_before(mode: str) -> None:
    graph = f"""(float[2,3,4,5] x, float[2,3,3,2] grid) => (float[2,3,3,3] y)
        {{ y = GridSample<align_corners = 1{mode}>(x, grid) }}"""
    prove(graph, opset=20, target=16)


@pytest.mark.parametrize("target", [15, 11])
@pytest.mark.parametrize("mode", ["linear", "nearest"])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("align", [0, 1])
@pytest.mark.parametrize(("x", "grid"), [("2,3,4,5", "2,3,3,2"), ("B,2,3,4,5", "B,2,3,2,3")])
def test_grid_sample_reads_by_gather(
    x: str, grid: str, align: int, padding: str, mode: str, target: int
) -> None:
    out = ",".join(["B" if "B" in x else "2", x.split(",")[1], *grid.split(",")[1:-1]])
    graph = f"""(float[{x}] x, float[{grid}] grid) => (float[{out}] y) {{ y = GridSample<
        align_corners = {align}, mode = "{mode}", padding_mode = "{padding}">(x, grid) }}"""
    shape = [2 if size == "B" else int(size) for size in grid.split(",")]
    feeds = {"grid": np.random.default_rng(4).uniform(-2.5, 2.5, shape).astype(np.float32)}
    places = EVERYWHERE if (target, mode) == (11, "linear") else ["main"]
    after = prove(graph, opset=20, target=target, feeds=feeds, rtol=1e-4, places=places)
    assert "GridSample" not in ops(after)


@pytest.mark.parametrize(
    ("x", "attributes", "words"),
    [
        ("float[1,1,4,4]", 'mode = "cubic"', "runtimes differ in what is cubic"),
        ("float[1,1,A,4]", 'mode = "linear"', "unknown-rank: the sizes of 'x' are not known"),
        ("int32[1,1,4,4]", 'mode = "linear"', "int32 is rounded otherwise"),
        (
            "float[1,1,1,4]",
            'padding_mode = "reflection", align_corners = 1',
            "runtimes differ in the mirror of one element",
        ),
    ],
)
def test_grid_sample_refused(x: str, attributes: str, words: str) -> None:
    graph = f"""({x} x, float[1,2,2,2] g) => ({x.split("[", maxsplit=1)[0]}[1,1,2,2] y)
        {{ y = GridSample<{attributes}>(x, g) }}"""
    assert words in refusal(graph, opset=20, target=15)


@pytest.mark.parametrize("corners", [0, 1])
@pytest.mark.parametrize("batch", [1, 2])
@pytest.mark.parametrize(("rows", "sizes"), [(2, [3, 5]), (3, [2, 3, 4])], ids=["flat", "deep"])
@pytest.mark.parametrize("fixed", [True, False])
def test_affine_grid(fixed: bool, rows: int, sizes: list[int], batch: int, corners: int) -> None:
    count, out = rows + 2, ",".join("DHW"[-rows:])
    size = np.array([batch, 1, *sizes])
    given = f"int64[{count}] s"
    inputs = "" if fixed else f", {given}"
    values = f"<{given} = {{{', '.join(map(str, size))}}}>" if fixed else ""
    graph = f"""(float[{batch},{rows},{rows + 1}] t{inputs}) => (float[{batch},{out},{rows}] y)
        {values} {{ y = AffineGrid<align_corners = {corners}>(t, s) }}"""
    feeds = {} if fixed else {"s": size}
    for target in (19, 12, 11, *[9, 7] * fixed):
        places = EVERYWHERE if target == 12 else ["main"]
        prove(graph, opset=20, target=target, feeds=feeds, rtol=ROUNDING, places=places)


def test_a_single_pixel_has_no_corners() -> None:
    graph = """(float[1,2,3] t) => (float[1,1,3,2] y) <int64[4] s = {1, 1, 1, 3}>
        { y = AffineGrid<align_corners = 1>(t, s) }"""
    assert "corners of a single pixel" in refusal(graph, opset=20, target=19)


@pytest.mark.parametrize("target", [17, 12, 9, 7])
@pytest.mark.parametrize(
    ("attributes", "image", "block", "count"),
    [
        ("", [5, 5], [1, 5], 5),
        ("strides = [2, 3]", [5, 7], [2, 3], 4),
        ("pads = [1, 0, 1, 2]", [4, 5], [2, 3], 25),
        ("dilations = [2, 1]", [6, 6], [2, 3], 16),
        ("", [3, 4, 5], [2, 2, 2], 24),
    ],
)
def test_col2im(
    attributes: str, image: list[int], block: list[int], count: int, target: int
) -> None:
    rank, channels = len(image), 2 * int(np.prod(block))
    said = [", ".join(map(str, one)) for one in (image, block)]
    graph = f"""(float[2,{channels},{count}] x) => (float[2,2,{",".join("ABC"[:rank])}] y)
        <int64[{rank}] image = {{{said[0]}}}, int64[{rank}] block = {{{said[1]}}}>
        {{ y = Col2Im{f"<{attributes}>" if attributes else ""}(x, image, block) }}"""
    places = OUTSIDE if target == 9 else ["main"]
    prove(graph, opset=18, target=target, places=places, rtol=1e-6)


# -- Fourier transforms --------------------------------------------------------------------


def _same_in_reference(graph: str, *, opset: int, target: int) -> list[str]:
    """The ops after the conversion, which onnx's reference finds to be as exact: onnxruntime's
    own transforms are off by some 1e-4."""
    model = parsed(graph, opset)
    rng = np.random.default_rng(5)
    feeds = {}
    for value in model.graph.input:
        tensor = value.type.tensor_type
        shape = [dim.dim_value for dim in tensor.shape.dim]
        dtype = onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type)
        feeds[value.name] = np.asarray(rng.normal(size=shape), dtype)
    after = converted(model, target)
    onnx.checker.check_model(after, full_check=True)
    reference = ReferenceExecutor()
    before, then = (reference.run(one, feeds, timeout=60).outputs for one in (model, after))
    for name, expected in before.items():
        assert then[name].dtype == expected.dtype
        np.testing.assert_allclose(then[name], expected, rtol=1e-4, atol=1e-5)
    return ops(after)


@pytest.mark.parametrize("target", [19, 16, 9, 7])
@pytest.mark.parametrize("length", ["", "5", "9"])
@pytest.mark.parametrize(
    ("attributes", "parts"),
    [("", 1), ("", 2), ("inverse = 1", 2), ("onesided = 1", 1), ("inverse = 1, onesided = 1", 2)],
)
@pytest.mark.parametrize("axis", ["", "1", "-3"])
def test_dft(axis: str, attributes: str, parts: int, length: str, target: int) -> None:
    fixed = [f"int64 n = {{{length}}}"] * bool(length) + [f"int64 a = {{{axis}}}"] * bool(axis)
    said = f"<{attributes}>" if attributes else ""
    inputs = f"x, {'n' if length else ''}, {'a' if axis else ''}".rstrip(", ")
    graph = f"""(float[2,6,7,{parts}] x) => (float[2,B,C,D] y)
        {f"<{', '.join(fixed)}>" if fixed else ""} {{ y = DFT{said}({inputs}) }}"""
    found = _same_in_reference(graph, opset=20, target=target)
    assert ("DFT" in found) == (target == 19)


def test_a_dft_of_unknown_length() -> None:
    graph = "(float[2,N,1] x) => (float[2,N,2] y) { y = DFT(x) }"
    assert refusal(graph, opset=20, target=16).startswith("unknown-rank: the sizes of 'x'")
    graph = "(float[2,4,1] x, int64 a) => (float[2,B,C] y) { y = DFT(x, , a) }"
    assert refusal(graph, opset=20, target=19).startswith("not-constant: DFT takes the axis from")


@pytest.mark.parametrize("target", [16, 9, 7])
@pytest.mark.parametrize("sided", [0, 1])
@pytest.mark.parametrize("window", ["", "fixed", "fed"])
def test_stft(window: str, sided: int, target: int) -> None:
    fixed = ["int64 step = {3}", "int64 n = {8}"]
    fixed += ["float[8] w = {1, 2, 3, 4, 4, 3, 2, 1}"] * (window == "fixed")
    graph = f"""(float[2,20,1] x{", float[8] w" if window == "fed" else ""})
        => (float[2,A,B,2] y) <{", ".join(fixed)}>
        {{ y = STFT<onesided = {sided}>(x, step, {"w" if window else ""}, n) }}"""
    assert "Conv" in _same_in_reference(graph, opset=17, target=target)


@pytest.mark.parametrize("target", [16, 9])
@pytest.mark.parametrize("op", ["HannWindow", "HammingWindow", "BlackmanWindow"])
@pytest.mark.parametrize("attributes", ["", "<periodic = 0>", "<output_datatype = 11>"])
def test_windows(op: str, attributes: str, target: int) -> None:
    kind = "double" if "11" in attributes else "float"
    graph = f"() => ({kind}[10] y) <int32 n = {{10}}> {{ y = {op}{attributes}(n) }}"
    after = prove(graph, opset=17, target=target, rtol=ROUNDING, places=OUTSIDE)
    assert ops(after) == ["Identity"]
    fed = f"(int32 n) => ({kind}[A] y) {{ y = {op}{attributes}(n) }}"
    prove(fed, opset=17, target=16, feeds={"n": np.array(7, np.int32)}, rtol=ROUNDING)


def test_mel_weight_matrix() -> None:
    graph = """() => (float[A,B] y)
        <int64 b = {6}, int64 n = {64}, int64 r = {8000}, float l = {20.0}, float h = {3800.0}>
        { y = MelWeightMatrix(b, n, r, l, h) }"""
    after = prove(graph, opset=17, target=9, rtol=ROUNDING, places=OUTSIDE)
    assert ops(after) == ["Identity"]
    assert [*initializers(after)][-1].startswith("weights")
    fed = """(int64 b) => (float[A,B] y)
        <int64 n = {64}, int64 r = {8000}, float l = {20.0}, float h = {3800.0}>
        { y = MelWeightMatrix(b, n, r, l, h) }"""
    assert "only known at run time" in refusal(fed, opset=17, target=16)
