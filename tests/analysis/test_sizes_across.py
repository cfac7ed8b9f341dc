"""Sizes that are followed into bodies and out of them.

Where a loop runs as often as a row has elements, its reads have no guard, and nothing is cut off.
"""

from __future__ import annotations

import onnx
import pytest
from raised_models import nodes

from passes.testing import assert_refused, assert_rewrite
from tests.written import changed

pytestmark = pytest.mark.sampled

#: What a guard consists of, and a cut.
GUARDING = ("Where", "Slice")


def guards(model: str, pipeline: str = "raise") -> list[str]:
    """The guards and cuts in a model that was raised, and verified, but for the model's own.

    What is read as `x_t...` or `w_t` is scanned.
    """
    result = assert_rewrite(model, pipeline=pipeline)
    assert not nodes(result.model, "Loop"), result.report.to_text()
    read = {name for node in nodes(result.model, "Gather") for name in node.output}
    assert not any(one.startswith(("x_t", "w_t")) for one in read), result.report.to_text()
    before = onnx.parser.parse_model(model)
    return [op for op in GUARDING if len(nodes(result.model, op)) > len(nodes(before, op))]


#: A loop over rows, around one over the elements of the row `x_b` [steps, 2, 3].
#:
#: `full` is the size of axis 1 of x, `inner` the trip count of the inner loop.
ROWS = """
<ir_version: 8, opset_import: ["" : 18]>
rows (float[B,T,2,3] x) => (float[K,2,3] y)
<int64[1] zero = {0}, int64[1] ones = {1}, int64[1] twos = {2}, int64[1] threes = {3},
 int64[1] many = {2147483647}, int64[4] as_is = {0,0,2,3}, int64[3] any = {-1,2,3},
 int64 nought = {0}, int64 one = {1}, float half = {0.5}, float[2,3] h0 = {1,2,3,4,5,6}>
{
    first = Shape <start = 0, end = 1> (x)
    count = Squeeze (first, zero)
    full = Shape <start = 1, end = 2> (x)
    inner = Squeeze (full, zero)
    y = Loop (count, "") <body = each (int64 now, bool go) => (bool on, float[2,3] last) {
        on = Identity (go)
        nil = Constant <value_ints = [0]> ()
        one_more = Constant <value_ints = [1]> ()
        at_now = Unsqueeze (now, nil)
        x_b = Gather (x, now)
        last = Loop (inner, "", h0) <body = step (int64 at, bool go_, float[2,3] h)
            => (bool on_, float[2,3] h_out) {
            on_ = Identity (go_)
            x_t = Gather (x_b, at)
            h_out = Add (h, x_t)
        }>
    }>
}
"""
ROW, TRIPS = "x_b = Gather (x, now)", "inner = Squeeze (full, zero)"


def with_inputs(inputs: str) -> dict[str, str]:
    """A change of `ROWS`: other inputs of the model."""
    return {"float[B,T,2,3] x": inputs}


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "made",
    [
        "x_b = Gather (x, now)",
        "w = Tanh (x)  x_b = Gather (w, now)",
        "x_b = Gather <axis = -4> (x, now)",
        "some = Gather (x, at_now)  x_b = Squeeze (some, nil)",
        "some = Slice (x, at_now, many, nil)  x_b = Gather (some, nought)",
        "t = Transpose <perm = [1,2,0,3]> (x)  x_b = Gather <axis = 2> (t, now)",
        "r = Reshape (x, as_is)  g = Gather (r, now)  x_b = Mul (g, half)",
        "r = Reshape (half, ones)  e = Concat <axis = 0> (full, twos, threes)  f = Expand (r, e)"
        "  g = Gather (x, now)  x_b = Add (g, f)",
        "g = Gather (x, now)  x_b = Clip (g, half)",
    ],
)
def test_a_row_is_as_long_as_all(made: str) -> None:
    assert guards(changed(ROWS, {ROW: made})) == []


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("made", "inputs"),
    [
        ("x_b = Gather <axis = 1> (x, now)", "float[B,T,2,3] x"),
        ("x_b = Gather (z, now)", "float[B,T,2,3] x, float[B,U,2,3] z"),
        ("g = Gather (x, now)  x_b = Slice (g, k, many, zero)", "float[B,T,2,3] x, int64[1] k"),
        ("x_b = Reshape (x, any)", "float[B,T,2,3] x"),
        ("x_b = Expand (h0, s)", "float[B,T,2,3] x, int64[3] s"),
        ("g = Gather (x, now)  x_b = Compress <axis = 0> (g, c)", "float[B,T,2,3] x, bool[T] c"),
        ("g = Gather (x, now)  x_b = If (c) <then_branch = a () => (float[P,2,3] p) "
         "{ p = Identity (g) }, else_branch = b () => (float[Q,2,3] q) { q = Tanh (z) }>",
         "float[B,T,2,3] x, float[U,2,3] z, bool c"),
    ],
)  # fmt: skip
def test_a_row_that_may_be_of_another_length_is_guarded(made: str, inputs: str) -> None:
    assert "Where" in guards(changed(ROWS, {ROW: made} | with_inputs(inputs)))


def test_the_index_must_be_a_scalar() -> None:
    """Else the first axis is that of the index, which has one element."""
    made = "g = Gather (x, at_now)  x_b = Squeeze (g, one_more)"
    given = {TRIPS: "inner = Max (n, one)"} | with_inputs("float[B,1,2,3] x, int64 n")
    assert "Where" in guards(changed(ROWS, {ROW: made} | given))


@pytest.mark.parametrize("more", ["one", "two_more"])
def test_one_iteration_more_reads_after_the_end(more: str) -> None:
    trips = f"all = Squeeze (full, zero)  two_more = Add (one, one)  inner = Add (all, {more})"
    assert_refused(changed(ROWS, {TRIPS: trips}), "out-of-range", pipeline="raise")


@pytest.mark.slow
def test_a_longer_row_is_cut() -> None:
    made = "g = Gather (x, now)  x_b = Concat <axis = 0> (g, z)"
    longer = {ROW: made} | with_inputs("float[B,T,2,3] x, float[N,2,3] z")
    assert guards(changed(ROWS, longer)) == ["Slice"]
    trips = "all = Squeeze (full, zero)  inner = Sub (all, one)"
    assert guards(changed(ROWS, {TRIPS: trips})) == ["Slice"]


#: Loops three deep. The one in the middle carries `w`, which starts as `z`; the innermost runs as
#: often as axis 1 of the outermost `x` has elements, over a row of `x`.
HIDDEN = """
<ir_version: 8, opset_import: ["" : 18]>
hidden (float[B,T,3] x, float[B,V,3] z) => (float[3] h)
<int64[1] zero = {0}, int64 nought = {0}, int64 two = {2}, float[3] h0 = {1,2,3}>
{
    full = Shape <start = 1, end = 2> (x)
    many = Squeeze (full, zero)
    zs, h = Loop (two, "", z, h0)
        <body = middle (int64 now, bool go, float[B,U,3] w, float[3] h_m)
        => (bool on, float[B,U,3] z_out, float[3] h_out) {
        on = Identity (go)
        z_out = Identity (w)
        row = Gather (x, nought)
        h_out = Loop (many, "", h_m) <body = step (int64 at, bool go_, float[3] h_in)
            => (bool on_, float[3] h_next) {
            on_ = Identity (go_)
            x_t = Gather (row, at)
            h_next = Add (h_in, x_t)
        }>
    }>
}
"""


@pytest.mark.slow
def test_a_name_that_hides_the_tensor_is_another_one() -> None:
    assert guards(HIDDEN) == []
    hiding = {"float[B,U,3] w": "float[B,U,3] x", "Identity (w)": "Identity (x)"}
    assert "Where" in guards(changed(HIDDEN, hiding))
    assert "Where" in guards(changed(HIDDEN, {"Gather (x, nought)": "Gather (w, nought)"}))


SCAN = """
<ir_version: 8, opset_import: ["" : 18]>
scanned (float[A,B,C] x) => (float[K,3] y)
<int64[1] zero = {0}, int64[1] ones = {1}, float[3] h0 = {1,2,3}>
{
    z = Tanh (x)
    size = Shape <start = 1, end = 2> (z)
    many = Squeeze (size, zero)
    y = Scan <num_scan_inputs = 1, scan_input_axes = [0], scan_input_directions = [1],
        body = each (float[N,3] row) => (float[3] last) {
        last = Loop (many, "", h0) <body = step (int64 at, bool go, float[3] h)
            => (bool on, float[3] h_out) {
            on = Identity (go)
            x_t = Gather (row, at)
            h_out = Add (h, x_t)
        }>
    }> (x)
}
"""


def scanned(size_of: int, axis: int) -> str:
    """The inner loop runs as often as this axis is long, over what is scanned on that one."""
    size = f"start = {size_of}, end = {size_of + 1}"
    axes = {"scan_input_axes = [0]": f"scan_input_axes = [{axis}]"}
    return changed(SCAN, {"start = 1, end = 2": size} | axes)


@pytest.mark.parametrize(("size_of", "axis"), [(1, 0), (0, 1), (1, -3), (0, -2)])
def test_the_elements_of_a_scan_have_the_other_axes(size_of: int, axis: int) -> None:
    assert guards(scanned(size_of, axis)) == []


@pytest.mark.parametrize(("size_of", "axis"), [(0, 0), (1, 1), (0, -3), (2, 1)])
def test_the_axis_that_is_scanned_is_not_among_them(size_of: int, axis: int) -> None:
    assert "Where" in guards(scanned(size_of, axis))


#: The second loop reads `w`, which the first one collected as `y` and ended with as `g` [N, 3].
STACKED = """
<ir_version: 8, opset_import: ["" : 18]>
stacked (float[T,3] x) => (float[3] h, float[K,3] z)
<int64[1] zero = {0}, int64[1] ones = {1}, int64 one = {1}, int64 nought = {0},
 int64[1] many = {2147483647}, float[3] h0 = {1,2,3}, bool yes = {1}, float[0,3] nothing = {}>
{
    s = Shape <start = 0, end = 1> (x)
    t = Squeeze (s, zero)
    h, g, y = Loop (t, "", h0, x)
        <body = first (int64 i, bool go, float[3] h_in, float[N,3] g_in)
        => (bool on, float[3] h_out, float[N,3] g_out, float[3] y_t) {
        on = Identity (go)
        x_t = Gather (x, i)
        h_out = Add (h_in, x_t)
        g_out = Identity (g_in)
        y_t = Identity (h_out)
    }>
    w = Tanh (y)
    h_2, z = Loop (t, "", h0) <body = second (int64 k, bool go_2, float[3] h_2_in)
        => (bool on_2, float[3] h_2_out, float[3] z_t) {
        on_2 = Identity (go_2)
        w_t = Gather (w, k)
        h_2_out = Sub (h_2_in, w_t)
        z_t = Identity (h_2_out)
    }>
}
"""


def stacked(between: str, inputs: str = "") -> str:
    """`STACKED` with other nodes that make `w`, and more inputs."""
    return changed(STACKED, {"w = Tanh (y)": between, "float[T,3] x)": f"float[T,3] x{inputs})"})


CHOICE = """test = Identity (yes)
    w = If (test) <
        then_branch = a () => (float[P,3] p) { p = Tanh (SOME) },
        else_branch = b () => (float[Q,3] q) { q = Abs (OTHERS) }>"""


def chosen(test: str, some: str, others: str) -> str:
    """A choice between two values, as `w`."""
    return changed(CHOICE, {"Identity (yes)": test, "SOME": some, "OTHERS": others})


@pytest.mark.parametrize(
    "between",
    [
        "w = Tanh (y)",
        "a = Unsqueeze (y, ones)  b = Transpose <perm = [1,0,2]> (a)  w = Squeeze (b, zero)",
        chosen("Identity (yes)", "y", "x"),
        chosen("Greater (t, nought)", "y", "nothing"),
        """w = Scan <num_scan_inputs = 1, body = b (float[3] r) => (float[3] q)
            { q = Exp (r) }> (y)""",
        """u, unread = Scan <num_scan_inputs = 1, body = b (float[N,3] s_in, float[3] r)
            => (float[N,3] s_out, float[3] q) { s_out = Add (s_in, r) q = Exp (r) }> (y, x)
            w = Neg (u)""",
        """v = Scan <num_scan_inputs = 1, scan_output_axes = [-1], body = b (float[3] r)
            => (float[3] q) { q = Exp (r) }> (y)  w = Transpose <perm = [1,0]> (v)""",
    ],
)
def test_a_loop_collects_as_often_as_it_runs(between: str) -> None:
    assert guards(stacked(between)) == []


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("between", "inputs"),
    [
        ("w = Slice (y, m, many, zero)", ", int64[1] m"),
        (chosen("Identity (c)", "y", "v"), ", bool c, float[V,3] v"),
        (chosen("Identity (c)", "y", "nothing"), ", bool c"),
        (chosen("Greater (t, one)", "y", "nothing"), ""),
        (chosen("Less (t, one)", "nothing", "y"), ""),
        (chosen("Greater (m, nought)", "y", "nothing"), ", int64 m"),
        (chosen("Greater (t, nought)", "v", "nothing"), ", float[V,3] v"),
        ("""v = Scan <num_scan_inputs = 1, scan_output_axes = [1], body = b (float[3] r)
            => (float[3] q) { q = Exp (r) }> (y)
            w = Concat <axis = 0> (v, u)""", ", float[U,T] u"),
    ],
)  # fmt: skip
def test_a_value_that_may_be_of_another_length_is_guarded(between: str, inputs: str) -> None:
    assert "Where" in guards(stacked(between, inputs))


@pytest.mark.slow
def test_many_loops_one_after_the_other_are_verified() -> None:
    """The sizes of the last one follow from all those before it."""
    layer = """
    h_this, y_this = Loop (t, "", start) <body = layer_this
        (int64 i_this, bool go_this, float[3] h_this_in)
        => (bool on_this, float[3] h_this_out, float[3] out_this) {
        on_this = Identity (go_this)
        x_t_this = Gather (y_last, i_this)
        h_this_out = Add (h_this_in, x_t_this)
        out_this = Identity (h_this_out)
    }>"""
    layers = [changed(layer, {"_this": f"{i}", "_last": f"{i - 1}"}) for i in range(12)]
    text = """
    <ir_version: 8, opset_import: ["" : 18]>
    layers (float[T,3] x) => (float[K,3] y11) <int64[1] zero = {0}, float[3] start = {1,2,3}>
    {
        s = Shape <start = 0, end = 1> (x)
        t = Squeeze (s, zero)
        LAYERS
    }
    """
    model = changed(text, {"LAYERS": changed("".join(layers), {"(y-1,": "(x,"})})
    assert guards(model) == []


def test_a_loop_of_another_trip_count_collects_another_size() -> None:
    other_trips = {
        "float[T,3] x)": "float[T,3] x, int64 m)",
        'Loop (t, "", h0, x)': 'Loop (m, "", h0, x)',
    }
    assert "Where" in guards(changed(STACKED, other_trips))


def test_a_loop_that_ends_early_collects_less() -> None:
    ends_early = {
        "float[T,3] x)": "float[T,3] x, float e)",
        'Loop (t, "", h0, x)': "Loop (t, yes, h0, x)",
        "on = Identity (go)\n": "p = ReduceSum <keepdims = 0> (h_in)  on = Less (p, e)\n",
    }
    model = changed(STACKED, ends_early)
    result = assert_rewrite(model, pipeline="raise")
    assert "condition" in [refusal.code for refusal in result.report.refusals]
    assert nodes(result.model, "Where")


def test_a_function_chooses_the_axis() -> None:
    """What an attribute of a function is differs from call to call, and tells nothing."""
    model = """
    <ir_version: 8, opset_import: ["" : 18, "own" : 1]>
    calls (float[A,B,3] x, float[3] h0) => (float[3] z) { z = own.sums <axis = 1> (x, h0) }
    <domain: "own", opset_import: ["" : 18]>
    sums <axis> (x, h0) => (z) {
        zero = Constant <value_ints = [0]> ()
        size = Shape <start = 0, end = 1> (x)
        many = Squeeze (size, zero)
        z = Loop (many, "", h0) <body = step (int64 i, bool go, float[3] h)
            => (bool on, float[3] h_out) {
            on = Identity (go)
            row = Gather <axis: int = @axis> (x, i)
            sum = ReduceSum <keepdims = 0> (row, zero)
            h_out = Add (h, sum)
        }>
    }
    """
    result = assert_rewrite(model, pipeline="raise")
    assert nodes(result.model, "Gather")
