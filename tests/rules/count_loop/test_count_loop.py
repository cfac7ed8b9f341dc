"""The rule count-loop: whiles that become fors, and those that do not for want of a proof."""

from __future__ import annotations

import itertools

import numpy as np
import onnx
import pytest
from raised_models import nodes

from passes.engine.fixpoint import Engine
from passes.engine.plugins import rule
from passes.ir.model import Model
from passes.testing import as_model, assert_refused, assert_rewrite
from passes.verify.executor import ModelFailed
from passes.verify.reference import ReferenceExecutor

pytestmark = pytest.mark.sampled


def counting(
    start: str = "zero",
    initial: str = "go0 = Less (start, n)",
    step: str = "one",
    condition: str = "go_out = Less (c_out, n)",
    *,
    inputs: str = "int64 n",
    trips: str = '""',
    integer: str = "int64",
    constants: str = "",
    going: str = "go0",
    body: str = "",
    opset: int = 17,
    ir_version: int = 8,
) -> str:
    """A while loop that counts, doubles a number and collects the counter."""
    fixed = ", ".join(
        filter(None, [f"{integer} zero = {{0}}, {integer} one = {{1}}", "float f = {1}", constants])
    )
    return f"""
    <ir_version: {ir_version}, opset_import: ["" : {opset}]>
    counts ({inputs}) => ({integer} c_end, float h_end, {integer}[K] all)
    <{fixed}>
    {{
        start = Identity ({start})
        {initial}
        c_end, h_end, all = Loop ({trips}, {going}, start, f) <body = step
            (int64 i, bool go, {integer} c, float h)
            => (bool go_out, {integer} c_out, float h_out, {integer} seen) {{
            c_out = Add (c, {step})
            h_out = Add (h, f)
            seen = Identity (c)
            {body}
            {condition}
        }}>
    }}
    """


def counted(model: str | onnx.ModelProto) -> onnx.ModelProto:
    """Count the loop of a model, verified; the loop has no condition then."""
    result = assert_rewrite(model, pipeline="raise")
    assert "count-loop" in {record.rule for record in result.report.records}, (
        result.report.to_text()
    )
    assert result.report.refusals == [], result.report.to_text()
    return result.model


def only_counted(text: str) -> onnx.ModelProto:
    """The outcome of count-loop alone, not verified."""
    (round_, *_) = Engine([rule("count-loop")]).fixpoint(Model.load(as_model(text)))
    assert len(round_.rewritten) == 1, [refusal.reason for refusal in round_.refused]
    return round_.proto


def test_a_while_becomes_a_for() -> None:
    model = only_counted(counting())
    (loop,) = [node for node in model.graph.node if node.op_type == "Loop"]
    assert list(loop.input[:2]) == ["n", ""]
    counted(counting())


COMPARED = [
    ("Less (start, n)", "Less (c_out, n)", "one"),
    ("LessOrEqual (start, n)", "LessOrEqual (c_out, n)", "one"),
    ("Greater (n, start)", "Greater (n, c_out)", "one"),
    ("GreaterOrEqual (n, start)", "GreaterOrEqual (n, c_out)", "one"),
    ("Less (start, n)", "Less (c_out, n)", "step"),
    ("LessOrEqual (start, n)", "LessOrEqual (c_out, n)", "step"),
    ("Greater (start, n)", "Greater (c_out, n)", "down"),
    ("GreaterOrEqual (start, n)", "GreaterOrEqual (c_out, n)", "down"),
    ("Less (n, start)", "Less (n, c_out)", "down"),
    ("LessOrEqual (n, start)", "LessOrEqual (n, c_out)", "down"),
]
STEPS = "int64 step = {3}, int64 down = {-2}"


@pytest.mark.slow
@pytest.mark.parametrize(("initial", "condition", "step"), COMPARED)
@pytest.mark.parametrize("negated", [False, True])
def test_every_comparison_in_both_orders(
    initial: str, condition: str, step: str, negated: bool
) -> None:
    if negated:
        opposite = {"LessOrEqual": "Greater", "Less": "GreaterOrEqual"}
        opposite |= {"GreaterOrEqual": "Less", "Greater": "LessOrEqual"}
        op, _, operands = condition.partition(" ")
        condition = f"stop = {opposite[op]} {operands}\n go_out = Not (stop)"
    else:
        condition = f"go_out = {condition}"
    model = counting(
        "s", f"go0 = {initial}", step, condition, inputs="int64 s, int64 n", constants=STEPS
    )
    counted(model)
    for s, n in itertools.product([-4, -1, 0, 3, 7], [-3, 0, 1, 2, 6]):
        same(model, s=s, n=n)


@pytest.mark.slow
@pytest.mark.parametrize("condition", ["Less (c, n)", "Less (c_out, n)", "LessOrEqual (i, n)"])
@pytest.mark.parametrize("initial", ["Identity (yes)", "Identity (given)", "Less (start, n)"])
def test_the_first_iteration_is_up_to_the_initial_condition(condition: str, initial: str) -> None:
    model = counting(
        initial=f"go0 = {initial}",
        condition=f"go_out = {condition}",
        inputs="int64 n, bool given",
        constants="bool yes = {1}",
    )
    counted(model)
    for n, given in itertools.product([-2, 0, 1, 2, 5], [False, True]):
        same(model, n=n, given=given)


@pytest.mark.parametrize("m", [-1, 0, 1, 3, 9])
def test_trip_count_and_condition_give_the_minimum(m: int) -> None:
    model = counting(trips="m", inputs="int64 n, int64 m")
    counted(model)
    for n in (-1, 0, 2, 9):
        same(model, n=n, m=m)


def of_two_bounds() -> str:
    return counting(
        initial="a0 = Less (start, n)\n b0 = GreaterOrEqual (k, start)\n go0 = And (b0, a0)",
        condition="a = Less (c_out, n)\n b = GreaterOrEqual (k, c_out)\n go_out = And (a, b)",
        inputs="int64 n, int64 k",
    )


def test_several_comparisons_must_all_hold() -> None:
    for n, k in itertools.product([-1, 0, 2, 5], [-2, 0, 1, 4]):
        same(of_two_bounds(), n=n, k=k)


@pytest.mark.slow  # bounds near 2**62 take the loop up to the time limit
def test_several_comparisons_are_verified() -> None:
    counted(of_two_bounds())


def test_what_is_known_to_be_true_does_not_matter() -> None:
    both = "a = Less (c_out, n)\n b = And (go, yes)\n go_out = And (a, b)"
    counted(counting(condition=both, constants="bool yes = {1}"))


def test_a_condition_that_is_always_true_is_dropped() -> None:
    counted(
        counting(
            initial="go0 = Identity (given)",
            condition="go_out = And (go, yes)",
            trips="n",
            inputs="int64 n, bool given",
            constants="bool yes = {1}",
        )
    )


def test_a_bound_may_be_a_size_that_the_body_reads() -> None:
    model = counting(
        initial="go0 = Identity (yes)",
        body="shape = Shape (x)\n size_1 = Gather (shape, zeros)\n size = Squeeze (size_1, zeros)\n"
        "last = Sub (size, one)",
        condition="go_out = Less (c_out, last)",
        inputs="float[T] x",
        constants="bool yes = {1}, int64[1] zeros = {0}",
    )
    counted(model)


def test_a_bound_may_be_carried_unchanged() -> None:
    counted("""
    <ir_version: 8, opset_import: ["" : 17]>
    counts (int64 n) => (int64 c_end, float h_end, int64[K] all)
    <int64 zero = {0}, int64 one = {1}, float f = {1}>
    {
        start = Identity (zero)
        go0 = Less (start, n)
        c_end, h_end, n_end, all = Loop ("", go0, start, f, n) <body = step
            (int64 i, bool go, int64 c, float h, int64 b)
            => (bool go_out, int64 c_out, float h_out, int64 b_out, int64 seen) {
            c_out = Add (c, one)
            h_out = Add (h, f)
            seen = Identity (c)
            go_out = Less (c_out, b)
            b_out = Identity (b)
        }>
    }
    """)


def test_a_body_may_read_its_condition() -> None:
    counted("""
    <ir_version: 8, opset_import: ["" : 17]>
    counts (int64 n) => (int64 c_end, float h_end, int64[K] all)
    <int64 zero = {0}, int64 one = {1}, float f = {1}>
    {
        start = Identity (zero)
        go0 = Less (start, n)
        c_end, h_end, all = Loop ("", go0, start, f) <body = step
            (int64 i, bool go, int64 c, float h)
            => (bool go_out, int64 c_out, float h_out, int64 seen) {
            going = Cast <to = 1> (go)
            c_out = Add (c, one)
            h_out = Add (h, going)
            seen = Identity (c)
            go_out = Less (c_out, n)
        }>
    }
    """)


@pytest.mark.parametrize("opset", [9, 11, 13, 21])
def test_older_and_newer_opsets(opset: int) -> None:
    model = counting(
        "s",
        "go0 = Less (start, n)",
        "step",
        inputs="int64 s, int64 n",
        constants=STEPS,
        opset=opset,
        ir_version=4,
    )
    counted(model)


def test_counters_of_32_bits() -> None:
    model = counting(integer="int32", inputs="int32 n")
    counted(model)
    for n in (-1, 0, 3):
        same(model, dtype=np.int32, n=n)


# -- a counter that would wrap


def test_a_counter_at_the_end_of_its_type_fails_where_it_never_ended() -> None:
    model = only_counted(
        counting(
            "s",
            "go0 = LessOrEqual (start, n)",
            condition="go_out = LessOrEqual (c_out, n)",
            inputs="int64 s, int64 n",
        )
    )
    most = np.iinfo(np.int64).max
    feeds = {"s": np.array(most - 2), "n": np.array(most)}
    with pytest.raises(ModelFailed):
        ReferenceExecutor().run(model, feeds)
    feeds["n"] = np.array(most - 1)
    outcome = ReferenceExecutor().run(model, feeds)
    assert int(np.asarray(outcome.outputs["c_end"])) == most


def test_a_counter_at_the_end_of_its_type_runs_as_often_as_it_may() -> None:
    text = counting(
        "s",
        "go0 = LessOrEqual (start, n)",
        condition="go_out = LessOrEqual (c_out, n)",
        trips="m",
        inputs="int64 s, int64 n, int64 m",
    )
    most = np.iinfo(np.int64).max
    same(text, s=most - 2, n=most, m=5)
    same(text, s=most - 2, n=most - 1, m=5)
    same(text, s=-most, n=most, m=3)
    same(text, s=most, n=-most, m=3)


@pytest.mark.parametrize("n", [9223372036854775807, 9223372036854775806])
def test_a_fixed_counter_that_wraps_is_refused(n: int) -> None:
    fixed = f"int64 n = {{{n}}}, int64 big = {{9223372036854775800}}, int64 step = {{4}}"
    model = counting("big", "go0 = Less (start, n)", "step", inputs="int64 unused", constants=fixed)
    assert_refused(model, "overflow", pipeline="raise")


def test_a_step_that_may_wrap_in_32_bits_is_refused() -> None:
    model = counting(step="step", integer="int32", inputs="int32 n", constants="int32 step = {2}")
    assert_refused(model, "overflow", pipeline="raise")


# -- refusals


@pytest.mark.parametrize(
    ("condition", "code"),
    [
        ("go_out = Greater (c_out, n)", "step"),
        ("still = Sub (c, c)\n go_out = Less (still, n)", "step"),
        ("far = Less (c_out, n)\n near = Less (h_out, f)\n go_out = Or (far, near)", "comparison"),
        ("same = Equal (c_out, n)\n go_out = Not (same)", "comparison"),
        ("go_out = Less (h_out, x)", "float-counter"),
        ("twice = Mul (c, c)\n go_out = Less (twice, n)", "no-counter"),
        ("more = Mul (c, n)\n go_out = Less (c_out, more)", "bound-varies"),
        ("bound = Cast <to = 7> (h)\n go_out = Less (c_out, bound)", "bound-varies"),
    ],
)
def test_a_condition_that_does_not_tell_is_refused(condition: str, code: str) -> None:
    model = counting(condition=condition, inputs="int64 n, float x")
    assert_refused(model, code, pipeline="raise")


def test_a_step_of_zero_is_refused() -> None:
    assert_refused(counting(step="zero"), "step", pipeline="raise")


def test_a_loop_that_nothing_ends_is_refused() -> None:
    model = counting(condition="go_out = And (go, yes)", constants="bool yes = {1}")
    assert_refused(model, "endless", pipeline="raise")


@pytest.mark.parametrize("first", [0.0, 0.1, 2.5])
def test_a_float_counter_whose_numbers_are_fixed_is_counted_as_it_rounds(first: float) -> None:
    model = f"""
    <ir_version: 8, opset_import: ["" : 17]>
    counts (bool given) => (int64 c_end, float h_end, int64[K] all)
    <int64 zero = {{0}}, int64 one = {{1}}, float f = {{{first}}},
     float most = {{1.0}}, float tenth = {{0.1}}>
    {{
        start = Identity (zero)
        go0 = Identity (given)
        c_end, h_end, all = Loop ("", go0, start, f) <body = step
            (int64 i, bool go, int64 c, float h)
            => (bool go_out, int64 c_out, float h_out, int64 seen) {{
            c_out = Add (c, one)
            h_out = Add (h, tenth)
            seen = Identity (c)
            go_out = Less (h_out, most)
        }}>
    }}
    """
    counted(model)
    same(model, given=True)
    same(model, given=False)


def same(text: str, *, dtype: type = np.int64, **values: int | bool) -> None:
    """Run a model before and after counting on these inputs."""
    before, after = as_model(text), only_counted(text)
    feeds = {
        name: np.array(value) if isinstance(value, bool) else np.array(value, dtype)
        for name, value in values.items()
    }
    feeds = {name: value for name, value in feeds.items() if name in _inputs(before)}
    one, other = (ReferenceExecutor().run(model, feeds) for model in (before, after))
    for left, right in zip(one.outputs.values(), other.outputs.values(), strict=True):
        np.testing.assert_array_equal(np.asarray(left), np.asarray(right))


def _inputs(model: onnx.ModelProto) -> set[str]:
    return {value.name for value in model.graph.input}


def test_a_bound_that_the_body_reads_off_a_row_is_read_off_it_in_front() -> None:
    """The row is as long as another axis of what it is read from, which the loop does not read."""
    model = """
    <ir_version: 8, opset_import: ["" : 17]>
    rows (float[B,T,3] x) => (float[K,3] y)
    <int64[1] zero = {0}, float[3] h0 = {1,2,3}, int64 nought = {0}, int64 one = {1}>
    {
        first = Shape <start = 0, end = 1> (x)
        n = Squeeze (first, zero)
        y = Loop (n, "") <body = each (int64 now, bool go) => (bool on, float[3] last) {
            on = Identity (go)
            x_b = Gather (x, now)
            size = Shape <start = 0, end = 1> (x_b)
            many = Squeeze (size, zero)
            start = Less (nought, many)
            unread, last = Loop ("", start, nought, h0) <body = step
                (int64 i, bool go_in, int64 k, float[3] h)
                => (bool more, int64 k_out, float[3] h_out) {
                k_out = Add (k, one)
                bound = Shape <start = 0, end = 1> (x_b)
                m = Squeeze (bound, zero)
                more = Less (k_out, m)
                x_t = Gather (x_b, k)
                h_out = Add (h, x_t)
            }>
        }>
    }
    """
    made = counted(model)
    assert not nodes(made, "Loop")
    assert not nodes(made, "Where")


def test_a_loop_that_only_its_trip_count_ends_is_counted_already() -> None:
    model = counting(
        initial="",
        condition="go_out = Identity (always)",
        trips="n",
        going='""',
        constants="bool always = {1}",
    )
    report = Engine([rule("count-loop")]).round(Model(as_model(model)))
    assert not report.rewritten
    assert not report.refused
