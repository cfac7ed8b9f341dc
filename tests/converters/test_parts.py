"""The steps of Slice, Split and Pad, run at the old opset and converted."""

from __future__ import annotations

import struct

import numpy as np
import onnx
import pytest
from calls import calling, prove_call
from onnx.reference import ReferenceEvaluator
from proving import converted, drawn, initializers, ops, parsed, prove, run

from passes.rule import Refused

pytestmark = pytest.mark.sampled

# -- Slice ---------------------------------------------------------------------------------


@pytest.mark.parametrize("target", [10, 11, 13, 26])
@pytest.mark.parametrize("kind", ["float", "string", "int64", "bool"])
@pytest.mark.parametrize(
    ("attributes", "shape"),
    [
        ("starts = [1], ends = [3], axes = [1]", "4,2,2"),
        ("starts = [1, 0], ends = [-1, 1], axes = [0, 2]", "2,5,1"),
        ("starts = [-2, 1], ends = [2147483647, 1000], axes = [2, 0]", "3,5,2"),
        ("starts = [3], ends = [1], axes = [1]", "4,0,2"),
        ("starts = [-100], ends = [2], axes = [0]", "2,5,2"),
    ],
)
def test_slice(kind: str, attributes: str, shape: str, target: int) -> None:
    graph = f"({kind}[4,5,2] x) => ({kind}[{shape}] y) {{ y = Slice<{attributes}>(x) }}"
    after = prove(graph, opset=7, target=target)
    assert ops(after) == ["Slice"]
    assert not after.graph.node[0].attribute


@pytest.mark.parametrize("target", [10, 26])
def test_slice_without_axes_cuts_the_first_ones(target: int) -> None:
    """Slice-10 without axes would cut all of them."""
    graph = "(float[4,5,2] x) => (float[3,2,2] y) { y = Slice<starts = [1, 2], ends = [4, 4]>(x) }"
    after = prove(graph, opset=7, target=target)
    assert list(initializers(after).values()) == [[1, 2], [4, 4], [0, 1]]


def test_slice_of_an_unknown_rank() -> None:
    graph = """(float[24] x, int64[R] s) => (float[A,B,C] y)
        { u = Reshape(x, s) y = Slice<starts = [1], ends = [3]>(u) }"""
    prove(graph, opset=7, target=26, feeds={"s": np.array([4, 3, 2])})


@pytest.mark.parametrize(
    ("function", "made"),
    [
        (
            "F <a, b, c> (x) => (y)"
            "{ y = Slice<starts: ints = @a, ends: ints = @b, axes: ints = @c>(x) }",
            ["Constant"] * 3,
        ),
        (
            "F <a, b, c> (x) => (y) { y = Slice<starts: ints = @a, ends: ints = @b>(x) }",
            ["Constant"] * 4 + ["Size", "Range"],
        ),
    ],
)
def test_slice_where_the_caller_says_what_to_cut(function: str, made: list[str]) -> None:
    """Where axes are not given, the first ones are counted when the model runs."""
    model = """(float[4,5,2] x) => (float[2,3,2] y)
        { y = local.F<a = [1, 2], b = [3, 9], c = [0, 1]>(x) }"""
    assert prove_call(model, function, opset=7, target=26) == [*made, "Slice"]


@pytest.mark.parametrize("kind", ["int32", "int64"])
@pytest.mark.parametrize("opset", [10, 11, 13])
def test_slice_with_steps(opset: int, kind: str) -> None:
    graph = f"""(float[4,5] x, {kind}[2] s, {kind}[2] e, {kind}[2] a, {kind}[2] t)
        => (float[2,3] y) {{ y = Slice(x, s, e, a, t) }}"""
    values = {"s": [-1, 0], "e": [-5, 5], "a": [0, 1], "t": [-2, 2]}
    feeds = {name: np.array(value, kind) for name, value in values.items()}
    prove(graph, opset=opset, target=26, feeds=feeds)


def test_slice_10_without_axes_cuts_all() -> None:
    graph = "(float[4,5] x, int64[2] s, int64[2] e) => (float[A,B] y) { y = Slice(x, s, e) }"
    feeds = {"s": np.array([1, 2]), "e": np.array([3, 5])}
    prove(graph, opset=10, target=26, feeds=feeds)


# -- Split ---------------------------------------------------------------------------------


@pytest.mark.parametrize("target", [11, 13, 18, 26])
@pytest.mark.parametrize("kind", ["float", "int32", "string"])
@pytest.mark.parametrize(
    ("attributes", "x", "parts"),
    [
        ("", "6,2", ["3,2", "3,2"]),
        ("<axis = 1>", "2,6", ["2,2", "2,2", "2,2"]),
        ("<split = [1, 5]>", "6", ["1", "5"]),
        ("<axis = 1, split = [4, 0, 2]>", "2,6", ["2,4", "2,0", "2,2"]),
        ("<axis = 1, split = [2, 1]>", "N,3", ["N,2", "N,1"]),
        ("", "N,2", ["M,2", "M,2"]),
        ("", "4", ["4"]),
    ],
)
def test_split(kind: str, attributes: str, x: str, parts: list[str], target: int) -> None:
    outputs = [f"y{index}" for index in range(len(parts))]
    typed = ", ".join(f"{kind}[{part}] {name}" for part, name in zip(parts, outputs, strict=True))
    graph = f"({kind}[{x}] x) => ({typed}) {{ {', '.join(outputs)} = Split{attributes}(x) }}"
    (node,) = prove(graph, opset=7, target=target).graph.node
    equal = "split" not in attributes
    counts = [one.i for one in node.attribute if one.name == "num_outputs"]
    assert counts == ([len(parts)] if equal and target >= 18 else [])
    assert len(node.input) == (1 if equal or target < 13 else 2)


@pytest.mark.parametrize("attributes", ["<axis = -1>", "<axis = -1, split = [2, 1, 1]>"])
def test_split_along_a_negative_axis(attributes: str) -> None:
    last = [1, 1, 1] if "split" not in attributes else [2, 1, 1]
    typed = ", ".join(f"float[2,{size}] y{index}" for index, size in enumerate(last))
    graph = f"(float[2,{sum(last)}] x) => ({typed}) {{ y0, y1, y2 = Split{attributes}(x) }}"
    prove(graph, opset=11, target=26)


@pytest.mark.parametrize("opset", [7, 13])
def test_an_output_of_split_that_is_left_out_counts(opset: int) -> None:
    """onnxruntime crashes on it, before and after; the reference runs it."""
    model = parsed("(float[6] x) => (float[2] y) { y, n, z = Split(x) }", opset)
    model.graph.node[0].output[1] = ""
    after = converted(model, 26)
    onnx.checker.check_model(after, full_check=True)
    assert after.graph.node[0].attribute[0].i == 3
    feeds = drawn(model)
    (actual,) = ReferenceEvaluator(after).run(None, feeds)
    np.testing.assert_array_equal(actual, feeds["x"][:2])


@pytest.mark.parametrize("opset", [13, 16])
def test_split_with_computed_sizes(opset: int) -> None:
    graph = "(float[6] x, int64[2] s) => (float[A] y, float[B] z) { y, z = Split(x, s) }"
    feeds = {"s": np.array([4, 2])}
    assert ops(prove(graph, opset=opset, target=26, feeds=feeds)) == ["Split"]


def test_split_where_the_caller_says_the_sizes() -> None:
    model = "(float[6] x) => (float[4] y, float[2] z) { y, z = local.F<s = [4, 2]>(x) }"
    function = "F <s> (x) => (y, z) { y, z = Split<split: ints = @s>(x) }"
    assert prove_call(model, function, opset=7, target=26) == ["Constant", "Split"]


def test_split_where_one_caller_leaves_the_sizes_out_is_refused() -> None:
    model = """(float[6] x) => (float[4] y, float[2] z, float[3] a, float[3] b)
        { y, z = local.F<s = [4, 2]>(x) a, b = local.F(x) }"""
    function = "F <s> (x) => (y, z) { y, z = Split<split: ints = @s>(x) }"
    with pytest.raises(Refused) as refused:
        converted(calling(model, function, 8), 26)
    assert refused.value.code == "attribute-reference"


def test_split_to_sequence_24() -> None:
    graph = """(float[5,2] x, int64 n) => (float[2,2] y, int64 length) {
        zero = Constant<value = int64 {0}>()
        s = SplitToSequence(x, n)
        y = SequenceAt(s, zero)
        length = SequenceLength(s)
    }"""
    prove(graph, opset=11, target=26, feeds={"n": np.array(2)})


# -- Pad -----------------------------------------------------------------------------------


@pytest.mark.parametrize("target", [11, 13, 18, 19, 26])
@pytest.mark.parametrize("kind", ["float", "double"])
@pytest.mark.parametrize(
    ("attributes", "shape", "inputs"),
    [
        ("pads = [0, 1, 2, 0]", "4,4", 2),
        ("pads = [1, 1, 1, 1], value = 0.0", "4,5", 2),
        ("pads = [0, 1, 2, 0], value = 0.1", "4,4", 3),
        ("pads = [0, 1, 2, 0], value = -0.0", "4,4", 3),
        ("pads = [-1, 1, 0, -1], value = 2.5", "1,3", 3),
        ('mode = "constant", pads = [0, 0, 0, 0], value = 2.0', "2,3", 3),
        ('mode = "reflect", pads = [1, 2, 1, 0], value = 2.0', "4,5", 2),
        ('mode = "edge", pads = [0, 2, 3, 0]', "5,5", 2),
    ],
)
def test_pad(kind: str, attributes: str, shape: str, inputs: int, target: int) -> None:
    """A value of 0 is the default of the input too; reflect and edge use none."""
    graph = f"({kind}[2,3] x) => ({kind}[{shape}] y) {{ y = Pad<{attributes}>(x) }}"
    after = prove(graph, opset=7, target=target)
    assert ops(after) == ["Pad"]
    assert len(after.graph.node[0].input) == inputs


def test_a_padding_of_minus_0_keeps_its_sign() -> None:
    graph = "(float[1] x) => (float[2] y) { y = Pad<pads = [0, 1], value = -0.0>(x) }"
    (y,) = run(converted(parsed(graph, 7), 26), {"x": np.ones(1, np.float32)})
    assert struct.pack("f", y[1]) == struct.pack("f", -0.0)


@pytest.mark.parametrize("value", ["", ", value = 0.1", ", value = 1000000.0"])
def test_pad_of_float16(value: str) -> None:
    """onnxruntime has no Pad-2 of float16; the reference runs it."""
    model = parsed(f"(float16[2] x) => (float16[4] y) {{ y = Pad<pads = [1, 1]{value}>(x) }}", 7)
    feeds = drawn(model)
    with np.errstate(over="ignore"):
        (expected,) = ReferenceEvaluator(model).run(None, feeds)
    np.testing.assert_array_equal(run(converted(model, 26), feeds)[0], expected)


PADS = "F <p, v> (x) => (y) { y = Pad<pads: ints = @p, value: float = @v>(x) }"


@pytest.mark.parametrize(("kind", "made"), [("float", []), ("double", ["Cast"])])
def test_pad_where_the_caller_says_how(kind: str, made: list[str]) -> None:
    model = f"({kind}[2] x) => ({kind}[4] y) {{ y = local.F<p = [1, 1], v = 0.1>(x) }}"
    found = prove_call(model, PADS, opset=7, target=26)
    assert found == ["Constant", "Constant", *made, "Pad"]


def test_pad_of_a_type_that_differs_by_call() -> None:
    model = """(float[2] x, double[2] d) => (float[4] y, double[4] z)
        { y = local.F<p = [1, 1], v = 0.1>(x) z = local.F<p = [2, 0], v = 5.0>(d) }"""
    found = prove_call(model, PADS, opset=7, target=26)
    assert found == ["Constant", "Constant", "CastLike", "Pad"]


def test_pad_whose_mode_the_caller_chooses() -> None:
    model = """(float[3] x) => (float[5] y, float[5] z)
        { y = local.F<m = "edge">(x) z = local.F<m = "constant">(x) }"""
    function = "F <m> (x) => (y) { y = Pad<mode: string = @m, pads = [1, 1], value = 2.0>(x) }"
    assert prove_call(model, function, opset=7, target=26) == ["Constant", "Constant", "Pad"]


@pytest.mark.parametrize("mode", ["constant", "reflect", "edge"])
@pytest.mark.parametrize("kind", ["float", "int32", "int64", "uint8", "bool"])
def test_pad_11_and_later(kind: str, mode: str) -> None:
    opset = 13 if kind == "bool" else 11
    graph = f"""({kind}[2,3] x, int64[4] p, {kind} v) => ({kind}[A,B] y)
        {{ y = Pad<mode = "{mode}">(x, p, v) }}"""
    prove(graph, opset=opset, target=26, feeds={"p": np.array([1, 2, 0, 1])})


def test_pad_18_of_some_axes() -> None:
    graph = """(float[2,3] x, int64[2] p, int64[1] a) => (float[2,5] y)
        { y = Pad(x, p, , a) }"""
    prove(graph, opset=18, target=26, feeds={"p": np.array([1, 1]), "a": np.array([-1])})


def test_pad_19_wraps() -> None:
    graph = '(float[2,3] x, int64[4] p) => (float[4,5] y) { y = Pad<mode = "wrap">(x, p) }'
    prove(graph, opset=19, target=26, feeds={"p": np.array([1, 1, 1, 1])})
