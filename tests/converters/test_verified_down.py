"""Right conversions down that meet what tells executors apart: NaN, the sign of zero, the largest
floats, other roundings. Each is verified."""

from __future__ import annotations

import pytest
from onnx import parser

import passes

HALVES = """
    <ir_version: 10, opset_import: ["" : {opset}]>
    g (float16[3,4,8] x, float16[{size}] s, float16[{size}] b) => (float16[3,4,8] y) {{ {node} }}"""


def verdict(text: str, opset: int) -> str:
    checked = passes.convert(parser.parse_model(text), opset=opset).report.checked
    return str(checked.verdict)


@pytest.mark.parametrize(
    ("opset", "size", "node"),
    [
        (17, 8, "y = LayerNormalization (x, s, b)"),
        (17, 8, "y = LayerNormalization <stash_type = 10> (x, s, b)"),
        (18, 2, "y = GroupNormalization <num_groups = 2> (x, s, b)"),
        (21, 4, "y = GroupNormalization <num_groups = 2> (x, s, b)"),
        (23, 8, "y = RMSNormalization (x, s)"),
    ],
)
def test_float16_is_normalized_in_the_type_of_stash_type(opset: int, size: int, node: str) -> None:
    assert verdict(HALVES.format(opset=opset, size=size, node=node), 13) == "verified"


@pytest.mark.parametrize(
    ("kind", "attributes"),
    [("double", ""), ("double", ", stash_type = 10"), ("float", ", stash_type = 16")],
)
@pytest.mark.parametrize(
    ("node", "attribute", "size", "more"),
    [
        ("GroupNormalization", "num_groups = 2", 4, ", s"),
        ("LayerNormalization", "axis = 2", 8, ""),
        ("RMSNormalization", "axis = 2", 8, ""),
    ],
)
def test_what_is_normalized_in_a_narrower_type_is_no_more_precise_than_that(
    node: str, attribute: str, size: int, more: str, kind: str, attributes: str
) -> None:
    text = f"""
        <ir_version: 10, opset_import: ["" : 23]>
        g ({kind}[3,4,8] x, {kind}[{size}] s) => ({kind}[3,4,8] y) {{
            y = {node} <{attribute}{attributes}> (x, s{more})
        }}"""
    assert verdict(text, 13) == "verified"


def test_mean_and_deviation_of_a_layer_have_the_type_of_stash_type() -> None:
    text = """
        <ir_version: 10, opset_import: ["" : 17]>
        g (float16[3,16] x, float16[16] s) => (float16[3,16] y, float[3,1] m, float[3,1] d) {
            y, m, d = LayerNormalization (x, s)
        }"""
    assert verdict(text, 13) == "verified"


@pytest.mark.parametrize("node", ["y = CumSum (x, a)", "y = CumSum <exclusive = 1> (x, a)"])
def test_a_sum_may_start_at_either_zero(node: str) -> None:
    text = f"""
        <ir_version: 10, opset_import: ["" : 14]>
        g (float[3,4] x) => (float[3,4] y) <int64 a = {{1}}> {{ {node} }}"""
    assert verdict(text, 9) == "verified"


@pytest.mark.parametrize("op", ["ReduceSum", "ReduceMean"])
def test_what_is_not_reduced_keeps_the_sign_of_zero(op: str) -> None:
    text = f"""
        <ir_version: 10, opset_import: ["" : 18]>
        g (float[3,4] x) => (float[3,4] y) <int64[0] a = {{}}> {{
            y = {op} <noop_with_empty_axes = 1> (x, a)
        }}"""
    assert verdict(text, 9) == "verified"


def test_nan_among_the_smallest() -> None:
    text = """
        <ir_version: 10, opset_import: ["" : 11]>
        g (float[3,5] x) => (float[3,2] y, int64[3,2] i) <int64[1] k = {2}> {
            y, i = TopK <largest = 0> (x, k)
        }"""
    assert verdict(text, 10) == "verified"


@pytest.mark.parametrize(
    ("opset", "kind", "target"), [(21, "int16", 13), (13, "int8", 9), (21, "uint16", 13)]
)
def test_nan_that_is_quantized(opset: int, kind: str, target: int) -> None:
    text = f"""
        <ir_version: 10, opset_import: ["" : {opset}]>
        g (float[8] x, float s) => ({kind}[8] y) <{kind} z = {{3}}> {{
            y = QuantizeLinear (x, s, z)
        }}"""
    assert verdict(text, target) == "verified"


def test_nan_that_is_quantized_by_its_own_range() -> None:
    text = """
        <ir_version: 10, opset_import: ["" : 11]>
        g (float[8] x) => (uint8[8] y, float s, uint8 z) { y, s, z = DynamicQuantizeLinear (x) }"""
    assert verdict(text, 9) == "verified"


def test_blocks_that_overlap_are_added_in_another_order() -> None:
    text = """
        <ir_version: 10, opset_import: ["" : 18]>
        g (float[1,9,4] x) => (float[1,1,5,5] y)
        <int64[2] image = {5, 5}, int64[2] block = {3, 3}> {
            y = Col2Im <strides = [2, 2]> (x, image, block)
        }"""
    assert verdict(text, 13) == "verified"


@pytest.mark.parametrize(
    "node",
    [
        """ Resize <mode = "linear", coordinate_transformation_mode = "align_corners">""",
        """ Resize <mode = "cubic", coordinate_transformation_mode = "align_corners">""",
        """ Resize <mode = "cubic", coordinate_transformation_mode = "asymmetric">""",
    ],
)
@pytest.mark.parametrize("scale", [2.0, 0.5])
def test_positions_are_rounded(node: str, scale: float) -> None:
    size = int(4 * scale)
    text = f"""
        <ir_version: 9, opset_import: ["" : 19]>
        g (float[1,1,4,4] x) => (float[1,1,{size},{size}] y)
        <float[4] scales = {{1, 1, {scale}, {scale}}}> {{ y = {node} (x, , scales) }}"""
    assert verdict(text, 10) == "verified"


@pytest.mark.parametrize(
    ("node", "shape", "made"),
    [
        ("DFT <axis = 1>", "1,10,10,1", "1,10,10,2"),
        ("DFT <axis = 2>", "1,10,10,1", "1,10,10,2"),
        ("DFT <inverse = 1>", "1,10,10,2", "1,10,10,2"),
        ("DFT <onesided = 1>", "1,10,10,1", "1,6,10,2"),
        ("DFT <onesided = 1, inverse = 1>", "1,6,10,2", "1,10,10,1"),
    ],
)
def test_waves_that_cancel(node: str, shape: str, made: str) -> None:
    """Also where one is infinite: that is times 0 in a product of matrices alone."""
    text = f"""
        <ir_version: 9, opset_import: ["" : 19]>
        g (float[{shape}] x) => (float[{made}] y) {{ y = {node} (x) }}"""
    assert verdict(text, 13) == "verified"


@pytest.mark.parametrize("kind", ["float", "bool"])
def test_the_mask_of_an_attention_is_as_long_as_the_past_and_the_keys(kind: str) -> None:
    """Inputs are drawn so, though no type tells; a shorter one is none of version 23."""
    text = f"""
        <ir_version: 10, opset_import: ["" : 23]>
        g (float[B,2,S,8] q, float[B,2,K,8] k, float[B,2,K,8] v, {kind}[S,T] m,
           float[B,2,P,8] pk, float[B,2,P,8] pv)
        => (float[B,2,S,8] y, float[B,2,N,8] nk, float[B,2,N,8] nv) {{
            y, nk, nv = Attention (q, k, v, m, pk, pv)
        }}"""
    assert verdict(text, 22) == "verified"


@pytest.mark.parametrize(
    ("opset", "more", "node"),
    [
        (24, "int64[1] n", "y = Attention <is_causal = 1> (q, k, v, , , , n)"),
        (23, "float[2,4] m", "y = Attention <is_causal = 1> (q, k, v, m)"),
    ],
)
def test_scores_of_an_attention_that_overflow(opset: int, more: str, node: str) -> None:
    text = f"""
        <ir_version: 11, opset_import: ["" : {opset}]>
        g (float[1,2,2,8] q, float[1,2,4,8] k, float[1,2,4,8] v, {more}) => (float[1,2,2,8] y) {{
            {node}
        }}"""
    assert verdict(text, 13) == "verified"


@pytest.mark.parametrize("size", ["H", "16"])
@pytest.mark.parametrize("attribute", ["", ", interleaved = 1"])
def test_part_of_a_head_of_unknown_size_is_rotated(size: str, attribute: str) -> None:
    """Also in an empty batch."""
    text = f"""
        <ir_version: 10, opset_import: ["" : 23]>
        g (float[B,5,{size}] x, float[9,2] c, float[9,2] s, int64[B,5] p)
            => (float[B,5,{size}] y) {{
            y = RotaryEmbedding <num_heads = 2, rotary_embedding_dim = 4{attribute}> (x, c, s, p)
        }}"""
    assert verdict(text, 13) == "verified"
