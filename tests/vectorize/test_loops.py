"""Scan and Loop in a body that is vectorised."""

from __future__ import annotations

import numpy as np
import pytest
from looping import parsed, prove, refused, subsets, vectorized

from tests.written import changed

pytestmark = pytest.mark.sampled


SUMMING = """
g (float[2] s, float[4,2] x, float[2] w) => (float[2] last, float[4,2] all, float[4] sums) {
  last, all, sums = Scan <num_scan_inputs = 1, body = b (float[2] a, float[2] e)
      => (float[2] n, float[2] out, float[] sum) {
    m = Mul (e, w)
    n = Add (a, m)
    out = Sub (n, w)
    sum = ReduceSum <keepdims = 0> (m)
  }> (s, x)
}
"""


@pytest.mark.parametrize("opset", [13, 18, 21])
@pytest.mark.parametrize("carrying", subsets(["s", "x", "w"]))
def test_what_is_carried_scanned_or_captured_may_have_the_axis(
    carrying: list[str], opset: int, both: list
) -> None:
    prove(SUMMING, carrying, opset=opset, executors=both)
    prove(SUMMING, carrying, opset=opset, static=True, executors=both)


@pytest.mark.parametrize("carrying", subsets(["s", "x", "w"]))
def test_no_rows_give_no_rows(carrying: list[str]) -> None:
    prove(SUMMING, carrying, sizes=(2, 0), nonempty=False)


@pytest.mark.parametrize("carrying", subsets(["x", "z"]))
@pytest.mark.parametrize("backwards", [0, 1])
@pytest.mark.parametrize(
    ("out_axis", "dims"), [(0, "3,2,4"), (2, "2,4,3"), (-1, "2,4,3"), (-2, "2,3,4")]
)
@pytest.mark.parametrize(
    ("axis", "shape"), [(0, "3,2,4"), (1, "2,3,4"), (-1, "2,4,3"), (-3, "3,2,4")]
)
def test_axes_and_directions_are_those_of_a_row(
    axis: int, shape: str, out_axis: int, dims: str, backwards: int, carrying: list[str], both: list
) -> None:
    text = """
    g (float[3,2,4] x, float[3] z) => (float[3,2,4] y) {
      y = Scan <num_scan_inputs = 2, scan_input_axes = [0, 0], scan_input_directions = [0, 0],
          scan_output_axes = [0], scan_output_directions = [1],
          body = b (float[2,4] e, float f) => (float[2,4] o) { o = Mul (e, f) }> (x, z)
    }
    """
    changes = {
        "[3,2,4] x": f"[{shape}] x",
        "[3,2,4] y": f"[{dims}] y",
        "scan_input_axes = [0, 0]": f"scan_input_axes = [{axis}, 0]",
        "scan_output_axes = [0]": f"scan_output_axes = [{out_axis}]",
        "scan_input_directions = [0, 0]": f"scan_input_directions = [{backwards}, 0]",
        "scan_output_directions = [1]": f"scan_output_directions = [{1 - backwards}]",
    }
    text = changed(text, changes)
    prove(text, carrying, executors=both if carrying == ["x"] else None)


@pytest.mark.parametrize("carrying", subsets(["s", "x", "w"]))
def test_scanning_nothing_collects_nothing(carrying: list[str]) -> None:
    prove(changed(SUMMING, {"[4": "[T"}), carrying, {"x": np.zeros((0, 2), np.float32)})


def test_names_inside_may_shadow_outer_ones(both: list) -> None:
    text = """
    g (float[2] s, float[3, 2] x) => (float[2] l, float[3, 2] y) {
      a = Neg (s)
      l, y = Scan <num_scan_inputs = 1, body = b (float[2] s, float[2] x)
          => (float[2] n, float[2] o) { n = Add (s, x) o = Mul (x, a) }> (s, x)
    }
    """
    for carrying in subsets(["s", "x"]):
        prove(text, carrying, executors=both)


def test_a_chain_of_states_takes_one_round_each(both: list) -> None:
    text = """
    g (float[2] a, float[2] b, float[2] c, float[3] x) => (float[2] p, float[2] q, float[2] r) {
      p, q, r = Scan <num_scan_inputs = 1, body = l (float[2] i, float[2] j, float[2] k, float e)
          => (float[2] u, float[2] v, float[2] w) {
        u = Add (i, e) v = Add (j, i) w = Add (k, j)
      }> (a, b, c, x)
    }
    """
    for carrying in subsets(["a", "b", "c"]):
        prove(text, carrying, executors=both)
    made = vectorized(parsed(text), ["c"], None)
    scan = next(node for node in made.graph.node if node.op_type == "Scan")
    ranks = [len(v.type.tensor_type.shape.dim) for v in scan.attribute[0].g.input]
    assert sorted(ranks) == [0, 1, 1, 2]


def test_states_that_pass_through_and_values_collected_twice(both: list) -> None:
    text = """
    g (float[2] s, float[3, 2] x) => (float[2] l, float[3, 2] a, float[3, 2] b, float[3, 2] c) {
      l, a, b, c = Scan <num_scan_inputs = 1, body = z (float[2] i, float[2] e)
          => (float[2] i, float[2] n, float[2] n, float[2] e) { n = Neg (e) }> (s, x)
    }
    """
    for carrying in subsets(["s", "x"]):
        prove(text, carrying)  # the body itself is one that onnxruntime runs wrong
    made = vectorized(parsed(text), ["s", "x"], None)
    scan = next(node for node in made.graph.node if node.op_type == "Scan")
    body = next(attribute.g for attribute in scan.attribute if attribute.name == "body")
    outputs = [value.name for value in body.output]
    assert len(set(outputs)) == len(outputs)
    assert {name for node in body.node for name in node.output} >= set(outputs)


#: A Loop over a state `s`, with a captured `w`.
LOOP = """
g (int64 m, bool c, float[2] s, float[2] w) => (float[2] l, float[N,2] y) {
  l, y = Loop (m, c, s) <body = b (int64 i, bool ci, float[2] a)
      => (bool co, float[2] n, float[2] o) {
    co = Identity (ci)
    f = Cast <to = 1> (i)
    t = Mul (w, f)
    n = Add (a, t)
    o = Sub (n, w)
  }>
}
"""


COUNTED = {"m": np.array(3), "c": np.array(True)}


@pytest.mark.parametrize("opset", [13, 18, 21])
@pytest.mark.parametrize("carrying", subsets(["s", "w"]))
@pytest.mark.parametrize("trips", [0, 1, 3])
def test_loops_collect_after_the_axis_of_rows(
    trips: int, carrying: list[str], opset: int, both: list
) -> None:
    feeds = {**COUNTED, "m": np.array(trips)}
    prove(LOOP, carrying, feeds, opset=opset, executors=both)
    prove(LOOP, carrying, feeds, opset=opset, static=True, executors=both)


@pytest.mark.parametrize("trips", [0, 3])
def test_loops_of_no_rows(trips: int) -> None:
    feeds = {**COUNTED, "m": np.array(trips)}
    prove(LOOP, ["s"], feeds, sizes=(2, 0), nonempty=False)


def test_a_condition_for_all_rows_ends_the_loop_for_all(both: list) -> None:
    text = changed(LOOP, {"Identity (ci)": "Less (i, m)", "Loop (m, c, s)": "Loop (, c, s)"})
    prove(text, ["s"], COUNTED, executors=both)
    prove(text, ["s"], {**COUNTED, "c": np.array(False)}, executors=both)
    prove(changed(LOOP, {"Loop (m, c, s)": "Loop (m, , s)"}), ["w"], COUNTED, executors=both)


GROW = {"w": np.array([0.5, 0.25], np.float32), "k": np.array(6.0, np.float32)}


def growing(trips: str, cond: str, step: str = "next = Add (a, v)") -> str:
    return f"""
g (int64 m, bool c, float[2] s, float[2] w, float k) => (float[2] l, int64 n, float[2] same) {{
  zero = Constant <value_int = 0> ()
  l, n, same = Loop ({trips}, {cond}, s, zero, w) <body =
      b (int64 i, bool ci, float[2] a, int64 count, float[2] v)
      => (bool co, float[2] next, int64 more, float[2] vv) {{
    one = Constant <value_int = 1> ()
    more = Add (count, one)
    {step}
    sum = ReduceSum <keepdims = 0> (next)
    co = Less (sum, k)
    vv = Identity (v)
  }}>
}}
"""


@pytest.mark.parametrize("opset", [13, 21])
@pytest.mark.parametrize("cond", ["c", ""])
@pytest.mark.parametrize("carrying", [["m"], ["c"], ["m", "c"], ["s"], ["m", "s", "w"], ["c", "s"]])
def test_each_row_runs_as_often_as_it_would(
    carrying: list[str], cond: str, opset: int, both: list
) -> None:
    ranges = {"m": (0, 6)}
    text = growing("m", cond)
    feeds = {name: value for name, value in COUNTED.items() if name not in carrying}
    feeds = {**GROW, **feeds}
    prove(text, carrying, feeds, sizes=(1, 8), opset=opset, executors=both, ranges=ranges)


@pytest.mark.parametrize("cond", ["c", ""])
@pytest.mark.parametrize("carrying", [["s"], ["c"], ["c", "s", "w"], ["k", "s"]])
def test_rows_run_while_their_condition_holds(carrying: list[str], cond: str, both: list) -> None:
    text = growing("", cond)
    feeds = {**GROW, "c": np.array(True)}
    feeds = {name: value for name, value in feeds.items() if name not in set(carrying) - {"w"}}
    prove(text, carrying, feeds, sizes=(1, 8), executors=both, ranges={"k": (-4, 9)})
    prove(text, carrying, feeds, sizes=(1, 0), executors=both, nonempty=False)


def test_trip_counts_and_conditions_of_one_element(both: list) -> None:
    text = """
g (int64[1] m, bool[1] c, float[2] s, float[2] w, float k)
    => (float[2] l, int64 n, float[2] same) {
  zero = Constant <value_int = 0> ()
  l, n, same = Loop (m, c, s, zero, w) <body =
      b (int64[1] i, bool[1] ci, float[2] a, int64 count, float[2] v)
      => (bool[1] co, float[2] next, int64 more, float[2] vv) {
    one = Constant <value_int = 1> ()
    more = Add (count, one)
    next = Add (a, v)
    sum = ReduceSum <keepdims = 0> (next)
    r = Less (sum, k) at = Constant <value_ints = [0]> () co = Unsqueeze (r, at)
    vv = Identity (v)
  }>
}
"""
    prove(text, ["m", "c", "s"], GROW, sizes=(8,), executors=both, ranges={"m": (0, 6)})


def test_what_a_row_would_not_have_computed_does_not_reach_it() -> None:
    text = """
    g (int64 m, float[2] s) => (float[2] l) {
      l = Loop (m, , s) <body = b (int64 i, bool ci, float[2] a) => (bool ci, float[2] n) {
        r = Sqrt (a) n = Sub (r, a)
      }>
    }
    """
    feeds = {"s": np.array([-0.0, np.inf], np.float32)}
    prove(text, ["m", "s"], feeds, sizes=(8,), ranges={"m": (0, 4)})


def test_an_omitted_condition_is_true_at_first(both: list) -> None:
    text = """
    g (int64 m, float[2] s) => (float[2] l) {
      l = Loop (m, , s) <body = b (int64 i, bool ci, float[2] a) => (bool co, float[2] n) {
        sum = ReduceSum <keepdims = 0> (a) zero = CastLike (i, sum) co = Less (sum, zero)
        flag = Cast <to = 1> (ci) n = Add (a, flag)
      }>
    }
    """
    prove(text, ["s"], {"m": np.array(5)}, sizes=(8,), executors=both)


def test_rows_that_may_end_at_different_times_are_not_collected() -> None:
    text = """
g (int64 m, bool c, float[2] s, float[2] w, float k)
    => (float[2] l, int64 n, float[2] same, int64[N] y) {
  zero = Constant <value_int = 0> ()
  l, n, same, y = Loop (m, , s, zero, w) <body =
      b (int64 i, bool ci, float[2] a, int64 count, float[2] v)
      => (bool co, float[2] next, int64 more, float[2] vv, int64 seen) {
    one = Constant <value_int = 1> ()
    more = Add (count, one)
    seen = Identity (more)
    next = Add (a, v)
    sum = ReduceSum <keepdims = 0> (next)
    co = Less (sum, k)
    vv = Identity (v)
  }>
}
"""
    assert refused(text, ["s"]) == "collected-while"


def test_an_unread_collected_value_does_not_refuse() -> None:
    model = parsed(LOOP)
    del model.graph.output[1:]
    model.graph.node[0].output[1] = ""
    made = vectorized(model, ["m", "s"], None)
    node = next(node for node in made.graph.node if node.op_type == "Loop")
    assert all(node.output)
    assert len(node.output) == 2


NESTED = """
g (float[2] s, float[3, 4] x, float[2] w, bool c) => (float[2] last, float[3, 4] all) {
  last, all = Scan <num_scan_inputs = 1, body = outer (float[2] a, float[4] e)
      => (float[2] n, float[4] out) {
    m, out = Scan <num_scan_inputs = 1, body = inner (float[2] p, float f)
        => (float[2] q, float o) {
      v = If (c) <then_branch = yes () => (float[2] t) { t = Mul (w, f) },
                  else_branch = no () => (float[2] u) { u = Neg (w) }>
      q = Add (p, v) o = ReduceSum <keepdims = 0> (q)
    }> (a, e)
    four = Constant <value_int = 4> ()
    yes = Constant <value = bool {1}> ()
    n = Loop (four, yes, m) <body = third (int64 i, bool ci, float[2] g) => (bool co, float[2] h) {
      co = Identity (ci) h = Sub (g, w)
    }>
  }> (s, x)
}
"""


@pytest.mark.parametrize("carrying", subsets(["s", "x", "w", "c"]))
def test_bodies_inside_of_bodies(carrying: list[str], both: list) -> None:
    prove(NESTED, carrying, executors=both)


REFUSED = [
    ("collected-while", LOOP, ["m", "s"]),
    ("collected-while", LOOP, ["c", "s"]),
    (
        "not-speculatable",
        growing("m", "c", "j = Gather (v, i) next = Add (a, j)"),
        ["m"],
    ),
    (
        "ragged-rows",
        """
        g (int64 m, float[N] s) => (float[M] l) {
          l = Loop (m, , s) <body = b (int64 i, bool ci, float[K] a) => (bool ci, float[L] n) {
            n = Concat <axis = 0> (a, a)
          }>
        }
        """,
        ["m"],
    ),
    (
        "no-batching-rule",
        """
        g (int64 m, float[2] x) => (float[N] y) {
          q = SequenceEmpty <dtype = 1> ()
          s = Loop (m, , q) <body = b (int64 i, bool ci, seq(float[2]) a)
              => (bool ci, seq(float[2]) n) { n = SequenceInsert (a, x) }>
          y = ConcatFromSequence <axis = 0> (s)
        }
        """,
        ["x"],
    ),
    (
        "no-batching-rule",
        """
        g (int64 m, float[2] x) => (int64 y) {
          q = SequenceEmpty <dtype = 1> ()
          s = Loop (m, , q) <body = b (int64 i, bool ci, seq(float[2]) a)
              => (bool ci, seq(float[2]) n) { n = Identity (a) }>
          y = SequenceLength (s)
        }
        """,
        ["m"],
    ),
]


@pytest.mark.parametrize(("code", "text", "carrying"), REFUSED)
def test_what_rows_cannot_share_is_refused(code: str, text: str, carrying: list[str]) -> None:
    assert refused(text, carrying) == code
