"""Sizes that are followed through ops: a Loop is raised where its state is as large as its rows."""

from __future__ import annotations

import numpy as np
import onnx
import onnx.parser
import pytest

from passes.analysis.integers.affine import Affine, Atom
from passes.analysis.integers.integer_ops import Reading, ints_of
from passes.analysis.sizes.sizes_through import size_through
from passes.commands.schedules import SCHEDULES
from passes.engine.outcome import Pass
from passes.session import Session
from passes.testing import as_model, as_text, assert_refused, assert_rewrite
from tests.written import changed

#: A Loop over the steps of `z` [batch, time, n], with a state of zeros of the batch of `x`.
ROWS = """
<ir_version: 8, opset_import: ["" : 17]>
rows (float[B,T,3] x) => (float[K,N] h_end)
<int64[1] first = {0}, int64[1] second = {1}, int64[1] two = {2}, int64[1] width = {2},
 int64[1] last = {-1}, int64[1] nine = {9}, int64[2] parts = {2,1}, int64[3] zeros = {0,0,0},
 int64[3] axes = {0,1,2}, int64[3] ends = {2147483647,2147483647,2},
 int64[1] beyond = {-9223372036854775808},
 int64[6] longer = {1,0,0,1,0,0}, float zero = {0}, float[2] b = {1,2},
 float[3,2] w = {1,0,1,1,0,1}>
{
    shape = Shape (x)
    batch = Slice (shape, first, second)
    sizes = Concat <axis = 0> (batch, width)
    h0 = Expand (zero, sizes)
    z = MatMul (x, w)
    rows = Transpose <perm = [1,0,2]> (z)
    all = Shape (rows)
    time = Gather (all, first)
    h_end = Loop (time, "", h0) <body = step (int64 i, bool go, float[P,2] h)
        => (bool go_out, float[Q,2] h_out) {
        go_out = Identity (go)
        row = Gather (rows, i)
        h_out = Add (h, row)
    }>
}
"""


def rows_from(front: str, inputs: str = "float[B,T,3] x") -> str:
    """`ROWS` with other nodes that compute `z`, and other inputs."""
    return changed(ROWS, {"z = MatMul (x, w)": front, "float[B,T,3] x": inputs})


FRONTS = {
    "product": "y = MatMul (x, w)\n z = Add (y, b)",
    "reduced": "y = ReduceMean <axes = [2]> (x)\n z = Mul (y, b)",
    "reduced away": "y = ReduceMax <axes = [-1], keepdims = 0> (x)\n z = Unsqueeze (y, two)",
    "summed": "y = ReduceSum <keepdims = 0> (x, two)\n z = Unsqueeze (y, two)",
    "sliced": "z = Slice (x, first, two, two)",
    "sliced on all axes": "z = Slice (x, zeros, ends, axes)",
    "reversed": "y = MatMul (x, w)\n z = Slice (y, last, beyond, first, last)",
    "padded": "p = Pad (x, longer)\n y = Slice (p, second, last, first)\n z = MatMul (y, w)",
    "split": "z, rest = Split <axis = 2> (x, parts)",
    "joined": "y = Slice (x, first, second, two)\n z = Concat <axis = -1> (y, y)",
    "squeezed": "y = Unsqueeze (x, first)\n s = Squeeze (y, first)\n z = MatMul (s, w)",
    "selected": "y = MatMul (x, w)\n m = Greater (y, zero)\n z = Where (m, y, zero)",
}


@pytest.mark.parametrize("front", FRONTS.values(), ids=FRONTS)
def test_a_state_as_large_as_the_rows_keeps_its_shape(front: str) -> None:
    result = assert_rewrite(rows_from(front), pipeline="raise")
    assert result.report.refusals == [], result.report.to_text()


def test_older_slices_and_sums() -> None:
    front = "y = ReduceSum <axes = [2]> (x)\n z = Slice <starts = [0], ends = [2147483647]> (y)"
    older = {
        '"" : 17': '"" : 9',
        "Slice (shape, first, second)": "Slice <starts = [0], ends = [1]> (shape)",
    }
    result = assert_rewrite(changed(rows_from(front), older), pipeline="raise")
    assert result.report.refusals == [], result.report.to_text()


RESHAPED = (
    "y = Add (x, other)\n m = MatMul (y, w)\n time_z = Slice (shape, second, two)\n"
    "sizes_z = Concat <axis = 0> (batch, time_z, width)\n z = Reshape (m, sizes_z)"
)


def test_a_size_of_a_reshape_that_copies_nothing_where_it_is_0() -> None:
    """Of what is broadcast to the batch of x, a 0 copies a 0."""
    front, inputs = RESHAPED, "float[B,T,3] x, float[C,T,3] other"
    result = assert_rewrite(rows_from(front, inputs), pipeline="raise")
    assert result.report.refusals == [], result.report.to_text()


@pytest.mark.parametrize(
    ("front", "inputs"),
    [
        (
            changed(RESHAPED, {"Add (x, other)": "Add (other, other)"}),
            "float[B,T,3] x, float[C,T,3] other",
        ),
        ("y = Add (x, other)\n z = MatMul (y, w)", "float[B,T,3] x, float[C,T,3] other"),
        ("z = Slice (x, first, two, axes_0)", "float[B,T,2] x, int64[1] axes_0"),
        ("z = Slice (x, second, two, first)", "float[B,T,2] x"),
        ("z = Slice (x, first, last, first)", "float[B,T,2] x"),
        ("z = Slice (x, last, first, first, last)", "float[B,T,2] x"),
        ("z = Slice (x, zeros_1, beyond, first, last)", "float[B,T,2] x, int64[1] zeros_1"),
        ("z = Pad (x, longer)", "float[B,T,2] x"),
        ("y = Concat <axis = 0> (x, x)\n z = Slice (y, second, nine, first)", "float[B,T,2] x"),
        ("z = Concat <axis = 0> (x, x)", "float[B,T,2] x"),
    ],
)
def test_another_size_is_not_taken_for_the_same(front: str, inputs: str) -> None:
    assert_refused(rows_from(front, inputs), "shape-unknown", pipeline="raise")


N = Affine.of(Atom(("N",)))
#: The sizes of values, and whole numbers.
SIZES = {
    "x": (N, Affine(3)),
    "i": (Affine(5), N),
    "s": (),
    "one": (Affine(1),),
    "far": (Affine(1),),
}
NUMBERS = {"one": np.array([1]), "far": np.array([7])}


def size(text: str, axis: int) -> Affine | None:
    """The size of an axis of the output of a node."""

    def size_of(name: str, axis: int) -> Affine | None:
        return SIZES[name][axis]

    read = Reading(
        lambda name: ints_of(NUMBERS[name]) if name in NUMBERS else None,
        lambda name: ints_of(NUMBERS[name]) if name in NUMBERS else None,
        size_of,
        lambda name: (None,) * len(SIZES[name]),
    )
    return size_through(read, onnx.parser.parse_node(text), axis)


@pytest.mark.parametrize(
    ("text", "axis", "expected"),
    [
        ("y = ReduceSum (x)", 0, Affine(1)),
        ("y = ReduceSum <noop_with_empty_axes = 1> (x)", 0, N),
        ("y = ArgMax <axis = 1, keepdims = 0> (x)", 0, N),
        ("y = GatherElements (x, i)", 1, N),
        ("y = Pad (x, i, , one)", 0, None),
        ("y = Transpose (x)", 1, N),
    ],
)
def test_sizes_that_a_contract_states(text: str, axis: int, expected: Affine | None) -> None:
    assert size(text, axis) == expected


@pytest.mark.parametrize(
    "text",
    [
        "y = ReduceSum (s, one)",
        "y = ReduceSum <keepdims = 0> (x, far)",
        "y = Squeeze (s, one)",
        "y = Squeeze (x, far)",
        "y = Unsqueeze (x, far)",
        "y = Slice (s, one, far, one)",
        "y, z = Split (s)",
        "y, z = Split <axis = -3> (x)",
        "y = Concat <axis = 0> (s, s)",
        "y = Gather <axis = 2> (x, one)",
        "y = Transpose <perm = [1]> (x)",
        "y = Transpose <perm = [2, 0, 1]> (x)",
        "y = Pad (s, one, , one)",
    ],
)
def test_sizes_along_axes_that_do_not_exist_are_unknown(text: str) -> None:
    assert [size(text, axis) for axis in range(3)] == [None] * 3


def test_a_branch_that_never_runs_may_lack_an_axis() -> None:
    """onnx's own inference rejects the branch, which no case can reach."""
    model = as_model("""
    <ir_version: 10, opset_import: ["" : 17]>
    g (float[2,N] z) => (float[2,N] w) <int64 zero = {0}, int64 one = {1}> {
        s = Shape (z)
        d = Gather (s, zero)
        c = Equal (d, one)
        w = If (c) <then_branch = squeezed () => (p) {
            axes = Constant <value_ints = [0]> ()
            p = Squeeze (z, axes)
        }, else_branch = as_it_is () => (q) { q = Identity (z) }>
    }""")
    result = Session([Pass(SCHEDULES["declare-shapes"])], None).run(model)
    assert "=> ( p)" in as_text(result.model)
    assert "=> (float[2,?] q)" in as_text(result.model)
