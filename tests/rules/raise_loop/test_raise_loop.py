"""raise-loop: trip counts, Loops at every place, and Loops as exporters write them."""

from __future__ import annotations

import time

import pytest
from raised_models import (
    SUMMING,
    SUMMING_M,
    nodes,
    raised,
    read,
    scan_of,
    with_constants,
    with_fixed_trips,
    with_inputs,
    with_trips,
)

from passes.commands.schedules import SCHEDULES
from passes.engine.outcome import Pass
from passes.session import Session
from passes.testing import as_model, assert_refused, assert_rewrite
from tests.written import changed


def test_reads_by_the_iteration_are_scanned() -> None:
    result = raised(SUMMING)
    assert len(nodes(result.model, "If")) == 1
    assert list(scan_of(result).input) == ["h0", "x"]


def test_a_static_trip_count_needs_no_if() -> None:
    result = raised(changed(SUMMING, {"float[T,3] x": "float[5,3] x"}))
    assert [node.op_type for node in result.model.graph.node] == ["Scan"]
    left = [tensor.name for tensor in result.model.graph.initializer]
    assert "zeros" not in left, "only the trip count read it"


def test_an_assumed_length_needs_no_if() -> None:
    result = raised(SUMMING, assume="non-empty")
    assert [node.op_type for node in result.model.graph.node] == ["Scan"]


@pytest.mark.parametrize("length", [1, 2, 5])
def test_fewer_iterations_than_elements_read_the_first(length: int) -> None:
    raised(changed(SUMMING_M, with_fixed_trips(length)))


def test_one_iteration_more_than_elements_is_refused() -> None:
    model = changed(SUMMING_M, with_fixed_trips(6))
    (sentence,) = assert_refused(model, "out-of-range", pipeline="raise")
    assert "'x' is read at i on axis 0, of size 5, in 6 iterations" in sentence


def test_one_iteration_less_than_elements_is_cut() -> None:
    result = raised(changed(SUMMING, with_trips("m = Sub (size, one)")))
    assert nodes(result.model, "Slice")
    assert not nodes(result.model, "Reshape"), "nothing to guard"


def test_one_iteration_more_than_symbolic_elements_is_refused() -> None:
    model = changed(SUMMING, with_trips("m = Add (size, one)"))
    assert_refused(model, "out-of-range", pipeline="raise")


def test_a_trip_count_that_may_exceed_gets_a_guard() -> None:
    assert nodes(raised(SUMMING_M).model, "Reshape")


def test_a_trip_count_of_one_element_may_be_a_vector() -> None:
    raised(changed(SUMMING_M, {"int64 m": "int64[1] m"}))


def test_a_loop_without_reads_scans_the_iteration_number() -> None:
    text = """
    <ir_version: 8, opset_import: ["" : 17]>
    loops (float[3] h0, int64 m) => (float[3] h_end)
    {
        h_end = Loop (m, "", h0) <body = step (int64 i, bool go, float[3] h)
            => (bool go_out, float[3] h_out) {
            go_out = Identity (go)
            h_out = Add (h, h)
        }>
    }
    """
    assert len(nodes(raised(text).model, "Range")) == 1
    raised(changed(text, {"ir_version: 8": "ir_version: 4", '"" : 17': '"" : 9'}))


@pytest.mark.parametrize("at_most", [0, -3])
def test_a_loop_that_never_runs_is_refused(at_most: int) -> None:
    model = changed(SUMMING_M, with_fixed_trips(at_most, "T"))
    assert_refused(model, "no-iteration", pipeline="raise")


def test_a_loop_without_end_is_refused() -> None:
    model = changed(SUMMING_M, {"float[T,3] x, int64 m": "float[T,3] x", "Loop (m": 'Loop (""'})
    assert_refused(model, "endless", pipeline="raise")


def test_a_condition_that_is_always_true_is_ignored() -> None:
    text = changed(SUMMING, {'Loop (m, ""': "Loop (m, yes"} | with_constants("bool yes = {1}"))
    raised(text)
    raised(changed(text, {"Identity (go)": "Constant <value = bool {1}> ()"}))


def test_an_initial_condition_decides_whether_the_loop_runs() -> None:
    started = {'Loop (m, ""': "Loop (m, start"} | with_inputs("bool start")
    raised(changed(SUMMING, started))


def test_a_computed_condition_is_refused() -> None:
    going = """enough = ReduceSum (x_t)
        zf = Constant <value = float {9}> ()
        flat = Squeeze (enough)
        go_out = Less (flat, zf)"""
    started = {'Loop (m, ""': "Loop (m, yes"} | with_constants("bool yes = {1}")
    computed = {"go_out = Identity (go)": "", "y = Tanh (h_out)": f"y = Tanh (h_out)  {going}"}
    model = changed(SUMMING, started | computed)
    assert_refused(model, "condition", pipeline="raise")


def test_an_omitted_condition_is_true_where_the_body_reads_it() -> None:
    body = "seen = Cast <to = 1> (go)\n slice = Gather (x, i)\n x_t = Mul (slice, seen)"
    raised(changed(SUMMING, read(body)))


def test_a_loop_in_a_loop_is_raised_with_it() -> None:
    model = """
    <ir_version: 8, opset_import: ["" : 17]>
    loops (float[T,S] x, float h0) => (float[N] z) <int64[1] zeros = {0}>
    {
        shape = Shape (x)
        m_1 = Gather (shape, zeros)
        m = Squeeze (m_1, zeros)
        z = Loop (m, "") <body = rows (int64 i, bool go) => (bool go_out, float y) {
            go_out = Identity (go)
            row = Gather (x, i)
            row_shape = Shape (row)
            n_1 = Gather (row_shape, zeros)
            n = Squeeze (n_1, zeros)
            y = Loop (n, "", h0) <body = inner (int64 j, bool on, float h)
                => (bool on_out, float k) {
                on_out = Identity (on)
                element = Gather (row, j)
                k = Add (h, element)
            }>
        }>
    }
    """
    assert len(nodes(raised(model).model, "Scan")) == 2


def test_a_loop_in_a_function_is_raised() -> None:
    model = """
    <ir_version: 8, opset_import: ["" : 17, "own" : 1]>
    calls (float[T,3] x, float[3] h0) => (float[3] y) { y = own.sum (x, h0) }
    <domain: "own", opset_import: ["" : 17]>
    sum (x, h0) => (y)
    {
        zeros = Constant <value_ints = [0]> ()
        shape = Shape (x)
        m_1 = Gather (shape, zeros)
        m = Squeeze (m_1, zeros)
        y = Loop (m, "", h0) <body = step (int64 i, bool go, float[3] h) => (bool on, float[3] k) {
            on = Identity (go)
            x_t = Gather (x, i)
            k = Add (h, x_t)
        }>
    }
    """
    raised(model)


def test_a_loop_that_stays_is_refused() -> None:
    body = "a = Gather (x, i)\n next = Add (i, one)\n b = Gather (x, next)\n x_t = Sub (b, a)"
    result = assert_rewrite(changed(SUMMING, read(body)), pipeline="raise")
    (refusal,) = result.report.refusals
    assert (refusal.rule, refusal.code) == ("raise-loop", "out-of-range")


def test_the_shape_of_a_buffer_may_be_asked_while_it_is_filled() -> None:
    text = """
    <ir_version: 8, opset_import: ["" : 17]>
    loops (float[T,3] x) => (float[T,3] a_end) <int64[1] zeros = {0}>
    {
        shape = Shape (x)
        m_1 = Gather (shape, zeros)
        m = Squeeze (m_1, zeros)
        a0 = ConstantOfShape (shape)
        a_end = Loop (m, "", a0) <body = step (int64 i, bool go, float[A,3] acc)
            => (bool go_out, float[B,3] acc_out) {
            go_out = Identity (go)
            x_t = Gather (x, i)
            old = Gather (acc, i)
            dims = Shape (old)
            y = Expand (x_t, dims)
            at = Unsqueeze (i, zeros)
            acc_out = ScatterND (acc, at, y)
        }>
    }
    """
    raised(text)
    y = {"y = Expand (x_t, dims)": "y_1 = Expand (x_t, dims)  y = Add (y_1, old)"}
    assert_refused(changed(text, y), "accumulator-read", pipeline="raise")


def test_a_trip_count_may_be_the_length_of_a_split_tensor() -> None:
    parts = with_trips("parts = SplitToSequence <axis = 0> (x)  m = SequenceLength (parts)")
    body = "part = SequenceAt (parts, i)\n x_t = Squeeze (part, zeros)"
    result = raised(changed(SUMMING, parts | read(body)))
    assert list(scan_of(result).input) == ["h0", "x"]


@pytest.mark.slow
def test_a_body_of_thousands_of_nodes_takes_seconds() -> None:
    chain = "\n".join(f"v{n + 1} = Add (v{n}, h)" for n in range(4000))
    model = as_model(
        changed(SUMMING, read(f"v0 = Gather (x, i)\n{chain}\n x_t = Identity (v4000)"))
    )
    started = time.monotonic()
    result = Session([Pass(SCHEDULES["raise"])], None).run(model)
    assert len(scan_of(result).input) == 2
    assert time.monotonic() - started < 20
