"""The rule raise-loop: what a body reads, and which of it is scanned."""

from __future__ import annotations

import itertools

import pytest
from raised_models import ints, loop, nodes, raised, scan_of, summing, trips_of

from passes.testing import assert_refused

pytestmark = pytest.mark.sampled


@pytest.mark.parametrize(
    ("axis", "kept", "back"), list(itertools.product([0, 1, 2, -1], [False, True], [False, True]))
)
def test_any_axis_and_direction(axis: int, kept: bool, back: bool) -> None:
    dims = ["2", "4", "3"]
    dims[axis] = "T"
    element = [dim for dim in dims if dim != "T"]
    at = "last = Sub (m, one)\n at = Sub (last, i)" if back else "at = Identity (i)"
    body = f"{at}\n"
    if kept:
        places = "index = Unsqueeze (at, zeros)\n"
        body += f"{places} y_1 = Gather <axis = {axis}> (x, index)\n y = Neg (y_1)"
        element.insert(axis % 3, "1")
    else:
        body += f"y_1 = Gather <axis = {axis}> (x, at)\n y = Neg (y_1)"
    model = loop(
        f"float[{','.join(dims)}] x",
        f"float[N,{','.join(element)}] z",
        body,
        collected=f"float[{','.join(element)}] y",
        before=trips_of("x", axis % 3),
        results="z",
    )
    scan = scan_of(raised(model))
    assert ints(scan, "scan_input_axes") == [axis % 3]
    assert ints(scan, "scan_input_directions") == [int(back)]


def test_a_read_at_the_next_element_scans_the_tensor_twice() -> None:
    before = trips_of("x", name="size") + "m = Sub (size, one)"
    body = "a = Gather (x, i)\n next = Add (i, one)\n b = Gather (x, next)\n x_t = Sub (b, a)"
    scan = scan_of(raised(summing(body, before=before)))
    assert len(scan.input) == 3


def test_a_read_at_the_next_element_of_the_last_is_refused() -> None:
    body = "a = Gather (x, i)\n next = Add (i, one)\n b = Gather (x, next)\n x_t = Sub (b, a)"
    (sentence,) = assert_refused(summing(body), "out-of-range", pipeline="raise")
    assert "read at i + 1 on axis 0, of size T, in T iterations" in sentence


def test_a_read_in_front_of_the_first_element_is_refused() -> None:
    body = "at = Sub (i, one)\n x_t = Gather (x, at)"
    assert_refused(summing(body), "negative-read", pipeline="raise")


def test_a_backward_read_of_more_than_there_is_is_refused() -> None:
    size = trips_of("x", name="size")
    body = "last = Sub (size, one)\n at = Sub (last, i)\n x_t = Gather (x, at)"
    model = summing(body, "float[T,3] x, int64 m", before=size)
    assert_refused(model, "negative-read", pipeline="raise")


def test_a_backward_read_from_the_trip_count_is_guarded() -> None:
    body = "last = Sub (m, one)\n at = Sub (last, i)\n x_t = Gather (x, at)"
    model = summing(body, "float[T,3] x, int64 m", before="")
    assert ints(scan_of(raised(model)), "scan_input_directions") == [1]


def test_an_offset_that_only_the_run_tells_stays_a_gather() -> None:
    body = "at = Add (i, offset)\n x_t = Gather (x, at)"
    result = raised(summing(body, "float[T,3] x, int64 offset, int64 m", before=""))
    assert len(nodes(result.model, "Range")) == 1


def test_an_index_may_be_used_in_other_ways_too() -> None:
    body = "slice = Gather (x, i)\n number = Cast <to = 1> (i)\n x_t = Add (slice, number)"
    scan = scan_of(raised(summing(body)))
    assert len(scan.input) == 3


def test_a_read_of_every_second_element_stays_a_gather() -> None:
    body = "at = Add (i, i)\n x_t = Gather (x, at)"
    fixed = "int64 m = {2}"
    raised(summing(body, "float[5,3] x", before="", constants=fixed))


def test_a_slice_that_is_squeezed_is_a_read() -> None:
    body = "from = Unsqueeze (i, zeros)\n next = Add (i, one)\n to = Unsqueeze (next, zeros)\n"
    body += "part = Slice (x, from, to, zeros)\n x_t = Squeeze (part, zeros)"
    assert len(scan_of(raised(summing(body))).input) == 2


@pytest.mark.parametrize("inside", [True, False])
def test_a_slice_that_keeps_its_axis_must_stay_inside(inside: bool) -> None:
    body = "from = Unsqueeze (i, zeros)\n next = Add (i, one)\n to = Unsqueeze (next, zeros)\n"
    body += "part = Slice (x, from, to, zeros)\n x_t = ReduceSum <keepdims = 0> (part, zeros)"
    if inside:
        raised(summing(body))
    else:
        model = summing(body, "float[T,3] x, int64 m", before="")
        assert_refused(model, "may-exceed", pipeline="raise")


class TestFarStep:
    """tf2onnx writes x[i] as a Slice with a step that leads out of the tensor."""

    FAR = "int64[1] far = {1000000000}, int64[1] start_of_all = {-1000000000}, float[1] f = {1e9}"
    #: The end of a slice of one element, with what becomes of masks that say otherwise.
    END = """next = Add (i, one)  to = Unsqueeze (next, zeros)  to_f = Cast <to = 1> (to)
        most_f = Max (to_f, f)  most = Cast <to = 7> (most_f)  is_most = Equal (most, far)
        back = Less (ones, zeros)  masked = And (is_most, back)
        end = Where (masked, start_of_all, most)"""

    def body(
        self, end: str = END, *, step: str = "far", rows: str = "Squeeze (part, zeros)"
    ) -> str:
        return f"""first = Unsqueeze (i, zeros)  from = Concat <axis = 0> (first)  {end}
            part = Slice (x, from, end, zeros, {step})  x_t = {rows}"""

    def inputs(self, body: str, constants: str = FAR, **options: str) -> list[str]:
        return list(scan_of(raised(summing(body, constants=constants, **options))).input)

    def test_it_reads_one_element(self) -> None:
        assert self.inputs(self.body()) == ["h0", "x"]

    @pytest.mark.parametrize(
        "end",
        [
            "end = Identity (far)",
            "next = Add (i, one)  to = Unsqueeze (next, zeros)  end = Max (to, far)",
            "e = Equal (i, one)  end = Where (e, far, far)",
            "never = Greater (zeros, ones)  always = Not (never)  end = Where (always, far, zeros)",
            "a = LessOrEqual (ones, ones)  b = GreaterOrEqual (zeros, ones)  c = Or (a, b)"
            "  end = Where (c, far, zeros)",
        ],
    )
    def test_any_end_behind_all_elements_will_do(self, end: str) -> None:
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
        assert len(nodes(raised(summing(body, constants=constants)).model, "Slice")) == 1

    def test_a_step_inside_the_tensor_stays_a_slice(self) -> None:
        body = self.body(rows="ReduceSum <keepdims = 0> (part, zeros)", step="twos")
        assert len(nodes(raised(summing(body, constants=self.FAR)).model, "Slice")) == 1

    @pytest.mark.parametrize("start", ["Sub (i, one)", "Add (i, m)", "Mul (i, m)"])
    def test_one_that_may_leave_the_tensor_stays_a_slice(self, start: str) -> None:
        at = f"at = {start}  first = Unsqueeze (at, zeros)  end = Identity (far)"
        body = f"""{at}  part = Slice (x, first, end, zeros, far)
            x_t = ReduceSum <keepdims = 0> (part, zeros)"""
        result = raised(summing(body, constants=self.FAR))
        assert len(nodes(result.model, "Slice")) == 1

    def test_an_axis_that_is_kept_must_stay_inside(self) -> None:
        body = self.body(rows="ReduceSum <keepdims = 0> (part, zeros)")
        assert self.inputs(body) == ["h0", "x"]
        more = summing(body, "float[T,3] x, int64 m", before="", constants=self.FAR)
        assert len(nodes(raised(more).model, "Slice")) == 1


@pytest.mark.parametrize("keepdims", [0, 1])
@pytest.mark.parametrize("inside", [True, False])
def test_an_element_of_a_split_tensor_is_a_read(keepdims: int, inside: bool) -> None:
    split = f"parts = SplitToSequence <axis = 0, keepdims = {keepdims}> (x)\n"
    body = "part = SequenceAt (parts, i)\n"
    body += "x_t = Squeeze (part, zeros)" if keepdims else "x_t = Identity (part)"
    if inside:
        result = raised(summing(split + body))
    else:
        result = raised(summing(body, before=trips_of("x") + split))
    assert list(scan_of(result).input) == ["h0", "x"]


def test_an_element_of_a_sequence_of_parts_is_a_read() -> None:
    split = "a, b = Split <axis = 0> (x)\n parts = SequenceConstruct (a, b)\n"
    body = "part = SequenceAt (parts, i)\n x_t = Squeeze (part, zeros)"
    fixed = "int64 m = {2}"
    result = raised(summing(body, "float[2,3] x", before=split, constants=fixed))
    assert list(scan_of(result).input) == ["h0", "x"]


def test_a_tensor_that_is_carried_and_never_changes_is_read_too() -> None:
    model = loop(
        "float[T,3] x, float[3] h0",
        "float[3] h_end, float[T,3] x_end",
        "x_t = Gather (x_in, i)\n h_out = Add (h, x_t)\n x_out = Identity (x_in)",
        carried="float[3] h, float[S,3] x_in",
        fed="h0, x",
        collected="float[3] h_out, float[S,3] x_out",
        results="h_end, x_end",
        before=trips_of("x"),
    )
    assert list(scan_of(raised(model)).input) == ["h0", "x"]


def test_a_carried_counter_is_an_index() -> None:
    model = loop(
        "float[T,3] x, float[3] h0",
        "float[3] h_end",
        "x_t = Gather (x, c)\n h_out = Add (h, x_t)\n c_out = Add (c, one)",
        carried="float[3] h, int64 c",
        fed="h0, zero",
        collected="float[3] h_out, int64 c_out",
        results="h_end, c_end",
        before=trips_of("x"),
    )
    assert list(scan_of(raised(model)).input) == ["h0", "x"], "nothing reads the counter"


@pytest.mark.parametrize(("size", "slices"), [("S", 1), ("T", 0)])
def test_what_may_be_longer_is_cut(size: str, slices: int) -> None:
    body = "a = Gather (x, i)\n b = Gather (w, i)\n x_t = Mul (a, b)"
    result = raised(summing(body, f"float[T,3] x, float[{size},3] w"))
    assert len(nodes(result.model, "Slice")) == slices


def test_two_tensors_that_may_both_be_too_short_get_one_guard() -> None:
    body = "a = Gather (x, i)\n b = Gather (w, i)\n x_t = Mul (a, b)"
    result = raised(summing(body, "float[T,3] x, float[S,3] w, int64 m", before=""))
    assert len(nodes(result.model, "Reshape")) == 1


def test_sizes_of_one_symbol_are_equal_where_inputs_are_valid() -> None:
    body = "a = Gather (x, i)\n b = Gather (w, i)\n x_t = Mul (a, b)"
    result = raised(summing(body, "float[T,3] x, float[T,3] w"), assume="valid-inputs")
    assert not nodes(result.model, "Slice")


def test_a_tensor_computed_from_another_has_its_size() -> None:
    body = "a = Gather (x, i)\n b = Gather (w, i)\n x_t = Mul (a, b)"
    result = raised(summing(body, before=trips_of("x") + "w_1 = Neg (x)\n w = Tanh (w_1)"))
    assert not nodes(result.model, "Slice")


def test_a_body_input_may_hide_the_tensor_that_is_read() -> None:
    model = loop(
        "float[T,3] x, float[3] h",
        "float[3] h_end",
        "x_t = Gather (x, i)\n h_out = Add (h, x_t)",
        carried="float[3] h",
        fed="h",
        collected="float[3] h_out",
        results="h_end",
        before=trips_of("x"),
    )
    raised(model)
