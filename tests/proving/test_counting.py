"""Counters of a loop are known while its body is evaluated, where no number wraps or is rounded."""

from __future__ import annotations

import onnx.parser
import pytest

from passes.ir.model import Model
from passes.proving.narrowing import prove
from passes.reports.proof import Proof
from tests.written import changed

HEAD = '<ir_version: 10, opset_import: ["" : 21]> g '


def proof(before: str, after: str, budget: float = 10.0) -> Proof:
    old, new = (Model.load(onnx.parser.parse_model(HEAD + one)) for one in (before, after))
    return prove(old, new, budget).proof


#: The sum of rows, each read by a Slice whose end is written with floats; float32 counts up to
#: 16,777,216.
SLICED = """(float[T,3] x) => (float[3] y)
<int64[1] axes = {0}, int32 first = {0}, float[3] zeros = {0, 0, 0}, float nothing = {0}> {
    sizes = Shape <start = 0, end = 1> (x)
    size = Squeeze (sizes, axes)
    n = Cast <to = 6> (size)
    number = Cast <to = 1> (n)
    some = Less (nothing, number)
    last, y, n_end, x_end = Loop <body = b (int64 k, bool go, int32 i, float[3] s, int32 m,
        float[R,3] rows) => (bool on, int32 j, float[3] t, int32 m, float[R,3] rows)
        <int32 step = {1}, int32[1] along = {0}, int32[1] by = {1000000000},
         float[1] far = {1000000000}> {
        j = Add (i, step)
        start = Unsqueeze (i, axes)
        next = Unsqueeze (j, axes)
        next_number = Cast <to = 1> (next)
        end_number = Max (next_number, far)
        end = Cast <to = 6> (end_number)
        part = Slice (rows, start, end, along, by)
        row = Squeeze (part, axes)
        t = Add (s, row)
        j_number = Cast <to = 1> (j)
        m_number = Cast <to = 1> (m)
        on = Less (j_number, m_number) }> (, some, first, zeros, n, x) }"""
SCANNED = """(float[T,3] x) => (float[3] y) <float[3] zeros = {0, 0, 0}> {
    y = Scan <num_scan_inputs = 1, body = b (float[3] s, float[3] row) => (float[3] t) {
        t = Add (s, row) }> (zeros, x) }"""


def test_a_slice_by_a_counter_is_a_row() -> None:
    assert proof(SLICED, SCANNED).sentence() == "proven for T in 0..16777215"


def test_an_excluded_quotient_of_a_size_excludes_the_size() -> None:
    half = {"n = Cast <to = 6> (size)": "half = Div (size, two) n = Cast <to = 6> (half)"}
    before = changed(
        SLICED, {**half, "int64[1] axes = {0}": "int64[1] axes = {0}, int64 two = {2}"}
    )
    after = """(float[T,3] x) => (float[3] y) <int64 two = {2}, int64[1] axis = {0}> {
        sizes = Shape <start = 0, end = 1> (x)
        half = Div (sizes, two)
        rows = Slice (x, axis, half)
        zeros = Constant <value = float[3] {0, 0, 0}> ()
        y = Scan <num_scan_inputs = 1, body = b (float[3] s, float[3] row) => (float[3] t) {
            t = Add (s, row) }> (zeros, rows) }"""
    assert proof(before, after).sentence() == "proven for T in 0..33554431"
    third = changed(after, {"{2}": "{3}"})
    assert "33554431" not in proof(before, third).sentence()


def test_a_state_given_back_by_identity_is_read_from_outside() -> None:
    copied = {
        "float[3] t, int32 m,": "float[3] t, int32 same,",
        "j = Add (i, step)": "same = Identity (m) j = Add (i, step)",
    }
    assert proof(changed(SLICED, copied), SCANNED).sentence() == "proven for T in 0..16777215"


@pytest.mark.parametrize(
    "change",
    [
        {"int32 step = {1}": "int32 step = {2}"},
        {"int32 first = {0}": "int32 first = {1}"},
        {"int32 first = {0}": "int32 first = {-1}"},
        {"on = Less (j_number, m_number)": "on = Less (m_number, j_number)"},
        {"m_number = Cast <to = 1> (m)": "less = Sub (m, step) m_number = Cast <to = 1> (less)"},
        {"start = Unsqueeze (i, axes)": "start = Unsqueeze (step, axes)"},
        {"Cast <to = 1> (j)": "Cast <to = 10> (j)", "Cast <to = 1> (m)": "Cast <to = 10> (m)"},
        {
            "Cast <to = 6> (size)": "Cast <to = 3> (size)",
            "int32 first": "int8 first",
            "int32 step": "int8 step",
            "int32 i": "int8 i",
            "int32 j": "int8 j",
            "int32 m": "int8 m",
            "start = Unsqueeze (i": "wide = Cast <to = 6> (i) start = Unsqueeze (wide",
        },
    ],
)
def test_other_counters_and_bounds_sum_up_other_rows(change: dict[str, str]) -> None:
    found = proof(changed(SLICED, change), SCANNED)
    assert found.kind != "all"
    assert "0..16777" not in found.sentence()


#: Iterations that float32 counts, and the number that was asked for.
COUNTED = """(int64 n) => (int64 made) <int64 zero = {0}, float nothing = {0}> {
    number = Cast <to = 1> (n)
    some = Less (nothing, number)
    made = Loop <body = b (int64 k, bool go, int64 i) => (bool on, int64 j) <int64 one = {1}> {
        j = Add (i, one)
        j_number = Cast <to = 1> (j)
        on = Less (j_number, number) }> (, some, zero) }"""


@pytest.mark.parametrize("limit", ["0", "1"])
def test_floats_count_no_further_than_they_are_exact(limit: str) -> None:
    asked = """(int64 n) => (int64 made) <int64 least = {0}> { made = Max (n, least) }"""
    found = proof(COUNTED, changed(asked, {"{0}": "{" + limit + "}"}))
    assert not found.is_proven or found.kind != "all"


#: What a state is after some iterations that give two back, exchanged or as they are.
EXCHANGED = """(float a, float b, int64 n) => (float y) {
    y, z = Loop <body = l (int64 k, bool go, float c, float d) => (bool on, float d, float c) {
        on = Identity (go) }> (n, , a, b) }"""
#: The numbers of iterations, times a factor, in a type.
NUMBERS = """(float[T] x) => (int64[T] y) <int32 zero = {0}> {
    last, y = Scan <num_scan_inputs = 1, body = b (int32 i, float row) => (int32 j, int64 out)
        <int32 step = {1000000000}> {
        j = Add (i, step)
        out = Cast <to = 7> (i) }> (zero, x) }"""


def test_states_that_are_exchanged_are_not_given_back() -> None:
    assert not proof(
        EXCHANGED, "(float a, float b, int64 n) => (float y) { y = Identity (a) }"
    ).is_proven


def test_a_counter_that_wraps_is_another_number() -> None:
    wide = {"int32": "int64", "Cast <to = 7> (i)": "Identity (i)"}
    assert proof(NUMBERS, changed(NUMBERS, wide)).kind != "all"
    narrow = {"1000000000": "1"}
    assert proof(changed(NUMBERS, narrow), changed(NUMBERS, {**narrow, **wide})).kind == "all"


#: The larger one of a row number and a constant.
LARGER = """(float[T] x) => (float[T] y) <int64 none = {0}, int64 one = {1}, float least = {0}> {
    size = Size (x)
    rows = Range (none, size, one)
    numbers = Cast <to = 1> (rows)
    y = Max (numbers, least) }"""


def test_the_larger_one_of_whole_numbers_cast_to_floats_is_known() -> None:
    same = changed(LARGER, {"y = Max (numbers, least)": "y = Identity (numbers)"})
    assert proof(LARGER, same).kind == "all"
    for least in ("0.5", "1", "16777217"):
        larger = {"float least = {0}": "float least = {" + least + "}"}
        assert proof(changed(LARGER, larger), same).kind != "all"
    minus = {"float least = {0}": "float least = {-0.0}"}
    assert proof(changed(LARGER, minus), same).kind != "all"


#: For each number, those that are doubled from there up to a limit, if it is below.
STARTED = """(float[T] x, float limit, int64 most) => (float[T] y) {
    y = Scan <num_scan_inputs = 1, body = outer (float s) => (float r) {
        starts = Less (s, limit)
        last, rows = Loop <body = inner (int64 k, bool go, float v)
            => (bool on, float w, float row) {
            w = Add (v, v)
            on = Less (w, limit)
            row = Mul (w, w) }> (most, starts, s)
        total = ReduceSum <keepdims = 0> (rows)
        r = Add (total, last) }> (x) }"""


def test_an_iteration_decides_whether_a_loop_within_starts() -> None:
    copied = {"starts = Less (s, limit)": "below = Less (s, limit) starts = Identity (below)"}
    assert proof(STARTED, changed(STARTED, copied)).sentence() == "proven for all sizes"


@pytest.mark.parametrize(
    "change",
    [
        {"(most, starts, s)": "(most, , s)"},
        {"starts = Less (s, limit)": "starts = LessOrEqual (s, limit)"},
        {"starts = Less (s, limit)": "below = Less (s, limit) starts = Not (below)"},
        {"(most, starts, s)": "(, starts, s)"},
        {"on = Less (w, limit)": "on = Identity (go)"},
    ],
)
def test_a_loop_that_starts_otherwise_is_another_one(change: dict[str, str]) -> None:
    assert not proof(STARTED, changed(STARTED, change), 1.0).is_proven
