"""The rule raise-loop: what may be carried."""

from __future__ import annotations

from raised_models import loop, raised, trips_of

from passes.testing import assert_refused


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
    model = loop(
        "float[H] h0, int64 m",
        "float[N] h_end",
        "found = NonZero (h)\n flat = Squeeze (found, zeros)\n h_out = Cast <to = 1> (flat)",
        carried="float[A] h",
        fed="h0",
        collected="float[B] h_out",
        results="h_end",
    )
    assert_refused(model, "shape-unknown", pipeline="raise")


def test_carried_values_may_be_swapped_where_their_shapes_agree() -> None:
    def swapping(size: str, other: str) -> str:
        return loop(
            f"float[{size}] a0, float[{other}] b0, int64 m",
            f"float[{size}] a_end, float[{size}] b_end",
            "a_out = Identity (b)\n b_out = Add (a, b)",
            carried=f"float[{size}] a, float[{size}] b",
            fed="a0, b0",
            collected=f"float[{size}] a_out, float[{size}] b_out",
            results="a_end, b_end",
        )

    raised(swapping("H", "H"))
    raised(swapping("3", "3"))
    assert_refused(swapping("H", "G"), "shape-unknown", pipeline="raise")


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
