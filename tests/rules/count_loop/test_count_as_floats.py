"""count-loop: whole numbers that are compared as floats, as tf2onnx writes them."""

from __future__ import annotations

import itertools

import numpy as np
import onnx
import pytest
from test_count_loop import COUNTING, counted, only_counted, same, with_constants

from passes.testing import as_model, assert_refused, assert_rewrite
from passes.verify.executor import ModelFailed
from passes.verify.reference import ReferenceExecutor
from tests.written import changed

_LARGE = 1 << 20  # a step: sixteen of them, and floats no longer count one by one


#: A while loop that counts up to `n`, whose condition casts the counter and its bound to floats.
AS_FLOATS = """
<ir_version: 8, opset_import: ["" : 17]>
counts (int32 n) => (int32 c_end, float h_end, int32[K] all)
<int32 zero = {0}, int32 one = {1}, float f = {1}>
{
    start = Identity (zero)
    start_f = Cast <to = 1> (start)
    n_f = Cast <to = 1> (n)
    go0 = Less (start_f, n_f)
    c_end, h_end, all = Loop ("", go0, start, f) <body = step
        (int64 i, bool go, int32 c, float h)
        => (bool go_out, int32 c_out, float h_out, int32 seen) {
        c_out = Add (c, one)
        h_out = Add (h, f)
        seen = Identity (c)
        c_f = Cast <to = 1> (c_out)
        go_out = Less (c_f, n_f)
    }>
}
"""
OF_64_BITS = {"int32": "int64"}
FROM_S = {"Identity (zero)": "Identity (s)", "(int32 n)": "(int32 s, int32 n)"}


def with_fixed_bound(constant: str) -> str:
    """The loop with an initializer as its bound."""
    fixed = {"n_f = Cast <to = 1> (n)": "", "(int32 n)": "(float x)"}
    return changed(AS_FLOATS, fixed | with_constants(constant))


def loop_of(model: onnx.ModelProto) -> onnx.NodeProto:
    (loop,) = [node for node in model.graph.node if node.op_type == "Loop"]
    return loop


def guards_of(model: onnx.ModelProto) -> int:
    """How many guards a model holds: each is a Gather whose index may be out of range."""
    return [node.op_type for node in model.graph.node].count("Gather")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("initial", "condition", "step"),
    [
        ("Less (start_f, n_f)", "Less (c_f, n_f)", "one"),
        ("Greater (n_f, start_f)", "Greater (n_f, c_f)", "one"),
        ("Greater (start_f, n_f)", "Greater (c_f, n_f)", "down"),
        ("Less (n_f, start_f)", "Less (n_f, c_f)", "down"),
    ],
)
@pytest.mark.parametrize("to", [1, 11])
def test_every_comparison_in_both_orders(initial: str, condition: str, step: str, to: int) -> None:
    comparison = {
        "go0 = Less (start_f, n_f)": f"go0 = {initial}",
        "go_out = Less (c_f, n_f)": f"go_out = {condition}",
        "Add (c, one)": f"Add (c, {step})",
        "Cast <to = 1>": f"Cast <to = {to}>",
    }
    model = changed(AS_FLOATS, comparison | with_constants("int32 down = {-1}"))
    counted(model)
    for n in (-3, -1, 0, 1, 2, 6):
        same(model, dtype=np.int32, n=n)


@pytest.mark.slow
def test_counters_of_64_bits() -> None:
    model = changed(AS_FLOATS, OF_64_BITS)
    counted(model)
    for n in (-3, 0, 1, 6):
        same(model, n=n)


@pytest.mark.parametrize("constants", ["float n_f = {5}", "float n_f = {16777215}"])
def test_a_fixed_bound_needs_no_guard(constants: str) -> None:
    text = with_fixed_bound(constants)
    assert guards_of(only_counted(text)) == 0


def test_a_bound_that_is_no_whole_number_is_refused() -> None:
    text = with_fixed_bound("float n_f = {2.5}")
    assert_refused(text, "float-counter", pipeline="raise")


def test_a_start_that_is_not_fixed_needs_a_bound_that_is() -> None:
    text = changed(AS_FLOATS, FROM_S)
    assert_refused(text, "float-counter", pipeline="raise")
    downwards = {
        "Less (start_f, n_f)": "Greater (start_f, end)",
        "Less (c_f, n_f)": "Greater (c_f, end)",
        "Add (c, one)": "Add (c, down)",
    }
    constants = with_constants("float end = {-1}, int32 down = {-1}")
    down = changed(AS_FLOATS, FROM_S | downwards | constants)
    counted(down)
    for s in (-2, -1, 0, 3):
        same(down, dtype=np.int32, s=s, n=0)


# -- where floats no longer count one by one


def _end(text: str, *, after: bool, **values: int) -> int:
    """Where the counter ends, before or after counting."""
    model = only_counted(text) if after else as_model(text)
    feeds = {name: np.array(value) for name, value in values.items()}
    outcome = ReferenceExecutor().run(model, feeds)
    return int(np.asarray(outcome.outputs["c_end"]))


def test_a_count_that_floats_would_not_give_fails() -> None:
    large = f"int64 large = {{{_LARGE}}}"
    steps = {"Add (c, one)": "Add (c, large)"} | with_constants(large)
    text = changed(AS_FLOATS, OF_64_BITS | steps)
    n = (1 << 24) + 1  # rounds to 2^24
    assert _end(text, after=False, n=n) == 1 << 24  # whole numbers would go on once more
    with pytest.raises(ModelFailed):
        _end(text, after=True, n=n)
    for n in (0, 1, _LARGE, 5 * _LARGE + 1, 15 * _LARGE):
        assert _end(text, after=True, n=n) == _end(text, after=False, n=n)


def test_floats_that_are_exact_in_all_iterations_count_like_whole_numbers() -> None:
    """What the guard rests on: a number below the limit compares to any other as it ought to."""
    limit = 1 << 24
    counters = np.arange(limit - 40, limit, dtype=np.int64)
    others = np.array([*range(limit - 60, limit + 60), 1 << 25, (1 << 31) - 1, -limit, -limit - 1])
    for sign, other in itertools.product((1, -1), others):
        exact = (sign * counters) < other
        rounded = (sign * counters).astype(np.float32) < np.float32(other)
        np.testing.assert_array_equal(exact, rounded)


def test_the_guard_may_be_left_out() -> None:
    text = AS_FLOATS
    result = assert_rewrite(text, pipeline="raise", options={"assume": "valid-inputs"})
    assert guards_of(result.model) == 0
    assert guards_of(only_counted(text)) == 1


# -- a trip count beside the condition, as tf2onnx writes map_fn, scan and layers


#: A loop of m trips that compares the number of the iteration before a step, and the counter after.
LIMITED = """
<ir_version: 8, opset_import: ["" : 17]>
counts (int32 n) => (int32 c_end, float h_end, int32[K] all)
<int32 zero = {0}, int32 one = {1}, float f = {1}>
{
    start = Identity (zero)
    start_f = Cast <to = 1> (start)
    n_f = Cast <to = 1> (n)
    m = Cast <to = 7> (n)
    below = Less (start_f, n_f)
    go0 = And (below, below)
    c_end, h_end, all = Loop (m, go0, start, f) <body = step
        (int64 i, bool go, int32 c, float h)
        => (bool go_out, int32 c_out, float h_out, int32 seen) {
        c_out = Add (c, one)
        h_out = Add (h, f)
        seen = Identity (c)
        c_f = Cast <to = 1> (c_out)
        i_f = Cast <to = 1> (i)
        inside = Less (i_f, n_f)
        more = Less (c_f, n_f)
        go_out = And (more, inside)
    }>
}
"""


@pytest.mark.slow
def test_conditions_that_the_trip_count_implies_are_ignored() -> None:
    text = LIMITED
    model = only_counted(text)
    assert [node.op_type for node in model.graph.node].count("Less") == 1  # of the guard
    counted(text)
    for n in (-2, 0, 1, 4):
        same(text, dtype=np.int32, n=n)


@pytest.mark.slow
def test_a_loop_from_the_second_on_ends_one_earlier() -> None:
    """As foldl is written: the first row is where it starts."""
    from_one = {
        "Identity (zero)": "Identity (one)",
        "go0 = And (below, below)": """zero_f = Cast <to = 1> (zero)
    first = Less (zero_f, n_f)
    go0 = And (below, first)""",
    }
    text = changed(LIMITED, from_one)
    counted(text)
    for n in (-1, 0, 1, 2, 5):
        same(text, dtype=np.int32, n=n)


def test_conditions_that_end_earlier_than_the_trip_count_do() -> None:
    text = changed(
        LIMITED, {"Cast <to = 1> (n)": "Cast <to = 1> (k)", "(int32 n)": "(int32 n, int32 k)"}
    )
    counted(text)
    for n, k in itertools.product([-1, 0, 2, 5], [-2, 0, 1, 4]):
        same(text, dtype=np.int32, n=n, k=k)


def test_a_fixed_trip_count_needs_no_guard() -> None:
    fixed = {"m = Cast <to = 7> (n)": ""} | with_constants("int64 m = {4}")
    text = changed(LIMITED, fixed)
    assert guards_of(only_counted(text)) == 0
    for n in (-1, 0, 2, 9):
        same(text, dtype=np.int32, n=n)


@pytest.mark.slow
def test_a_step_may_be_carried_unchanged() -> None:
    """As a loop over a range is written, which carries its delta."""
    text = """
    <ir_version: 8, opset_import: ["" : 17]>
    counts (int32 n) => (int32 c_end, float h_end, int32[K] all)
    <int32 zero = {0}, int32 one = {1}, float f = {1}>
    {
        start = Identity (zero)
        start_f = Cast <to = 1> (start)
        n_f = Cast <to = 1> (n)
        go0 = Less (start_f, n_f)
        c_end, h_end, d_end, all = Loop ("", go0, start, f, one) <body = step
            (int64 i, bool go, int32 c, float h, int32 d)
            => (bool go_out, int32 c_out, float h_out, int32 d_out, int32 seen) {
            c_out = Add (c, d)
            h_out = Add (h, f)
            seen = Identity (c)
            c_f = Cast <to = 1> (c_out)
            d_out = Identity (d)
            go_out = Less (c_f, n_f)
        }>
    }
    """
    counted(text)
    for n in (-1, 0, 3):
        same(text, dtype=np.int32, n=n)


BY_FLOATS = """
    f_c = Cast <to = 1> (c)
    f_m = Mul (f_c, f)
    f_n = Add (f_m, f)
    c_out = Cast <to = 7> (f_n)
"""


def by_floats(start: int) -> str:
    """A loop whose counter takes its step as a float, as paddle writes it."""
    from_s = {"Identity (zero)": "Identity (s)"} | with_constants(f"int64 s = {{{start}}}")
    return changed(COUNTING, from_s | {"c_out = Add (c, one)": BY_FLOATS})


@pytest.mark.parametrize("start", [-3, 0, (1 << 24) - 3])
def test_a_step_by_floats_counts_up_to_where_they_round(start: int) -> None:
    for n in range(start - 1, start + 4):
        same(by_floats(start), n=n)


def test_a_step_by_floats_fails_where_the_counter_would_stand_still() -> None:
    text = by_floats((1 << 24) - 3)
    with pytest.raises(ModelFailed):
        ReferenceExecutor().run(only_counted(text), {"n": np.array((1 << 24) + 1)})


def test_a_step_by_floats_is_followed_only_where_it_is_known_to_be_exact() -> None:
    """With M, too: what the loop counts beyond 2^24 is no sum of the trips."""
    rows = """
    <ir_version: 8, opset_import: ["" : 17]>
    rows (float[T,3] x, float[3] h0, int64 m) => (float[3] h_end)
    <int64 zero = {0}, float f = {1}, bool yes = {1}>
    {
        c_end, h_end = Loop (m, yes, zero, h0) <body = step (int64 i, bool go, int64 c, float[3] h)
            => (bool go_out, int64 c_out, float[3] h_out) {
            go_out = Identity (go)
            row = Gather (x, c)
            h_out = Add (h, row)
            STEP
        }>
    }
    """.replace("STEP", BY_FLOATS)
    assert _reads_one_by_one(assert_rewrite(rows, pipeline="raise").model)
    fixed = rows.replace("int64 m) =>", "int64 other) =>")
    fixed = fixed.replace("int64 zero", "int64 m = {4}, int64 zero")
    assert not _reads_one_by_one(assert_rewrite(fixed, pipeline="raise").model)


def _reads_one_by_one(model: onnx.ModelProto) -> bool:
    """Whether a body reads rows by the counter, which a Scan does not need."""
    graphs = [model.graph]
    for graph in graphs:
        entries = [entry for node in graph.node for entry in node.attribute]
        graphs += [entry.g for entry in entries if entry.HasField("g")]
    return any(list(node.input) == ["x", "c"] for graph in graphs for node in graph.node)
