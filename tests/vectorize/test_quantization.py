"""Rules for quantizing, dequantizing, and products of quantized values."""

from __future__ import annotations

import numpy as np
import pytest
from looping import prove, refused

pytestmark = pytest.mark.sampled

SIZES = (1, 3, 0)


SCALES = {"s": np.array(0.5, np.float32), "t": np.array([0.25, 0.5, 2.0], np.float32)}


@pytest.mark.parametrize("opset", [13, 19, 21])
@pytest.mark.parametrize("carrying", [["x"], ["s"], ["z"], ["x", "s"], ["x", "s", "z"]])
@pytest.mark.parametrize("row", ["", "[3]", "[2,3]", "[2,3,4]"])
@pytest.mark.parametrize("scale", ["", "[1]"])
def test_one_scale(scale: str, row: str, carrying: list[str], opset: int, both: list) -> None:
    if scale and not row:
        return  # [1] is one per place there
    feeds = {"s": np.full([1] if scale else [], 0.5, np.float32)}
    quantize = (
        f"g (float{row} x, float{scale} s, uint8{scale} z) => (uint8[] y)"
        " { y = QuantizeLinear (x, s, z) }"
    )
    ranges = {"z": (0, 9), "s": (1, 4)}
    how = {"sizes": SIZES, "opset": opset, "nonempty": False, "ranges": ranges}
    both = both if not scale or len(row) < 4 else both[1:]  # the reference takes [1] for an axis
    feeds = {} if "s" in carrying else feeds
    prove(quantize, carrying, feeds, **how, executors=both)
    dequantize = (
        f"g (int8{row} x, float{scale} s, int8{scale} z) => (float[] y)"
        " { y = DequantizeLinear (x, s, z) }"
    )
    prove(dequantize, carrying, feeds, **how, executors=both)


@pytest.mark.parametrize("opset", [13, 21])
@pytest.mark.parametrize(("row", "axis"), [("[3]", 0), ("[2,3]", 1), ("[2,3]", -1), ("[3,2]", 0)])
@pytest.mark.parametrize("zero", [", z", ""])
def test_a_scale_per_place(zero: str, row: str, axis: int, opset: int, both: list) -> None:
    points = ", uint8[3] z" if zero else ""
    for op, kinds in (("Quantize", ("float", "uint8")), ("Dequantize", ("uint8", "float"))):
        text = (
            f"g ({kinds[0]}{row} x, float[3] s{points}) => ({kinds[1]}[] y)"
            f" {{ y = {op}Linear <axis = {axis}> (x, s{zero}) }}"
        )
        feeds = {"s": SCALES["t"]}
        ranges = {"z": (0, 9), "x": (0, 50)}
        how = {"sizes": SIZES, "opset": opset, "nonempty": False, "ranges": ranges}
        prove(text, ["x"], feeds, **how, executors=both)
        assert refused(text, ["s"], opset) == "batched-operand"


@pytest.mark.parametrize("carrying", [["x"], ["s"], ["x", "z"], ["x", "s", "z"]])
@pytest.mark.parametrize(("axis", "scale"), [(1, "[2,2]"), (-1, "[2,2]"), (0, "[1,4]")])
def test_a_scale_per_block(scale: str, axis: int, carrying: list[str], both: list) -> None:
    for op, kinds in (("Quantize", ("float", "uint8")), ("Dequantize", ("uint8", "float"))):
        text = (
            f"g ({kinds[0]}[2,4] x, float{scale} s, uint8{scale} z) => ({kinds[1]}[] y)"
            f" {{ y = {op}Linear <axis = {axis}, block_size = 2> (x, s, z) }}"
        )
        ranges = {"z": (0, 9), "x": (0, 50), "s": (1, 5)}
        prove(text, carrying, ranges=ranges, executors=both)


@pytest.mark.parametrize("opset", [13, 18, 21])
@pytest.mark.parametrize("row", ["[5]", "[2,3]", "[1]"])
def test_each_row_is_quantized_by_its_own_range(row: str, opset: int, both: list) -> None:
    text = (
        f"g (float{row} x) => (uint8[] y, float s, uint8 z)"
        " { y, s, z = DynamicQuantizeLinear (x) }"
    )
    prove(text, ["x"], sizes=(1, 3, 5), opset=opset, executors=both)
    zeros = {"x": np.zeros([int(n) for n in row[1:-1].split(",")], np.float32)}
    prove(text, ["x"], zeros, opset=opset, executors=both)
    prove(text, ["x"], sizes=(1, 0), opset=opset, nonempty=False, executors=both)


PAIRS = [("[3]", "[3]"), ("[3]", "[3,2]"), ("[4,3]", "[3]"), ("[4,3]", "[3,2]")]
PAIRS += [("[2,4,3]", "[3,2]"), ("[4,3]", "[2,3,2]"), ("[2,4,3]", "[3]"), ("[3]", "[2,3,2]")]


@pytest.mark.parametrize("carrying", [["a"], ["b"], ["a", "b"]])
@pytest.mark.parametrize(("a", "b"), PAIRS)
def test_matmul_integer(a: str, b: str, carrying: list[str], both: list) -> None:
    text = f"g (uint8{a} a, uint8{b} b) => (int32[] y) {{ y = MatMulInteger (a, b) }}"
    ranges = {"a": (0, 256), "b": (0, 256), "p": (0, 256), "q": (0, 256)}
    how = {"sizes": SIZES, "nonempty": False, "executors": both}
    prove(text, carrying, ranges=ranges, **how)
    text = (
        f"g (uint8{a} a, uint8{b} b, uint8 p, uint8 q) => (int32[] y)"
        " { y = MatMulInteger (a, b, p, q) }"
    )
    prove(text, carrying, ranges=ranges, **how)
    prove(text, carrying, ranges=ranges, executors=both)


@pytest.mark.parametrize(
    "carrying", [["p"], ["q"], ["a", "p"], ["b", "p"], ["a", "q"], ["a", "b", "p", "q"]]
)
@pytest.mark.parametrize(("a", "b"), PAIRS)
def test_zero_points_of_each_row(a: str, b: str, carrying: list[str], both: list) -> None:
    # Without VNNI, onnxruntime adds two products of uint8 and int8 up in 16 bits: 2 * 255 * 64 fit.
    ranges = {"a": (0, 256), "b": (-64, 65), "p": (0, 256), "q": (-128, 128)}
    text = (
        f"g (uint8{a} a, int8{b} b, uint8 p, int8 q) => (int32[] y)"
        " { y = MatMulInteger (a, b, p, q) }"
    )
    how = {"sizes": SIZES, "nonempty": False, "executors": both}
    prove(text, carrying, ranges=ranges, **how)


@pytest.mark.parametrize("carrying", [["a"], ["b"], ["p"], ["q"], ["a", "b", "p", "q"]])
def test_zero_points_per_line_and_column(carrying: list[str]) -> None:
    """Per column; the reference does not take a list of zero points for the lines."""
    ranges = {"a": (0, 256), "b": (0, 256), "p": (0, 256), "q": (0, 256)}
    text = (
        "g (uint8[4,3] a, uint8[3,2] b, uint8[4,1] p, uint8[2] q) => (int32[4,2] y)"
        " { y = MatMulInteger (a, b, p, q) }"
    )
    prove(text, carrying, ranges=ranges)


def test_the_weight_of_a_quantized_layer_is_summed_once(both: list) -> None:
    text = """g (float[2,4] x, uint8[4,3] w) => (int32[] y) {
        q, s, z = DynamicQuantizeLinear (x)
        y = MatMulInteger (q, w, z)
    }"""
    made = prove(text, ["x"], executors=both)
    assert [node.op_type for node in made.graph.node].count("MatMulInteger") == 1


@pytest.mark.parametrize("carrying", [["a"], ["b"], ["a", "b"]])
@pytest.mark.parametrize(("a", "b"), PAIRS)
def test_qlinear_matmul(a: str, b: str, carrying: list[str], both: list) -> None:
    text = (
        f"g (uint8{a} a, float s, uint8 p, uint8{b} b, float t, uint8 q, float u, uint8 r)"
        " => (uint8[] y) { y = QLinearMatMul (a, s, p, b, t, q, u, r) }"
    )
    ranges = dict.fromkeys("apbqr", (0, 20))
    scales = {"s": 0.5, "t": 0.25, "u": 2.0}
    feeds = {name: np.array(value, np.float32) for name, value in scales.items()}
    how = {"sizes": SIZES, "nonempty": False, "executors": both}
    prove(text, carrying, feeds, ranges=ranges, **how)
    prove(text, carrying, feeds, ranges=ranges, executors=both)
    assert refused(text, ["s"]) == "batched-operand"


def test_qlinear_matmul_per_line_is_refused() -> None:
    text = (
        "g (uint8[4,3] a, float[4] s, uint8[4] p, uint8[3,2] b, float t, uint8 q, float u,"
        " uint8 r) => (uint8[4,2] y) { y = QLinearMatMul (a, s, p, b, t, q, u, r) }"
    )
    assert refused(text, ["a"]) == "no-batching-rule"
