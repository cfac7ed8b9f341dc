"""count-loop: while loops that become for loops, and those whose trip count cannot be proven."""

from __future__ import annotations

import itertools

import numpy as np
import onnx
import pytest
from raised_models import nodes

from passes.engine.rewriting import Engine
from passes.ir.model import Model
from passes.rule import rule_named
from passes.testing import as_model, assert_refused, assert_rewrite
from passes.verify.executor import ModelFailed
from passes.verify.reference import ReferenceExecutor
from tests.written import changed

pytestmark = pytest.mark.sampled


#: A while loop that counts up to `n`, doubles a number and collects the counter.
COUNTING = """
<ir_version: 8, opset_import: ["" : 17]>
counts (int64 n) => (int64 c_end, float h_end, int64[K] all)
<int64 zero = {0}, int64 one = {1}, float f = {1}>
{
    start = Identity (zero)
    go0 = Less (start, n)
    c_end, h_end, all = Loop ("", go0, start, f) <body = step
        (int64 i, bool go, int64 c, float h)
        => (bool go_out, int64 c_out, float h_out, int64 seen) {
        c_out = Add (c, one)
        h_out = Add (h, f)
        seen = Identity (c)
        go_out = Less (c_out, n)
    }>
}
"""
INITIAL, CONDITION = "go0 = Less (start, n)", "go_out = Less (c_out, n)"
#: The same from `s` on.
FROM_S = changed(COUNTING, {"(int64 n)": "(int64 s, int64 n)", "Identity (zero)": "Identity (s)"})
UP_TO_M_TIMES = {"int64 n)": "int64 n, int64 m)", 'Loop ("", go0': "Loop (m, go0"}
LESS_OR_EQUAL = {
    INITIAL: "go0 = LessOrEqual (start, n)",
    CONDITION: "go_out = LessOrEqual (c_out, n)",
}


def with_constants(constants: str) -> dict[str, str]:
    """A change of `COUNTING` that declares more initializers."""
    return {"float f = {1}": f"float f = {{1}}, {constants}"}


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
    (round_, *_) = Engine([rule_named("count-loop")]).fixpoint(Model.load(as_model(text)))
    assert len(round_.rewritten) == 1, [refusal.reason for refusal in round_.refused]
    return round_.proto


def test_a_while_becomes_a_for() -> None:
    model = only_counted(COUNTING)
    (loop,) = [node for node in model.graph.node if node.op_type == "Loop"]
    assert list(loop.input[:2]) == ["n", ""]
    counted(COUNTING)


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
STEPS = with_constants("int64 step = {3}, int64 down = {-2}")


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
    compared = {INITIAL: f"go0 = {initial}", CONDITION: condition, "(c, one)": f"(c, {step})"}
    model = changed(FROM_S, compared | STEPS)
    counted(model)
    for s, n in itertools.product([-4, -1, 0, 3, 7], [-3, 0, 1, 2, 6]):
        same(model, s=s, n=n)


@pytest.mark.slow
@pytest.mark.parametrize("condition", ["Less (c, n)", "Less (c_out, n)", "LessOrEqual (i, n)"])
@pytest.mark.parametrize("initial", ["Identity (yes)", "Identity (given)", "Less (start, n)"])
def test_the_first_iteration_is_up_to_the_initial_condition(condition: str, initial: str) -> None:
    compared = {INITIAL: f"go0 = {initial}", CONDITION: f"go_out = {condition}"}
    compared |= {"int64 n)": "int64 n, bool given)"} | with_constants("bool yes = {1}")
    model = changed(COUNTING, compared)
    counted(model)
    for n, given in itertools.product([-2, 0, 1, 2, 5], [False, True]):
        same(model, n=n, given=given)


@pytest.mark.parametrize("m", [-1, 0, 1, 3, 9])
def test_trip_count_and_condition_give_the_minimum(m: int) -> None:
    model = changed(COUNTING, UP_TO_M_TIMES)
    counted(model)
    for n in (-1, 0, 2, 9):
        same(model, n=n, m=m)


TWO_BOUNDS = """
<ir_version: 8, opset_import: ["" : 17]>
counts (int64 n, int64 k) => (int64 c_end, float h_end, int64[K] all)
<int64 zero = {0}, int64 one = {1}, float f = {1}>
{
    start = Identity (zero)
    a0 = Less (start, n)
    b0 = GreaterOrEqual (k, start)
    go0 = And (b0, a0)
    c_end, h_end, all = Loop ("", go0, start, f) <body = step
        (int64 i, bool go, int64 c, float h)
        => (bool go_out, int64 c_out, float h_out, int64 seen) {
        c_out = Add (c, one)
        h_out = Add (h, f)
        seen = Identity (c)
        a = Less (c_out, n)
        b = GreaterOrEqual (k, c_out)
        go_out = And (a, b)
    }>
}
"""


def test_several_comparisons_must_all_hold() -> None:
    for n, k in itertools.product([-1, 0, 2, 5], [-2, 0, 1, 4]):
        same(TWO_BOUNDS, n=n, k=k)


@pytest.mark.slow  # bounds near 2**62 take the loop up to the time limit
def test_several_comparisons_are_verified() -> None:
    counted(TWO_BOUNDS)


def test_a_part_of_the_condition_that_is_always_true_is_ignored() -> None:
    both = {CONDITION: "a = Less (c_out, n)  b = And (go, yes)  go_out = And (a, b)"}
    counted(changed(COUNTING, both | with_constants("bool yes = {1}")))


def test_a_condition_that_is_always_true_is_dropped() -> None:
    counted("""
    <ir_version: 8, opset_import: ["" : 17]>
    counts (int64 n, bool given) => (int64 c_end, float h_end, int64[K] all)
    <int64 zero = {0}, int64 one = {1}, float f = {1}, bool yes = {1}>
    {
        start = Identity (zero)
        go0 = Identity (given)
        c_end, h_end, all = Loop (n, go0, start, f) <body = step
            (int64 i, bool go, int64 c, float h)
            => (bool go_out, int64 c_out, float h_out, int64 seen) {
            c_out = Add (c, one)
            h_out = Add (h, f)
            seen = Identity (c)
            go_out = And (go, yes)
        }>
    }
    """)


def test_a_bound_may_be_a_size_that_the_body_reads() -> None:
    counted("""
    <ir_version: 8, opset_import: ["" : 17]>
    counts (float[T] x) => (int64 c_end, float h_end, int64[K] all)
    <int64 zero = {0}, int64 one = {1}, float f = {1}, bool yes = {1}, int64[1] zeros = {0}>
    {
        start = Identity (zero)
        go0 = Identity (yes)
        c_end, h_end, all = Loop ("", go0, start, f) <body = step
            (int64 i, bool go, int64 c, float h)
            => (bool go_out, int64 c_out, float h_out, int64 seen) {
            c_out = Add (c, one)
            h_out = Add (h, f)
            seen = Identity (c)
            shape = Shape (x)
            size_1 = Gather (shape, zeros)
            size = Squeeze (size_1, zeros)
            last = Sub (size, one)
            go_out = Less (c_out, last)
        }>
    }
    """)


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
    head = {
        'ir_version: 8, opset_import: ["" : 17]': f'ir_version: 4, opset_import: ["" : {opset}]'
    }
    model = changed(FROM_S, {"(c, one)": "(c, step)"} | STEPS | head)
    counted(model)


OF_32_BITS = {"int64": "int32", "(int64 i,": "(int64 i,"}


def test_counters_of_32_bits() -> None:
    model = changed(COUNTING, OF_32_BITS)
    counted(model)
    for n in (-1, 0, 3):
        same(model, dtype=np.int32, n=n)


# -- a counter that would wrap


def test_a_counter_at_the_end_of_its_type_fails_where_it_never_ended() -> None:
    model = only_counted(changed(FROM_S, LESS_OR_EQUAL))
    most = np.iinfo(np.int64).max
    feeds = {"s": np.array(most - 2), "n": np.array(most)}
    with pytest.raises(ModelFailed):
        ReferenceExecutor().run(model, feeds)
    feeds["n"] = np.array(most - 1)
    outcome = ReferenceExecutor().run(model, feeds)
    assert int(np.asarray(outcome.outputs["c_end"])) == most


def test_a_counter_at_the_end_of_its_type_runs_as_often_as_it_may() -> None:
    text = changed(FROM_S, LESS_OR_EQUAL | UP_TO_M_TIMES)
    most = np.iinfo(np.int64).max
    same(text, s=most - 2, n=most, m=5)
    same(text, s=most - 2, n=most - 1, m=5)
    same(text, s=-most, n=most, m=3)
    same(text, s=most, n=-most, m=3)


def test_a_fixed_counter_that_wraps_before_a_bound_that_is_not_the_largest_is_refused() -> None:
    text = """
    <ir_version: 8, opset_import: ["" : 17]>
    counts () => (int64 c_end, float h_end, int64[K] all)
    <int64 big = {9223372036854775800}, int64 n = {9223372036854775806}, int64 step = {4},
     float f = {1}>
    {
        start = Identity (big)
        go0 = Less (start, n)
        c_end, h_end, all = Loop ("", go0, start, f) <body = step
            (int64 i, bool go, int64 c, float h)
            => (bool go_out, int64 c_out, float h_out, int64 seen) {
            c_out = Add (c, step)
            h_out = Add (h, f)
            seen = Identity (c)
            go_out = Less (c_out, n)
        }>
    }
    """
    assert_refused(text, "overflow", pipeline="raise")


def test_a_step_that_may_wrap_in_32_bits_is_refused() -> None:
    by_two = changed(COUNTING, {"(c, one)": "(c, step)"} | with_constants("int64 step = {2}"))
    assert_refused(changed(by_two, OF_32_BITS), "overflow", pipeline="raise")


# -- refusals


@pytest.mark.parametrize(
    ("condition", "code"),
    [
        ("still = Sub (c, c)  go_out = Less (still, n)", "step"),
        ("go_out = Less (h_out, x)", "float-counter"),
        ("bound = Cast <to = 7> (h)  go_out = Less (c_out, bound)", "bound-varies"),
    ],
)
def test_a_condition_that_does_not_bound_the_counter_is_refused(condition: str, code: str) -> None:
    text = changed(COUNTING, {CONDITION: condition, "int64 n)": "int64 n, float x)"})
    assert_refused(text, code, pipeline="raise")


@pytest.mark.parametrize("first", [0.0, 0.1, 2.5])
def test_a_float_counter_with_fixed_numbers_is_counted_as_it_rounds(first: float) -> None:
    text = """
    <ir_version: 8, opset_import: ["" : 17]>
    counts (bool given) => (int64 c_end, float h_end, int64[K] all)
    <int64 zero = {0}, int64 one = {1}, float f = {FIRST}, float most = {1.0}, float tenth = {0.1}>
    {
        start = Identity (zero)
        go0 = Identity (given)
        c_end, h_end, all = Loop ("", go0, start, f) <body = step
            (int64 i, bool go, int64 c, float h)
            => (bool go_out, int64 c_out, float h_out, int64 seen) {
            c_out = Add (c, one)
            h_out = Add (h, tenth)
            seen = Identity (c)
            go_out = Less (h_out, most)
        }>
    }
    """
    model = changed(text, {"FIRST": str(first)})
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


def test_a_bound_that_the_body_reads_of_a_row_is_read_before_the_loop() -> None:
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
    model = """
    <ir_version: 8, opset_import: ["" : 17]>
    counts (int64 n) => (int64 c_end, float h_end, int64[K] all)
    <int64 zero = {0}, int64 one = {1}, float f = {1}, bool always = {1}>
    {
        start = Identity (zero)
        c_end, h_end, all = Loop (n, "", start, f) <body = step
            (int64 i, bool go, int64 c, float h)
            => (bool go_out, int64 c_out, float h_out, int64 seen) {
            c_out = Add (c, one)
            h_out = Add (h, f)
            seen = Identity (c)
            go_out = Identity (always)
        }>
    }
    """
    report = Engine([rule_named("count-loop")]).round(Model(as_model(model)))
    assert not report.rewritten
    assert not report.refused
