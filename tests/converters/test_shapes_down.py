"""The ops of shapes and parts, and Pad, on their way to older opsets."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import AttributeProto, numpy_helper
from onnx.reference import ReferenceEvaluator
from proving import converted, drawn, ops, parsed, run
from proving_down import (
    GRAPHS,
    OLD,
    assert_stopped,
    attributes,
    fixed,
    prove_down,
    went_down,
)
from refusing import refusal

pytestmark = pytest.mark.sampled

# -- Squeeze, Unsqueeze, Concat, Flatten ---------------------------------------------------


@pytest.mark.parametrize("target", OLD)
@pytest.mark.parametrize("kind", ["float", "string", "int64"])
@pytest.mark.parametrize(
    ("axes", "before", "after"),
    [([0], "1,2,1", "2,1"), ([-1, 0], "1,2,1", "2"), ([1], "N,1,0", "N,0")],
)
def test_squeeze(axes: list[int], before: str, after: str, kind: str, target: int) -> None:
    graph = f"({kind}[{before}] x) => ({kind}[{after}] y) {{ y = Squeeze(x, a) }}"
    model = prove_down(fixed(graph, a=axes), opset=21, target=target, places=GRAPHS)
    counted = axes if target > 10 else sorted(axis % 3 for axis in axes)
    assert attributes(model) == [{"axes": counted}]
    assert not model.graph.initializer


@pytest.mark.parametrize("target", OLD)
def test_squeeze_of_every_axis_of_size_1(target: int) -> None:
    model = prove_down(
        "(float[1,2,1] x) => (float[2] y) { y = Squeeze(x) }", opset=13, target=target
    )
    assert attributes(model) == [{}]


def test_an_empty_list_of_axes_stays_one() -> None:
    model = parsed("(float[1,2,1] x) => (float[A] y) { y = Squeeze(x, a) }", 13)
    model.graph.initializer.append(numpy_helper.from_array(np.zeros(0, np.int64), "a"))
    after = went_down(model, 11)
    assert after.graph.node[0].attribute[0].type == AttributeProto.INTS
    feeds = drawn(model)
    np.testing.assert_array_equal(run(after, feeds)[0], run(model, feeds)[0])


@pytest.mark.parametrize("target", OLD)
@pytest.mark.parametrize("axes", [[0], [-1, 0], [3, 0], [-4]])
def test_unsqueeze(axes: list[int], target: int) -> None:
    shape = "1,2,3,1" if len(axes) == 2 else "1,2,3"
    if axes == [-4]:
        axes = [-3]
    graph = f"(float[2,3] x) => (float[{shape}] y) {{ y = Unsqueeze(x, a) }}"
    model = prove_down(fixed(graph, a=axes), opset=25, target=target, places=GRAPHS)
    rank = 2 + len(axes)
    assert attributes(model) == [{"axes": axes if target > 10 else sorted(a % rank for a in axes)}]


@pytest.mark.parametrize("target", [12, 10])
def test_constants_in_a_function(target: int) -> None:
    graph = """(float[1,4] x) => (float[1,2] y) {
        a = Constant<value_ints = [-1]>()
        t = Constant<value_ints = [2]>()
        u = Unsqueeze(x, a)
        v = Squeeze(u, a)
        s = Shape<start = -1>(v)
        y = Slice(v, t, s, a)
    }"""
    prove_down(graph, opset=18, target=target)


@pytest.mark.parametrize("op", ["Squeeze", "Unsqueeze"])
def test_axes_that_are_computed_are_refused(op: str) -> None:
    graph = f"(float[1,2] x, int64[1] a) => (float[B] y) {{ y = {op}(x, a) }}"
    assert_stopped(
        graph.replace("[B]", "[B,C,D]" if op == "Unsqueeze" else "[B]"),
        opset=13,
        target=12,
        why=r"takes axes from 'a', which is only known at run time, and opset 12",
    )


def test_negative_axes_of_an_unknown_rank_are_refused() -> None:
    graph = "(float[6] x, int64[R] s) => (float[A] y) { u = Reshape(x, s) y = Squeeze(u, a) }"
    stopped = refusal(fixed(graph, a=[-1]), opset=13, target=10)
    assert "the rank of 'u' is not known" in stopped
    converted(parsed(fixed(graph, a=[0]), 13), 10)


@pytest.mark.parametrize("target", [11, 10, 7])
@pytest.mark.parametrize(("axis", "shape"), [(-1, "2,3,8"), (-3, "4,3,4"), (1, "2,6,4")])
def test_concat(axis: int, shape: str, target: int) -> None:
    graph = f"(float[2,3,4] x) => (float[{shape}] y) {{ y = Concat<axis = {axis}>(x, x) }}"
    model = prove_down(graph, opset=13, target=target)
    assert attributes(model) == [{"axis": axis if target > 10 else axis % 3}]


@pytest.mark.parametrize("target", [11, 10, 8, 7])
@pytest.mark.parametrize("kind", ["float", "int64", "bool", "string"])
@pytest.mark.parametrize(
    ("before", "axis", "after"),
    [
        ("2,3,4", "-1", "6,4"),
        ("2,3,4", "0", "1,24"),
        ("2,3,4", "3", "24,1"),
        ("N,3", "1", "N,3"),
        ("3,N", "-1", "3,N"),
        ("0,3", "1", "0,3"),
        ("2,0", "1", "2,0"),
    ],
)
def test_flatten(before: str, axis: str, after: str, kind: str, target: int) -> None:
    graph = f"({kind}[{before}] x) => ({kind}[{after}] y) {{ y = Flatten<axis = {axis}>(x) }}"
    model = prove_down(graph, opset=21, target=target, places=GRAPHS)
    assert ops(model) == ["Reshape" if target < 9 and kind != "float" else "Flatten"]


def test_flatten_of_unknown_sizes_is_refused() -> None:
    graph = "(int64[N,M] x) => (int64[N,M] y) { y = Flatten(x) }"
    assert "the sizes of 'x', which Reshape needs, are not known" in refusal(
        graph, opset=13, target=8
    )


# -- Reshape, Expand, ConstantOfShape, Shape -----------------------------------------------


@pytest.mark.parametrize("target", [13, 10, 9, 7])
@pytest.mark.parametrize(
    ("before", "sizes", "after"),
    [
        ("2,3", [3, 2], "3,2"),
        ("2,3", [-1], "6"),
        ("0,3", [3, 0], "3,0"),
        ("0,3", [0, 3], "0,3"),
        ("0,3", [5, 0, 0, 2], "5,0,0,2"),
        ("2,0", [0, 0], "0,0"),
    ],
)
def test_allowzero_of_a_fixed_shape(before: str, sizes: list[int], after: str, target: int) -> None:
    graph = f"(float[{before}] x) => (float[{after}] y) {{ y = Reshape<allowzero = 1>(x, s) }}"
    prove_down(fixed(graph, s=sizes), opset=14, target=target, places=GRAPHS)


@pytest.mark.parametrize("target", [13, 10, 9])
@pytest.mark.parametrize(
    ("before", "sizes"),
    [
        ((2, 3), [3, 2]),
        ((2, 3), [-1, 1]),
        ((0, 3), [3, 0]),
        ((0, 3), [0, 0]),
        ((3, 0), [0, 7]),
        ((0, 3), [-1, 3]),
    ],
)
def test_allowzero_of_a_computed_shape(
    before: tuple[int, int], sizes: list[int], target: int
) -> None:
    graph = "(float[N,M] x, int64[2] s) => (float[A,B] y) { y = Reshape<allowzero = 1>(x, s) }"
    feeds = {
        "x": np.arange(np.prod(before), dtype=np.float32).reshape(before),
        "s": np.array(sizes),
    }
    prove_down(graph, opset=14, target=target, feeds=feeds, places=["main", "if"])


@pytest.mark.parametrize("size", [0, 2])
@pytest.mark.parametrize(
    ("x", "y", "made"),
    [("N,4", "N,2,2", ["Reshape"]), ("2,2,N", "4,N", ["Equal", "Where", "Reshape"])],
)
def test_allowzero_where_the_sizes_show(x: str, y: str, made: list[str], size: int) -> None:
    """What is the same size at the same place is copied, whatever it is; one other is the rest."""
    count = len(y.split(","))
    graph = f"""(float[{x}] x, int64[{count}] s) => (float[{y}] y)
        {{ y = Reshape<allowzero = 1>(x, s) }}"""
    shapes = [[size if one == "N" else int(one) for one in said.split(",")] for said in (x, y)]
    feeds = {"x": np.ones(shapes[0], np.float32), "s": np.array(shapes[1])}
    assert ops(prove_down(graph, opset=14, target=13, feeds=feeds, places=["main"])) == made


@pytest.mark.parametrize("kind", ["float", "int32", "bool"])
@pytest.mark.parametrize(
    ("before", "sizes", "after"),
    [("2,1", [1, 3], "2,3"), ("3", [2, 1], "2,3"), ("", [2, 2], "2,2"), ("1,3", [0, 3], "0,3")],
)
def test_expand(before: str, sizes: list[int], after: str, kind: str) -> None:
    graph = f"({kind}[{before}] x) => ({kind}[{after}] y) {{ y = Expand(x, s) }}".replace("[]", "")
    model = prove_down(fixed(graph, s=sizes), opset=13, target=7, places=GRAPHS)
    assert ops(model)[-1] == "Tile"


def test_only_a_single_element_is_expanded_to_a_computed_shape_below_opset_8() -> None:
    graph = "(float[1] x, int64[1] s) => (float[A] y) { y = Expand(x, s) }"
    for size in (0, 1, 3):
        prove_down(graph, opset=13, target=7, feeds={"s": np.array([size])})
    graph = graph.replace("float[1]", "float[3]")
    prove_down(graph, opset=13, target=8, feeds={"s": np.array([3])})
    assert "Expand takes the shape from 's'" in refusal(graph, opset=13, target=7)


@pytest.mark.parametrize("sizes", [[2, 3], [0, 2], [1]])
@pytest.mark.parametrize("value", ["", "<value = int64[1] {7}>", "<value = bool[1] {1}>"])
def test_constant_of_shape(value: str, sizes: list[int]) -> None:
    kind = {"i": "int64", "b": "bool"}.get(value[9:10], "float")
    graph = f"""(int64[{len(sizes)}] s) => ({kind}[{",".join(map(str, sizes))}] y)
        {{ y = ConstantOfShape{value}(s) }}"""
    feeds = {"s": np.array(sizes)}
    assert ops(prove_down(graph, opset=25, target=8, feeds=feeds)) == ["Expand"]
    head = (
        f"(float x) => ({kind}[{','.join(map(str, sizes))}] y) {{ y = ConstantOfShape{value}(s) }}"
    )
    prove_down(fixed(head, s=sizes), opset=25, target=7, places=GRAPHS)


@pytest.mark.parametrize("target", [14, 12, 9, 7])
@pytest.mark.parametrize(
    ("limits", "length"),
    [
        ("", 3),
        ("<start = 1>", 2),
        ("<end = 2>", 2),
        ("<start = -2, end = -1>", 1),
        ("<start = 2, end = 1>", 0),
        ("<start = -9, end = 9>", 3),
    ],
)
def test_a_part_of_a_shape(limits: str, length: int, target: int) -> None:
    graph = f"(float[2,3,4] x) => (int64[{length}] y) {{ y = Shape{limits}(x) }}"
    made = ops(prove_down(graph, opset=21, target=target))
    assert made == ["Shape", "Slice"][: 2 if limits else 1]


# -- Slice, Split --------------------------------------------------------------------------


@pytest.mark.parametrize("target", [12, 10, 9, 7])
@pytest.mark.parametrize("kind", ["float", "bool", "int64"])
@pytest.mark.parametrize(
    ("starts", "ends", "axes", "steps", "shape"),
    [
        ([1], [3], [1], [1], "4,2"),
        ([-3, 0], [2**62, 2], [0, -1], [1, 1], "3,2"),
        ([3], [1], [-1], [1], "4,0"),
        ([-1], [-(2**62)], [1], [-1], "4,5"),
        ([0, 4], [9, 0], [0, 1], [3, -2], "2,2"),
        ([-100], [-100], [0], [-1], "1,5"),
        ([1, 1], [4, 4], [-1, 0], [2, 1], "3,2"),
    ],
)
def test_slice(
    starts: list[int],
    ends: list[int],
    axes: list[int],
    steps: list[int],
    shape: str,
    kind: str,
    target: int,
) -> None:
    graph = f"({kind}[4,5] x) => ({kind}[{shape}] y) {{ y = Slice(x, s, e, a, t) }}"
    graph = fixed(graph, s=starts, e=ends, a=axes, t=steps)
    model = prove_down(graph, opset=13, target=target, places=GRAPHS)
    steps = [step for step in steps if step != 1] if target < 10 else []
    parts = 1 if len(steps) < len(axes) else 0
    assert ops(model) == ["Gather"] * len(steps) + ["Slice"] * parts


def test_slice_without_axes_and_steps() -> None:
    graph = "(float[4,5] x) => (float[3,2] y) { y = Slice(x, s, e) }"
    model = prove_down(fixed(graph, s=[1, 2], e=[4, 4]), opset=13, target=9, places=GRAPHS)
    assert attributes(model) == [{"starts": [1, 2], "ends": [4, 4], "axes": [0, 1]}]


def test_negative_axes_of_slice_10() -> None:
    graph = "(float[4,5] x) => (float[4,2] y) { y = Slice(x, s, e, a) }"
    model = prove_down(fixed(graph, s=[1], e=[3], a=[-1]), opset=10, target=9, places=GRAPHS)
    assert attributes(model) == [{"starts": [1], "ends": [3], "axes": [1]}]


@pytest.mark.parametrize("axis", [-1, -2, 1])
@pytest.mark.parametrize("kind", ["int32", "int64"])
def test_axes_of_slice_that_are_computed_are_made_positive(kind: str, axis: int) -> None:
    graph = f"""(float[4,4] x, {kind}[1] s, {kind}[1] e, {kind}[1] a) => (float[A,B] y)
        {{ y = Slice(x, s, e, a) }}"""
    feeds = {name: np.array([one], kind) for name, one in (("s", 1), ("e", 3), ("a", axis))}
    assert ops(prove_down(graph, opset=13, target=10, feeds=feeds)) == ["Mod", "Slice"]


LIMITS = [(1, 3), (-3, 2**62), (3, 1), (-1, -(2**62)), (0, -1), (-100, 100), (4, 0), (2**62, 0)]


@pytest.mark.parametrize("step", [1, 2, 3, -1, -2])
@pytest.mark.parametrize(("start", "end"), LIMITS)
def test_slice_of_what_is_only_known_at_run_time(start: int, end: int, step: int) -> None:
    feeds = {
        "x": np.arange(10, dtype=np.float32).reshape(5, 2),
        "s": np.array([start, 0]),
        "e": np.array([end, 1]),
    }
    graph = """(float[N,2] x, int64[2] s, int64[2] e) => (float[A,B] y)
        { y = Slice(x, s, e, a, t) }"""
    graph = fixed(graph, a=[0, 1], t=[step, 1])
    after = prove_down(graph, opset=13, target=9, feeds=feeds, places=["main", "if"])
    assert "Compress" in ops(after)
    graph = "(float[N,2] x) => (float[A,2] y) { y = Slice(x, s, e, a, t) }"
    graph = fixed(graph, s=[start], e=[end], a=[-2], t=[step])
    after = prove_down(graph, opset=13, target=9, feeds={"x": feeds["x"]}, places=["main", "if"])
    assert ("Gather" in ops(after)) == (step != 1)


def test_what_slice_is_refused_for() -> None:
    graph = "(float[4] x, int64[1] s, int64[1] e) => (float[A] y) { y = Slice(x, s, e) }"
    assert "Slice takes starts from 's'" in refusal(graph, opset=10, target=8)
    graph = "(float[N] x) => (float[A] y) { y = Slice(x, s, e, a, t) }"
    graph = fixed(graph, s=[0], e=[9], a=[0], t=[2])
    assert "the size of axis 0 of 'x' is not known" in refusal(graph, opset=10, target=8)
    graph = """(float[4] x, int64[1] s, int64[1] e, int64[1] a) => (float[A] y)
        { y = Slice(x, s, e, a) }"""
    assert "Slice takes axes from 'a'" in refusal(graph, opset=10, target=9)


@pytest.mark.parametrize("target", [17, 12, 10, 7])
@pytest.mark.parametrize(
    ("size", "count", "parts"),
    [(6, 3, [2, 2, 2]), (7, 4, [2, 2, 2, 1]), (5, 1, [5]), (3, 2, [2, 1]), (4, 3, [2, 2, 0])],
)
def test_split_into_equal_parts(size: int, count: int, parts: list[int], target: int) -> None:
    names = [f"y{place}" for place in range(count)]
    outputs = ", ".join(f"float[2,{part}] {name}" for part, name in zip(parts, names, strict=True))
    graph = f"""(float[2,{size}] x) => ({outputs})
        {{ {", ".join(names)} = Split<axis = -1, num_outputs = {count}>(x) }}"""
    model = prove_down(graph, opset=18, target=target)
    (said,) = attributes(model)
    assert said["axis"] == (-1 if target > 10 else 1)
    assert "num_outputs" not in said


@pytest.mark.parametrize("target", [17, 12, 10, 9])
@pytest.mark.parametrize("size", [6, 7])
def test_split_of_an_axis_of_unknown_size(size: int, target: int) -> None:
    graph = """(float[N,2] x) => (float[A,2] y0, float[B,2] y1, float[C,2] y2)
        { y0, y1, y2 = Split<num_outputs = 3>(x) }"""
    feeds = {"x": np.arange(size * 2, dtype=np.float32).reshape(size, 2)}
    made = ops(prove_down(graph, opset=18, target=target, feeds=feeds, places=["main", "if"]))
    assert ("Split" in made) == (target > 12)


@pytest.mark.parametrize("target", [12, 10, 7])
def test_split_by_sizes(target: int) -> None:
    graph = "(float[2,6] x) => (float[2,4] y, float[2,2] z) { y, z = Split<axis = -1>(x, s) }"
    model = prove_down(fixed(graph, s=[4, 2]), opset=18, target=target, places=GRAPHS)
    assert attributes(model) == [{"axis": -1 if target > 10 else 1, "split": [4, 2]}]


def test_split_by_computed_sizes_is_one_slice_each() -> None:
    graph = "(float[6] x, int64[2] s) => (float[A] y, float[B] z) { y, z = Split(x, s) }"
    feeds = {"s": np.array([4, 2])}
    assert "Split" not in ops(prove_down(graph, opset=13, target=12, feeds=feeds))
    assert "Compress" in ops(prove_down(graph, opset=13, target=9, feeds=feeds))
    assert "Split takes split from 's'" in refusal(graph, opset=13, target=8)


def test_split_to_sequence_of_bfloat16_is_refused() -> None:
    graph = """(bfloat16[5] x) => (int64 n) { s = SplitToSequence(x) n = SequenceLength(s) }"""
    assert_stopped(graph, opset=24, target=23, why="SplitToSequence takes no bfloat16")


# -- Pad, CenterCropPad --------------------------------------------------------------------


@pytest.mark.parametrize("target", [18, 13, 10, 7])
@pytest.mark.parametrize("mode", ["constant", "edge", "reflect", "wrap"])
@pytest.mark.parametrize("pads", [[1, 0, 1, 2], [0, 0, 0, 0], [-1, 1, 1, -1]])
def test_pad(pads: list[int], mode: str, target: int) -> None:
    shape = f"{3 + pads[0] + pads[2]},{4 + pads[1] + pads[3]}"
    graph = f'(float[3,4] x) => (float[{shape}] y) {{ y = Pad<mode = "{mode}">(x, p) }}'
    model = prove_down(fixed(graph, p=pads), opset=21, target=target, places=GRAPHS)
    cut = {"Pad"} if min(pads) < 0 else set()
    assert set(ops(model)) == ({"Gather"} | cut if mode == "wrap" else {"Pad"})


@pytest.mark.parametrize("target", [17, 10, 7])
@pytest.mark.parametrize("axes", [[1], [-1], [2, 0]])
def test_pad_of_some_axes(axes: list[int], target: int) -> None:
    shape = [2, 3, 2]
    for axis in axes:
        shape[axis] += 3
    graph = f"""(float[2,3,2] x) => (float[{",".join(map(str, shape))}] y)
        {{ y = Pad(x, p, , a) }}"""
    graph = fixed(graph, p=[1] * len(axes) + [2] * len(axes), a=axes)
    prove_down(graph, opset=18, target=target, places=GRAPHS)


@pytest.mark.parametrize("target", [17, 13, 11])
@pytest.mark.parametrize("mode", ["constant", "wrap"])
def test_pad_by_what_is_computed(mode: str, target: int) -> None:
    graph = f"""(float[N,3] x, int64[2] p, float v) => (float[A,B] y)
        {{ y = Pad<mode = "{mode}">(x, p, v, a) }}"""
    feeds = {"x": np.arange(6, dtype=np.float32).reshape(2, 3), "p": np.array([3, 1])}
    prove_down(fixed(graph, a=[-2]), opset=19, target=target, feeds=feeds, places=["main", "if"])


def test_pad_of_axes_that_are_computed() -> None:
    graph = """(float[2,3] x, int64[2] p, int32[1] a) => (float[2,6] y) { y = Pad(x, p, , a) }"""
    feeds = {"p": np.array([1, 2]), "a": np.array([-1], np.int32)}
    assert "ScatterElements" in ops(prove_down(graph, opset=18, target=13, feeds=feeds))
    wraps = graph.replace("Pad(", 'Pad<mode = "wrap">(')
    assert "Pad takes axes from 'a'" in refusal(wraps, opset=19, target=13)


@pytest.mark.parametrize(
    "kind", ["double", "float16", "int8", "uint8", "int16", "uint16", "int32", "uint32", "bool"]
)
def test_pad_of_other_types(kind: str) -> None:
    graph = f"({kind}[2] x) => ({kind}[5] y) <int64[2] p = {{1, 2}}> {{ y = Pad(x, p, v) }}"
    model = parsed(graph, 21)
    dtype = drawn(model)["x"].dtype
    model.graph.initializer.append(numpy_helper.from_array(np.ones((), dtype), "v"))
    after = went_down(model, 10)
    onnx.checker.check_model(after, full_check=True)
    feeds = drawn(model)
    for one in (model, after):
        (actual,) = ReferenceEvaluator(one).run(None, feeds)
        expected = np.pad(feeds["x"], (1, 2), constant_values=1)
        np.testing.assert_array_equal(actual, expected)
        assert actual.dtype == expected.dtype


def test_what_pad_is_refused_for() -> None:
    graph = "({kind}[2] x, int64[2] p, {kind} v) => ({kind}[4] y) {{ y = Pad(x, p{value}) }}"
    computed = graph.format(kind="float", value="")
    assert "Pad takes pads from 'p'" in refusal(computed, opset=11, target=10)
    value = fixed(graph.format(kind="float", value=", v").replace("int64[2] p, ", ""), p=[1, 1])
    assert "Pad takes the value from 'v'" in refusal(value, opset=11, target=10)
    int64 = fixed(computed.replace("float", "int64").replace("int64[2] p, ", ""), p=[1, 1])
    assert "Pad-2 takes no int64, which fits into no float type" in refusal(
        int64, opset=11, target=10
    )
    double = """(double[2] x) => (double[4] y) <double v = {0.1}, int64[2] p = {1, 1}>
        { y = Pad(x, p, v) }"""
    assert "Pad-2 pads with a float, which 0.1 is not" in refusal(double, opset=11, target=10)


@pytest.mark.parametrize("target", [17, 13])
def test_center_crop_pad(target: int) -> None:
    graph = "(float[4,3] x, int64[2] s) => (float[2,6] y) { y = CenterCropPad(x, s) }"
    prove_down(graph, opset=18, target=target, feeds={"s": np.array([2, 6])}, places=["main", "if"])


# -- DepthToSpace, SpaceToDepth ------------------------------------------------------------


@pytest.mark.parametrize("mode", ["DCR", "CRD"])
def test_depth_to_space(mode: str) -> None:
    graph = f"""(float[1,12,2,3] x) => (float[1,3,4,6] y)
        {{ y = DepthToSpace<blocksize = 2, mode = "{mode}">(x) }}"""
    made = ops(prove_down(graph, opset=13, target=7))
    assert made == (["DepthToSpace"] if mode == "DCR" else ["Gather", "DepthToSpace"])


@pytest.mark.parametrize("mode", ["DCR", "CRD"])
def test_space_to_depth(mode: str) -> None:
    """onnxruntime has no opset 28."""
    graph = f"""(float[1,3,4,6] x) => (float[1,12,2,3] y)
        {{ y = SpaceToDepth<blocksize = 2, mode = "{mode}">(x) }}"""
    model = parsed(graph, 28)
    feeds = drawn(model)
    (expected,) = ReferenceEvaluator(model).run(None, feeds)
    np.testing.assert_array_equal(run(went_down(model, 7), feeds)[0], expected)


def test_the_order_of_unknown_channels_is_refused() -> None:
    graph = """(float[1,C,2,3] x) => (float[1,D,4,6] y)
        { y = DepthToSpace<blocksize = 2, mode = "CRD">(x) }"""
    assert "how many channels 'x' has is not known" in refusal(graph, opset=13, target=10)
