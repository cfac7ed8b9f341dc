"""Rules for Concat, Split, Slice and Pad."""

from __future__ import annotations

import numpy as np
import pytest
from looping import prove, prove_at_any_size, refused

pytestmark = pytest.mark.sampled

OPSETS = [13, 18, 21]


@pytest.mark.parametrize("kind", ["float", "bool", "string"])
@pytest.mark.parametrize("carrying", [["a"], ["b"], ["a", "b"], ["c"], ["a", "b", "c"]])
@pytest.mark.parametrize(
    ("a", "b", "c", "axes"),
    [
        ("[3]", "[1]", "[0]", (0, -1)),
        ("[2,3]", "[2,3]", "[2,3]", (0, 1, -1, -2)),
        ("[2,3]", "[2,1]", "[2,M]", (1, -1)),
        ("[1,2,3]", "[2,2,3]", "[0,2,3]", (0, -3)),
    ],
)
def test_concat(
    a: str, b: str, c: str, axes: tuple[int, ...], carrying: list[str], kind: str, both: list
) -> None:
    for axis in axes:
        text = (
            f"g ({kind}{a} a, {kind}{b} b, {kind}{c} c) => ({kind}[] y)"
            f" {{ y = Concat <axis = {axis}> (a, b, c) }}"
        )
        prove_at_any_size(text, carrying, executors=both)


@pytest.mark.parametrize("opset", OPSETS)
@pytest.mark.parametrize(
    ("row", "parts", "attributes"),
    [
        ("[4]", "1, 3", ""),
        ("[4,6]", "2, 2", "<axis = 0>"),
        ("[4,6]", "0, 6", "<axis = 1>"),
        ("[4,6]", "5, 1", "<axis = -1>"),
        ("[2,4,6]", "4, 0", "<axis = -2>"),
    ],
)
def test_split(row: str, parts: str, attributes: str, opset: int, both: list) -> None:
    fixed = (
        f"g (float{row} x) => (float[] y, float[] z) <int64[2] s = {{{parts}}}>"
        f" {{ y, z = Split {attributes} (x, s) }}"
    )
    prove_at_any_size(fixed, ["x"], opset=opset, executors=both)
    out = "[" + ",".join("abc"[: row.count(",") + 1]) + "]"
    computed = (
        f"g (float{row} x, int64[2] s) => (float{out} y, float{out} z)"
        f" {{ y, z = Split {attributes} (x, s) }}"
    )
    feeds = {"s": np.array([int(part) for part in parts.split(",")])}
    prove_at_any_size(computed, ["x"], feeds, opset=opset, executors=both)
    assert refused(computed, ["x", "s"]) == "batched-operand"


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("opset", OPSETS)
def test_split_into_equal_parts(axis: int, opset: int, both: list) -> None:
    number = ", num_outputs = 2" if opset >= 18 else ""
    text = (
        f"g (float[4,6] x) => (float[] y, float[] z) {{ y, z = Split <axis = {axis}{number}> (x) }}"
    )
    prove_at_any_size(text, ["x"], opset=opset, executors=both)


SLICES = [
    # starts, ends, axes, steps
    ([1], [3], None, None),
    ([0, 1], [2, -1], None, None),
    ([-1], [-9], [0], [-1]),
    ([-2], [99], [-1], None),
    ([3, 0], [-9, 4], [1, 0], [-2, 2]),
    ([1], [1], [-2], None),
    ([2, 1], [0, 5], None, [-1, 3]),
    ([0], [0], [1], [1]),
]


@pytest.mark.parametrize("kind", ["int64", "int32"])
@pytest.mark.parametrize("opset", [13, 21])
@pytest.mark.parametrize("bounds", SLICES)
def test_slice(bounds: tuple, kind: str, opset: int, both: list) -> None:
    names = ["starts", "ends", "axes", "steps"]
    given = {name: value for name, value in zip(names, bounds, strict=True) if value is not None}
    count = len(bounds[0])
    inputs = ", ".join(name if name in given else '""' for name in names)
    call = f"y = Slice (x, {inputs})"
    constants = ", ".join(
        f"{kind}[{count}] {name} = {{{', '.join(map(str, value))}}}"
        for name, value in given.items()
    )
    text = f"g (float[4,5] x) => (float[] y) <{constants}> {{ {call} }}"
    prove_at_any_size(text, ["x"], opset=opset, executors=both)
    operands = ", ".join(f"{kind}[{count}] {name}" for name in given)
    text = f"g (float[4,5] x, {operands}) => (float[p,q] y) {{ {call} }}"
    dtype = np.dtype(kind)
    feeds = {name: np.array(value, dtype) for name, value in given.items()}
    prove_at_any_size(text, ["x"], feeds, opset=opset, executors=both)
    assert refused(text, ["x", "ends"]) == "batched-operand"


def test_slice_by_as_many_bounds_as_the_run_tells(both: list) -> None:
    # an unknown number of bounds is drawn as 3, so that the row has as many axes
    text = "g (float[4,5,2] x, int64[N] a, int64[N] b) => (float[p,q,r] y) { y = Slice (x, a, b) }"
    feeds = {"a": np.array([1, 2, 0]), "b": np.array([-1, 9, 1])}
    prove(text, ["x"], feeds, executors=both)


PADS = [
    ("[3]", [1, 2]),
    ("[3]", [0, 0]),
    ("[3]", [-1, 2]),
    ("[2,3]", [0, 1, 1, 2]),
    ("[2,3]", [1, -1, 0, -1]),
    ("[2,3,2]", [0, 0, 1, 2, 0, 0]),
]


@pytest.mark.parametrize("value", [False, True])
@pytest.mark.parametrize("opset", OPSETS)
@pytest.mark.parametrize(("row", "pads"), [*PADS, ("[0,2]", [1, 0, 0, 1])])
def test_pad(row: str, pads: list[int], opset: int, value: bool, both: list) -> None:
    given, more = (", v", ", float v") if value else ("", "")
    amounts, count = ", ".join(map(str, pads)), len(pads)
    fixed = (
        f"g (float{row} x{more}) => (float[] y) <int64[{count}] p = {{{amounts}}}>"
        f" {{ y = Pad (x, p{given}) }}"
    )
    prove_at_any_size(fixed, ["x"], opset=opset, executors=both)
    computed = (
        f"g (float{row} x, int64[{count}] p{more}) => (float[] y) {{ y = Pad (x, p{given}) }}"
    )
    feeds = {"p": np.array(pads)}
    prove_at_any_size(computed, ["x"], feeds, opset=opset, executors=both)
    assert refused(computed, ["p"], opset) == "batched-operand"


@pytest.mark.parametrize("mode", ["reflect", "edge", "wrap"])
@pytest.mark.parametrize(("row", "pads"), [("[3]", [1, 2]), ("[3,4]", [0, 1, 1, 2])])
def test_pad_from_the_row_itself(row: str, pads: list[int], mode: str, both: list) -> None:
    amounts, count = ", ".join(map(str, pads)), len(pads)
    text = (
        f"g (float{row} x, float v) => (float[] y) <int64[{count}] p = {{{amounts}}}>"
        f' {{ y = Pad <mode = "{mode}"> (x, p, v) }}'
    )
    prove(text, ["x"], executors=both)
    made = prove(text, ["v"], executors=both)  # which plays no part
    assert made.graph.node[0].op_type == "Pad"


@pytest.mark.parametrize("axes", [[0], [-1], [1, 0]])
@pytest.mark.parametrize("kind", ["int64", "int32"])
@pytest.mark.parametrize("opset", [18, 21])
@pytest.mark.parametrize("carrying", [["x"], ["v"], ["x", "v"]])
def test_pad_some_axes(
    axes: list[int], kind: str, opset: int, carrying: list[str], both: list
) -> None:
    count = len(axes)
    operands = f"int64[{2 * count}] p, float v, {kind}[{count}] a"
    text = f"g (float[2,3] x, {operands}) => (float[o,q] y) {{ y = Pad (x, p, v, a) }}"
    feeds = {"p": np.arange(2 * count), "a": np.array(axes, kind)}
    prove_at_any_size(text, carrying, feeds, opset=opset, executors=both)
    constants = f"int64[{2 * count}] p = {{{', '.join(map(str, range(2 * count)))}}}"
    constants += f", int64[{count}] a = {{{', '.join(map(str, axes))}}}"
    text = f"g (float[2,3] x, float v) => (float[o,q] y) <{constants}> {{ y = Pad (x, p, v, a) }}"
    prove_at_any_size(text, carrying, opset=opset, executors=both)
    assert refused(f"g (float[2,3] x, {operands}) => (float[] y) {{ y = Pad (x, p, v, a) }}", ["a"])


@pytest.mark.parametrize("kind", ["float", "bool", "uint8", "int16"])
@pytest.mark.parametrize("carrying", [["v"], ["x", "v"]])
@pytest.mark.parametrize(("row", "pads"), PADS)
def test_each_row_may_have_its_own_padding(
    row: str, pads: list[int], carrying: list[str], kind: str, both: list
) -> None:
    amounts, count = ", ".join(map(str, pads)), len(pads)
    text = (
        f"g ({kind}{row} x, {kind} v) => ({kind}[] y) <int64[{count}] p = {{{amounts}}}>"
        " { y = Pad (x, p, v) }"
    )
    for opset in (13, 21):
        executors = both if kind != "int16" else both[:1]  # not in onnxruntime
        prove_at_any_size(text, carrying, opset=opset, executors=executors)


@pytest.mark.parametrize("row", ["[M,3]", "[0,3]"])
def test_its_own_padding_round_rows_that_may_be_empty(row: str, both: list) -> None:
    text = (
        f"g (float{row} x, float v) => (float[] y) <int64[4] p = {{1, 0, 0, 2}}>"
        " { y = Pad (x, p, v) }"
    )
    prove_at_any_size(text, ["x", "v"], executors=both)
    assert refused(text, ["x", "v"], 13) == "may-be-empty"


def test_padding_keeps_nan_and_minus_zero_of_each_row(both: list) -> None:
    text = "g (float[3] x, float v) => (float[] y) <int64[2] p = {1, 1}> { y = Pad (x, p, v) }"
    feeds = {"x": np.array([-0.0, np.nan, np.inf], np.float32), "v": np.array(-0.0, np.float32)}
    prove(text, ["x", "v"], feeds, executors=both)
