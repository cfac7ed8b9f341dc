"""Loops that may end before their bound, or after the one that a user promised."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import ModelProto
from typer.testing import CliRunner

from passes.__main__ import app
from passes.choices import RuleOptions, Verifying
from passes.commands.schedules import SCHEDULES
from passes.engine.outcome import Outcome, Pass
from passes.engine.rewriting import Engine
from passes.errors import Mismatch
from passes.ir.model import Model
from passes.rule import rule_named
from passes.session import Session
from passes.testing import as_model, assert_refused, assert_rewrite
from passes.types.signature import inputs
from passes.verify.inputs.drawer import Case, Drawer
from passes.verify.inputs.goals import Counts, cases_by_count
from passes.verify.reference import ReferenceExecutor
from passes.verify.requirements import Promise
from tests.verification import verify
from tests.written import changed

pytestmark = pytest.mark.sampled

FOR = """
<ir_version: 10, opset_import: ["" : 21]>
g (float[2] h, int64 m) => (float[2] y) {
   y = Loop <body = step (int64 i, bool go, float[2] s) => (bool on, float[2] t) {
      on = Identity (go) t = Add (s, s) }> (m, "", h)
}
"""
BOTH = pytest.mark.parametrize("bounded", ["select", "if"])


#: Doubles until the sum is at the limit; logarithms after that may be NaN.
DOUBLING = """
<ir_version: 10, opset_import: ["" : 21]>
g (float[2] h, float limit, bool start) => (float[2] y, float[T,2] z, int64[T] c) {
   y, z, c = Loop <body = step (int64 i, bool go, float[2] s)
      => (bool on, float[2] t, float[2] o, int64 n) {
      t = Add (s, s)
      o = Log (t)
      n = Identity (i)
      m = ReduceSum <keepdims = 0> (t)
      on = Less (m, limit)
   }> ("", start, h)
}
"""


def bounded_by_m(most: int) -> ModelProto:
    bound = {
        "int64[T] c) {": f"int64[T] c) <int64 most = {{{most}}}> {{",
        '("", start': "(most, start",
    }
    return as_model(changed(DOUBLING, bound))


def unbounded() -> ModelProto:
    return as_model(DOUBLING)


def unrolled(model: ModelProto | str, **options: object) -> ModelProto:
    return assert_rewrite(model, pipeline="unroll", options=options).model


def feeds_for(trips: int) -> dict[str, object]:
    """Inputs on which the loop ends after so many iterations: the sum starts at 1."""
    limit = np.array(2.0**trips, np.float32)
    start = np.array(trips > 0)
    return {"h": np.array([2, -1], np.float32), "limit": limit, "start": start}


def ran(model: ModelProto, feeds: dict[str, object]) -> list[np.ndarray]:
    session = onnxruntime.InferenceSession(model.SerializeToString())
    return list(session.run(None, feeds))


@BOTH
@pytest.mark.parametrize("bound", [1, 2, 5])
def test_every_trip_count_up_to_m_gives_the_same(bounded: str, bound: int) -> None:
    before = bounded_by_m(bound)
    after = unrolled(before, bounded=bounded)
    assert not loops(after)
    for trips in range(bound + 3):
        expected, actual = (ran(model, feeds_for(trips)) for model in (before, after))
        for one, other in zip(expected, actual, strict=True):
            np.testing.assert_array_equal(one, other)


def loops(model: ModelProto) -> list[str]:
    return [node.name for node in model.graph.node if node.op_type in ("Loop", "Scan")]


@BOTH
def test_a_promised_bound_fails_where_it_is_too_small_and_only_there(bounded: str) -> None:
    before, after = unbounded(), unrolled(unbounded(), max_trips=3, bounded=bounded)
    for trips in range(4):
        expected, actual = (ran(model, feeds_for(trips)) for model in (before, after))
        for one, other in zip(expected, actual, strict=True):
            np.testing.assert_array_equal(one, other)
    for trips in (4, 5, 9):
        with pytest.raises(Exception, match="Gather"):
            ran(after, feeds_for(trips))


@BOTH
def test_every_output_depends_on_the_guard(bounded: str) -> None:
    after = unrolled(unbounded(), max_trips=3, bounded=bounded)
    session = onnxruntime.InferenceSession(after.SerializeToString())
    for name in ("y", "z", "c"):
        with pytest.raises(Exception, match="Gather"):
            session.run([name], feeds_for(4))


@BOTH
def test_a_check_output_tells_instead_of_failing(bounded: str) -> None:
    after = unrolled(unbounded(), max_trips=3, bounded=bounded, check_output="enough")
    assert [value.name for value in after.graph.output] == ["y", "z", "c", "enough"]
    assert [bool(ran(after, feeds_for(trips))[-1]) for trips in range(6)] == [True] * 4 + [
        False
    ] * 2


def test_where_all_is_bounded_the_check_is_true() -> None:
    after = unrolled(bounded_by_m(2), check_output="enough", max_trips=5)
    assert bool(ran(after, feeds_for(9))[-1])


def test_the_checks_of_several_loops_are_one() -> None:
    after = unrolled(
        """
<ir_version: 10, opset_import: ["" : 21]>
g (float[2] h, int64 m, int64 n) => (float[2] y) {
   a = Loop <body = one (int64 i, bool go, float[2] s) => (bool on, float[2] t) {
      on = Identity (go) t = Add (s, s) }> (m, "", h)
   y = Loop <body = two (int64 i, bool go, float[2] s) => (bool on, float[2] t) {
      on = Identity (go) t = Neg (s) }> (n, "", a)
}
""",
        max_trips=2,
        check_output="enough",
    )
    session = onnxruntime.InferenceSession(after.SerializeToString())
    h = np.ones(2, np.float32)
    said = [
        bool(session.run(["enough"], {"h": h, "m": np.array(m), "n": np.array(n)})[0])
        for m, n in ((2, 2), (3, 2), (2, 3), (0, 0))
    ]
    assert said == [True, False, False, True]


def test_assumed_inputs_need_no_guard() -> None:
    result = assert_rewrite(
        unbounded(), pipeline="unroll", options={"max_trips": 3, "assume": "valid-inputs"}
    )
    assert "Where" not in {node.op_type for node in result.model.graph.node}


def test_m_below_the_promise_bounds_the_loop_itself() -> None:
    record = assert_rewrite(bounded_by_m(2), pipeline="unroll", options={"max_trips": 5})
    assert record.report.records[0].note == "at most 2 iterations, by select"
    after = unrolled(bounded_by_m(9), max_trips=2)
    with pytest.raises(Exception, match="Gather"):
        ran(after, feeds_for(3))


def test_iterations_that_are_not_taken_may_give_nan() -> None:
    """The sum of the states ends the loop before their logarithms are NaN."""
    before = as_model("""
<ir_version: 10, opset_import: ["" : 21]>
g (float[2] h, float limit) => (float[2] y)
<int64 most = {4}, bool yes = {1}, float one = {1}> {
   y = Loop <body = step (int64 i, bool go, float[2] s) => (bool on, float[2] t) {
      l = Log (s) t = Sub (l, one) m = ReduceSum <keepdims = 0> (t) on = Greater (m, limit)
   }> (most, yes, h)
}
""")
    after = unrolled(before, bounded="select")
    feeds = {"h": np.array([2, 2], np.float32), "limit": np.array(0, np.float32)}
    (answer,) = ran(after, feeds)
    np.testing.assert_array_equal(answer, ran(before, feeds)[0])
    assert np.isfinite(answer).all()


@pytest.mark.parametrize("trips", [0, 1, 3])
@BOTH
def test_a_dynamic_trip_count_is_bounded_too(bounded: str, trips: int) -> None:
    before = as_model("""
<ir_version: 10, opset_import: ["" : 21]>
g (float[N] h, int64[1] trips) => (float[N] y, float[T,N] z) {
   y, z = Loop <body = step (int64 i, bool go, float[N] s) => (bool on, float[N] t, float[N] o) {
      on = Identity (go) at = Cast <to = 1> (i) t = Add (s, at) o = Neg (t) }> (trips, "", h)
}
""")
    bounded = "auto" if bounded == "select" else bounded  # sizes may not fit where it never ran
    after = unrolled(before, max_trips=3, bounded=bounded)
    feeds = {"h": np.ones(3, np.float32), "trips": np.array([trips])}
    (y, z), (y_after, z_after) = ran(before, feeds), ran(after, feeds)
    np.testing.assert_array_equal(y, y_after)
    assert len(z) == len(z_after) == trips
    if trips:  # without an iteration, onnxruntime does not know the size N of what is collected
        np.testing.assert_array_equal(z, z_after)


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "int64", "uint64", "float16"])
@BOTH
def test_every_type_is_selected(dtype: str, bounded: str) -> None:
    text = """
<ir_version: 10, opset_import: ["" : 21]>
g (TYPE[2,2] h, bool start, float limit) => (TYPE[2,2] y, TYPE[T,2,2] z) <int64 most = {3}> {
   y, z = Loop <body = step (int64 i, bool go, TYPE[2,2] s)
      => (bool on, TYPE[2,2] t, TYPE[2,2] o) {
      t = Transpose (s)
      o = Identity (t)
      at = Cast <to = 1> (i)
      on = Less (at, limit)
   }> (most, start, h)
}
"""
    unrolled(changed(text, {"TYPE": dtype}), bounded=bounded)


def test_strings_are_selected() -> None:
    unrolled("""
<ir_version: 10, opset_import: ["" : 21]>
g (string[2] h, float limit) => (string[2] y, string[T,2] z)
<int64 most = {3}, bool yes = {1}> {
   y, z = Loop <body = step (int64 i, bool go, string[2] s) => (bool on, string[2] t, string[2] o)
   <int64[2] back = {1, 0}> {
      t = StringConcat (s, s) o = Identity (t) at = Cast <to = 1> (i) on = Less (at, limit)
   }> (most, yes, h)
}
""")


@pytest.mark.parametrize("opset", [9, 11, 13, 18, 21, 26])
@BOTH
def test_every_opset(opset: int, bounded: str) -> None:
    unrolled(
        f"""
<ir_version: {4 if opset < 13 else 10}, opset_import: ["" : {opset}]>
g (float[2] h, float limit) => (float[2] y, float[T,2] z)
<bool yes = {{1}}> {{
   y, z = Loop <body = step (int64 i, bool go, float[2] s) => (bool on, float[2] t, float[2] o) {{
      t = Add (s, s) o = Neg (t) at = Cast <to = 1> (i) on = Less (at, limit) }}> ("", yes, h)
}}
""",
        bounded=bounded,
        max_trips=3,
    )


def test_sequences_are_handed_on_by_branches() -> None:
    after = unrolled("""
<ir_version: 10, opset_import: ["" : 21]>
g (float[2] x, float limit) => (seq(float[2]) y)
<int64 most = {3}, bool yes = {1}> {
   h = SequenceEmpty <dtype = 1> ()
   y = Loop <body = step (int64 i, bool go, seq(float[2]) s) => (bool on, seq(float[2]) t) {
      t = SequenceInsert (s, x) at = Cast <to = 1> (i) on = Less (at, limit) }> (most, yes, h)
}
""")
    assert not loops(after)


def test_weights_are_shared_by_all_branches() -> None:
    after = unrolled(
        """
<ir_version: 10, opset_import: ["" : 21]>
g (float[2] h, float limit) => (float[2] y)
<int64 most = {4}, bool yes = {1}> {
   y = Loop <body = step (int64 i, bool go, float[2] s) => (bool on, float[2] t)
   <float[2] w = {2, 3}> {
      t = Mul (s, w) m = ReduceSum <keepdims = 0> (t) on = Less (m, limit) }> (most, yes, h)
}
""",
        bounded="if",
    )
    graphs = [
        attribute.g
        for node in after.graph.node
        for attribute in node.attribute
        if attribute.HasField("g")
    ]
    weights = [tensor.name for graph in (after.graph, *graphs) for tensor in graph.initializer]
    assert [name for name in weights if name.endswith("/w")] == ["loop/w"]


@pytest.mark.slow
def test_a_while_in_an_unrolled_loop_gets_its_check_there() -> None:
    after = unrolled(
        """
<ir_version: 10, opset_import: ["" : 21]>
g (float[2] h, float limit) => (float[2] y)
<int64 two = {2}, bool yes = {1}> {
   y = Loop <body = outer (int64 i, bool go, float[2] s) => (bool on, float[2] t) {
      on = Identity (go)
      t = Loop <body = inner (int64 j, bool going, float[2] a) => (bool still, float[2] b) {
         b = Add (a, a) m = ReduceSum <keepdims = 0> (b) still = Less (m, limit)
      }> ("", yes, s)
   }> (two, "", h)
}
""",
        max_trips=3,
        check_output="enough",
    )
    assert not loops(after)
    assert after.graph.output[1].name == "enough"


@pytest.mark.slow
def test_a_while_in_a_function_is_bounded() -> None:
    after = unrolled(
        """
<ir_version: 10, opset_import: ["" : 21, "local" : 1]>
g (float[2] h, float limit) => (float[2] y) { y = local.grow (h, limit) }
<domain: "local", opset_import: ["" : 21]>
grow (x, limit) => (y) {
   yes = Constant <value = bool {1}> ()
   y = Loop <body = step (int64 i, bool go, float[2] s) => (bool on, float[2] t) {
      t = Add (s, s) m = ReduceSum <keepdims = 0> (t) on = Less (m, limit) }> ("", yes, x)
}
""",
        max_trips=3,
    )
    assert "Loop" not in {node.op_type for node in after.functions[0].node}


def seek(before: ModelProto, most: int) -> list[Case]:
    drawer = Drawer(tuple(inputs(before.graph)), 0)
    counts = Counts(before, 0, most, more=True)
    return cases_by_count(counts, drawer, seconds=20, base_dir=None)


@pytest.mark.parametrize("most", [2, 7, 20])
def test_trip_counts_around_the_bound_are_found(most: int) -> None:
    counts = dict.fromkeys([0, 1, max(1, most // 2), most])
    labels = [f"{count} trip{'s' if count != 1 else ''}" for count in counts]
    may_not_start = as_model("""
<ir_version: 10, opset_import: ["" : 21]>
g (float[2] h, int64 m, bool start) => (float[2] y) {
   y = Loop <body = step (int64 i, bool go, float[2] s) => (bool on, float[2] t) {
      on = Identity (go) t = Add (s, s) }> (m, start, h)
}
""")
    for model in (may_not_start, unbounded()):
        found = [case.label for case in seek(model, most)]
        assert found == [*labels, f"more than {most} trips"]


def verdict(after: str, promised: ModelProto, check: str = "") -> tuple[str, str]:
    found = verify(
        as_model(FOR),
        as_model(after),
        executors=[ReferenceExecutor(keep=3)],
        promise=Promise([promised], check),
        sought=seek(as_model(FOR), 3),
    )
    return found.verdict, found.reason


def promised(most: int) -> ModelProto:
    """The loop, which fails where it would run more than `most` times."""
    model = Model(as_model(FOR))
    (rewritten,) = (
        Engine([rule_named("unroll")], None, RuleOptions(max_trips=most)).round(model).rewritten
    )
    limit = rewritten.limit
    assert limit is not None
    assert limit.promised is not None
    made = as_model(FOR)
    made.graph.node[0].CopyFrom(limit.promised)
    return made


#: `FOR`, which answers wrongly where the loop would run more than 3 times.
CUT_OFF = """
<ir_version: 10, opset_import: ["" : 21]>
g (float[2] h, int64 m) => (float[2] y) <int64 most = {3}> {
   less = Less (m, most)
   n = Where (less, m, most)
   y = Loop <body = step (int64 i, bool go, float[2] s) => (bool on, float[2] t) {
      on = Identity (go)
      t = Add (s, s)
   }> (n, "", h)
}
"""
#: `FOR`, which fails there.
GUARDED = """
<ir_version: 10, opset_import: ["" : 21]>
g (float[2] h, int64 m) => (float[2] y)
<int64 most = {3}, int64 zero = {0}, int64 one = {1}, int64[1] first = {0}> {
   more = Greater (m, most)
   at = Where (more, one, zero)
   n = Where (more, zero, m)
   a = Loop <body = step (int64 i, bool go, float[2] s) => (bool on, float[2] t) {
      on = Identity (go)
      t = Add (s, s)
   }> (n, "", h)
   row = Unsqueeze (a, first)
   y = Gather (row, at)
}
"""


def test_verification_takes_a_guard_where_the_promise_is_broken() -> None:
    assert verdict(GUARDED, promised(3))[0] == "verified"


def test_verification_finds_a_guard_that_fails_too_early() -> None:
    found, reason = verdict(changed(GUARDED, {"most = {3}": "most = {2}"}), promised(3))
    assert found == "mismatch"
    assert "the rewritten model fails" in reason


def test_verification_finds_a_wrong_answer_where_the_promise_is_broken() -> None:
    found, reason = verdict(CUT_OFF, promised(3))
    assert found == "mismatch"
    assert "y" in reason


def test_verification_finds_a_check_that_is_false_without_reason() -> None:
    after = """
<ir_version: 10, opset_import: ["" : 21]>
g (float[2] h, int64 m) => (float[2] y, bool enough)
<int64 most = {3}> {
   enough = Less (m, most) less = Less (m, most) n = Where (less, m, most)
   y = Loop <body = step (int64 i, bool go, float[2] s) => (bool on, float[2] t) {
      on = Identity (go) t = Add (s, s) }> (n, "", h)
}
"""
    found, reason = verdict(after, promised(3), "enough")
    assert found == "mismatch"
    assert "'enough' is false" in reason


def test_the_whole_model_is_compared_where_another_loop_stays() -> None:
    """Only the bounded loop may make the new model fail."""
    with pytest.raises(Mismatch, match="the rewritten model fails"):
        _wrong_session().run(as_model(FOR))


def _wrong_session() -> Session:
    class Wrong(Pass):
        def outcome(self, *arguments: Any) -> Outcome:
            made = super().outcome(*arguments)
            for node in made.proto.graph.node:
                if node.op_type == "Not":
                    node.op_type = "Identity"
            return made

    unroll = Wrong(SCHEDULES["unroll"], options=RuleOptions(max_trips=3))
    return Session([unroll], Verifying("reference"))


@pytest.mark.slow
def test_a_name_that_is_taken_is_wrong_usage(tmp_path: Path) -> None:
    model = tmp_path / "while.onnx"
    onnx.save(unbounded(), model)
    call = ["unroll", str(model), "--max-trips", "3", "--check-output"]
    done = CliRunner().invoke(app, [*call, "limit"])
    assert done.exit_code == 2
    assert "already" in done.output
    done = CliRunner().invoke(app, [*call, "enough", "--verify-budget", "60", "--opset", "21"])
    assert done.exit_code == 0, done.output
    names = [value.name for value in onnx.load(tmp_path / "while.unrolled.onnx").graph.output]
    assert names == ["y", "z", "c", "enough"]


@pytest.mark.parametrize(
    "options",
    [["--max-trips", "3", "--factor", "2"], ["--check-output", "x"], ["--max-trips", "0"]],
)
def test_options_that_do_not_go_together_are_wrong_usage(
    options: list[str], tmp_path: Path
) -> None:
    model = tmp_path / "while.onnx"
    onnx.save(unbounded(), model)
    assert CliRunner().invoke(app, ["unroll", str(model), *options]).exit_code == 2


def test_a_loop_without_an_end_is_not_bounded() -> None:
    text = """
<ir_version: 10, opset_import: ["" : 21]>
g (float[2] h, int64 m) => (float[2] y) {
   y = Loop <body = step (int64 i, bool go, float[2] s) => (bool on, float[2] t) {
      on = Identity (go) t = Add (s, s) }> ("", "", h)
}
"""
    (sentence,) = assert_refused(
        text, "trip-count-not-static", pipeline="unroll", options={"max_trips": 3}
    )
    assert sentence == "nothing ends the loop"


def test_the_check_of_loops_that_keep_every_promise_is_no_bool_constant_in_old_opsets() -> None:
    text = """<ir_version: 4, opset_import: ["" : 8]>
        g (float[2] h) => (float[2] y) <int64 trips = {2}> {
           y = Loop <body = step (int64 i, bool go, float[2] s) => (bool on, float[2] t) {
              on = Identity (go) t = Add (s, s) }> (trips, "", h) }"""
    options = {"max_trips": 2, "check_output": "enough"}
    model = assert_rewrite(text, pipeline="unroll", options=options).model
    assert [value.name for value in model.graph.output] == ["y", "enough"]
    assert [node.op_type for node in model.graph.node] == ["Add", "Add", "Constant", "Cast"]
