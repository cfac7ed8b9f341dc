"""Sizes that are followed into bodies and out of them: where a loop runs as often as a row has
elements, nothing guards what it reads, and nothing is cut off."""

from __future__ import annotations

import onnx
import pytest
from raised_models import nodes

from passes.testing import assert_refused, assert_rewrite

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


def rows(
    made: str,
    trips: str = "inner = Squeeze (full, zero)",
    inputs: str = "float[B,T,2,3] x",
    around: str = "",
) -> str:
    """A loop over rows around one over the elements of x_b [steps, 2, 3], which `made` tells.

    `full` is the size of axis 1 of x, `inner` what `trips` tells.
    """
    return f"""
    <ir_version: 8, opset_import: ["" : 18]>
    rows ({inputs}) => (float[K,2,3] y)
    <int64[1] zero = {{0}}, int64[1] ones = {{1}}, int64[1] twos = {{2}},
     float[2,3] h0 = {{1,2,3,4,5,6}},
     int64[1] many = {{2147483647}}, int64 one = {{1}}, int64 nought = {{0}}, float half = {{0.5}},
     int64[4] as_is = {{0,0,2,3}}, int64[1] threes = {{3}},
     int64[3] any = {{-1,2,3}}>
    {{
        first = Shape <start = 0, end = 1> (x)
        count = Squeeze (first, zero)
        full = Shape <start = 1, end = 2> (x)
        {trips}
        {around}
        y = Loop (count, "") <body = each (int64 now, bool go) => (bool on, float[2,3] last) {{
            on = Identity (go)
            nil = Constant <value_ints = [0]> ()  one_more = Constant <value_ints = [1]> ()
            at_now = Unsqueeze (now, nil)
            {made}
            last = Loop (inner, "", h0) <body = step (int64 at, bool go_, float[2,3] h)
                => (bool on_, float[2,3] h_out) {{
                on_ = Identity (go_)
                x_t = Gather (x_b, at)
                h_out = Add (h, x_t)
            }}>
        }}>
    }}
    """


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
    assert guards(rows(made)) == []


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
    assert "Where" in guards(rows(made, inputs=inputs))


def test_the_index_must_be_a_scalar() -> None:
    """Else the first axis is that of the index, which has one element."""
    made = "g = Gather (x, at_now)  x_b = Squeeze (g, one_more)"
    assert "Where" in guards(rows(made, inputs="float[B,1,2,3] x, int64 n", trips=_GIVEN))


_GIVEN = "inner = Max (n, one)"


@pytest.mark.parametrize("more", ["one", "two_more"])
def test_one_iteration_more_reads_behind_the_end(more: str) -> None:
    trips = f"all = Squeeze (full, zero)  two_more = Add (one, one)  inner = Add (all, {more})"
    assert_refused(rows("x_b = Gather (x, now)", trips), "out-of-range", pipeline="raise")


def test_a_longer_row_is_cut() -> None:
    made = "g = Gather (x, now)  x_b = Concat <axis = 0> (g, z)"
    assert guards(rows(made, inputs="float[B,T,2,3] x, float[N,2,3] z")) == ["Slice"]
    trips = "all = Squeeze (full, zero)  inner = Sub (all, one)"
    assert guards(rows("x_b = Gather (x, now)", trips)) == ["Slice"]


def hidden(inner: str, outer: str) -> str:
    """Loops three deep; the one in the middle calls what it carries `inner`, which starts as `z`.

    The innermost runs as often as axis 1 of the outermost x has elements, over a row of `outer`.
    """
    return f"""
    <ir_version: 8, opset_import: ["" : 18]>
    hidden (float[B,T,3] x, float[B,V,3] z) => (float[3] h)
    <int64[1] zero = {{0}}, int64 nought = {{0}}, int64 two = {{2}}, float[3] h0 = {{1,2,3}}>
    {{
        full = Shape <start = 1, end = 2> (x)
        many = Squeeze (full, zero)
        zs, h = Loop (two, "", z, h0)
            <body = middle (int64 now, bool go, float[B,U,3] {inner}, float[3] h_m)
            => (bool on, float[B,U,3] z_out, float[3] h_out) {{
            on = Identity (go)
            z_out = Identity ({inner})
            row = Gather ({outer}, nought)
            h_out = Loop (many, "", h_m) <body = step (int64 at, bool go_, float[3] h_in)
                => (bool on_, float[3] h_next) {{
                on_ = Identity (go_)
                x_t = Gather (row, at)
                h_next = Add (h_in, x_t)
            }}>
        }}>
    }}
    """


def test_a_name_that_hides_the_tensor_is_another_one() -> None:
    assert "Where" in guards(hidden("x", "x"))
    assert "Where" in guards(hidden("w", "w"))
    assert guards(hidden("w", "x")) == []


SCAN = """
    <ir_version: 8, opset_import: ["" : 18]>
    scanned (float[A,B,C] x) => (float[K,3] y)
    <int64[1] zero = {{0}}, int64[1] ones = {{1}}, float[3] h0 = {{1,2,3}}>
    {{
        z = Tanh (x)
        size = Shape <start = {start}, end = {end}> (z)
        many = Squeeze (size, zero)
        y = Scan <num_scan_inputs = 1, scan_input_axes = [{axis}], scan_input_directions = [1],
            body = each (float[N,3] row) => (float[3] last) {{
            last = Loop (many, "", h0) <body = step (int64 at, bool go, float[3] h)
                => (bool on, float[3] h_out) {{
                on = Identity (go)
                x_t = Gather (row, at)
                h_out = Add (h, x_t)
            }}>
        }}> (x)
    }}
    """


@pytest.mark.parametrize(("start", "axis"), [(1, 0), (0, 1), (1, -3), (0, -2)])
def test_what_a_scan_feeds_to_its_body_has_the_other_axes(start: int, axis: int) -> None:
    assert guards(SCAN.format(start=start, end=start + 1, axis=axis)) == []


@pytest.mark.parametrize(("start", "axis"), [(0, 0), (1, 1), (0, -3), (2, 1)])
def test_the_axis_that_is_scanned_is_not_among_them(start: int, axis: int) -> None:
    assert "Where" in guards(SCAN.format(start=start, end=start + 1, axis=axis))


def stacked(between: str, inputs: str = "", trips: str = "t", condition: str = "") -> str:
    """A loop over what one before it collected, as `y`, and ended with, as `g` [N, 3].

    Both run as often as x has rows, the first `trips`; `between` makes `w`, which the second reads.
    """
    goes_on = "p = ReduceSum <keepdims = 0> (h_in) on = Less (p, e)"
    return f"""
    <ir_version: 8, opset_import: ["" : 18]>
    stacked (float[T,3] x{inputs}) => (float[3] h, float[K,3] z)
    <int64[1] zero = {{0}}, int64[1] ones = {{1}}, int64 one = {{1}}, int64 nought = {{0}},
     int64[1] many = {{2147483647}}, float[3] h0 = {{1,2,3}}, bool yes = {{1}},
     float[0,3] nothing = {{}}>
    {{
        s = Shape <start = 0, end = 1> (x)
        t = Squeeze (s, zero)
        h, g, y = Loop ({trips}, {condition or '""'}, h0, x)
            <body = first (int64 i, bool go, float[3] h_in, float[N,3] g_in)
            => (bool on, float[3] h_out, float[N,3] g_out, float[3] y_t) {{
            {goes_on if condition else "on = Identity (go)"}
            x_t = Gather (x, i)
            h_out = Add (h_in, x_t)
            g_out = Identity (g_in)
            y_t = Identity (h_out)
        }}>
        {between}
        h_2, z = Loop (t, "", h0) <body = second (int64 k, bool go_2, float[3] h_2_in)
            => (bool on_2, float[3] h_2_out, float[3] z_t) {{
            on_2 = Identity (go_2)
            w_t = Gather (w, k)
            h_2_out = Sub (h_2_in, w_t)
            z_t = Identity (h_2_out)
        }}>
    }}
    """


def chosen(test: str, some: str, others: str) -> str:
    """A choice between two values, as `w`."""
    return f"""test = {test}
        w = If (test) <then_branch = a () => (float[P,3] p) {{ p = Tanh ({some}) }},
            else_branch = b () => (float[Q,3] q) {{ q = Abs ({others}) }}>"""


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
def test_what_may_be_of_another_length_is_guarded(between: str, inputs: str) -> None:
    assert "Where" in guards(stacked(between, inputs))


def test_many_loops_one_behind_the_other_are_verified() -> None:
    """What tells the sizes of the last one are all those in front of it."""
    layer = """h{0}, y{0} = Loop (t, "", start) <body = layer{0}
        (int64 i{0}, bool go{0}, float[3] h{0}_in)
        => (bool on{0}, float[3] h{0}_out, float[3] out{0}) {{
            on{0} = Identity (go{0})  x_t{0} = Gather ({1}, i{0})
            h{0}_out = Add (h{0}_in, x_t{0})  out{0} = Identity (h{0}_out) }}>"""
    layers = [layer.format(i, f"y{i - 1}" if i else "x") for i in range(12)]
    model = f"""
    <ir_version: 8, opset_import: ["" : 18]>
    layers (float[T,3] x) => (float[K,3] y11)
    <int64[1] zero = {{0}}, float[3] start = {{1,2,3}}>
    {{ s = Shape <start = 0, end = 1> (x)  t = Squeeze (s, zero)  {" ".join(layers)} }}
    """
    assert guards(model) == []


def test_of_what_runs_another_number_of_times_nothing_is_known() -> None:
    assert "Where" in guards(stacked("w = Tanh (y)", ", int64 m", "m"))


def test_a_loop_that_ends_early_collects_less() -> None:
    model = stacked("w = Tanh (y)", ", float e", condition="yes")
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
