"""raise-loop: reads of a body, and which of them are scanned."""

from __future__ import annotations

import itertools

import pytest
from raised_models import (
    SUMMING,
    SUMMING_M,
    ints,
    nodes,
    raised,
    read,
    scan_of,
    with_constants,
    with_fixed_trips,
    with_inputs,
    with_trips,
)

from passes.testing import assert_refused
from tests.written import changed

pytestmark = pytest.mark.sampled


@pytest.mark.parametrize(
    ("axis", "kept", "back"), list(itertools.product([0, 1, 2, -1], [False, True], [False, True]))
)
def test_any_axis_and_direction(axis: int, kept: bool, back: bool) -> None:
    text = """
    <ir_version: 8, opset_import: ["" : 17]>
    loops (float[T,4,3] x) => (float[N,4,3] z)
    <int64[1] zeros = {0}, int64[1] axis = {0}, int64 one = {1}>
    {
        shape = Shape (x)
        m_1 = Gather (shape, axis)
        m = Squeeze (m_1, zeros)
        z = Loop (m, "") <body = step (int64 i, bool go) => (bool go_out, float[4,3] y) {
            go_out = Identity (go)
            at = Identity (i)
            y_1 = Gather <axis = 0> (x, at)
            y = Neg (y_1)
        }>
    }
    """
    dims = ["2", "4", "3"]
    dims[axis] = "T"
    element = [dim for dim in dims if dim != "T"]
    changes = {"int64[1] axis = {0}": f"int64[1] axis = {{{axis % 3}}}"}
    changes["Gather <axis = 0> (x, at)"] = f"Gather <axis = {axis}> (x, at)"
    if back:
        changes["at = Identity (i)"] = "last = Sub (m, one)  at = Sub (last, i)"
    if kept:
        changes["y_1 = "] = "index = Unsqueeze (at, zeros)  y_1 = "
        changes["Gather <axis = 0> (x, at)"] = f"Gather <axis = {axis}> (x, index)"
        element.insert(axis % 3, "1")
    changes["[T,4,3] x"] = f"[{','.join(dims)}] x"
    changes["[N,4,3] z"] = f"[N,{','.join(element)}] z"
    changes["[4,3] y"] = f"[{','.join(element)}] y"
    scan = scan_of(raised(changed(text, changes)))
    assert ints(scan, "scan_input_axes") == [axis % 3]
    assert ints(scan, "scan_input_directions") == [int(back)]


def test_a_read_at_the_next_element_scans_the_tensor_twice() -> None:
    body = "a = Gather (x, i)\n next = Add (i, one)\n b = Gather (x, next)\n x_t = Sub (b, a)"
    scan = scan_of(raised(changed(SUMMING, with_trips("m = Sub (size, one)") | read(body))))
    assert len(scan.input) == 3


def test_a_read_at_the_next_element_of_the_last_is_refused() -> None:
    body = "a = Gather (x, i)\n next = Add (i, one)\n b = Gather (x, next)\n x_t = Sub (b, a)"
    (sentence,) = assert_refused(changed(SUMMING, read(body)), "out-of-range", pipeline="raise")
    assert "read at i + 1 on axis 0, of size T, in T iterations" in sentence


def test_a_read_before_the_first_element_is_refused() -> None:
    body = "at = Sub (i, one)\n x_t = Gather (x, at)"
    assert_refused(changed(SUMMING, read(body)), "negative-read", pipeline="raise")


def test_a_backward_read_of_too_many_elements_is_refused() -> None:
    backwards = {
        "h_end, y_all = Loop": """shape = Shape (x)
    size_1 = Gather (shape, zeros)
    size = Squeeze (size_1, zeros)
    h_end, y_all = Loop""",
        "x_t = Gather (x, i)": "last = Sub (size, one)  at = Sub (last, i)  x_t = Gather (x, at)",
    }
    assert_refused(changed(SUMMING_M, backwards), "negative-read", pipeline="raise")


def test_a_backward_read_from_the_trip_count_is_guarded() -> None:
    body = "last = Sub (m, one)\n at = Sub (last, i)\n x_t = Gather (x, at)"
    model = changed(SUMMING_M, read(body))
    assert ints(scan_of(raised(model)), "scan_input_directions") == [1]


def test_an_unknown_offset_stays_a_gather() -> None:
    body = "at = Add (i, offset)\n x_t = Gather (x, at)"
    result = raised(changed(SUMMING_M, with_inputs("int64 offset") | read(body)))
    assert len(nodes(result.model, "Range")) == 1


def test_an_index_may_be_used_in_other_ways_too() -> None:
    body = "slice = Gather (x, i)\n number = Cast <to = 1> (i)\n x_t = Add (slice, number)"
    scan = scan_of(raised(changed(SUMMING, read(body))))
    assert len(scan.input) == 3


def test_a_read_of_every_second_element_stays_a_gather() -> None:
    body = "at = Add (i, i)\n x_t = Gather (x, at)"
    raised(changed(SUMMING_M, with_fixed_trips(2) | read(body)))


def test_a_slice_that_is_squeezed_is_a_read() -> None:
    body = "from = Unsqueeze (i, zeros)\n next = Add (i, one)\n to = Unsqueeze (next, zeros)\n"
    body += "part = Slice (x, from, to, zeros)\n x_t = Squeeze (part, zeros)"
    assert len(scan_of(raised(changed(SUMMING, read(body)))).input) == 2


@pytest.mark.parametrize("inside", [True, False])
def test_a_slice_that_keeps_its_axis_must_stay_inside(inside: bool) -> None:
    body = "from = Unsqueeze (i, zeros)\n next = Add (i, one)\n to = Unsqueeze (next, zeros)\n"
    body += "part = Slice (x, from, to, zeros)\n x_t = ReduceSum <keepdims = 0> (part, zeros)"
    if inside:
        raised(changed(SUMMING, read(body)))
    else:
        model = changed(SUMMING_M, read(body))
        assert_refused(model, "may-exceed", pipeline="raise")


class TestFarStep:
    """tf2onnx writes x[i] as a Slice with a step that leads out of the tensor."""

    FAR = "int64[1] far = {1000000000}, int64[1] start_of_all = {-1000000000}, float[1] f = {1e9}"
    #: The end of a slice of one element, as tf2onnx computes it with masks.
    END = """next = Add (i, one)  to = Unsqueeze (next, zeros)  to_f = Cast <to = 1> (to)
        most_f = Max (to_f, f)  most = Cast <to = 7> (most_f)  is_most = Equal (most, far)
        back = Less (ones, zeros)  masked = And (is_most, back)
        end = Where (masked, start_of_all, most)"""

    def body(
        self, end: str = END, *, step: str = "far", rows: str = "Squeeze (part, zeros)"
    ) -> str:
        return f"""first = Unsqueeze (i, zeros)  from = Concat <axis = 0> (first)  {end}
            part = Slice (x, from, end, zeros, {step})  x_t = {rows}"""

    def inputs(self, body: str, constants: str = FAR) -> list[str]:
        return list(scan_of(raised(changed(SUMMING, read(body) | with_constants(constants)))).input)

    def test_it_reads_one_element(self) -> None:
        assert self.inputs(self.body()) == ["h0", "x"]

    @pytest.mark.parametrize(
        "end",
        [
            "end = Identity (far)",
            "next = Add (i, one)  to = Unsqueeze (next, zeros)  end = Max (to, far)",
            "e = Equal (i, one)  end = Where (e, far, far)",
            "flat = Flatten (far)  end = Reshape (flat, ones)",
            "never = Greater (zeros, ones)  always = Not (never)  end = Where (always, far, zeros)",
            "a = LessOrEqual (ones, ones)  b = GreaterOrEqual (zeros, ones)  c = Or (a, b)"
            "  end = Where (c, far, zeros)",
        ],
    )
    def test_any_end_after_all_elements_is_accepted(self, end: str) -> None:
        assert self.inputs(self.body(end)) == ["h0", "x"]

    @pytest.mark.parametrize(
        "end",
        [
            "end = Identity (twos)",  # some iterations read nothing
            "to = Unsqueeze (m, zeros)  end = Min (to, far)",
            "e = Equal (i, zero)  end = Where (e, far, zeros)",
            "never = Greater (zeros, ones)  end = Where (never, far, zeros)",
            "near = Cast <to = 1> (far)  less = Min (near, g)  end = Cast <to = 7> (less)",
        ],
    )
    def test_an_end_that_may_be_nearer_stays_a_slice(self, end: str) -> None:
        body = self.body(end, rows="ReduceSum <keepdims = 0> (part, zeros)")
        constants = self.FAR + ", float[1] g = {3.0}"
        assert (
            len(
                nodes(
                    raised(changed(SUMMING, read(body) | with_constants(constants))).model, "Slice"
                )
            )
            == 1
        )

    def test_a_step_inside_the_tensor_stays_a_slice(self) -> None:
        body = self.body(rows="ReduceSum <keepdims = 0> (part, zeros)", step="twos")
        assert (
            len(
                nodes(
                    raised(changed(SUMMING, read(body) | with_constants(self.FAR))).model, "Slice"
                )
            )
            == 1
        )

    @pytest.mark.parametrize("start", ["Sub (i, one)", "Add (i, m)", "Mul (i, m)"])
    def test_one_that_may_leave_the_tensor_stays_a_slice(self, start: str) -> None:
        at = f"at = {start}  first = Unsqueeze (at, zeros)  end = Identity (far)"
        body = f"""{at}  part = Slice (x, first, end, zeros, far)
            x_t = ReduceSum <keepdims = 0> (part, zeros)"""
        result = raised(changed(SUMMING, read(body) | with_constants(self.FAR)))
        assert len(nodes(result.model, "Slice")) == 1

    def test_an_axis_that_is_kept_must_stay_inside(self) -> None:
        body = self.body(rows="ReduceSum <keepdims = 0> (part, zeros)")
        assert self.inputs(body) == ["h0", "x"]
        more = changed(SUMMING_M, read(body) | with_constants(self.FAR))
        assert len(nodes(raised(more).model, "Slice")) == 1


@pytest.mark.parametrize("keepdims", [0, 1])
@pytest.mark.parametrize("inside", [True, False])
def test_an_element_of_a_split_tensor_is_a_read(keepdims: int, inside: bool) -> None:
    split = f"parts = SplitToSequence <axis = 0, keepdims = {keepdims}> (x)\n"
    body = "part = SequenceAt (parts, i)\n"
    body += "x_t = Squeeze (part, zeros)" if keepdims else "x_t = Identity (part)"
    if inside:
        result = raised(changed(SUMMING, read(split + body)))
    else:
        before = {"h_end, y_all = Loop": f"{split}\n    h_end, y_all = Loop"}
        result = raised(changed(SUMMING, before | read(body)))
    assert list(scan_of(result).input) == ["h0", "x"]


def test_a_tensor_that_is_carried_and_never_changes_is_read_too() -> None:
    model = """
    <ir_version: 8, opset_import: ["" : 17]>
    loops (float[T,3] x, float[3] h0) => (float[3] h_end, float[T,3] x_end) <int64[1] zeros = {0}>
    {
        shape = Shape (x)
        m_1 = Gather (shape, zeros)
        m = Squeeze (m_1, zeros)
        h_end, x_end = Loop (m, "", h0, x)
            <body = step (int64 i, bool go, float[3] h, float[S,3] x_in)
            => (bool go_out, float[3] h_out, float[S,3] x_out) {
            go_out = Identity (go)
            x_t = Gather (x_in, i)
            h_out = Add (h, x_t)
            x_out = Identity (x_in)
        }>
    }
    """
    assert list(scan_of(raised(model)).input) == ["h0", "x"]


def test_a_carried_counter_is_an_index() -> None:
    model = """
    <ir_version: 8, opset_import: ["" : 17]>
    loops (float[T,3] x, float[3] h0) => (float[3] h_end)
    <int64[1] zeros = {0}, int64 zero = {0}, int64 one = {1}>
    {
        shape = Shape (x)
        m_1 = Gather (shape, zeros)
        m = Squeeze (m_1, zeros)
        h_end, c_end = Loop (m, "", h0, zero) <body = step (int64 i, bool go, float[3] h, int64 c)
            => (bool go_out, float[3] h_out, int64 c_out) {
            go_out = Identity (go)
            x_t = Gather (x, c)
            h_out = Add (h, x_t)
            c_out = Add (c, one)
        }>
    }
    """
    assert list(scan_of(raised(model)).input) == ["h0", "x"], "nothing reads the counter"


@pytest.mark.parametrize(("size", "slices"), [("S", 1), ("T", 0)])
def test_a_tensor_that_may_be_longer_is_cut(size: str, slices: int) -> None:
    body = "a = Gather (x, i)\n b = Gather (w, i)\n x_t = Mul (a, b)"
    result = raised(changed(SUMMING, with_inputs(f"float[{size},3] w") | read(body)))
    assert len(nodes(result.model, "Slice")) == slices


def test_two_tensors_that_may_both_be_too_short_get_one_guard() -> None:
    body = "a = Gather (x, i)\n b = Gather (w, i)\n x_t = Mul (a, b)"
    result = raised(changed(SUMMING_M, with_inputs("float[S,3] w") | read(body)))
    assert len(nodes(result.model, "Reshape")) == 1


def test_sizes_of_one_symbol_are_equal_where_inputs_are_valid() -> None:
    body = "a = Gather (x, i)\n b = Gather (w, i)\n x_t = Mul (a, b)"
    result = raised(
        changed(SUMMING, with_inputs("float[T,3] w") | read(body)), assume="valid-inputs"
    )
    assert not nodes(result.model, "Slice")


def test_a_tensor_computed_from_another_has_its_size() -> None:
    body = "a = Gather (x, i)\n b = Gather (w, i)\n x_t = Mul (a, b)"
    computed = {"h_end, y_all = Loop": "w_1 = Neg (x)\n    w = Tanh (w_1)\n    h_end, y_all = Loop"}
    result = raised(changed(SUMMING, computed | read(body)))
    assert not nodes(result.model, "Slice")


def test_a_body_input_may_hide_the_tensor_that_is_read() -> None:
    model = """
    <ir_version: 8, opset_import: ["" : 17]>
    loops (float[T,3] x, float[3] h) => (float[3] h_end) <int64[1] zeros = {0}>
    {
        shape = Shape (x)
        m_1 = Gather (shape, zeros)
        m = Squeeze (m_1, zeros)
        h_end = Loop (m, "", h) <body = step (int64 i, bool go, float[3] h)
            => (bool go_out, float[3] h_out) {
            go_out = Identity (go)
            x_t = Gather (x, i)
            h_out = Add (h, x_t)
        }>
    }
    """
    raised(model)
