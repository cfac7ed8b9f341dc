"""Rules for ops along axes of a row."""

from __future__ import annotations

import numpy as np
import pytest
from looping import prove, prove_at_any_size, refused

pytestmark = pytest.mark.sampled

OPSETS = [13, 18, 21]
SIZES = (1, 3, 0)
REDUCERS = [
    *("ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean"),
    *("ReduceMin", "ReduceProd", "ReduceSum", "ReduceSumSquare"),
]


def reducer(op: str, row: str, axes: list[int] | None, opset: int, more: str = "") -> str:
    """A body of one reducer, with axes where its opset has them."""
    attributes, constants, operand = ([more] if more else []), "", ""
    if axes is not None:
        listed = ", ".join(map(str, axes))
        if opset >= 18 or op == "ReduceSum":
            constants = f"<int64[{len(axes)}] axes = {{{listed}}}>"
            operand = ", axes"
        else:
            attributes.append(f"axes = [{listed}]")
    given = f"<{', '.join(attributes)}>" if attributes else ""
    return f"g (float{row} x) => (float[] y) {constants} {{ y = {op} {given} (x{operand}) }}"


@pytest.mark.parametrize("op", REDUCERS)
@pytest.mark.parametrize("opset", [13, 18])
@pytest.mark.parametrize(
    ("row", "axes"),
    [
        ("", [None]),
        ("[3]", [None, [0], [-1]]),
        ("[2,3]", [None, [0], [1], [-1], [0, 1], [-1, 0]]),
        ("[2,3,2]", [[1], [-2], [0, -1]]),
    ],
)
def test_reducers(row: str, axes: list, opset: int, op: str, both: list) -> None:
    feeds = None
    if op == "ReduceLogSum":  # logarithms of positive sums
        feeds = {"x": np.ones([int(n) for n in row[1:-1].split(",") if n], np.float32)}
    for axis in axes:
        for keep in ("", "keepdims = 0"):
            text = reducer(op, row, axis, opset, keep)
            how = {"opset": opset, "nonempty": False, "rtol_terms": 6}
            prove(text, ["x"], feeds, sizes=SIZES, **how, executors=both)


@pytest.mark.parametrize("op", REDUCERS)
@pytest.mark.parametrize("opset", [21])
@pytest.mark.parametrize("row", ["", "[2,3]"])
def test_axes_that_are_empty(row: str, opset: int, op: str, both: list) -> None:
    """None given: all axes of a row, or none of them where the op says so."""
    feeds = {"x": np.ones([int(n) for n in row[1:-1].split(",") if n], np.float32)}
    for noop in (0, 1):
        for axes in (None, []):
            text = reducer(op, row, axes, opset, f"noop_with_empty_axes = {noop}")
            how = {"opset": opset, "rtol_terms": 6}
            prove(text, ["x"], feeds, **how, executors=both if not noop else both[:1])


@pytest.mark.parametrize("op", ["ReduceSum", "ReduceMax", "ReduceMean"])
@pytest.mark.parametrize("keep", [0, 1])
@pytest.mark.parametrize("axes", [[0], [-1], [1, 0], [-2, -1], []])
def test_computed_axes(axes: list[int], keep: int, op: str, both: list) -> None:
    rank = 2 if keep else (2 - len(axes) if axes else 0)
    out = f"[{','.join('ab'[:rank])}]" if rank else ""
    text = (
        f"g (float[2,3] x, int64[{len(axes)}] a) => (float{out} y)"
        f" {{ y = {op} <keepdims = {keep}> (x, a) }}"
    )
    feeds = {"a": np.array(axes, np.int64)}
    for opset in (18, 21):
        how = {"opset": opset, "rtol_terms": 6, "nonempty": False}
        prove(text, ["x"], feeds, sizes=SIZES, **how, executors=both)
    assert refused(text, ["a"]) == "batched-operand"


def test_a_number_of_axes_that_only_the_run_tells_is_refused() -> None:
    text = "g (float[2,3] x, int64[N] a) => (float[a,b] y) { y = ReduceSum (x, a) }"
    assert refused(text, ["x"]) == "not-constant"


@pytest.mark.parametrize("kind", ["int32", "int64", "double", "float16"])
@pytest.mark.parametrize("op", ["ReduceSum", "ReduceMax", "ReduceProd"])
def test_reducers_of_other_types(op: str, kind: str, both: list) -> None:
    for row in ("", "[2,3]"):
        text = f"g ({kind}{row} x) => ({kind}[] y) {{ y = {op} <keepdims = 0> (x) }}"
        executors = both if kind != "float16" or op != "ReduceProd" else both[:1]
        prove(text, ["x"], ranges={"x": (-3, 4)}, executors=executors)


@pytest.mark.parametrize("op", ["ArgMax", "ArgMin"])
@pytest.mark.parametrize("opset", OPSETS)
@pytest.mark.parametrize(
    ("row", "axes"), [("[4]", [None, 0, -1]), ("[3,4]", [None, 0, 1, -2]), ("[2,3,4]", [1, -1])]
)
def test_arg_reducers(row: str, axes: list, opset: int, op: str, both: list) -> None:
    for axis in axes:
        for more in ("keepdims = 0", "select_last_index = 1"):
            where = f", axis = {axis}" if axis is not None else ""
            text = f"g (float{row} x) => (int64[] y) {{ y = {op} <{more}{where}> (x) }}"
            ranges = {"x": (0, 2)}  # so that the largest occurs more than once
            prove_at_any_size(*(text, ["x"]), opset=opset, ranges=ranges, executors=both)


@pytest.mark.parametrize("op", ["Softmax", "LogSoftmax", "Hardmax", "LpNormalization"])
@pytest.mark.parametrize("opset", [13, 21])
@pytest.mark.parametrize(
    ("row", "axes"), [("[4]", [None, 0, -1]), ("[3,4]", [None, 0, 1, -2]), ("[2,3,4]", [0, 1, -1])]
)
def test_softmaxes(row: str, axes: list, opset: int, op: str, both: list) -> None:
    for axis in axes:
        where = f"<axis = {axis}>" if axis is not None else ""
        text = f"g (float{row} x) => (float[] y) {{ y = {op} {where} (x) }}"
        how = {"opset": opset, "nonempty": False, "rtol_terms": 4}
        prove(text, ["x"], sizes=SIZES, **how, executors=both)


@pytest.mark.parametrize("p", [1, 2])
def test_lp_normalization(p: int, both: list) -> None:
    text = f"g (float[3,4] x) => (float[] y) {{ y = LpNormalization <p = {p}, axis = 0> (x) }}"
    prove(text, ["x"], rtol_terms=4, executors=both)


@pytest.mark.parametrize("outputs", ["y", "y, m", "y, m, v", 'y, "", v'])
@pytest.mark.parametrize(("axis", "scale"), [(-1, "[4]"), (1, "[3,4]"), (2, "[4]"), (-2, "[3,4]")])
@pytest.mark.parametrize("bias", [False, True])
def test_layer_normalization(bias: bool, axis: int, scale: str, outputs: str, both: list) -> None:
    names = [name for name in ("y", "m", "v") if name in outputs]
    more, operand = (f", float{scale} b", ", b") if bias else ("", "")
    text = (
        f"g (float[2,3,4] x, float{scale} s{more}) => ({', '.join(f'float[] {n}' for n in names)})"
        f" {{ {outputs} = LayerNormalization <axis = {axis}> (x, s{operand}) }}"
    )
    for opset in (17, 21) if bias else (21,):
        how = {"opset": opset, "rtol_terms": 12, "nonempty": False}
        for carrying in (["x"], ["s"], ["x", "s"], ["b"], ["x", "b"], ["s", "b"]):
            if bias or "b" not in carrying:
                prove(text, carrying, sizes=SIZES, **how, executors=both)


def test_layer_normalization_of_an_unknown_size() -> None:
    text = "g (float[N] x, float[N] s) => (float[N] y) { y = LayerNormalization (x, s) }"
    assert refused(text, ["x", "s"]) == "batched-operand"


@pytest.mark.parametrize("carrying", [["x"], ["s"], ["x", "s"]])
def test_rms_normalization(carrying: list[str]) -> None:
    for axis in (-1, 1):
        scale = "[4]" if axis == -1 else "[3,4]"
        text = (
            f"g (float[2,3,4] x, float{scale} s) => (float[] y)"
            f" {{ y = RMSNormalization <axis = {axis}> (x, s) }}"
        )
        prove(text, carrying, opset=23, rtol_terms=12)


@pytest.mark.parametrize("axes", ["", "<axes = [0, 2, 3]>", "<axes = [1]>", "<axes = [-1, 0]>"])
@pytest.mark.parametrize("opset", OPSETS)
def test_mean_variance_normalization(axes: str, opset: int, both: list) -> None:
    text = (
        f"g (float[2,3,2,2] x) => (float[2,3,2,2] y) {{ y = MeanVarianceNormalization {axes} (x) }}"
    )
    prove_at_any_size(text, ["x"], opset=opset, rtol_terms=24)


FLAGS = ["", "<exclusive = 1>", "<reverse = 1>", "<exclusive = 1, reverse = 1>"]


@pytest.mark.parametrize("flags", FLAGS)
@pytest.mark.parametrize("opset", [14])
@pytest.mark.parametrize(("row", "axes"), [("[4]", [0, -1]), ("[3,4]", [0, 1, -1, -2])])
def test_cum_sum(row: str, axes: list[int], flags: str, opset: int, both: list) -> None:
    for axis in axes:
        how = {"sizes": SIZES, "opset": opset, "nonempty": False, "executors": both}
        text = (
            f"g (float{row} x) => (float[] y) <int64 a = {{{axis}}}>"
            f" {{ y = CumSum {flags} (x, a) }}"
        )
        prove(text, ["x"], **how)
        for kind in ("int64", "int32"):
            text = f"g (float{row} x, {kind} a) => (float[] y) {{ y = CumSum {flags} (x, a) }}"
            prove(text, ["x"], {"a": np.array(axis, kind)}, **how)
    assert refused(text, ["a"]) == "batched-operand"


@pytest.mark.parametrize("opset", OPSETS)
@pytest.mark.parametrize("largest", [0, 1])
@pytest.mark.parametrize(("row", "axes"), [("[5]", [None, 0]), ("[4,5]", [None, 0, 1, -2])])
def test_top_k(row: str, axes: list, largest: int, opset: int, both: list) -> None:
    for axis in axes:
        where = f", axis = {axis}" if axis is not None else ""
        call = f"y, i = TopK <largest = {largest}{where}> (x, k)"
        how = {"sizes": SIZES, "opset": opset, "nonempty": False, "executors": both}
        fixed = f"g (float{row} x) => (float[] y, int64[] i) <int64[1] k = {{2}}> {{ {call} }}"
        prove(fixed, ["x"], **how)
        computed = f"g (float{row} x, int64[1] k) => (float[] y, int64[] i) {{ {call} }}"
        prove(computed, ["x"], {"k": np.array([3])}, **how)
    assert refused(computed, ["x", "k"]) == "batched-operand"


def test_det(both: list) -> None:
    for row in ("[3,3]", "[2,3,3]"):
        text = f"g (float{row} x) => (float[] y) {{ y = Det (x) }}"
        prove(text, ["x"], rtol_terms=9, executors=both)
