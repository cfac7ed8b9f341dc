"""The rule raise-loop: what becomes a Scan, and what does not for want of a proof."""

from __future__ import annotations

import itertools
import time

import pytest
from onnx import ModelProto, NodeProto

from passes import scope as scoping
from passes.session import Result, Session
from passes.testing import as_model, assert_refused, assert_rewrite


def loop(
    inputs: str,
    outputs: str,
    body: str,
    *,
    carried: str = "",
    fed: str = "",
    collected: str = "",
    before: str = "",
    after: str = "",
    trips: str = "m",
    results: str = "y",
    constants: str = "",
    opset: int = 17,
) -> str:
    """A model with one Loop: `before`, the Loop with its body, `after`."""
    declared = ", ".join(filter(None, ["int64 i", "bool go", carried]))
    returned = ", ".join(filter(None, ["bool go_out", collected]))
    given = ", ".join(filter(None, [trips, '""', fed]))
    fixed = ", ".join(
        filter(
            None,
            [
                "int64[1] zeros = {0}, int64[1] ones = {1}, int64 zero = {0}, int64 one = {1}",
                "int64[1] twos = {2}",
                constants,
            ],
        )
    )
    return f"""
    <ir_version: 8, opset_import: ["" : {opset}]>
    loops ({inputs}) => ({outputs})
    <{fixed}>
    {{
        {before}
        {results} = Loop ({given}) <body = step ({declared}) => ({returned}) {{
            go_out = Identity (go)
            {body}
        }}>
        {after}
    }}
    """


def trips_of(tensor: str, axis: int = 0) -> str:
    """The size of an axis as `m`."""
    picked = {0: "zeros", 1: "ones", 2: "twos"}[axis]
    return f"""
        shape = Shape ({tensor})
        m_1 = Gather (shape, {picked})
        m = Squeeze (m_1, zeros)
    """


def raised(model: str, **options: str) -> Result:
    """Raise a model, verified, and see that no Loop is left."""
    result = assert_rewrite(model, pipeline="raise", options=options)
    assert result.report.refusals == [], result.report.to_text()
    assert not nodes(result.model, "Loop")
    return result


def nodes(model: ModelProto, op_type: str) -> list[NodeProto]:
    """All nodes of an operator, at every depth."""
    return [
        node
        for _, owner in scoping.owners(model)
        for graph in scoping.graphs_below(owner)
        for node in graph.node
        if node.op_type == op_type
    ]


def scan_of(result: Result) -> NodeProto:
    (scan,) = nodes(result.model, "Scan")
    return scan


def ints(node: NodeProto, name: str) -> list[int]:
    return next((list(one.ints) for one in node.attribute if one.name == name), [0])


SUM = "h_out = Add (h, x_t)\n y = Tanh (h_out)"
CARRIES = {
    "carried": "float[3] h",
    "fed": "h0",
    "collected": "float[3] h_out, float[3] y",
    "results": "h_end, y_all",
}


def summing(body: str, inputs: str = "float[T,3] x", **more: str) -> str:
    """A running sum of what the body calls x_t."""
    parts = {"before": trips_of("x"), **CARRIES, **more}
    ends = "float[3] h_end, float[N,3] y_all"
    return loop(f"{inputs}, float[3] h0", ends, f"{body}\n{SUM}", **parts)


# -- the trip count


def test_reads_by_the_iteration_are_scanned() -> None:
    result = raised(summing("x_t = Gather (x, i)"))
    assert len(nodes(result.model, "If")) == 1
    assert list(scan_of(result).input) == ["h0", "x"]


def test_a_static_trip_count_needs_no_if() -> None:
    result = raised(summing("x_t = Gather (x, i)", "float[5,3] x"))
    assert [node.op_type for node in result.model.graph.node] == ["Scan"]
    left = [one.name for one in result.model.graph.initializer]
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
    before = trips_of("x").replace("m = ", "size = ") + "m = Sub (size, one)"
    result = raised(summing("x_t = Gather (x, i)", before=before))
    assert nodes(result.model, "Slice")
    assert not nodes(result.model, "Reshape"), "nothing to guard"


def test_one_iteration_more_than_symbolic_elements_is_refused() -> None:
    before = trips_of("x").replace("m = ", "size = ") + "m = Add (size, one)"
    assert_refused(summing("x_t = Gather (x, i)", before=before), "out-of-range", pipeline="raise")


def test_a_trip_count_that_may_exceed_gets_a_guard() -> None:
    model = summing("x_t = Gather (x, i)", "float[T,3] x, int64 m", before="")
    assert nodes(raised(model).model, "Reshape")


def test_a_trip_count_of_one_element_may_be_a_vector() -> None:
    raised(summing("x_t = Gather (x, i)", "float[T,3] x, int64[1] m", before=""))


def test_a_loop_without_reads_scans_the_iteration_number() -> None:
    model = loop(
        "float[3] h0, int64 m",
        "float[3] h_end",
        "h_out = Add (h, h)",
        carried="float[3] h",
        fed="h0",
        collected="float[3] h_out",
        results="h_end",
    )
    assert len(nodes(raised(model).model, "Range")) == 1
    raised(model.replace('"" : 17', '"" : 9').replace("ir_version: 8", "ir_version: 4"))


@pytest.mark.parametrize("at_most", [0, -3])
def test_a_loop_that_never_runs_is_refused(at_most: int) -> None:
    fixed = f"int64 m = {{{at_most}}}"
    model = summing("x_t = Gather (x, i)", before="", constants=fixed)
    assert_refused(model, "no-iteration", pipeline="raise")


def test_a_loop_without_end_is_refused() -> None:
    model = summing("x_t = Gather (x, i)", before="", trips='""')
    assert_refused(model, "endless", pipeline="raise")


def test_a_condition_that_is_always_true_does_not_matter() -> None:
    model = summing("x_t = Gather (x, i)", constants="bool yes = {1}")
    raised(model.replace('(m, ""', "(m, yes"))
    constant = "go_out = Constant <value = bool {1}> ()"
    raised(model.replace('(m, ""', "(m, yes").replace("go_out = Identity (go)", constant))


def test_an_initial_condition_decides_whether_the_loop_runs() -> None:
    model = summing("x_t = Gather (x, i)", "float[T,3] x, bool start")
    raised(model.replace('(m, ""', "(m, start"))


def test_a_computed_condition_is_refused() -> None:
    body = "x_t = Gather (x, i)\n enough = ReduceSum (x_t)\n zf = Constant <value = float {9}> ()"
    body += "\n flat = Squeeze (enough)\n more = Less (flat, zf)"
    model = summing(body, constants="bool yes = {1}").replace('(m, ""', "(m, yes")
    model = model.replace("go_out = Identity (go)", "").replace("more =", "go_out =")
    assert_refused(model, "condition", pipeline="raise")


def test_reading_an_omitted_condition_is_refused() -> None:
    body = "seen = Cast <to = 1> (go)\n slice = Gather (x, i)\n x_t = Mul (slice, seen)"
    assert_refused(summing(body), "condition-read", pipeline="raise")


# -- reads


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
    before = trips_of("x").replace("m = ", "size = ") + "m = Sub (size, one)"
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
    size = trips_of("x").replace("m = ", "size = ")
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
    assert list(scan_of(raised(model)).input) == ["h0", "x"], "nobody reads the counter"


@pytest.mark.parametrize("size", ["S", "T"])
def test_a_scan_itself_fails_where_lengths_differ(size: str) -> None:
    body = "a = Gather (x, i)\n b = Gather (w, i)\n x_t = Mul (a, b)"
    result = raised(summing(body, f"float[T,3] x, float[{size},3] w"))
    assert len(nodes(result.model, "Slice")) == 1, "w may be longer"


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


# -- what is carried


def test_a_carried_value_that_grows_is_refused() -> None:
    model = loop(
        "float[1,3] h0, int64 m",
        "float[N,3] h_end",
        "h_2 = Concat <axis = 0> (h, h)\n h_out = Neg (h_2)",
        carried="float[A,3] h",
        fed="h0",
        collected="float[B,3] h_out",
        results="h_end",
    )
    assert_refused(model, "shape-changes", pipeline="raise")


def test_a_carried_value_that_is_broadcast_is_refused() -> None:
    model = loop(
        "float[1] h0, float[5,3] x",
        "float[3] h_end",
        "x_t = Gather (x, i)\n h_out = Add (h, x_t)",
        carried="float[A] h",
        fed="h0",
        collected="float[B] h_out",
        results="h_end",
        before=trips_of("x"),
    )
    (sentence,) = assert_refused(model, "shape-changes", pipeline="raise")
    assert "has shape [1] before an iteration and [3] after it" in sentence


def test_a_shape_that_depends_on_values_is_refused() -> None:
    model = (
        loop(
            "float[H] h0, int64 m",
            "float[N] h_end",
            "found = NonZero (h)\n flat = Squeeze (found, zeros)\n h_out = Cast <to = 1> (flat)",
            carried="float h",
            fed="h0",
            collected="float h_out",
            results="h_end",
        )
        .replace("float h,", "float[A] h,")
        .replace("float h)", "float[A] h)")
    )
    model = model.replace("float h_out", "float[B] h_out")
    assert_refused(model, "shape-unknown", pipeline="raise")


def test_carried_values_may_be_swapped_where_their_shapes_agree() -> None:
    body = "a_out = Identity (b)\n b_out = Add (a, b)"
    model = loop(
        "float[H] a0, float[H] b0, int64 m",
        "float[H] a_end, float[H] b_end",
        body,
        carried="float[H] a, float[H] b",
        fed="a0, b0",
        collected="float[H] a_out, float[H] b_out",
        results="a_end, b_end",
    )
    assert_refused(model, "shape-unknown", pipeline="raise")
    raised(model, assume="valid-inputs")
    raised(model.replace("[H]", "[3]"))


def test_a_carried_sequence_is_refused() -> None:
    model = loop(
        "seq(float[3]) s0, int64 m",
        "seq(float[3]) s_end",
        "last = SequenceAt (s, zero)\n s_2 = SequenceErase (s, zero)\n"
        "s_out = SequenceInsert (s_2, last)",
        carried="seq(float[3]) s",
        fed="s0",
        collected="seq(float[3]) s_out",
        results="s_end",
    )
    assert_refused(model, "not-a-tensor", pipeline="raise")


# -- what is collected


ROWS = {"before": trips_of("x"), "results": "z_1", "collected": "float[3] y"}


@pytest.mark.parametrize(
    ("after", "axis", "back"),
    [
        ("z = Transpose <perm = [1, 0]> (z_1)", 1, 0),
        ("z = Slice (z_1, last, far, zeros, last)", 0, 1),
        ("z_2 = Slice (z_1, last, far, zeros, last)\n z = Transpose <perm = [1, 0]> (z_2)", 1, 1),
        ("z_2 = Transpose <perm = [1, 0]> (z_1)\n z = Slice (z_2, last, far, ones, last)", 1, 1),
    ],
)
def test_what_moves_an_output_becomes_part_of_the_scan(after: str, axis: int, back: int) -> None:
    fixed = "int64[1] last = {-1}, int64[1] far = {-9223372036854775807}"
    dims = "N,3" if axis == 0 else "3,N"
    body = "x_t = Gather (x, i)\n y = Neg (x_t)"
    model = loop("float[T,3] x", f"float[{dims}] z", body, after=after, constants=fixed, **ROWS)
    result = raised(model, assume="non-empty")
    assert [node.op_type for node in result.model.graph.node] == ["Scan"]
    assert ints(scan_of(result), "scan_output_axes") == [axis]
    assert ints(scan_of(result), "scan_output_directions") == [back]
    raised(model)


def test_an_output_that_others_read_stays_as_it_is() -> None:
    after = "z = Transpose <perm = [1, 0]> (z_1)\n w = Neg (z_1)"
    body = "x_t = Gather (x, i)\n y = Neg (x_t)"
    model = loop("float[T,3] x", "float[3,N] z, float[N,3] w", body, after=after, **ROWS)
    assert nodes(raised(model).model, "Transpose")


ACCUMULATES = {"before": trips_of("x"), "fed": "a0", "results": "a_end"}


@pytest.mark.parametrize("first", [0, 2])
@pytest.mark.parametrize("order", ["acc, y", "y, acc"])
@pytest.mark.parametrize("width", [1, 2])
def test_a_tensor_that_grows_by_concat_is_collected(first: int, order: str, width: int) -> None:
    body = "x_t = Gather (x, i)\n"
    row = "y = Unsqueeze (x_t, zeros)\n"
    if width == 2:
        row = "y_1 = Unsqueeze (x_t, zeros)\n y = Concat <axis = 0> (y_1, y_1)\n"
    model = loop(
        f"float[T,3] x, float[{first},3] a0",
        "float[N,3] a_end",
        f"{body}{row} acc_out = Concat <axis = 0> ({order})",
        carried="float[A,3] acc",
        collected="float[B,3] acc_out",
        **ACCUMULATES,
    )
    result = raised(model)
    assert len(scan_of(result).input) == 1
    assert bool(nodes(result.model, "Reshape")) == (width == 2)


def test_a_tensor_that_grows_and_is_read_is_refused() -> None:
    model = loop(
        "float[T,3] x, float[0,3] a0",
        "float[N,3] a_end, float[T,3] z",
        "x_t = Gather (x, i)\n y = Unsqueeze (x_t, zeros)\n z_t = ReduceSum <keepdims = 0> "
        "(acc, zeros)\n acc_out = Concat <axis = 0> (acc, y)",
        carried="float[A,3] acc",
        collected="float[B,3] acc_out, float[3] z_t",
        before=trips_of("x"),
        fed="a0",
        results="a_end, z",
    )
    assert_refused(model, "accumulator-read", pipeline="raise")


def test_a_tensor_that_grows_unevenly_is_refused() -> None:
    model = loop(
        "float[T,3] x, float[0] a0",
        "float[N] a_end",
        "x_t = Gather (x, i)\n more = NonZero (x_t)\n flat = Squeeze (more, zeros)\n"
        "y = Cast <to = 1> (flat)\n acc_out = Concat <axis = 0> (acc, y)",
        carried="float[A] acc",
        collected="float[B] acc_out",
        **ACCUMULATES,
    )
    assert_refused(model, "element-shape", pipeline="raise")


def inserting(
    inputs: str,
    outputs: str,
    after: str,
    *,
    element: str = "float[3]",
    row: str = "x_t = Gather (x, i)\n y = Neg (x_t)",
    first: str = "SequenceEmpty <dtype = 1> ()",
) -> str:
    """A sequence that is `first` gets a y of each iteration; `after` reads it as a_end."""
    return loop(
        inputs,
        outputs,
        f"{row}\n acc_out = SequenceInsert (acc, y)",
        carried=f"seq({element}) acc",
        collected=f"seq({element}) acc_out",
        **{**ACCUMULATES, "before": trips_of("x") + f"a0 = {first}"},
        after=after,
    )


@pytest.mark.parametrize(("axis", "new"), [(0, 1), (1, 1), (-1, 1), (0, 0), (1, 0), (-1, 0)])
def test_a_sequence_that_is_joined_is_collected(axis: int, new: int) -> None:
    rank = "float[A,B,C] z" if new else "float[A,B] z"
    after = f"z = ConcatFromSequence <axis = {axis}, new_axis = {new}> (a_end)"
    result = raised(inserting("float[T,2,3] x", rank, after, element="float[2,3]"))
    assert len(scan_of(result).input) == 1


def test_a_sequence_may_hold_something_at_first() -> None:
    model = inserting(
        "float[T,3] x, float[3] first",
        "float[N,3] z",
        "z = ConcatFromSequence <axis = 0, new_axis = 1> (a_end)",
        first="SequenceConstruct (first)",
    )
    raised(model)
    given = model.replace("a0 = SequenceConstruct (first)", "").replace(
        "float[3] first", "seq(float[3]) a0"
    )
    assert_refused(given, "sequence-initial", pipeline="raise")


def test_a_sequence_that_stays_one_is_refused() -> None:
    model = inserting("float[T,3] x", "int64 z", "z = SequenceLength (a_end)")
    assert_refused(model, "sequence-read", pipeline="raise")


SCATTERS = {
    "nd": "at = Unsqueeze (where, zeros)\n y = Neg (x_t)\n acc_out = ScatterND (acc, at, y)",
    "nd of a slice": (
        "at_1 = Unsqueeze (where, zeros)\n at = Unsqueeze (at_1, zeros)\n y_1 = Neg (x_t)\n"
        "y = Unsqueeze (y_1, zeros)\n acc_out = ScatterND (acc, at, y)"
    ),
}


@pytest.mark.parametrize("scatter", list(SCATTERS))
@pytest.mark.parametrize("back", [False, True])
@pytest.mark.parametrize("size", ["T", "5"])
def test_a_buffer_that_is_filled_is_collected(scatter: str, back: bool, size: str) -> None:
    at = "last = Sub (m, one)\n where = Sub (last, i)" if back else "where = Identity (i)"
    made = "three = Constant <value_ints = [3]> ()\n dims = Concat <axis = 0> (m_1, three)\n"
    made += "a0 = ConstantOfShape (dims)"
    buffer = "" if size == "T" else f", float[{size},3] a0"
    model = loop(
        f"float[{size},3] x{buffer}",
        f"float[{size},3] a_end",
        f"{at}\n x_t = Gather (x, where)\n {SCATTERS[scatter]}",
        carried=f"float[{size},3] acc",
        collected=f"float[{size},3] acc_out",
        **{**ACCUMULATES, "before": trips_of("x") + ("" if buffer else made)},
    )
    scan = scan_of(raised(model))
    assert len(scan.input) == 1
    assert ints(scan, "scan_output_directions") == [int(back)]


def test_a_vector_that_is_filled_by_elements_is_collected() -> None:
    model = loop(
        "float[T] x, float[T] a0",
        "float[T] a_end",
        "at = Unsqueeze (i, zeros)\n y_1 = Gather (x, at)\n y = Neg (y_1)\n"
        "acc_out = ScatterElements (acc, at, y)",
        carried="float[T] acc",
        collected="float[T] acc_out",
        **ACCUMULATES,
    )
    assert_refused(model, "not-filled", pipeline="raise")
    assert len(scan_of(raised(model, assume="valid-inputs")).input) == 1


def test_a_buffer_that_is_filled_by_where_is_collected() -> None:
    model = loop(
        "float[4,3] x, float[4,3] a0",
        "float[4,3] a_end",
        "x_t = Gather (x, i)\n y = Neg (x_t)\n hit = Equal (rows, i)\n"
        "acc_out = Where (hit, y, acc)",
        carried="float[4,3] acc",
        collected="float[4,3] acc_out",
        constants="int64[4,1] rows = {0, 1, 2, 3}",
        **ACCUMULATES,
    )
    assert len(scan_of(raised(model)).input) == 1


@pytest.mark.parametrize("change", ["one row less", "an offset", "another size"])
def test_a_buffer_that_is_not_filled_is_refused(change: str) -> None:
    model = loop(
        "float[5,3] x, float[5,3] a0",
        "float[5,3] a_end",
        "x_t = Gather (x, i)\n at = Unsqueeze (i, zeros)\n y = Neg (x_t)\n"
        "acc_out = ScatterND (acc, at, y)",
        carried="float[5,3] acc",
        collected="float[5,3] acc_out",
        constants="int64 m = {5}",
        **{**ACCUMULATES, "before": ""},
    )
    raised(model)
    if change == "one row less":
        model = model.replace("m = {5}", "m = {4}")
    elif change == "an offset":
        model = model.replace("m = {5}", "m = {4}").replace(
            "at = Unsqueeze (i", "j = Add (i, one)\n at = Unsqueeze (j"
        )
    else:
        model = model.replace("float[5,3] a", "float[6,3] a")
    assert_refused(model, "not-filled", pipeline="raise")


# -- around


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


# -- as exporters write it


def test_the_shape_of_a_buffer_may_be_asked_while_it_is_filled() -> None:
    model = loop(
        "float[T,3] x",
        "float[T,3] a_end",
        "x_t = Gather (x, i)\n old = Gather (acc, i)\n dims = Shape (old)\n"
        "y = Expand (x_t, dims)\n at = Unsqueeze (i, zeros)\n acc_out = ScatterND (acc, at, y)",
        carried="float[A,3] acc",
        collected="float[B,3] acc_out",
        before=trips_of("x") + "a0 = ConstantOfShape (shape)",
        fed="a0",
        results="a_end",
    )
    raised(model)
    assert_refused(
        model.replace("y = Expand (x_t, dims)", "y_1 = Expand (x_t, dims)\n y = Add (y_1, old)"),
        "accumulator-read",
        pipeline="raise",
    )


def test_a_slice_that_keeps_its_axis_has_a_known_size() -> None:
    model = inserting(
        "float[T,3] x",
        "float[A,B] z",
        "z = ConcatFromSequence <axis = 0> (a_end)",
        element="float[A,B]",
        row="from = Unsqueeze (i, zeros)\n next = Add (i, one)\n to = Unsqueeze (next, zeros)\n"
        "part = Slice (x, from, to, zeros, ones)\n y = Neg (part)",
    )
    assert list(scan_of(raised(model)).input) == ["x"]


def test_a_trip_count_may_be_the_length_of_a_split_tensor() -> None:
    before = "parts = SplitToSequence <axis = 0> (x)\n m = SequenceLength (parts)"
    body = "part = SequenceAt (parts, i)\n x_t = Squeeze (part, zeros)"
    assert list(scan_of(raised(summing(body, before=before))).input) == ["h0", "x"]


def test_a_body_of_thousands_of_nodes_takes_seconds() -> None:
    chain = "\n".join(f"v{n + 1} = Add (v{n}, h)" for n in range(4000))
    model = as_model(summing(f"v0 = Gather (x, i)\n{chain}\n x_t = Identity (v4000)"))
    started = time.monotonic()
    result = Session("raise", None, {}, None).run(model)
    assert len(scan_of(result).input) == 2
    assert time.monotonic() - started < 20
