"""Normalization, pooling, recurrent ops and activations on their way to older opsets."""

from __future__ import annotations

import numpy as np
import pytest
from proving import EVERYWHERE, converted, ops, parsed, prove, run
from refusing import refusal

pytestmark = pytest.mark.sampled

ROUNDING = 1e-5

# -- activations ---------------------------------------------------------------------------

ACTIVATIONS = [
    ("Gelu(x)", 20),
    ('Gelu<approximate = "tanh">(x)', 20),
    ("Swish<alpha = 0.5>(x)", 24),
    ("Mish(x)", 22),
]


@pytest.mark.parametrize(("call", "opset"), ACTIVATIONS)
def test_activations_become_their_function_bodies(call: str, opset: int) -> None:
    graph = f"(float[3,4] x) => (float[3,4] y) {{ y = {call} }}"
    after = prove(graph, opset=opset, target=13, rtol=ROUNDING)
    assert call.partition("(")[0].partition("<")[0] not in ops(after)


# -- BatchNormalization --------------------------------------------------------------------

BATCH = """(float[2,3,4] x, float[3] s, float[3] b, float[3] m, float[3] v) => ({outputs})
    {{ {names} = BatchNormalization<{attributes}>(x, s, b, m, v) }}"""
POSITIVE = {"v": np.array([0.5, 1.0, 2.0], np.float32)}


@pytest.mark.parametrize("target", [14, 13, 9, 8, 7])
def test_batch_normalization(target: int) -> None:
    graph = BATCH.format(outputs="float[2,3,4] y", names="y", attributes="epsilon = 0.01")
    assert ops(prove(graph, opset=15, target=target, feeds=POSITIVE)) == ["BatchNormalization"]


@pytest.mark.parametrize("target", [13, 9, 7])
@pytest.mark.parametrize("momentum", ["", ", momentum = 0.7"])
def test_training_is_written_out(momentum: str, target: int) -> None:
    graph = BATCH.format(
        outputs="float[2,3,4] y, float[3] rm, float[3] rv",
        names="y, rm, rv",
        attributes=f"training_mode = 1{momentum}",
    )
    after = prove(graph, opset=15, target=target, feeds=POSITIVE, rtol=ROUNDING)
    assert "BatchNormalization" not in ops(after)


@pytest.mark.parametrize("target", [14, 9])
def test_what_differs_in_type_takes_the_widest(target: int) -> None:
    graph = """(float16[2,3,4] x, float16[3] s, float16[3] b, float[3] m, float[3] v)
        => (float16[2,3,4] y) { y = BatchNormalization(x, s, b, m, v) }"""
    after = converted(parsed(graph, 15), target)
    mixed = (
        ["BatchNormalization"] if target == 14 else [*["Cast"] * 3, "BatchNormalization", "Cast"]
    )
    assert ops(after) == mixed
    graph = graph.replace("float16[3] s, float16[3] b", "float[3] s, float[3] b")
    after = converted(parsed(graph, 15), target)
    assert ops(after) == ["Cast", "BatchNormalization", "Cast"]


def test_batch_normalization_7_takes_no_single_axis() -> None:
    graph = """(float[4] x, float[1] s, float[1] b, float[1] m, float[1] v) => (float[4] y)
        { y = BatchNormalization(x, s, b, m, v) }"""
    assert refusal(graph, opset=9, target=7) == (
        "no-equivalent: BatchNormalization-7 takes no input (N) without channels"
    )


# -- LayerNormalization, RMSNormalization, GroupNormalization ------------------------------


@pytest.mark.parametrize("target", [16, 13, 9, 7])
@pytest.mark.parametrize(("axis", "shape"), [(-1, "4"), (-2, "3,4"), (1, "3,4"), (1, "1,4")])
def test_layer_normalization(axis: int, shape: str, target: int) -> None:
    graph = f"""(float[2,3,4] x, float[{shape}] s, float[{shape}] b)
        => (float[2,3,4] y, float[A,B,C] m, float[A,B,C] d)
        {{ y, m, d = LayerNormalization<axis = {axis}>(x, s, b) }}"""
    places = EVERYWHERE if target == 9 else ["main"]
    prove(graph, opset=17, target=target, rtol=1e-4, places=places)


@pytest.mark.parametrize("target", [16, 10])
def test_layer_normalization_of_nothing_and_of_what_is_far_from_0(target: int) -> None:
    graph = """(float[N,M,4] x, float[4] s) => (float[N,M,4] y)
        { y = LayerNormalization(x, s) }"""
    prove(graph, opset=17, target=target, feeds={"x": np.zeros((0, 3, 4), np.float32)})
    prove(graph, opset=17, target=target, feeds={"x": np.zeros((2, 0, 4), np.float32)})
    x = 1e4 + np.arange(8, dtype=np.float32).reshape(1, 2, 4)
    prove(graph, opset=17, target=target, feeds={"x": x}, rtol=1e-3)


def test_layer_normalization_of_unknown_rank() -> None:
    graph = """(float[2,3,4] z, int64[R] n, float[4] s) => (float[2,3,4] y)
        { x = Reshape(z, n) y = LayerNormalization(x, s) }"""
    prove(graph, opset=17, target=11, feeds={"n": np.array([2, 3, 4])}, rtol=1e-4)
    from_the_front = graph.replace("Normalization(", "Normalization<axis = 2>(")
    assert refusal(from_the_front, opset=17, target=16) == (
        "unknown-rank: the rank of 'x' is not known"
    )


@pytest.mark.parametrize("target", [22, 17, 9])
@pytest.mark.parametrize(("axis", "shape"), [(-1, "4"), (-2, "3,4"), (1, "3,4")])
def test_rms_normalization(axis: int, shape: str, target: int) -> None:
    graph = f"""(float[2,3,4] x, float[{shape}] s) => (float[2,3,4] y)
        {{ y = RMSNormalization<axis = {axis}, epsilon = 0.01>(x, s) }}"""
    places = EVERYWHERE if target == 9 else ["main"]
    prove(graph, opset=23, target=target, rtol=ROUNDING, places=places)


@pytest.mark.parametrize("target", [20, 18, 17, 13, 9])
def test_group_normalization(target: int) -> None:
    graph = """(float[2,6,3,2] x, float[6] s, float[6] b) => (float[2,6,3,2] y)
        { y = GroupNormalization<num_groups = 2>(x, s, b) }"""
    places = EVERYWHERE if target == 9 else ["main"]
    after = prove(graph, opset=21, target=target, rtol=1e-4, places=places)
    assert "GroupNormalization" not in ops(after)


def test_an_empty_group_is_refused() -> None:
    graph = """(float[0,6,3] x, float[6] s, float[6] b) => (float[0,6,3] y)
        { y = GroupNormalization<num_groups = 2>(x, s, b) }"""
    assert refusal(graph, opset=21, target=20) == (
        "no-equivalent: 'x' is empty, and cannot be split into groups"
    )


# -- pooling -------------------------------------------------------------------------------


def _pool(op: str, attributes: str, kind: str = "float", outputs: str = "y") -> str:
    both = f"{kind}[1,2,H,W] y" + (", int64[1,2,H,W] i" if outputs != "y" else "")
    attributes = f"kernel_shape = [3, 2], {attributes}".rstrip(", ")
    return f"({kind}[1,2,8,7] x) => ({both}) {{ {outputs} = {op}<{attributes}>(x) }}"


@pytest.mark.parametrize("target", [18, 11, 9, 7])
@pytest.mark.parametrize(
    "attributes",
    [
        "dilations = [1, 1]",
        "ceil_mode = 1",
        "ceil_mode = 1, strides = [3, 2]",
        "ceil_mode = 1, strides = [2, 2], pads = [1, 0, 0, 1]",
        "strides = [2, 3], ceil_mode = 1, pads = [0, 0, 1, 1]",
    ],
)
@pytest.mark.parametrize("op", ["AveragePool", "MaxPool", "LpPool"])
def test_pools(op: str, attributes: str, target: int) -> None:
    places = EVERYWHERE if target == 9 else ["main"]
    graph = _pool(op, attributes)
    assert ops(prove(graph, opset=22, target=target, rtol=1e-6, places=places)) == [op]


@pytest.mark.parametrize("target", [11, 9, 8])
def test_the_indices_of_max_pool(target: int) -> None:
    attributes = "storage_order = 1, ceil_mode = 1, strides = [3, 2]"
    prove(_pool("MaxPool", attributes, outputs="y, i"), opset=22, target=target)


@pytest.mark.parametrize("kind", ["int8", "uint8"])
@pytest.mark.parametrize("outputs", ["y", "y, i"])
def test_max_pool_of_bytes_goes_through_float(outputs: str, kind: str) -> None:
    after = prove(_pool("MaxPool", "", kind, outputs), opset=12, target=9)
    assert ops(after) == ["Cast", "MaxPool", "Cast"]


@pytest.mark.parametrize(
    ("op", "attributes", "target", "sentence"),
    [
        ("MaxPool", "dilations = [2, 2]", 9, "has dilations = [2, 2], an attribute that came"),
        ("AveragePool", "dilations = [2, 1]", 18, "an attribute that came with opset 19"),
        (
            "AveragePool",
            "ceil_mode = 1, strides = [2, 3], count_include_pad = 1, pads = [0, 0, 0, 1]",
            9,
            "its average includes padding, but not that which would stand for it",
        ),
        (
            "MaxPool",
            'ceil_mode = 1, auto_pad = "VALID"',
            9,
            "MaxPool has ceil_mode = 1 beside auto_pad",
        ),
    ],
)
def test_pools_refused(op: str, attributes: str, target: int, sentence: str) -> None:
    said = refusal(_pool(op, attributes), opset=22, target=target)
    assert said.startswith("no-equivalent: ")
    assert sentence in said


def test_pools_of_unknown_size() -> None:
    graph = """(float[1,2,H,W] x) => (float[1,2,A,B] y)
        { y = MaxPool<kernel_shape = [2, 2], ceil_mode = 1>(x) }"""
    assert refusal(graph, opset=12, target=9).startswith("unknown-rank: MaxPool has ceil_mode = 1")
    assert "2 outputs" in refusal(_pool("MaxPool", "", outputs="y, i"), opset=12, target=7)


ROI = """(float[1,1,8,8] x, float[2,4] r, int64[2] n) => (float[2,1,2,2] y)
    {{ y = RoiAlign<output_height = 2, output_width = 2{mode}>(x, r, n) }}"""


def test_roi_align() -> None:
    feeds = {"r": np.array([[0, 0, 6, 5], [1, 2, 7, 7]], np.float32), "n": np.zeros(2, np.int64)}
    mode = ', coordinate_transformation_mode = "output_half_pixel"'
    prove(ROI.format(mode=mode), opset=16, target=10, feeds=feeds)
    assert "a pixel wide at least" in refusal(ROI.format(mode=""), opset=16, target=15)
    assert "no older op samples" in refusal(ROI.format(mode=""), opset=10, target=9)


# -- GRU, LSTM and RNN ---------------------------------------------------------------------


@pytest.mark.parametrize("direction", ["forward", "bidirectional"])
@pytest.mark.parametrize(("op", "gates"), [("GRU", 3), ("LSTM", 4), ("RNN", 1)])
def test_time_comes_first_below_14(op: str, gates: int, direction: str) -> None:
    """onnxruntime runs no `layout` of 1, so it is compared with what layout 0 gives."""
    both = 2 if direction == "bidirectional" else 1
    graph = f"""(float[T,B,2] x, float[{both},{3 * gates},2] w, float[{both},{3 * gates},3] r,
        float[{both},B,3] h) => (float[T,{both},B,3] y, float[{both},B,3] yh)
        {{ y, yh = {op}<hidden_size = 3, direction = "{direction}">(x, w, r, "", "", h) }}"""
    graph = graph.replace('""', "")
    plain = parsed(graph, 14)
    turned = parsed(graph.replace("hidden_size = 3", "hidden_size = 3, layout = 1"), 14)
    after = converted(turned, 13)
    assert ops(after) == [*["Transpose"] * 2, op, *["Transpose"] * 2]
    rng = np.random.default_rng(2)
    shapes = {
        "x": (4, 5, 2),
        "w": (both, 3 * gates, 2),
        "r": (both, 3 * gates, 3),
        "h": (both, 5, 3),
    }
    feeds = {name: rng.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}
    y, state = run(plain, feeds)
    feeds |= {name: feeds[name].swapaxes(0, 1) for name in ("x", "h")}
    for one in (after.graph.input, after.graph.output):  # their names of sizes are those of 0
        for value in one:
            value.type.tensor_type.ClearField("shape")
    other, other_state = run(after, feeds)
    np.testing.assert_array_equal(other, y.transpose(2, 0, 1, 3))
    np.testing.assert_array_equal(other_state, state.swapaxes(0, 1))
