"""Loop and If in the reference executor: modes, values, zero trips, captures."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper, parser
from ort_process import OrtProcess, OrtRefused, difference, ort_process

from passes.verify.executor import CannotRun, ModelFailed
from passes.verify.reference import ReferenceExecutor
from tests.written import changed

RUN = ReferenceExecutor().run


@pytest.fixture(scope="module")
def ort() -> Iterator[OrtProcess]:
    with ort_process() as process:
        yield process


I64 = np.int64


#: Counts `a0` up to 5; collects `a` and the number of the iteration.
COUNTING = """
<ir_version: 8, opset_import: ["": 16]>
g (int64 m, bool c, int64 a0) => (int64 last, int64[K] before, int64[K] numbers) {
  five = Constant <value_int = 5> ()
  last, before, numbers = Loop <body = body (int64 i, bool going, int64 a)
    => (bool next, int64 b, int64 x, int64 n) {
      one = Constant <value_int = 1> ()
      b = Add (a, one)
      next = Less (b, five)
      x = Identity (a)
      n = Identity (i)
  }> (m, c, a0)
}
"""


def loop(operands: str, cond: str = "Less (b, five)", opset: int = 16) -> ModelProto:
    """The Loop with this trip count and condition, and another condition of the body."""
    changes = {"(m, c, a0)": f"({operands}, a0)", "Less (b, five)": cond, '"": 16': f'"": {opset}'}
    return parser.parse_model(changed(COUNTING, changes))


def feeds(m: int = 10, c: bool = True, a: int = 0) -> dict[str, Any]:
    return {"m": np.array(m, I64), "c": np.array(c), "a0": np.array(a, I64)}


def test_without_cond_the_loop_starts_and_the_body_s_condition_counts() -> None:
    outputs = RUN(loop("m, "), feeds(m=7)).outputs
    assert outputs["last"] == 5
    assert outputs["numbers"].tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("m", [0, -3])
def test_a_trip_count_of_0_or_less_runs_nothing(m: int) -> None:
    outputs = RUN(loop("m, c"), feeds(m=m, a=3)).outputs
    assert outputs["last"] == 3
    assert outputs["before"].shape == (0,)
    assert outputs["before"].dtype == I64


def test_while_loop_tests_what_the_iteration_before_returned() -> None:
    outputs = RUN(loop(", c"), feeds()).outputs
    assert outputs["last"] == 5
    assert outputs["before"].tolist() == [0, 1, 2, 3, 4]


def test_do_while_runs_once_when_the_body_stops_at_once() -> None:
    assert RUN(loop(", c"), feeds(a=20)).outputs["last"] == 21


def test_the_initial_cond_is_tested_before_iteration_0() -> None:
    outputs = RUN(loop("m, c"), feeds(c=False, a=3)).outputs
    assert outputs["last"] == 3
    assert outputs["numbers"].shape == (0,)


def test_both_limits_hold() -> None:
    assert RUN(loop("m, c"), feeds(m=3)).outputs["last"] == 3
    assert RUN(loop("m, c"), feeds(m=30)).outputs["last"] == 5


@pytest.mark.parametrize("operands", ["m, c", ", c", "m, ", ", "])
@pytest.mark.parametrize("values", [feeds(), feeds(m=3), feeds(m=0), feeds(c=False), feeds(a=9)])
@pytest.mark.parametrize("opset", [11, 13, 16, 21])
def test_what_onnxruntime_gives(
    ort: OrtProcess, operands: str, values: dict[str, Any], opset: int
) -> None:
    model = loop(operands, opset=opset)
    for graph in (model.graph, model.graph.node[1].attribute[0].g):
        for node in graph.node:
            if node.op_type == "Constant":
                number = helper.make_tensor("n", TensorProto.INT64, [], [node.attribute[0].i])
                node.attribute[0].CopyFrom(helper.make_attribute("value", number))
    answer = ort.run(model, values)
    assert not isinstance(answer, OrtRefused), answer
    outputs = RUN(model, values).outputs.values()
    assert [difference(a, b) for a, b in zip(outputs, answer, strict=True)] == [""] * 3


@pytest.mark.parametrize("operands", ["m, c", "m, "])
@pytest.mark.parametrize("declared", [("", ""), ("[1]", ""), ("", "[1]"), ("[1]", "[1]")])
@pytest.mark.parametrize("trips", [0, 3])
def test_the_body_gets_number_and_condition_in_the_rank_that_it_declares(
    ort: OrtProcess, operands: str, declared: tuple[str, str], trips: int
) -> None:
    number, flag = declared
    text = """
    <ir_version: 8, opset_import: ["": 17]>
    g (int64 m, bool c) => (numbers, flags) {
      last, numbers, flags = Loop <body = body (int64 i, bool going, int64 a)
        => (bool next, int64 b, int64 n, bool f) {
          next = Identity (going)
          b = Identity (a)
          n = Identity (i)
          f = Identity (going)
      }> (m, c, m)
    }"""
    changes = {"int64 i": f"int64{number} i", "int64 n": f"int64{number} n"}
    changes |= {f"bool {name}": f"bool{flag} {name}" for name in ("c", "going", "next", "f")}
    model = parser.parse_model(changed(text, changes | {"(m, c, m)": f"({operands}, m)"}))
    values = {"m": np.array(trips), "c": np.ones((1,) if flag else (), np.bool_)}
    answer = ort.run(model, values)
    assert not isinstance(answer, OrtRefused), answer
    outputs = RUN(model, values).outputs.values()
    assert [difference(a, b) for a, b in zip(outputs, answer, strict=True)] == ["", ""]


def test_without_limits_the_time_ends_the_run() -> None:
    with pytest.raises(CannotRun, match=r"took longer than 0.2 s"):
        RUN(loop(", ", cond="Identity (going)"), feeds(), timeout=0.2)


def test_a_while_loop_that_never_ends_is_stopped() -> None:
    with pytest.raises(CannotRun, match="took longer"):
        RUN(loop(", c", cond="Identity (going)"), feeds(), timeout=0.2)


def test_m_may_be_a_vector_of_one_element() -> None:
    model = loop("m, c")
    model.graph.input[0].type.tensor_type.shape.dim.add().dim_value = 1
    values = {**feeds(), "m": np.array([2], I64)}
    assert RUN(model, values).outputs["last"] == 2


COLLECTED = """
<ir_version: 8, opset_import: ["": 16]>
g (int64 m, float[2, 3] w) => (scalars, matrices) {
  scalars, matrices = Loop <body = body (int64 i, bool c) => (bool d, float s, float[2, 3] t) {
    d = Identity (c)  s = Cast <to = 1> (i)  t = Add (w, s)
  }> (m, )
}
"""


def test_collected_values_gain_one_axis() -> None:
    w = np.arange(6, dtype=np.float32).reshape(2, 3)
    outputs = RUN(parser.parse_model(COLLECTED), {"m": np.array(4, I64), "w": w}).outputs
    assert outputs["scalars"].tolist() == [0, 1, 2, 3]
    np.testing.assert_array_equal(outputs["matrices"], np.stack([w, w + 1, w + 2, w + 3]))


@pytest.mark.parametrize(
    ("size", "sizes", "shape", "guessed"),
    [
        ("N", (3, 3), (0, 3), False),
        ("N", (3, 2), (0, 0), True),
        ("M", (3, 3), (0, 0), True),
    ],
)
def test_without_iterations_a_symbol_tells_what_it_stands_for_where_the_loop_reads(
    size: str, sizes: tuple[int, int], shape: tuple[int, int], guessed: bool
) -> None:
    model = parser.parse_model(f"""
    <ir_version: 8, opset_import: ["": 16]>
    g (int64 m, float[N] a0, float[N] b0) => (a, b, y) {{
      a, b, y = Loop <body = body (int64 i, bool c, a, b) => (bool d, an, bn, float[{size}] e) {{
        d = Identity (c)  an = Identity (a)  bn = Identity (b)  e = Exp (a)
      }}> (m, , a0, b0)
    }}""")
    first, second = (np.zeros(size, np.float32) for size in sizes)
    outcome = RUN(model, {"m": np.array(0), "a0": first, "b0": second})
    assert outcome.outputs["y"].shape == shape
    assert outcome.guessed_shapes == guessed
    assert outcome.idle


@pytest.mark.parametrize(
    ("symbol", "size", "shape", "guessed"),
    [(3, 3, (0, 3), False), (3, 4, (0, 0), True), (0, 4, (0, 0), True)],
)
def test_without_iterations_a_symbol_is_no_more_than_a_word_where_the_values_differ(
    symbol: int, size: int, shape: tuple[int, int], guessed: bool
) -> None:
    model = parser.parse_model("""
    <ir_version: 8, opset_import: ["": 16]>
    g (int64 m, float[N] a0, int64[1] sizes) => (a, y) {
      w = ConstantOfShape (sizes)
      a, y = Loop <body = body (int64 i, bool c, float[N] a) => (bool d, an, float[N] e) {
        d = Identity (c)  an = Identity (a)  e = Exp (w)
      }> (m, , a0)
    }""")
    given = np.zeros(symbol, np.float32)
    feeds = {"m": np.array(0), "a0": given, "sizes": np.array([size])}
    outcome = RUN(model, feeds)
    assert outcome.outputs["y"].shape == shape
    assert outcome.guessed_shapes == guessed


@pytest.mark.parametrize(("size", "guessed"), [(2, False), (3, True)])
def test_without_iterations_what_an_inner_loop_hands_on_has_the_sizes_that_its_body_keeps(
    size: int, guessed: bool
) -> None:
    model = parser.parse_model("""
    <ir_version: 8, opset_import: ["": 16]>
    g (int64 m, float[N] a0, float[2] w) => (a, y) {
      a, y = Loop <body = body (int64 i, bool c, float[N] a) => (bool d, an, float[N] e) {
        d = Identity (c)  an = Identity (a)
        v = Loop <body = inner (int64 j, bool on, float[N] s) => (bool off, float[2] t) {
          off = Identity (on)  t = Neg (s)
        }> (m, , w)
        e = Exp (v)
      }> (m, , a0)
    }""")
    feeds = {"m": np.array(0), "a0": np.zeros(size, np.float32), "w": np.zeros(2, np.float32)}
    outcome = RUN(model, feeds)
    assert outcome.outputs["y"].shape == (0, 0 if guessed else size)
    assert outcome.guessed_shapes == guessed


def test_collected_values_that_change_shape_are_an_error() -> None:
    model = parser.parse_model("""
    <ir_version: 8, opset_import: ["": 16]>
    g (int64 m, int64[N] a0) => (a, y) {
      a, y = Loop <body = body (int64 i, bool c, int64[P] a) => (bool d, int64[Q] b, int64[P] x) {
        d = Identity (c)  b = Concat <axis = 0> (a, a)  x = Identity (a)
      }> (m, , a0)
    }""")
    with pytest.raises(ModelFailed, match=r"collected output 0 changes its shape from \(1,\)"):
        RUN(model, {"m": np.array(2, I64), "a0": np.array([1], I64)})
    # The carried value may grow: with one iteration nothing is wrong.
    assert RUN(model, {"m": np.array(1, I64), "a0": np.array([1], I64)}).outputs["a"].size == 2


def test_a_carried_value_keeps_its_type() -> None:
    model = parser.parse_model("""
    <ir_version: 8, opset_import: ["": 16]>
    g (int64 m, int64 a0) => (a) {
      a = Loop <body = body (int64 i, bool c, a) => (bool d, float b) {
        d = Identity (c)  b = Cast <to = 1> (a)
      }> (m, , a0)
    }""")
    with pytest.raises(ModelFailed, match="carried value 0 changes its type from int64 to float32"):
        RUN(model, {"m": np.array(1, I64), "a0": np.array(1, I64)})


def test_sequences_are_carried() -> None:
    model = parser.parse_model("""
    <ir_version: 8, opset_import: ["": 16]>
    g (int64 m) => (seq(int64) s) {
      empty = SequenceEmpty <dtype = 7> ()
      s = Loop <body = body (int64 i, bool c, seq(int64) q) => (bool d, seq(int64) r) {
        d = Identity (c)  r = SequenceInsert (q, i)
      }> (m, , empty)
    }""")
    assert RUN(model, {"m": np.array(3, I64)}).outputs["s"] == [0, 1, 2]
    assert RUN(model, {"m": np.array(0, I64)}).outputs["s"] == []


def test_an_optional_may_be_empty_at_first() -> None:
    model = parser.parse_model("""
    <ir_version: 8, opset_import: ["": 16]>
    g (int64 m, optional(float[2]) o) => (optional(float[2]) last, bool[K] had) {
      last, had = Loop <body = body (int64 i, bool c, optional(float[2]) p)
        => (bool d, optional(float[2]) q, bool h) {
          d = Identity (c)
          h = OptionalHasElement (p)
          v = Constant <value_floats = [1.0, 2.0]> ()
          q = Optional (v)
      }> (m, , o)
    }""")
    outputs = RUN(model, {"m": np.array(2, I64), "o": None}).outputs
    assert outputs["had"].tolist() == [False, True]
    assert outputs["last"].tolist() == [1, 2]
    assert RUN(model, {"m": np.array(0, I64), "o": None}).outputs["last"] is None


def test_a_body_input_shadows_an_outer_name_and_keeps_its_value() -> None:
    model = parser.parse_model("""
    <ir_version: 8, opset_import: ["": 16]>
    g (int64 m, int64 a) => (last) {
      b = Add (a, a)
      last = Loop <body = body (int64 i, bool c, int64 a) => (bool d, int64 x) {
        d = Identity (c)  x = Mul (a, b)
      }> (m, , b)
    }""")
    # Outside a = 1, b = 2; the carried value, a inside, goes 2, 4, 8, 16.
    assert RUN(model, {"m": np.array(3, I64), "a": np.array(1, I64)}).outputs["last"] == 16


def test_with_ir_3_extra_body_inputs_are_constants() -> None:
    model = parser.parse_model("""
    <ir_version: 3, opset_import: ["": 8]>
    g (int64 m, int64 a0) => (a) {
      a = Loop <body = body (int64 i, bool c, int64 p, int64 three)
        => (bool d, int64 q) <int64 three = {3}> { d = Identity (c)  q = Add (p, three) }> (m, , a0)
    }""")
    assert RUN(model, {"m": np.array(2, I64), "a0": np.array(1, I64)}).outputs["a"] == 7


def test_omitted_outputs_leave_omitted_inputs_omitted() -> None:
    model = parser.parse_model("""
    <ir_version: 8, opset_import: ["": 16]>
    g (int64 m, float x, float high) => (numbers, y) {
      , numbers = Loop <body = body (int64 i, bool c, int64 p) => (bool d, int64 q, int64 n) {
        d = Identity (c)  q = Add (p, i)  n = Identity (i)
      }> (m, , m)
      y = Clip (x, , high)
    }""")
    values = {"m": np.array(2, I64), "x": np.array(-5, np.float32), "high": np.array(1, np.float32)}
    outputs = RUN(model, values).outputs
    assert outputs["numbers"].tolist() == [0, 1]
    assert outputs["y"] == -5


BRANCHES = """
<ir_version: 8, opset_import: ["": 16]>
g (bool c, float a, float b) => (x, y) {
  z = Add (a, b)
  x, y = If (c) <
    then_branch = t () => (z, p) { p = Mul (z, a) },
    else_branch = e () => (q, b) { q = Sub (z, z) }
  >
}
"""


@pytest.mark.parametrize(("cond", "expected"), [(True, [5, 10]), (False, [0, 3])])
def test_if_runs_one_branch_which_may_return_outer_values(
    cond: bool, expected: list[float]
) -> None:
    values = {"c": np.array(cond), "a": np.array(2, np.float32), "b": np.array(3, np.float32)}
    outputs = RUN(parser.parse_model(BRANCHES), values).outputs
    assert [float(value) for value in outputs.values()] == expected


def test_if_takes_a_vector_of_one_and_refuses_more() -> None:
    model = parser.parse_model(changed(BRANCHES, {"bool c": "bool[N] c"}))
    values = {"a": np.array(2, np.float32), "b": np.array(3, np.float32)}
    assert RUN(model, {"c": np.array([True]), **values}).outputs["x"] == 5
    with pytest.raises(ModelFailed, match="cond must be one bool"):
        RUN(model, {"c": np.array([True, True]), **values})


def test_the_branch_not_taken_may_hold_an_unknown_operator() -> None:
    model = parser.parse_model("""
    <ir_version: 8, opset_import: ["": 16, "elsewhere": 1]>
    g (bool c, float a) => (x) {
      x = If (c) <then_branch = t () => (p) { p = elsewhere.Secret (a) },
                  else_branch = e () => (q) { q = Neg (a) }>
    }""")
    a = np.array(2, np.float32)
    assert RUN(model, {"c": np.array(False), "a": a}).outputs["x"] == -2
    with pytest.raises(CannotRun, match=r"no kernel for elsewhere\.Secret"):
        RUN(model, {"c": np.array(True), "a": a})


@pytest.mark.parametrize(("size", "trips", "misfed"), [(2, 0, True), (3, 0, False), (2, 1, False)])
def test_a_body_that_does_not_run_is_seen_to_be_fed_other_sizes_than_it_declares(
    size: int, trips: int, misfed: bool
) -> None:
    model = parser.parse_model("""
    <ir_version: 8, opset_import: ["": 16]>
    g (float[N] s, int64 n) => (float[M] h) {
      h = Loop (n, "", s) <body = b (int64 i, bool go, float[3] a) => (bool on, float[3] b) {
        on = Identity (go) b = Neg (a) }>
    }""")
    outcome = RUN(model, {"s": np.ones(size, np.float32), "n": np.array(trips)})
    assert (outcome.misfed, outcome.idle) == (misfed, not trips)


@pytest.mark.parametrize(("size", "misfed"), [(2, True), (3, False)])
@pytest.mark.parametrize("declared", ["3", "B"])
def test_a_body_that_does_not_run_is_seen_to_declare_other_sizes_than_it_would_give(
    declared: str, size: int, misfed: bool
) -> None:
    text = """
    <ir_version: 8, opset_import: ["": 16]>
    g (float[N] x, float[B] batch, int64 n) => (float[M,N] y, float[M,B] z) {
      y, z = Loop (n, "") <body = b (int64 i, bool go) => (bool on, float[D] a, float[B] c) {
        on = Identity (go) a = Neg (x) c = Neg (batch) }>
    }"""
    model = parser.parse_model(changed(text, {"D]": f"{declared}]"}))
    ones = {"x": np.ones(size, np.float32), "batch": np.ones(3, np.float32)}
    assert RUN(model, {**ones, "n": np.array(0)}).misfed == misfed
    assert not RUN(model, {**ones, "n": np.array(1)}).misfed


@pytest.mark.parametrize(("size", "misfed"), [(2, True), (3, False)])
def test_a_body_that_does_not_run_is_seen_to_feed_a_loop_other_sizes_than_that_declares(
    size: int, misfed: bool
) -> None:
    model = parser.parse_model("""
    <ir_version: 8, opset_import: ["": 16]>
    g (float[N] x, int64 n) => (float[M,K] y) {
      y = Loop (n, "") <body = b (int64 i, bool go) => (bool on, float[K] a) {
        on = Identity (go)
        a = Loop (n, go, x) <body = c (int64 j, bool run, float[3] s) => (bool more, float[3] t) {
          more = Identity (run) t = Neg (s) }> }>
    }""")
    feeds = {"x": np.ones(size, np.float32), "n": np.array(0)}
    assert RUN(model, feeds).misfed == misfed


def test_a_state_that_changes_to_a_size_that_its_body_rules_out_is_noted() -> None:
    model = parser.parse_model("""
    <ir_version: 8, opset_import: ["": 16]>
    g (float[N] x, float[4] s) => (float[M] h) {
      n = Constant <value_int = 2> ()
      h = Loop (n, "", s) <body = b (int64 i, bool go, float[4] a) => (bool on, float[4] b) {
        on = Identity (go) b = Neg (x) }>
    }""")
    start = np.ones(4, np.float32)
    assert RUN(model, {"x": np.ones(3, np.float32), "s": start}).undeclared
    assert not RUN(model, {"x": np.ones(4, np.float32), "s": start}).undeclared
