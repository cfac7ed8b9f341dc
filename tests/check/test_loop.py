"""Loop: its form, trip count and condition, and the types of carried values."""

from __future__ import annotations

from tests.written import changed

from .conftest import Complaint

LOOP = """
<ir_version: 8, opset_import: ["" : 16]>
g (int64 m, bool k, float[3] i) => (float[3] p)
{
    p, q = Loop <body = b (int64 n, bool c, float[3] s) => (bool d, float[3] t, float[3] o) {
        d = Identity (c)
        t = Neg (s)
        o = Neg (t)
    }> (m, k, i)
}
"""


def test_it_is_valid_as_it_is(complaint: Complaint) -> None:
    assert complaint(LOOP) == ""


def test_no_body(complaint: Complaint) -> None:
    text = """
    <ir_version: 8, opset_import: ["" : 16]>
    g (int64 m, bool k, float[3] i) => (float[3] p) { p, q = Loop (m, k, i) }
    """
    assert complaint(text) == "main/loop_0: Loop has no body"


def test_no_room_for_the_condition(complaint: Complaint) -> None:
    assert complaint(changed(LOOP, {"(m, k, i)": "(m)"})) == (
        "main/loop_0: Loop has 1 input, but takes at least 2, trip count and condition (an empty "
        "name leaves one out)"
    )


def test_a_carried_value_the_body_does_not_take(complaint: Complaint) -> None:
    assert complaint(changed(LOOP, {"(m, k, i)": "(m, k, i, i)"})) == (
        "main/loop_0: the body takes 3 inputs, but the node feeds 4 (iteration number, condition "
        "and carried values)"
    )


def test_a_carried_value_left_out(complaint: Complaint) -> None:
    assert complaint(changed(LOOP, {"(m, k, i)": '(m, k, "")'})) == (
        "main/loop_0: input 2 of Loop is empty, but not optional"
    )


def test_a_body_that_returns_too_little(complaint: Complaint) -> None:
    assert complaint(changed(LOOP, {"p, q =": "p, q, r ="})) == (
        "main/loop_0: the body returns 3 values, but must return 4: the condition and the 3 "
        "outputs of the node"
    )


def test_fewer_outputs_than_carried_values(complaint: Complaint) -> None:
    text = """
    <ir_version: 8, opset_import: ["" : 16]>
    g (int64 m, bool k, float[3] i) => (float[3] p)
    {
        p = Loop <body = b (int64 n, bool c, float[3] s, float[3] r) => (bool d, float[3] t) {
            d = Identity (c)
            t = Add (s, r)
        }> (m, k, i, i)
    }
    """
    assert complaint(text) == ("main/loop_0: the node has 1 output, but 2 carried values")


def test_trip_count_of_another_type(complaint: Complaint) -> None:
    assert complaint(changed(LOOP, {"int64 m": "int32 m"})) == (
        "main/loop_0: the trip count ('m') is int32, not int64"
    )


def test_trip_count_of_rank_2(complaint: Complaint) -> None:
    assert complaint(changed(LOOP, {"int64 m": "int64[1,1] m"})) == (
        "main/loop_0: the trip count ('m') has rank 2, but must be a scalar"
    )


def test_several_trip_counts(complaint: Complaint) -> None:
    assert complaint(changed(LOOP, {"int64 m": "int64[2] m"})) == (
        "main/loop_0: the trip count ('m') holds 2 values, but must be a scalar"
    )


def test_condition_of_another_type(complaint: Complaint) -> None:
    assert complaint(changed(LOOP, {"bool k": "int64 k"})) == (
        "main/loop_0: the condition ('k') is int64, not bool"
    )


def test_condition_of_rank_2(complaint: Complaint) -> None:
    assert complaint(changed(LOOP, {"bool k": "bool[1,1] k"})) == (
        "main/loop_0: the condition ('k') has rank 2, but must be a scalar"
    )


def test_iteration_number_of_another_type(complaint: Complaint) -> None:
    assert complaint(changed(LOOP, {"int64 n": "int32 n"})) == (
        "main/loop_0: the body takes its iteration number ('n') as int32, not int64"
    )


def test_a_body_that_takes_another_condition(complaint: Complaint) -> None:
    assert complaint(changed(LOOP, {"bool c": "float c"})) == (
        "main/loop_0: the body takes its condition ('c') as float, not bool"
    )


def test_a_body_that_returns_another_condition(complaint: Complaint) -> None:
    text = changed(LOOP, {"bool d": "int64 d", "Identity (c)": "Identity (n)"})
    assert complaint(text) == (
        "main/loop_0: the body returns its condition ('d') as int64, not bool"
    )


def test_carried_value_enters_as_another_type(complaint: Complaint) -> None:
    assert complaint(changed(LOOP, {"float[3] i": "int64[3] i"})) == (
        "main/loop_0: carried value 0 starts as int64 ('i'), but the body takes float ('s')"
    )


def test_carried_value_leaves_as_another_type(complaint: Complaint) -> None:
    text = changed(LOOP, {"float[3] t": "double[3] t", "t = Neg (s)": "t = Cast <to = 11> (s)"})
    assert complaint(text) == (
        "main/loop_0: carried value 0 starts as float ('i'), but the body returns double ('t')"
    )


def test_carried_sequence_becomes_a_tensor(complaint: Complaint) -> None:
    assert complaint(changed(LOOP, {"float[3] i": "seq(float[3]) i"})) == (
        "main/loop_0: carried value 0 starts as seq(float) ('i'), but the body takes float ('s')"
    )


def test_a_sequence_cannot_be_collected(complaint: Complaint) -> None:
    sequence = {"float[3] o": "seq(float[3]) o", "o = Neg (t)": "o = SequenceConstruct (t)"}
    assert complaint(changed(LOOP, sequence)) == (
        "main/loop_0: collected value 0 ('o') is a seq(float), but only tensors can be collected"
    )


def test_output_declared_as_another_type(complaint: Complaint) -> None:
    assert complaint(changed(LOOP, {"=> (float[3] p)": "=> (float[3] p, int32[N,3] q)"})) == (
        "main/loop_0: output 1 is declared int32 ('q'), but the body returns float ('o')"
    )


def test_a_loop_inside_a_body(complaint: Complaint) -> None:
    assert (
        complaint("""
        <ir_version: 8, opset_import: ["" : 16]>
        g (bool c, float x) => (float y) {
          y = If (c) <
            then_branch = t () => (float a) {
              [inner] a = Loop <body = b (int64 n, bool k, float s) => (bool d, float t)
                { d = Identity (k) t = Neg (s) }> (x, , x)
            },
            else_branch = e () => (float b) { b = Neg (x) }
          >
        }
    """)
        == "main/if_0.then_branch/inner: the trip count ('x') is float, not int64"
    )
