"""Operators of onnxruntime's own domain, against onnxruntime."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
import pytest
from onnx import ModelProto, helper
from ort_process import OrtProcess, OrtRefused, difference, ort_process

from passes.testing import as_model
from passes.verify.executor import CannotRun, ModelFailed
from passes.verify.reference import ReferenceExecutor

pytestmark = pytest.mark.sampled

RUN = ReferenceExecutor().run

#: Heads of query, key and states: alike, shared states, shared queries, a shared key.
HEADS = [(1, 1, 1), (4, 2, 2), (2, 2, 4), (1, 1, 4), (4, 1, 2), (2, 4, 4)]
RULES = ["linear", "gated", "delta", "gated_delta"]

Feeds = dict[str, np.ndarray]


@pytest.fixture(scope="module")
def ort() -> Iterator[OrtProcess]:
    with ort_process() as process:
        yield process


def model_of(node: str, feeds: Feeds) -> ModelProto:
    inputs = ", ".join(f"float{list(value.shape)} {name}" for name, value in feeds.items())
    return as_model(
        f"""<ir_version: 8, opset_import: ["" : 18, "com.microsoft" : 1]>
        g ({inputs}) => (float[] y, float[] state) {{ y, state = com.microsoft.{node} }}"""
    )


def disagreement(ort: OrtProcess, node: str, feeds: Feeds) -> str | None:
    model = model_of(node, feeds)
    for output in model.graph.output:
        output.type.CopyFrom(helper.make_tensor_type_proto(1, None))
    expected = ort.run(model, feeds)
    assert not isinstance(expected, OrtRefused), expected.sentence
    outputs = RUN(model, feeds).outputs.values()
    words = [
        difference(got, wanted, atol=1e-5) for got, wanted in zip(outputs, expected, strict=True)
    ]
    return next(filter(None, words), None)


def drawn(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return rng.standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("heads", HEADS)
def test_linear_attention_agrees_with_onnxruntime(
    ort: OrtProcess, rule: str, heads: tuple[int, int, int]
) -> None:
    """With and without a state before, no step, one and several, decays by row or by head."""
    queries, keys, states = heads
    rng = np.random.default_rng(0)
    for steps, given, by_row in itertools.product((0, 1, 5), (True, False), (True, False)):
        feeds = {
            "q": drawn(rng, 2, steps, queries * 3),
            "k": drawn(rng, 2, steps, keys * 3),
            "v": drawn(rng, 2, steps, states * 4),
        }
        if given:
            feeds["s"] = drawn(rng, 2, states, 3, 4)
        if "gated" in rule:
            feeds["d"] = -abs(drawn(rng, 2, steps, states * 3 if by_row else states))
        if "delta" in rule:
            feeds["b"] = drawn(rng, 2, steps, 1 if by_row else states)
        read = ", ".join(name if name in feeds else '""' for name in ("q", "k", "v", *"sdb"))
        said = f"q_num_heads = {queries}, kv_num_heads = {states}"
        if rule != "gated_delta":
            said += f', update_rule = "{rule}"'
        if by_row:
            said += ", scale = 0.5"
        node = f"LinearAttention <{said}> ({read})"
        assert disagreement(ort, node, feeds) is None, (node, steps)


def test_a_factor_of_0_and_a_number_that_is_none_reach_no_step_before(ort: OrtProcess) -> None:
    rng = np.random.default_rng(0)
    feeds = {name: drawn(rng, 1, 6, 4) for name in "qkv"} | {"d": -abs(drawn(rng, 1, 6, 4))}
    feeds["d"][0, 2] = -np.inf
    feeds["v"][0, 4, 0] = np.nan
    node = (
        'LinearAttention <q_num_heads = 1, kv_num_heads = 1, update_rule = "gated", scale = 1.0>'
        '(q, k, v, "", d)'
    )
    assert disagreement(ort, node, feeds) is None
    assert np.isfinite(RUN(model_of(node, feeds), feeds).outputs["y"][0, :4]).all()


@pytest.mark.parametrize("activation", ["none", "silu", "swish"])
@pytest.mark.parametrize("last", [0, 1])
def test_a_causal_convolution_agrees_with_onnxruntime(
    ort: OrtProcess, activation: str, last: int
) -> None:
    rng = np.random.default_rng(0)
    for length, dilation, given in itertools.product((0, 1, 5), (1, 2), (True, False)):
        before = 3 * dilation
        x, state = (2, 3, length), (2, 3, before)
        feeds = {"x": drawn(rng, *x), "w": drawn(rng, 3, 1, 4)}
        if given:
            feeds |= {"b": drawn(rng, 3), "s": drawn(rng, *state)}
        if last:
            feeds |= {name: feeds[name].swapaxes(1, 2).copy() for name in feeds.keys() & set("xs")}
        read = "x, w, b, s" if given else "x, w"
        said = f'activation = "{activation}", channels_last = {last}, dilation = {dilation}'
        assert disagreement(ort, f"CausalConvWithState <{said}> ({read})", feeds) is None


def test_what_does_not_fit_fails() -> None:
    rng = np.random.default_rng(0)
    feeds = {name: drawn(rng, 1, 2, 6) for name in "qkv"}
    node = 'LinearAttention <q_num_heads = 2, kv_num_heads = 2, update_rule = "delta"> (q, k, v)'
    with pytest.raises(ModelFailed, match="needs another decay or beta"):
        RUN(model_of(node, feeds), feeds)


def test_a_window_of_states_is_not_run() -> None:
    rng = np.random.default_rng(0)
    feeds = {name: drawn(rng, 1, 2, 6) for name in "qkv"}
    said = 'q_num_heads = 1, kv_num_heads = 1, update_rule = "linear", state_window = 2'
    with pytest.raises(CannotRun, match="state_window"):
        RUN(model_of(f"LinearAttention <{said}> (q, k, v)", feeds), feeds)
