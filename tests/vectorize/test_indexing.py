"""Rules for ops that look elements up, or put them somewhere."""

from __future__ import annotations

import numpy as np
import pytest
from looping import prove, prove_at_any_size, refused, subsets

pytestmark = pytest.mark.sampled

OPSETS = [13, 21]
ONE_OR_BOTH = [["x"], ["i"], ["x", "i"]]


@pytest.mark.parametrize("opset", OPSETS)
@pytest.mark.parametrize("carrying", ONE_OR_BOTH)
@pytest.mark.parametrize("indices", ["", "[2]", "[2,3]", "[0]"])
@pytest.mark.parametrize(
    ("row", "axes"), [("[4]", [0, -1]), ("[4,4]", [0, 1]), ("[4,5,4]", [0, 1, 2, -2])]
)
def test_gather(
    row: str, axes: list[int], indices: str, carrying: list[str], opset: int, both: list
) -> None:
    for axis in axes:
        for kind in ("int64", "int32") if axis == 0 else ("int64",):
            text = (
                f"g (float{row} x, {kind}{indices} i) => (float[] y)"
                f" {{ y = Gather <axis = {axis}> (x, i) }}"
            )
            ranges = {"i": (-4, 4)}
            prove_at_any_size(text, carrying, ranges=ranges, opset=opset, executors=both)


@pytest.mark.parametrize("kind", ["bool", "float16", "int8", "uint64", "double"])
@pytest.mark.parametrize("carrying", ONE_OR_BOTH)
def test_gather_of_every_type(kind: str, carrying: list[str], both: list) -> None:
    text = f"g ({kind}[3,4] x, int64[2] i) => ({kind}[] y) {{ y = Gather <axis = 1> (x, i) }}"
    prove(text, carrying, ranges={"i": (-4, 4)}, executors=both)


@pytest.mark.parametrize("carrying", ONE_OR_BOTH)
@pytest.mark.parametrize(("row", "axis"), [("[4]", 0), ("[2,4]", 1), ("[4,2]", 0)])
def test_gather_of_strings(row: str, axis: int, carrying: list[str], both: list) -> None:
    """onnxruntime copies only the first string of each row, so that rows of one are compared."""
    text = f"g (string{row} x, int64[3] i) => (string[] y) {{ y = Gather <axis = {axis}> (x, i) }}"
    executors = both if axis == row.count(",") else both[:1]
    prove(text, carrying, ranges={"i": (0, 4)}, executors=executors)


@pytest.mark.parametrize("opset", [13])
@pytest.mark.parametrize("carrying", ONE_OR_BOTH)
@pytest.mark.parametrize(
    ("row", "indices", "axes"),
    [
        ("[4]", "[3]", [0, -1]),
        ("[4,4]", "[4,2]", [1, -1]),
        ("[4,4]", "[2,4]", [0, -2]),
        ("[4,3,4]", "[4,3,4]", [0, 2, -3]),
        ("[4]", "[0]", [0]),
    ],
)
def test_gather_elements(
    row: str, indices: str, axes: list[int], carrying: list[str], opset: int, both: list
) -> None:
    for axis in axes:
        text = (
            f"g (float{row} x, int64{indices} i) => (float[] y)"
            f" {{ y = GatherElements <axis = {axis}> (x, i) }}"
        )
        ranges = {"i": (-4, 4)}
        prove_at_any_size(text, carrying, ranges=ranges, opset=opset, executors=both)


@pytest.mark.parametrize("opset", [18])
@pytest.mark.parametrize("carrying", ONE_OR_BOTH)
@pytest.mark.parametrize(
    ("row", "indices", "batch"),
    [
        ("[3]", "[2,1]", 0),
        ("[3]", "[1]", 0),
        ("[3,4]", "[2]", 0),
        ("[3,4]", "[5,1]", 0),
        ("[3,4]", "[2,2,2]", 0),
        ("[3,4]", "[3,1]", 1),
        ("[2,3,4]", "[2,5,1]", 1),
        ("[2,3,4]", "[2,2]", 1),
        ("[2,3,4]", "[2,3,1]", 2),
    ],
)
def test_gather_nd(
    row: str, indices: str, batch: int, carrying: list[str], opset: int, both: list
) -> None:
    out = "" if (row, indices) in [("[3]", "[1]"), ("[3,4]", "[2]")] else "[]"
    for kind in ("float", "string"):
        text = (
            f"g ({kind}{row} x, int64{indices} i) => ({kind}{out} y)"
            f" {{ y = GatherND <batch_dims = {batch}> (x, i) }}"
        )
        ranges = {"i": (-3, 3)}
        prove_at_any_size(text, carrying, ranges=ranges, opset=opset, executors=both)


@pytest.mark.parametrize("carrying", subsets("xiu"))
@pytest.mark.parametrize(
    ("row", "indices", "axis", "opset", "reduction"),
    [
        ("[4]", "[3]", 0, 13, None),
        ("[4,4]", "[2,3]", 1, 13, None),
        ("[4,4]", "[3,4]", -2, 18, None),
        ("[4]", "[6]", -1, 16, "add"),
        ("[4,4]", "[2,6]", 1, 18, "mul"),
        ("[4,4]", "[6,2]", 0, 18, "max"),
        ("[4,4]", "[6,2]", 0, 21, "min"),
        ("[4]", "[0]", 0, 21, None),
    ],
)
def test_scatter_elements(
    row: str,
    indices: str,
    axis: int,
    opset: int,
    reduction: str | None,
    carrying: list[str],
    both: list,
) -> None:
    more = f', reduction = "{reduction}"' if reduction else ""
    text = (
        f"g (float{row} x, int64{indices} i, float{indices} u) => (float[] y)"
        f" {{ y = ScatterElements <axis = {axis}{more}> (x, i, u) }}"
    )
    if reduction is None and indices != "[0]":  # the places must differ
        width = [int(size) for size in indices[1:-1].split(",")]
        i = axis % len(width)
        line = np.array([3, -3, 0, 2])[: width[i]].reshape(
            [-1 if a == i else 1 for a in range(len(width))]
        )
        feeds = {"i": np.broadcast_to(line, width)}
        if i != len(width) - 1:  # rows vary along the last axis only
            feeds = {"i": np.broadcast_to(line, width).copy()}
        prove_at_any_size(text, carrying, feeds, opset=opset, executors=both)
    else:
        ranges = {"i": (-4, 4)}
        prove_at_any_size(text, carrying, ranges=ranges, opset=opset, executors=both)


@pytest.mark.parametrize("carrying", subsets("xiu"))
@pytest.mark.parametrize(
    ("row", "indices", "updates", "opset", "reduction"),
    [
        ("[4]", "[1]", "", 13, None),
        ("[4]", "[6,1]", "[6]", 16, "add"),
        ("[4,4]", "[2]", "", 13, None),
        ("[4,4]", "[1,1]", "[1,4]", 13, None),
        ("[4,4]", "[5,1]", "[5,4]", 18, "mul"),
        ("[4,4]", "[2,3,2]", "[2,3]", 18, "max"),
        ("[4,4]", "[2,3,1]", "[2,3,4]", 21, "min"),
        ("[4,4]", "[0,1]", "[0,4]", 21, None),
    ],
)
def test_scatter_nd(
    row: str,
    indices: str,
    updates: str,
    opset: int,
    reduction: str | None,
    carrying: list[str],
    both: list,
) -> None:
    more = f'<reduction = "{reduction}">' if reduction else ""
    text = (
        f"g (float{row} x, int64{indices} i, float{updates} u) => (float[] y)"
        f" {{ y = ScatterND {more} (x, i, u) }}"
    )
    ranges = {"i": (-4, 4)}
    prove_at_any_size(text, carrying, ranges=ranges, opset=opset, executors=both)


def test_scatter_nd_to_several_places(both: list) -> None:
    text = "g (float[4] x, int64[3,1] i, float[3] u) => (float[] y) { y = ScatterND (x, i, u) }"
    feeds = {"i": np.array([[3], [-3], [0]])}
    for carrying in subsets("xu"):
        prove(text, carrying, feeds, executors=both)


@pytest.mark.parametrize("carrying", [["i"], ["v"], ["i", "v"]])
@pytest.mark.parametrize("axis", [None, 0, 1, -1, -2])
@pytest.mark.parametrize("indices", ["[3]", "[2,3]", "[0]"])
@pytest.mark.parametrize("kinds", [("int64", "float"), ("float", "int64"), ("int64", "string")])
def test_one_hot(
    kinds: tuple[str, str], indices: str, axis: int | None, carrying: list[str], both: list
) -> None:
    rank = indices.count(",") + 2
    if axis is not None and not -rank <= axis < rank:
        return
    attribute = f"<axis = {axis}>" if axis is not None else ""
    kind, value = kinds
    out = ",".join("abc"[:rank])
    for depth in ("", "[1]"):
        text = (
            f"g ({kind}{indices} i, int64{depth} d, {value}[2] v) => ({value}[{out}] y)"
            f" {{ y = OneHot {attribute} (i, d, v) }}"
        )
        feeds = {"d": np.full([1] if depth else [], 4, np.int64)}
        ranges = {"i": (-5, 6)}  # out of range: off
        prove_at_any_size(text, carrying, feeds, ranges=ranges, executors=both)
    assert refused(text, ["d"]) == "batched-operand"


def test_one_hot_of_types_without_a_kernel() -> None:
    text = "g (int32[3] i, int8 d, bool[2] v) => (bool[a,b] y) { y = OneHot (i, d, v) }"
    feeds = {"d": np.array(4, np.int8)}
    for carrying in (["i"], ["v"], ["i", "v"]):
        prove(text, carrying, feeds, ranges={"i": (-4, 4)})


@pytest.mark.parametrize("axis", [None, 0, 1, -1])
def test_compress_by_a_shared_condition(axis: int | None, both: list) -> None:
    attribute = f"<axis = {axis}>" if axis is not None else ""
    out = "a" if axis is None else "a,b"
    given = [True, False, True, True] if axis in (1, -1) else [False, True, True]
    text = (
        f"g (float[3,4] x, bool[{len(given)}] c) => (float[{out}] y)"
        f" {{ y = Compress {attribute} (x, c) }}"
    )
    feeds = {"c": np.array(given)}
    prove_at_any_size(text, ["x"], feeds, executors=both)
    assert refused(text, ["c"]) == "batched-operand"
    assert refused(text, ["x", "c"]) == "batched-operand"


def test_results_whose_size_depends_on_the_row_are_refused() -> None:
    assert refused("g (float[3] x) => (int64[1,n] y) { y = NonZero (x) }", ["x"])
    code = refused("g (float[3] x) => (float[n] y) { y = Unique (x) }", ["x"])
    assert code == "batched-operand"


@pytest.mark.parametrize("call", ["Bernoulli (x)", "RandomNormalLike (x)", "RandomUniformLike (x)"])
def test_ops_that_draw_are_refused(call: str) -> None:
    assert refused(f"g (float[3] x) => (float[3] y) {{ y = {call} }}", ["x"]) == "random"
    text = "g (float[1,3] x) => (int32[1,2] y) { y = Multinomial <sample_size = 2> (x) }"
    assert refused(text, ["x"]) == "random"
