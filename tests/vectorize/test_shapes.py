"""Rules for ops that change the shape of a row."""

from __future__ import annotations

import numpy as np
import pytest
from looping import parsed, prove, prove_at_any_size, refused, vectorized

from passes.rule import Refused

pytestmark = pytest.mark.sampled

OPSETS = [13, 18, 21]
SIZES = (1, 3, 0)


@pytest.mark.parametrize("nonempty", [True, False])
@pytest.mark.parametrize(
    ("shape", "perm"),
    [
        ("", ""),
        ("[3]", ""),
        ("[2,3]", ""),
        ("[2,3]", "<perm = [0, 1]>"),
        ("[2,3,4]", ""),
        ("[2,3,4]", "<perm = [1, 2, 0]>"),
        ("[2,0,4]", "<perm = [2, 0, 1]>"),
    ],
)
def test_transpose(shape: str, perm: str, nonempty: bool, both: list) -> None:
    text = f"g (float{shape} x) => (float{_any(shape)} y) {{ y = Transpose {perm} (x) }}"
    prove(text, ["x"], sizes=_sizes(nonempty), nonempty=nonempty, executors=both)


def _sizes(nonempty: bool) -> tuple[int, ...]:
    return SIZES[:2] if nonempty else SIZES


def _any(shape: str) -> str:
    """The rank of a shape, as dims that are not told."""
    rank = shape.count(",") + 1 if shape else 0
    return "[" + ",".join(f"o{index}" for index in range(rank)) + "]" if rank else ""


RESHAPES = [
    # row, shape, rank of the result
    ("[2,3]", [6], 1),
    ("[2,3]", [-1], 1),
    ("[2,3]", [3, -1], 2),
    ("[2,3]", [0, -1], 2),
    ("[2,3]", [0, 0, 1], 3),
    ("[2,3]", [-1, 1, 3], 3),
    ("[6]", [2, 3], 2),
    ("", [1], 1),
    ("", [-1], 1),
    ("", [1, 1], 2),
    ("[1,1]", [], 0),
    ("[2,3,4]", [0, -1], 2),
    ("[4,0,3]", [0, 0, 3], 3),
    ("[4,0,3]", [4, -1], 2),
]


@pytest.mark.parametrize("nonempty", [True, False])
@pytest.mark.parametrize("opset", OPSETS)
@pytest.mark.parametrize(("row", "shape", "rank"), RESHAPES)
def test_reshape_to_a_constant(
    row: str, shape: list[int], rank: int, opset: int, nonempty: bool, both: list
) -> None:
    wanted = ",".join(map(str, shape))
    text = (
        f"g (float{row} x) => (float[] y) <int64[{len(shape)}] s = {{{wanted}}}>"
        " { y = Reshape (x, s) }"
    )
    if opset == 13 and not nonempty and row == "[4,0,3]" and -1 in shape:
        assert refused(text, ["x"], 13, nonempty=False) == "may-be-empty"
        return
    prove(text, ["x"], sizes=_sizes(nonempty), opset=opset, nonempty=nonempty, executors=both)


@pytest.mark.parametrize("nonempty", [True, False])
@pytest.mark.parametrize(("row", "shape", "rank"), [one for one in RESHAPES if one[2]])
def test_reshape_to_a_computed_shape(
    row: str, shape: list[int], rank: int, nonempty: bool, both: list
) -> None:
    """The shape is an input that all rows share; the dims of a row are not known."""
    text = f"g (float{row} x, int64[{rank}] s) => (float[] y) {{ y = Reshape (x, s) }}"
    prove(
        text,
        ["x"],
        {"s": np.array(shape, np.int64)},
        sizes=_sizes(nonempty),
        nonempty=nonempty,
        executors=both,
    )


@pytest.mark.parametrize("nonempty", [True, False])
@pytest.mark.parametrize("shape", [[-1, 3], [0, -1], [1, -1, 1]])
def test_reshape_of_a_row_of_symbolic_dims(shape: list[int], nonempty: bool, both: list) -> None:
    text = (
        f"g (float[M,N] x) => (float[] y) "
        f"<int64[{len(shape)}] s = {{{','.join(map(str, shape))}}}> {{ y = Reshape (x, s) }}"
    )
    prove(text, ["x"], sizes=_sizes(nonempty), nonempty=nonempty, executors=both)


@pytest.mark.parametrize("nonempty", [True, False])
@pytest.mark.parametrize("row", ["[0,3]", "[2,0]"])
@pytest.mark.parametrize("shape", [[3, 0], [0, 5], [0]])
def test_reshape_with_allowzero(row: str, shape: list[int], nonempty: bool, both: list) -> None:
    wanted = ",".join(map(str, shape))
    fixed = (
        f"g (float{row} x) => (float[] y) <int64[{len(shape)}] s = {{{wanted}}}>"
        " { y = Reshape <allowzero = 1> (x, s) }"
    )
    prove(fixed, ["x"], sizes=_sizes(nonempty), nonempty=nonempty, executors=both)
    computed = (
        f"g (float{row} x, int64[{len(shape)}] s) => (float[] y)"
        " { y = Reshape <allowzero = 1> (x, s) }"
    )
    feeds = {"s": np.array(shape, np.int64)}
    prove(computed, ["x"], feeds, sizes=_sizes(nonempty), nonempty=nonempty, executors=both)


def test_reshape_with_allowzero_still_infers_what_is_left(both: list) -> None:
    text = (
        "g (float[2,3] x) => (float[a,b] y) <int64[2] s = {3, -1}>"
        " { y = Reshape <allowzero = 1> (x, s) }"
    )
    for nonempty in (True, False):
        prove(text, ["x"], sizes=_sizes(nonempty), nonempty=nonempty, executors=both)


def test_reshape_refuses_a_shape_of_each_row() -> None:
    text = "g (float[6] x, int64[2] s) => (float[a,b] y) { y = Reshape (x, s) }"
    assert refused(text, ["s"]) == "batched-operand"
    assert refused(text, ["x", "s"]) == "batched-operand"


def test_reshape_at_13_refuses_what_it_cannot_say() -> None:
    text = "g (float[M] x, int64[2] s) => (float[a,b] y) { y = Reshape (x, s) }"
    assert refused(text, ["x"], 13, nonempty=False) == "may-be-empty"
    unknown = "g (float[M] x, int64[n] s) => (float[a,b] y) { y = Reshape (x, s) }"
    assert refused(unknown, ["x"], 21, nonempty=False) == "unknown-rank"


@pytest.mark.parametrize("nonempty", [True, False])
@pytest.mark.parametrize("opset", OPSETS)
@pytest.mark.parametrize(
    ("row", "axes"),
    [
        ("[3]", [0, 1, -1]),
        ("[2,3]", [0, 1, 2, -1]),
        ("[2,3,4]", [0, 1, 2, 3, -2]),
        ("", [0]),
        ("[2,0,3]", [0, 1, 2, 3]),
        ("[0,3]", [1]),
    ],
)
def test_flatten(row: str, axes: list[int], opset: int, nonempty: bool, both: list) -> None:
    for axis in axes:
        text = f"g (float{row} x) => (float[a,b] y) {{ y = Flatten <axis = {axis}> (x) }}"
        if opset == 13 and "0" in row and (not nonempty or axis == 2):
            # [2,0] and [3] are said, a size of 0 is not
            with pytest.raises(Refused):
                vectorized(parsed(text, 13), ["x"], None, False)
            continue
        prove(text, ["x"], sizes=_sizes(nonempty), opset=opset, nonempty=nonempty, executors=both)


@pytest.mark.parametrize("nonempty", [True, False])
@pytest.mark.parametrize("axis", [0, 1, 2, 3])
def test_flatten_of_symbolic_dims(axis: int, nonempty: bool, both: list) -> None:
    text = f"g (float[M,N,4] x) => (float[a,b] y) {{ y = Flatten <axis = {axis}> (x) }}"
    prove(text, ["x"], sizes=_sizes(nonempty), nonempty=nonempty, executors=both)


@pytest.mark.parametrize("opset", OPSETS)
@pytest.mark.parametrize(
    ("row", "axes", "out"),
    [
        ("[1,3]", "0", "[3]"),
        ("[3,1]", "-1", "[3]"),
        ("[1,3,1]", "0, -1", "[3]"),
        ("[1]", "0", ""),
        ("[1,1]", "1, 0", ""),
        ("[1,M]", "-2", "[M]"),
        ("[1,3,1]", None, "[3]"),
        ("[1]", None, ""),
        ("[2,3]", None, "[2,3]"),
        ("", None, ""),
    ],
)
def test_squeeze(row: str, axes: str | None, out: str, opset: int, both: list) -> None:
    given = f"<int64[{axes.count(',') + 1}] a = {{{axes}}}>" if axes is not None else ""
    call = "Squeeze (x, a)" if axes is not None else "Squeeze (x)"
    text = f"g (float{row} x) => (float{out} y) {given} {{ y = {call} }}"
    prove_at_any_size(text, ["x"], opset=opset, executors=both)


def test_squeeze_by_computed_axes(both: list) -> None:
    text = "g (float[1,3,1] x, int64[1] a) => (float[p,q] y) { y = Squeeze (x, a) }"
    for axis in (0, 2, -1, -3):
        prove(text, ["x"], {"a": np.array([axis])}, executors=both)


def test_squeeze_refuses_to_guess() -> None:
    assert refused("g (float[1,M] x) => (float[n] y) { y = Squeeze (x) }", ["x"]) == "unknown-rank"
    text = "g (float[1,3] x, int64[1] a) => (float[n] y) { y = Squeeze (x, a) }"
    assert refused(text, ["a"]) == "batched-operand"


@pytest.mark.parametrize("opset", OPSETS)
@pytest.mark.parametrize(
    ("row", "axes", "out"),
    [
        ("[3]", "0", "[1,3]"),
        ("[3]", "-1", "[3,1]"),
        ("[3]", "0, -1", "[1,3,1]"),
        ("", "0", "[1]"),
        ("", "-2, -1", "[1,1]"),
        ("[2,M]", "1, 3", "[2,1,M,1]"),
        ("[0]", "1", "[0,1]"),
    ],
)
def test_unsqueeze(row: str, axes: str, out: str, opset: int, both: list) -> None:
    count = axes.count(",") + 1
    text = (
        f"g (float{row} x) => (float{out} y) <int64[{count}] a = {{{axes}}}>"
        " { y = Unsqueeze (x, a) }"
    )
    prove_at_any_size(text, ["x"], opset=opset, executors=both)


def test_unsqueeze_by_computed_axes(both: list) -> None:
    text = "g (float[2,3] x, int64[2] a) => (float[p,q,r,s] y) { y = Unsqueeze (x, a) }"
    for axes in ([0, 1], [0, -1], [-2, -4], [3, 1]):
        feeds = {"a": np.array(axes, np.int64)}
        prove(text, ["x"], feeds, executors=both)
    assert refused(text, ["x", "a"]) == "batched-operand"


@pytest.mark.parametrize("kind", ["float", "bool", "uint8"])
@pytest.mark.parametrize(
    ("row", "shape", "out"),
    [
        ("[3]", [3], "[a]"),
        ("[3]", [2, 3], "[a,b]"),
        ("[3]", [2, 1], "[a,b]"),
        ("[2,3]", [3], "[a,b]"),
        ("[2,1]", [4, 1, 3], "[a,b,c]"),
        ("", [2], "[a]"),
        ("[1]", [0], "[a]"),
        ("[2,3]", [1, 1, 1], "[a,b,c]"),
    ],
)
def test_expand(row: str, shape: list[int], out: str, kind: str, both: list) -> None:
    wanted = ",".join(map(str, shape))
    fixed = (
        f"g ({kind}{row} x) => ({kind}{out} y) <int64[{len(shape)}] s = {{{wanted}}}>"
        " { y = Expand (x, s) }"
    )
    prove_at_any_size(fixed, ["x"], executors=both)
    count = len(shape)
    computed = f"g ({kind}{row} x, int64[{count}] s) => ({kind}{out} y) {{ y = Expand (x, s) }}"
    feeds = {"s": np.array(shape, np.int64)}
    prove_at_any_size(computed, ["x"], feeds, executors=both)
    assert refused(computed, ["s"]) == "batched-operand"


@pytest.mark.parametrize("opset", OPSETS)
@pytest.mark.parametrize(
    ("row", "repeats"), [("[3]", [2]), ("[2,3]", [1, 3]), ("[2,3]", [2, 0]), ("[0,3]", [2, 2])]
)
def test_tile(row: str, repeats: list[int], opset: int, both: list) -> None:
    count, times = len(repeats), ",".join(map(str, repeats))
    out = _any(row)
    fixed = (
        f"g (float{row} x) => (float{out} y) <int64[{count}] r = {{{times}}}> {{ y = Tile (x, r) }}"
    )
    prove_at_any_size(fixed, ["x"], opset=opset, executors=both)
    computed = f"g (float{row} x, int64[{count}] r) => (float{out} y) {{ y = Tile (x, r) }}"
    feeds = {"r": np.array(repeats, np.int64)}
    prove_at_any_size(computed, ["x"], feeds, opset=opset, executors=both)
    assert refused(computed, ["r"]) == "batched-operand"


BOUNDS = [
    *("start = 1", "start = -1", "start = -9", "end = 1", "end = -1", "end = -9", "end = 9"),
    *("start = 1, end = -1", "start = -2, end = 9", "start = 2, end = 1", "start = -1, end = 0"),
]


@pytest.mark.parametrize("bounds", ["", *(f"<{bounds}>" for bounds in BOUNDS)])
@pytest.mark.parametrize("row", ["", "[4]", "[2,0,4]"])
def test_shape_is_that_of_one_row(row: str, bounds: str, both: list) -> None:
    text = f"g (float{row} x) => (int64[n] y) {{ y = Shape {bounds} (x) }}"
    made = prove_at_any_size(text, ["x"], executors=both)
    assert made.graph.node[-1].op_type == "Expand"  # spread at the very end


@pytest.mark.parametrize("row", ["", "[4]", "[2,0,4]", "[M,2]"])
def test_shape_and_size_at_13(row: str, both: list) -> None:
    text = f"g (float{row} x) => (int64[n] y, int64 z) {{ y = Shape (x) z = Size (x) }}"
    prove_at_any_size(text, ["x"], opset=13, executors=both)
    prove_at_any_size(text, ["x"], opset=21, executors=both)


def test_what_is_made_of_the_shape_does_not_carry_the_axis(both: list) -> None:
    text = """g (float[M,N] x) => (float[a] y) {
        s = Shape (x)
        z = ConstantOfShape (s)
        w = Add (x, z)
        minus = Constant <value_ints = [-1]> ()
        y = Reshape (w, minus)
    }"""
    for nonempty in (True, False):
        prove(text, ["x"], sizes=_sizes(nonempty), nonempty=nonempty, executors=both)


@pytest.mark.parametrize(
    ("kind", "attributes"),
    [
        ("float", ""),
        ("int64", "<k = 1>"),
        ("double", "<k = -1, dtype = 1>"),
        ("float", "<dtype = 7>"),
    ],
)
def test_eye_like_depends_on_no_row(kind: str, attributes: str, both: list) -> None:
    out = {"<dtype = 7>": "int64", "<k = -1, dtype = 1>": "float"}.get(attributes, kind)
    text = f"g ({kind}[2,3] x) => ({out}[a,b] y) {{ y = EyeLike {attributes} (x) }}"
    prove_at_any_size(text, ["x"], executors=both)


def test_sizes_from_each_row_are_refused() -> None:
    text = "g (int64[2] s) => (float[a,b] y) { y = ConstantOfShape (s) }"
    assert refused(text, ["s"]) == "batched-operand"
    text = "g (int64 a, int64 b, int64 c) => (int64[n] y) { y = Range (a, b, c) }"
    for name in "abc":
        assert refused(text, [name]) == "batched-operand"


@pytest.mark.parametrize("upper", [0, 1])
@pytest.mark.parametrize("row", ["[3,3]", "[2,3,4]", "[0,3]"])
def test_trilu(row: str, upper: int, both: list) -> None:
    out = _any(row)
    text = f"g (float{row} x) => (float{out} y) {{ y = Trilu <upper = {upper}> (x) }}"
    prove(text, ["x"], executors=both)
    moved = f"g (float{row} x, int64 k) => (float{out} y) {{ y = Trilu <upper = {upper}> (x, k) }}"
    prove(moved, ["x"], {"k": np.array(1)}, executors=both)
    assert refused(moved, ["k"]) == "batched-operand"


@pytest.mark.parametrize("nonempty", [True, False])
@pytest.mark.parametrize("opset", [13, 21])
@pytest.mark.parametrize("batch", ["1", "2", "N"])
@pytest.mark.parametrize(
    "call",
    [
        'DepthToSpace <blocksize = 2, mode = "DCR">',
        'DepthToSpace <blocksize = 2, mode = "CRD">',
        "SpaceToDepth <blocksize = 2>",
    ],
)
def test_blocks(call: str, batch: str, opset: int, nonempty: bool, both: list) -> None:
    text = f"g (float[{batch},4,2,6] x) => (float[a,b,c,d] y) {{ y = {call} (x) }}"
    if batch == "N" and opset == 13:
        assert refused(text, ["x"], 13, nonempty) == "may-be-empty"
        return
    prove(text, ["x"], sizes=_sizes(nonempty), opset=opset, nonempty=nonempty, executors=both)


@pytest.mark.parametrize("nonempty", [True, False])
@pytest.mark.parametrize("axes", ["", "<batch_axis = 0, time_axis = 1>"])
@pytest.mark.parametrize("carrying", [["x"], ["n"], ["x", "n"]])
@pytest.mark.parametrize("rest", ["", ",2"])
def test_reverse_sequence(
    rest: str, carrying: list[str], axes: str, nonempty: bool, both: list
) -> None:
    row = "[3,4" if axes else "[4,3"
    text = (
        f"g (float{row}{rest}] x, int64[3] n) => (float[a,b{',c' if rest else ''}] y)"
        f" {{ y = ReverseSequence {axes} (x, n) }}"
    )
    ranges = {"n": (1, 5)}
    how = {"sizes": _sizes(nonempty), "nonempty": nonempty}
    prove(text, carrying, ranges=ranges, **how, executors=both)
