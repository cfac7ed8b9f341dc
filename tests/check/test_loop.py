"""Loop: its form, trip count and condition, and the types of carried values."""

from __future__ import annotations

from .conftest import Complaint

BODY = (
    "body = b (int64 n, bool c, float[3] s) => (bool d, float[3] t, float[3] o) "
    "{ d = Identity (c) t = Neg (s) o = Neg (t) }"
)


def loop(
    inputs: str = "(m, k, i)",
    *,
    m: str = "int64 m",
    k: str = "bool k",
    i: str = "float[3] i",
    body: str = BODY,
    outputs: str = "p, q",
    declared: str = "float[3] p",
) -> str:
    attributes = f"<{body}>" if body else ""
    return f"""
        <ir_version: 8, opset_import: ["" : 16]>
        g ({m}, {k}, {i}) => ({declared}) {{ {outputs} = Loop {attributes} {inputs} }}
    """


def test_it_is_valid_as_it_is(complaint: Complaint) -> None:
    assert complaint(loop()) == ""


def test_no_body(complaint: Complaint) -> None:
    assert complaint(loop(body="")) == "main/loop_0: Loop has no body"


def test_no_room_for_the_condition(complaint: Complaint) -> None:
    assert complaint(loop("(m)")) == (
        "main/loop_0: Loop has 1 input, but takes at least 2, trip count and condition (an empty "
        "name leaves one out)"
    )


def test_a_carried_value_the_body_does_not_take(complaint: Complaint) -> None:
    assert complaint(loop("(m, k, i, i)")) == (
        "main/loop_0: the body takes 3 inputs, but the node feeds 4 (iteration number, condition "
        "and carried values)"
    )


def test_a_carried_value_left_out(complaint: Complaint) -> None:
    assert complaint(loop('(m, k, "")')) == (
        "main/loop_0: input 2 of Loop is empty, but not optional"
    )


def test_a_body_that_returns_too_little(complaint: Complaint) -> None:
    assert complaint(loop(outputs="p, q, r")) == (
        "main/loop_0: the body returns 3 values, but must return 4: the condition and the 3 "
        "outputs of the node"
    )


def test_fewer_outputs_than_carried_values(complaint: Complaint) -> None:
    body = (
        "body = b (int64 n, bool c, float[3] s, float[3] r) => (bool d, float[3] t) "
        "{ d = Identity (c) t = Add (s, r) }"
    )
    assert complaint(loop("(m, k, i, i)", body=body, outputs="p")) == (
        "main/loop_0: the node has 1 output, but 2 carried values"
    )


def test_trip_count_of_another_type(complaint: Complaint) -> None:
    assert complaint(loop(m="int32 m")) == ("main/loop_0: the trip count ('m') is int32, not int64")


def test_trip_count_of_rank_2(complaint: Complaint) -> None:
    assert complaint(loop(m="int64[1,1] m")) == (
        "main/loop_0: the trip count ('m') has rank 2, but must be a scalar"
    )


def test_several_trip_counts(complaint: Complaint) -> None:
    assert complaint(loop(m="int64[2] m")) == (
        "main/loop_0: the trip count ('m') holds 2 values, but must be a scalar"
    )


def test_condition_of_another_type(complaint: Complaint) -> None:
    assert complaint(loop(k="int64 k")) == ("main/loop_0: the condition ('k') is int64, not bool")


def test_condition_of_rank_2(complaint: Complaint) -> None:
    assert complaint(loop(k="bool[1,1] k")) == (
        "main/loop_0: the condition ('k') has rank 2, but must be a scalar"
    )


def test_iteration_number_of_another_type(complaint: Complaint) -> None:
    assert complaint(loop(body=BODY.replace("int64 n", "int32 n"))) == (
        "main/loop_0: the body takes its iteration number ('n') as int32, not int64"
    )


def test_a_body_that_takes_another_condition(complaint: Complaint) -> None:
    assert complaint(loop(body=BODY.replace("bool c", "float c"))) == (
        "main/loop_0: the body takes its condition ('c') as float, not bool"
    )


def test_a_body_that_returns_another_condition(complaint: Complaint) -> None:
    body = (
        "body = b (int64 n, bool c, float[3] s) => (int64 d, float[3] t, float[3] o) "
        "{ d = Identity (n) t = Neg (s) o = Neg (t) }"
    )
    assert complaint(loop(body=body)) == (
        "main/loop_0: the body returns its condition ('d') as int64, not bool"
    )


def test_carried_value_enters_as_another_type(complaint: Complaint) -> None:
    assert complaint(loop(i="int64[3] i")) == (
        "main/loop_0: carried value 0 starts as int64 ('i'), but the body takes float ('s')"
    )


def test_carried_value_leaves_as_another_type(complaint: Complaint) -> None:
    body = (
        "body = b (int64 n, bool c, float[3] s) => (bool d, double[3] t, float[3] o) "
        "{ d = Identity (c) t = Cast <to = 11> (s) o = Neg (t) }"
    )
    assert complaint(loop(body=body)) == (
        "main/loop_0: carried value 0 starts as float ('i'), but the body returns double ('t')"
    )


def test_carried_sequence_becomes_a_tensor(complaint: Complaint) -> None:
    assert complaint(loop(i="seq(float[3]) i")) == (
        "main/loop_0: carried value 0 starts as seq(float) ('i'), but the body takes float ('s')"
    )


def test_a_sequence_cannot_be_collected(complaint: Complaint) -> None:
    body = (
        "body = b (int64 n, bool c, float[3] s) => (bool d, float[3] t, seq(float[3]) o) "
        "{ d = Identity (c) t = Neg (s) o = SequenceConstruct (t) }"
    )
    assert complaint(loop(body=body)) == (
        "main/loop_0: collected value 0 ('o') is a seq(float), but only tensors can be collected"
    )


def test_output_declared_as_another_type(complaint: Complaint) -> None:
    assert complaint(loop(declared="float[3] p, int32[N,3] q")) == (
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
