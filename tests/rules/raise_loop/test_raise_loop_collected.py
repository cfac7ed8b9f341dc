"""The rule raise-loop: what is collected, and tensors that grow or are filled meanwhile."""

from __future__ import annotations

import pytest
from raised_models import ints, loop, nodes, raised, scan_of, trips_of

from passes.testing import assert_refused

pytestmark = pytest.mark.sampled

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
    first: str = "a0 = SequenceEmpty <dtype = 1> ()",
) -> str:
    """The sequence a0 gets a y of each iteration; `after` reads it as a_end."""
    return loop(
        inputs,
        outputs,
        f"{row}\n acc_out = SequenceInsert (acc, y)",
        carried=f"seq({element}) acc",
        collected=f"seq({element}) acc_out",
        **{**ACCUMULATES, "before": trips_of("x") + first},
        after=after,
    )


@pytest.mark.parametrize(("axis", "new"), [(0, 1), (1, 1), (-1, 1), (0, 0), (1, 0), (-1, 0)])
def test_a_sequence_that_is_joined_is_collected(axis: int, new: int) -> None:
    rank = "float[A,B,C] z" if new else "float[A,B] z"
    after = f"z = ConcatFromSequence <axis = {axis}, new_axis = {new}> (a_end)"
    result = raised(inserting("float[T,2,3] x", rank, after, element="float[2,3]"))
    assert len(scan_of(result).input) == 1


def test_a_sequence_may_hold_something_at_first() -> None:
    joined = "z = ConcatFromSequence <axis = 0, new_axis = 1> (a_end)"
    made = "a0 = SequenceConstruct (first)"
    raised(inserting("float[T,3] x, float[3] first", "float[N,3] z", joined, first=made))
    given = inserting("float[T,3] x, seq(float[3]) a0", "float[N,3] z", joined, first="")
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
    def filling(size: str) -> str:
        return loop(
            f"float[T] x, float[{size}] a0",
            "float[T] a_end",
            "at = Unsqueeze (i, zeros)\n y_1 = Gather (x, at)\n y = Neg (y_1)\n"
            "acc_out = ScatterElements (acc, at, y)",
            carried="float[T] acc",
            collected="float[T] acc_out",
            **ACCUMULATES,
        )

    assert len(scan_of(raised(filling("T"))).input) == 1
    assert_refused(filling("S"), "not-filled", pipeline="raise")


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


def filling(rows: int = 5, trips: int = 5, index: str = "at = Unsqueeze (i, zeros)") -> str:
    """A buffer of so many rows, of which each iteration writes one."""
    return loop(
        f"float[5,3] x, float[{rows},3] a0",
        f"float[{rows},3] a_end",
        f"x_t = Gather (x, i)\n {index}\n y = Neg (x_t)\n acc_out = ScatterND (acc, at, y)",
        carried=f"float[{rows},3] acc",
        collected=f"float[{rows},3] acc_out",
        constants=f"int64 m = {{{trips}}}",
        fed="a0",
        results="a_end",
    )


def test_a_buffer_of_fixed_size_that_is_filled_is_collected() -> None:
    raised(filling())


@pytest.mark.parametrize(
    "model",
    [
        filling(trips=4),
        filling(trips=4, index="j = Add (i, one)\n at = Unsqueeze (j, zeros)"),
        filling(rows=6),
    ],
    ids=["one row less", "an offset", "another size"],
)
def test_a_buffer_that_is_not_filled_is_refused(model: str) -> None:
    assert_refused(model, "not-filled", pipeline="raise")


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
