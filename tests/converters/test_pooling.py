"""The steps of pooling ops and convolutions, run at the old opset and converted."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from onnx.defs import get_schema
from proving import ops, prove

from passes.converters.steps import STEPS, Identical

pytestmark = pytest.mark.sampled

PADDING = [
    "",
    "pads = [1, 0, 0, 1]",
    'auto_pad = "SAME_UPPER"',
    'auto_pad = "SAME_LOWER"',
    'auto_pad = "VALID"',
]
STRIDES = ["", "strides = [2, 3]"]
KINDS = [", ".join(filter(None, both)) for both in product(PADDING, STRIDES)]
CEILED = [f"ceil_mode = 1, {kind}".rstrip(", ") for kind in KINDS]


def _pool(op: str, attributes: str, kind: str = "float", outputs: str = "y") -> str:
    """Odd and even sizes, so that padding may be uneven and windows may stick out."""
    both = f"{kind}[1,2,H,W] y" + (", int64[1,2,H,W] i" if outputs != "y" else "")
    attributes = f"kernel_shape = [3, 2], {attributes}".rstrip(", ")
    return f"({kind}[1,2,8,7] x) => ({both}) {{ {outputs} = {op}<{attributes}>(x) }}"


#: onnxruntime has another kernel for AveragePool from 19 on, which sums in another order.
ROUNDING = {"AveragePool": 1e-6, "LpPool": 0.0, "MaxPool": 0.0}

# -- AveragePool, MaxPool and LpPool -------------------------------------------------------


@pytest.mark.parametrize("attributes", KINDS)
@pytest.mark.parametrize("op", ["AveragePool", "MaxPool", "LpPool"])
def test_pools(op: str, attributes: str) -> None:
    after = prove(_pool(op, attributes), opset=7, target=26, rtol=ROUNDING[op])
    assert ops(after) == [op]


@pytest.mark.parametrize("attributes", KINDS)
def test_average_pool_counts_the_padding(attributes: str) -> None:
    graph = _pool("AveragePool", f"count_include_pad = 1, {attributes}")
    prove(graph, opset=7, target=26, places=["main"], rtol=ROUNDING["AveragePool"])
    prove(graph, opset=7, target=18)


@pytest.mark.parametrize("attributes", ["p = 1", "p = 3, pads = [1, 1, 1, 1]"])
def test_lp_pool(attributes: str) -> None:
    prove(_pool("LpPool", attributes), opset=7, target=26)


@pytest.mark.parametrize("attributes", CEILED)
@pytest.mark.parametrize("opset", [10, 11, 12, 19])
@pytest.mark.parametrize(
    ("op", "more"),
    [("AveragePool", ""), ("AveragePool", "count_include_pad = 1, "), ("MaxPool", "")],
)
def test_pools_with_ceil_mode(op: str, more: str, opset: int, attributes: str) -> None:
    graph = _pool(op, more + attributes)
    prove(graph, opset=opset, target=26, places=["main"], rtol=ROUNDING[op])


@pytest.mark.parametrize("attributes", CEILED)
def test_lp_pool_with_ceil_mode(attributes: str) -> None:
    prove(_pool("LpPool", attributes), opset=18, target=26, places=["main"])


@pytest.mark.parametrize("op", ["AveragePool", "MaxPool"])
def test_a_window_that_starts_in_the_padding_is_left_out(op: str) -> None:
    """Version 22 says so; onnxruntime did so before, and onnx's shape inference did not.

    So the node cannot run in a body below 22: onnxruntime believes the inferred shape there.
    """
    graph = f"""(float[1,1,3] x) => (float[1,1,N] y)
        {{ y = {op}<ceil_mode = 1, kernel_shape = [2], strides = [3], pads = [0, 1]>(x) }}"""
    for opset in (10, 12, 19):
        prove(graph, opset=opset, target=26, places=["main", "function"])


@pytest.mark.parametrize("op", ["AveragePool", "LpPool", "MaxPool"])
def test_dilations(op: str) -> None:
    graph = _pool(op, "dilations = [2, 3], pads = [1, 1, 1, 1], ceil_mode = 1")
    prove(graph, opset=19, target=26, places=["main", "function"])


@pytest.mark.parametrize("kind", ["float", "double", "uint8"])
@pytest.mark.parametrize("attributes", ["", "storage_order = 1, pads = [1, 1, 0, 0]"])
def test_indices_of_max_pool(attributes: str, kind: str) -> None:
    for opset in (12,) if kind == "uint8" else (8, 10, 11, 12):
        prove(_pool("MaxPool", attributes, kind, "y, i"), opset=opset, target=26, places=["main"])


def test_max_pool_of_nan_and_infinity() -> None:
    feeds = {"x": np.array([[[np.nan, 1, -np.inf, np.inf, -0.0, 0.0]]], np.float32)}
    graph = """(float[1,1,6] x) => (float[1,1,N] y)
        { y = MaxPool<kernel_shape = [2], pads = [1, 1]>(x) }"""
    prove(graph, opset=7, target=26, feeds=feeds)


@pytest.mark.parametrize("x", ["2,3,4", "2,3,4,5", "2,3,2,3,4"])
@pytest.mark.parametrize("op", ["GlobalAveragePool", "GlobalMaxPool"])
def test_global_pools(op: str, x: str) -> None:
    ones = ",".join("1" for _ in x.split(",")[2:])
    graph = f"(float[{x}] x) => (float[2,3,{ones}] y) {{ y = {op}(x) }}"
    prove(graph, opset=7, target=26)


@pytest.mark.parametrize(
    ("op", "inputs"), [("GlobalLpPool", 1), ("MaxRoiPool", 2), ("RoiAlign", 3)]
)
def test_what_onnxruntime_has_no_kernel_for_from_22_on(op: str, inputs: int) -> None:
    """Version 22 adds bfloat16 and changes nothing else."""
    step, old, new = STEPS[op, 22], get_schema(op, 21), get_schema(op, 22)
    assert isinstance(step, Identical)
    assert old.doc == new.doc
    assert list(old.attributes) == list(new.attributes)
    assert len(old.inputs) == inputs
    for was, now in zip((*old.inputs, *old.outputs), (*new.inputs, *new.outputs), strict=True):
        assert was.description == now.description
        assert set(now.types) - set(was.types) <= {"tensor(bfloat16)"}


@pytest.mark.parametrize("shape", ["", "s"])
def test_max_unpool(shape: str) -> None:
    inputs = f"x, at, {shape}".rstrip(", ")
    graph = f"""(float[1,1,2,2] x, int64[1,1,2,2] at) => (float[1,1,H,W] y)
        <int64[4] s = {{1, 1, 5, 5}}>
        {{ y = MaxUnpool<kernel_shape = [2, 2], strides = [2, 2]>({inputs}) }}"""
    feeds = {"at": np.array([[[[5, 7], [13, 15]]]])}
    for opset in (9, 11):
        prove(graph, opset=opset, target=26, feeds=feeds)


# -- regions -------------------------------------------------------------------------------

REGIONS = np.array([[0.3, 0.4, 7.6, 5.2], [2, 1, 3, 2], [0, 0, 9, 9]], np.float32)


@pytest.mark.parametrize("mode", ["", 'mode = "avg", ', 'mode = "max", '])
@pytest.mark.parametrize("ratio", [0, 2])
def test_roi_align_does_not_move_by_half_a_pixel(ratio: int, mode: str) -> None:
    graph = f"""(float[2,3,8,9] x, float[3,4] r, int64[3] b) => (float[3,3,2,3] y) {{
        y = RoiAlign<{mode}output_height = 2, output_width = 3, sampling_ratio = {ratio},
            spatial_scale = 0.9>(x, r, b) }}"""
    feeds = {"r": REGIONS, "b": np.array([0, 1, 1])}
    after = prove(graph, opset=10, target=21, feeds=feeds)
    coordinates = [one.s for one in after.graph.node[0].attribute if one.name.startswith("coord")]
    assert coordinates == [b"output_half_pixel"]


# -- convolutions --------------------------------------------------------------------------


@pytest.mark.parametrize("attributes", ["", *KINDS, "group = 2", "dilations = [2, 1]"])
def test_conv(attributes: str) -> None:
    channels = 1 if "group" in attributes else 2
    graph = f"""(float[1,2,8,7] x, float[4,{channels},3,2] w, float[4] b) => (float[1,4,H,W] y)
        {{ y = Conv{f"<{attributes.rstrip(', ')}>" if attributes else ""}(x, w, b) }}"""
    assert ops(prove(graph, opset=7, target=26)) == ["Conv"]


@pytest.mark.parametrize(
    "attributes",
    [
        *(kind for kind in KINDS if kind),
        "strides = [2, 2], output_padding = [1, 0]",
        "strides = [2, 3], output_shape = [17, 20]",
        'strides = [2, 3], output_shape = [16, 20], auto_pad = "SAME_UPPER"',
        'strides = [2, 3], output_shape = [16, 20], auto_pad = "SAME_LOWER"',
        "group = 2, dilations = [2, 1]",
    ],
)
def test_conv_transpose(attributes: str) -> None:
    """Uneven padding included, which the document of version 1 contradicts itself about."""
    graph = f"""(float[1,2,8,7] x, float[2,2,3,2] w) => (float[1,C,H,W] y)
        {{ y = ConvTranspose<{attributes}>(x, w) }}"""
    assert ops(prove(graph, opset=7, target=26)) == ["ConvTranspose"]


@pytest.mark.parametrize("mask", ["", "m"])
def test_deform_conv(mask: str) -> None:
    inputs = f"x, w, o, b, {mask}".rstrip(", ")
    graph = f"""(float[1,2,4,4] x, float[3,2,2,2] w, float[1,8,5,5] o, float[3] b,
        float[1,4,5,5] m) => (float[1,3,5,5] y)
        {{ y = DeformConv<kernel_shape = [2, 2], pads = [1, 1, 1, 1]>({inputs}) }}"""
    assert ops(prove(graph, opset=19, target=26)) == ["DeformConv"]
