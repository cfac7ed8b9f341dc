"""Attention and its kin on their way to older opsets."""

from __future__ import annotations

import numpy as np
import pytest
from proving import EVERYWHERE, converted, ops, parsed, prove

import passes
from passes.verify.reference import ReferenceExecutor

pytestmark = pytest.mark.sampled

ROUNDING = 1e-4


def _attention(attributes: str = "", more: str = "", given: str = "") -> str:
    said = f"<{attributes}>" if attributes else ""
    return f"""(float[2,4,3,8] q, float[2,2,5,8] k, float[2,2,5,6] v{more})
        => (float[2,4,3,6] y) {{ y = Attention{said}(q, k, v{given}) }}"""


@pytest.mark.parametrize("target", [22, 17, 13, 11, 9])
@pytest.mark.parametrize(
    ("attributes", "more", "given"),
    [
        ("", "", ""),
        ("is_causal = 1", ", float[3,5] m", ", m"),
        ("scale = 0.3, softcap = 2.0", ", bool[2,1,3,5] m", ", m"),
    ],
)
def test_attention_becomes_its_function_body(
    attributes: str, more: str, given: str, target: int
) -> None:
    places = EVERYWHERE if target == 17 else ["main"]
    graph = _attention(attributes, more, given)
    after = prove(graph, opset=23, target=target, rtol=ROUNDING, places=places)
    assert "Attention" not in ops(after)


def test_what_24_and_25_do_not_use() -> None:
    for target in (24, 23):
        after = prove(
            _attention("", ", float[3,5] m", ", m"), opset=25, target=target, rtol=ROUNDING
        )
        assert ops(after) == ["Attention"]


@pytest.mark.parametrize("mask", ["", ", float[3,5] m", ", float[3,M] m"])
def test_the_number_of_keys_is_written_out(mask: str) -> None:
    graph = _attention("", f"{mask}, int64[2] n", f", {'m' if mask else ''}, , , n")
    feeds = {"n": np.array([3, 5]), "m": np.ones((3, 5), np.float32)}
    feeds = {name: feeds[name] for name in ("n", "m") if f" {name}" in graph.partition("=>")[0]}
    after = prove(graph, opset=24, target=23, rtol=ROUNDING, feeds=feeds)
    assert "Softmax" in ops(after)


def test_a_mask_that_may_be_short_is_written_out() -> None:
    graph = _attention("", ", float[3,M] m", ", m")
    feeds = {"m": np.ones((3, 5), np.float32)}
    assert "Softmax" in ops(prove(graph, opset=24, target=23, rtol=ROUNDING, feeds=feeds))


@pytest.mark.parametrize("target", [24, 18])
def test_windows_are_written_out(target: int) -> None:
    """onnxruntime knows none yet: compared in onnx's reference."""
    graph = _attention("left_window_size = 1, right_window_size = 0", "", "")
    model = parsed(graph, 25)
    rng = np.random.default_rng(3)
    shapes = {"q": (2, 4, 3, 8), "k": (2, 2, 5, 8), "v": (2, 2, 5, 6)}
    feeds = {name: rng.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}
    after = converted(model, target)
    assert "Softmax" in ops(after)
    values = [ReferenceExecutor().run(m, feeds, timeout=60).outputs["y"] for m in (model, after)]
    np.testing.assert_allclose(*values, rtol=ROUNDING, atol=1e-5)


def test_a_kernel_may_be_missing_where_no_release_is_named() -> None:
    """onnxruntime has no MatMul of bfloat16."""
    kind = _attention().replace("float", "bfloat16")
    assert "Softmax" in ops(passes.convert(parsed(kind, 23), opset=22).model)
    with pytest.raises(passes.NotProduced, match="no kernel for MatMul of bfloat16"):
        passes.convert(parsed(kind, 23), for_="onnxruntime==1.22")


@pytest.mark.parametrize("target", [22, 13, 9, 7])
@pytest.mark.parametrize("attributes", ["", "interleaved = 1", "rotary_embedding_dim = 4"])
def test_rotary_embedding(attributes: str, target: int) -> None:
    said = f"<{attributes}>" if attributes else ""
    half = 2 if "dim" in attributes else 4
    graph = f"""(float[2,3,5,8] x, float[9,{half}] c, float[9,{half}] s, int64[2,5] p)
        => (float[2,3,5,8] y) {{ y = RotaryEmbedding{said}(x, c, s, p) }}"""
    feeds = {"p": np.arange(10).reshape(2, 5) % 9}
    after = prove(graph, opset=23, target=target, feeds=feeds, rtol=1e-5)
    assert "RotaryEmbedding" not in ops(after)


@pytest.mark.parametrize("target", [23, 13, 11])
@pytest.mark.parametrize("axis", [-2, 1])
@pytest.mark.parametrize(("mode", "start"), [("linear", [0, 2]), ("circular", [4, 1])])
def test_tensor_scatter(mode: str, start: list[int], axis: int, target: int) -> None:
    graph = f"""(float[2,5,4] c, float[2,3,4] u, int64[2] w) => (float[2,5,4] y)
        {{ y = TensorScatter<axis = {axis}, mode = "{mode}">(c, u, w) }}"""
    feeds = {"w": np.array(start)}
    after = prove(graph, opset=24, target=target, feeds=feeds)
    assert ops(after)[-1] == "ScatterElements"
    prove(graph.replace(", w)", ")"), opset=24, target=target, feeds=feeds, places=["main"])


@pytest.mark.parametrize("target", [26, 17, 13, 11])
def test_linear_attention_and_the_convolution_with_a_state(target: int) -> None:
    """onnxruntime knows neither yet: compared in onnx's reference."""
    rng = np.random.default_rng(3)
    for graph, shapes in (
        (
            """(float[2,4,8] q, float[2,4,8] k, float[2,4,8] v)
            => (float[2,4,8] y, float[A,B,C,D] n) {
                y, n = LinearAttention<q_num_heads = 2, kv_num_heads = 2, update_rule = "linear">
                    (q, k, v) }""",
            dict.fromkeys("qkv", (2, 4, 8)),
        ),
        (
            """(float[2,4,8] x, float[4,1,3] w, float[4] b) => (float[2,4,8] y, float[2,4,2] n)
            { y, n = CausalConvWithState<activation = "silu">(x, w, b) }""",
            {"x": (2, 4, 8), "w": (4, 1, 3), "b": (4,)},
        ),
    ):
        model = parsed(graph, 27)
        after = converted(model, target)
        feeds = {name: rng.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}
        before, then = (ReferenceExecutor().run(m, feeds, timeout=60) for m in (model, after))
        for name, value in before.outputs.items():
            np.testing.assert_allclose(then.outputs[name], value, rtol=ROUNDING, atol=1e-5)
