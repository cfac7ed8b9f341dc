"""The rule raise-loop: trip counts, where Loops stand, and how exporters write them."""

from __future__ import annotations

import time

import pytest
from raised_models import loop, nodes, raised, scan_of, summing, trips_of

from passes.choices import RuleOptions
from passes.engine.schedules import SCHEDULES
from passes.session import Session
from passes.testing import as_model, assert_refused, assert_rewrite


def test_reads_by_the_iteration_are_scanned() -> None:
    result = raised(summing("x_t = Gather (x, i)"))
    assert len(nodes(result.model, "If")) == 1
    assert list(scan_of(result).input) == ["h0", "x"]


def test_a_static_trip_count_needs_no_if() -> None:
    result = raised(summing("x_t = Gather (x, i)", "float[5,3] x"))
    assert [node.op_type for node in result.model.graph.node] == ["Scan"]
    left = [tensor.name for tensor in result.model.graph.initializer]
    assert "zeros" not in left, "only the trip count read it"


def test_an_assumed_length_needs_no_if() -> None:
    result = raised(summing("x_t = Gather (x, i)"), assume="non-empty")
    assert [node.op_type for node in result.model.graph.node] == ["Scan"]


@pytest.mark.parametrize("length", [1, 2, 5])
def test_fewer_iterations_than_elements_read_the_first(length: int) -> None:
    fixed = f"int64 m = {{{length}}}"
    raised(summing("x_t = Gather (x, i)", "float[5,3] x", before="", constants=fixed))


def test_one_iteration_more_than_elements_is_refused() -> None:
    fixed = "int64 m = {6}"
    model = summing("x_t = Gather (x, i)", "float[5,3] x", before="", constants=fixed)
    (sentence,) = assert_refused(model, "out-of-range", pipeline="raise")
    assert "'x' is read at i on axis 0, of size 5, in 6 iterations" in sentence


def test_one_iteration_less_than_elements_is_cut() -> None:
    before = trips_of("x", name="size") + "m = Sub (size, one)"
    result = raised(summing("x_t = Gather (x, i)", before=before))
    assert nodes(result.model, "Slice")
    assert not nodes(result.model, "Reshape"), "nothing to guard"


def test_one_iteration_more_than_symbolic_elements_is_refused() -> None:
    before = trips_of("x", name="size") + "m = Add (size, one)"
    assert_refused(summing("x_t = Gather (x, i)", before=before), "out-of-range", pipeline="raise")


def test_a_trip_count_that_may_exceed_gets_a_guard() -> None:
    model = summing("x_t = Gather (x, i)", "float[T,3] x, int64 m", before="")
    assert nodes(raised(model).model, "Reshape")


def test_a_trip_count_of_one_element_may_be_a_vector() -> None:
    raised(summing("x_t = Gather (x, i)", "float[T,3] x, int64[1] m", before=""))


def test_a_loop_without_reads_scans_the_iteration_number() -> None:
    def model(opset: int, ir_version: int) -> str:
        return loop(
            "float[3] h0, int64 m",
            "float[3] h_end",
            "h_out = Add (h, h)",
            carried="float[3] h",
            fed="h0",
            collected="float[3] h_out",
            results="h_end",
            opset=opset,
            ir_version=ir_version,
        )

    assert len(nodes(raised(model(17, 8)).model, "Range")) == 1
    raised(model(9, 4))


@pytest.mark.parametrize("at_most", [0, -3])
def test_a_loop_that_never_runs_is_refused(at_most: int) -> None:
    fixed = f"int64 m = {{{at_most}}}"
    model = summing("x_t = Gather (x, i)", before="", constants=fixed)
    assert_refused(model, "no-iteration", pipeline="raise")


def test_a_loop_without_end_is_refused() -> None:
    model = summing("x_t = Gather (x, i)", before="", trips='""')
    assert_refused(model, "endless", pipeline="raise")


def test_a_condition_that_is_always_true_does_not_matter() -> None:
    given = {"start": "yes", "constants": "bool yes = {1}"}
    raised(summing("x_t = Gather (x, i)", **given))
    constant = "go_out = Constant <value = bool {1}> ()"
    raised(summing("x_t = Gather (x, i)", going=constant, **given))


def test_an_initial_condition_decides_whether_the_loop_runs() -> None:
    raised(summing("x_t = Gather (x, i)", "float[T,3] x, bool start", start="start"))


def test_a_computed_condition_is_refused() -> None:
    body = """
            x_t = Gather (x, i)
            enough = ReduceSum (x_t)
            zf = Constant <value = float {9}> ()
            flat = Squeeze (enough)
            go_out = Less (flat, zf)
    """
    model = summing(body, start="yes", going="", constants="bool yes = {1}")
    assert_refused(model, "condition", pipeline="raise")


def test_an_omitted_condition_is_true_where_the_body_reads_it() -> None:
    body = "seen = Cast <to = 1> (go)\n slice = Gather (x, i)\n x_t = Mul (slice, seen)"
    raised(summing(body))


def test_a_loop_in_a_loop_is_raised_with_it() -> None:
    inner = """
        row_shape = Shape (row)
        n_1 = Gather (row_shape, zeros)
        n = Squeeze (n_1, zeros)
        y = Loop (n, "", h0) <body = inner (int64 j, bool on, float h) => (bool on_out, float k) {
            on_out = Identity (on)
            element = Gather (row, j)
            k = Add (h, element)
        }>
    """
    model = loop(
        "float[T,S] x, float h0",
        "float[N] z",
        f"row = Gather (x, i)\n {inner}",
        collected="float y",
        before=trips_of("x"),
        results="z",
    )
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


def test_what_stays_a_loop_is_told() -> None:
    body = "a = Gather (x, i)\n next = Add (i, one)\n b = Gather (x, next)\n x_t = Sub (b, a)"
    result = assert_rewrite(summing(body), pipeline="raise")
    (refusal,) = result.report.refusals
    assert (refusal.rule, refusal.code) == ("raise-loop", "out-of-range")


def test_the_shape_of_a_buffer_may_be_asked_while_it_is_filled() -> None:
    def filling(row: str) -> str:
        return loop(
            "float[T,3] x",
            "float[T,3] a_end",
            "x_t = Gather (x, i)\n old = Gather (acc, i)\n dims = Shape (old)\n"
            f"{row}\n at = Unsqueeze (i, zeros)\n acc_out = ScatterND (acc, at, y)",
            carried="float[A,3] acc",
            collected="float[B,3] acc_out",
            before=trips_of("x") + "a0 = ConstantOfShape (shape)",
            fed="a0",
            results="a_end",
        )

    raised(filling("y = Expand (x_t, dims)"))
    read = filling("y_1 = Expand (x_t, dims)\n y = Add (y_1, old)")
    assert_refused(read, "accumulator-read", pipeline="raise")


def test_a_trip_count_may_be_the_length_of_a_split_tensor() -> None:
    before = "parts = SplitToSequence <axis = 0> (x)\n m = SequenceLength (parts)"
    body = "part = SequenceAt (parts, i)\n x_t = Squeeze (part, zeros)"
    assert list(scan_of(raised(summing(body, before=before))).input) == ["h0", "x"]


def test_a_body_of_thousands_of_nodes_takes_seconds() -> None:
    chain = "\n".join(f"v{n + 1} = Add (v{n}, h)" for n in range(4000))
    model = as_model(summing(f"v0 = Gather (x, i)\n{chain}\n x_t = Identity (v4000)"))
    started = time.monotonic()
    result = Session(SCHEDULES["raise"], None, RuleOptions(), None).run(model)
    assert len(scan_of(result).input) == 2
    assert time.monotonic() - started < 20
