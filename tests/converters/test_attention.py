"""The steps of Attention, run at the old opset and converted."""

from __future__ import annotations

from functools import partial

import numpy as np
import onnx
import pytest
from calls import prove_call
from proving import EVERYWHERE, converted, drawn, ops, parsed, run
from proving import prove as proven

pytestmark = pytest.mark.sampled

#: onnxruntime 1.32 adds up in another order in version 24 than in version 23.
ROUNDING = 1e-5
prove = partial(proven, rtol=ROUNDING)


def _attention(mask: str = "", attributes: str = "", keys: str = "5", more: str = "") -> str:
    third = f", {mask} m" if mask else ""
    given = f"<{attributes}>" if attributes else ""
    return f"""(float[2,4,3,8] q, float[2,2,{keys},8] k, float[2,2,{keys},6] v{third}{more})
        => (float[2,4,3,6] y) {{ y = Attention{given}(q, k, v{", m" if mask else ""}) }}"""


@pytest.mark.parametrize(
    "attributes", ["", "is_causal = 1", "scale = 0.3, softcap = 2.0", "softmax_precision = 1"]
)
@pytest.mark.parametrize("mask", ["", "float[3,5]", "bool[3,5]", "float[2,1,3,5]", "float[4,3,5]"])
def test_a_mask_for_every_key_stays(mask: str, attributes: str) -> None:
    places = EVERYWHERE if attributes == "" else ["main"]
    after = prove(_attention(mask, attributes), opset=23, target=26, places=places)
    assert ops(after) == ["Attention"]


@pytest.mark.parametrize("keys", ["5", "S"])
@pytest.mark.parametrize("shape", [(3, 1), (4, 3, 1), (2, 4, 3, 1), (2, 1, 3, 1)])
@pytest.mark.parametrize("kind", ["float", "bool"])
def test_a_mask_of_length_1_is_broadcast(kind: str, shape: tuple[int, ...], keys: str) -> None:
    """Version 24 would pad it; onnxruntime broadcasts it in neither, so it is done by hand."""
    graph = _attention(f"{kind}[{','.join(map(str, shape))}]", keys=keys)
    feeds = {name: value for name, value in drawn(parsed(graph, 23)).items() if name != "m"}
    count = feeds["k"].shape[2]
    mask = np.random.default_rng(1).normal(size=shape).astype(np.float32)
    mask = mask if kind == "float" else mask > 0
    wide = np.broadcast_to(mask, (*shape[:-1], count))
    full = _attention(f"{kind}[{','.join(map(str, wide.shape))}]", keys=keys)
    (expected,) = run(parsed(full, 23), {**feeds, "m": wide})
    for target in (24, 26):
        after = converted(parsed(graph, 23), target)
        onnx.checker.check_model(after, full_check=True)
        (actual,) = run(after, {**feeds, "m": mask})
        np.testing.assert_allclose(actual, expected, rtol=ROUNDING, atol=ROUNDING)


@pytest.mark.parametrize("mask", ["float[3,M]", "bool[Q,M]"])
def test_a_mask_of_unknown_length_is_expanded(mask: str) -> None:
    feeds = {"m": np.ones((3, 5), np.float32 if "float" in mask else bool)}
    after = prove(_attention(mask), opset=23, target=26, feeds=feeds)
    assert ops(after) == ["Shape", "Expand", "Attention"]


def test_a_mask_whose_length_is_that_of_the_keys_stays() -> None:
    feeds = {name: np.ones((2, 2, 5, size), np.float32) for name, size in (("k", 8), ("v", 6))}
    graph = _attention("float[3,S]", keys="S")
    feeds["m"] = np.zeros((3, 5), np.float32)
    assert ops(prove(graph, opset=23, target=26, feeds=feeds)) == ["Attention"]


CACHED = """(float[2,4,3,8] q, float[2,4,S,8] k, float[2,4,S,8] v, float[{mask}] m,
        float[2,4,P,8] pk, float[2,4,P,8] pv)
    => (float[2,4,3,8] y, float[2,4,T,8] nk, float[2,4,T,8] nv)
    {{ y, nk, nv = Attention<is_causal = 1>(q, k, v, m, pk, pv) }}"""


@pytest.mark.parametrize("mask", ["3,7", "3,M"])
def test_the_keys_of_the_past_count(mask: str) -> None:
    rng = np.random.default_rng(3)
    sizes = {"k": 5, "v": 5, "pk": 2, "pv": 2}
    feeds = {n: rng.normal(size=(2, 4, s, 8)).astype(np.float32) for n, s in sizes.items()}
    feeds["m"] = rng.normal(size=(3, 7)).astype(np.float32)
    after = prove(CACHED.format(mask=mask), opset=23, target=26, feeds=feeds)
    added = [] if mask == "3,7" else ["Shape", "Shape", "Add", "Expand"]
    assert ops(after) == [*added, "Attention"]


@pytest.mark.parametrize("opset", [23, 24])
def test_heads_are_said_for_3d_inputs_only(opset: int) -> None:
    heads = "q_num_heads = 4, kv_num_heads = 2"
    after = prove(_attention("", heads), opset=opset, target=26)
    assert not after.graph.node[0].attribute
    graph = f"""(float[2,3,32] q, float[2,5,16] k, float[2,5,12] v) => (float[2,3,24] y)
        {{ y = Attention<{heads}>(q, k, v) }}"""
    after = prove(graph, opset=opset, target=26)
    assert len(after.graph.node[0].attribute) == 2


def test_padding_that_24_says() -> None:
    graph = """(float[2,4,3,8] q, float[2,4,5,8] k, int64[2] n) => (float[2,4,3,8] y)
        { y = Attention(q, k, k, , , , n) }"""
    prove(graph, opset=24, target=26, feeds={"n": np.array([5, 3])})


def test_the_attributes_of_the_caller() -> None:
    model = """(float[2,3,32] q, float[2,5,32] k, float[3,5] m) => (float[2,3,32] y)
        { y = local.A<heads = 4>(q, k, m) }"""
    function = """A <heads> (q, k, m) => (y)
        { y = Attention<q_num_heads: int = @heads, kv_num_heads: int = @heads>(q, k, k, m) }"""
    assert prove_call(model, function, opset=23, target=26, rtol=ROUNDING) == ["Attention"]
