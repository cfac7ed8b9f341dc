"""raise-loop: carried values."""

from __future__ import annotations

from raised_models import raised

from passes.testing import assert_refused
from tests.written import changed


def test_a_carried_value_that_grows_is_refused() -> None:
    model = """
    <ir_version: 8, opset_import: ["" : 17]>
    loops (float[1,3] h0, int64 m) => (float[N,3] h_end)
    {
        h_end = Loop (m, "", h0) <body = step (int64 i, bool go, float[A,3] h)
            => (bool go_out, float[B,3] h_out) {
            go_out = Identity (go)
            h_2 = Concat <axis = 0> (h, h)
            h_out = Neg (h_2)
        }>
    }
    """
    assert_refused(model, "shape-changes", pipeline="raise")


def test_a_carried_value_that_is_broadcast_is_refused() -> None:
    model = """
    <ir_version: 8, opset_import: ["" : 17]>
    loops (float[1] h0, float[5,3] x) => (float[3] h_end) <int64[1] zeros = {0}>
    {
        shape = Shape (x)
        m_1 = Gather (shape, zeros)
        m = Squeeze (m_1, zeros)
        h_end = Loop (m, "", h0) <body = step (int64 i, bool go, float[A] h)
            => (bool go_out, float[B] h_out) {
            go_out = Identity (go)
            x_t = Gather (x, i)
            h_out = Add (h, x_t)
        }>
    }
    """
    (sentence,) = assert_refused(model, "shape-changes", pipeline="raise")
    assert "has shape [1] before an iteration and [3] after it" in sentence


def test_a_shape_that_depends_on_values_is_refused() -> None:
    model = """
    <ir_version: 8, opset_import: ["" : 17]>
    loops (float[H] h0, int64 m) => (float[N] h_end) <int64[1] zeros = {0}>
    {
        h_end = Loop (m, "", h0) <body = step (int64 i, bool go, float[A] h)
            => (bool go_out, float[B] h_out) {
            go_out = Identity (go)
            found = NonZero (h)
            flat = Squeeze (found, zeros)
            h_out = Cast <to = 1> (flat)
        }>
    }
    """
    assert_refused(model, "shape-unknown", pipeline="raise")


def test_carried_values_may_be_exchanged_where_their_shapes_agree() -> None:
    text = """
    <ir_version: 8, opset_import: ["" : 17]>
    loops (float[H] a0, float[H] b0, int64 m) => (float[H] a_end, float[H] b_end)
    {
        a_end, b_end = Loop (m, "", a0, b0) <body = step (int64 i, bool go, float[H] a, float[H] b)
            => (bool go_out, float[H] a_out, float[H] b_out) {
            go_out = Identity (go)
            a_out = Identity (b)
            b_out = Add (a, b)
        }>
    }
    """
    raised(text)
    raised(changed(text, {"float[H]": "float[3]"}))
    another_size = changed(text, {"float[H] b0": "float[G] b0"})
    assert_refused(another_size, "shape-unknown", pipeline="raise")


def test_a_carried_sequence_is_refused() -> None:
    model = """
    <ir_version: 8, opset_import: ["" : 17]>
    loops (seq(float[3]) s0, int64 m) => (seq(float[3]) s_end) <int64 zero = {0}>
    {
        s_end = Loop (m, "", s0) <body = step (int64 i, bool go, seq(float[3]) s)
            => (bool go_out, seq(float[3]) s_out) {
            go_out = Identity (go)
            last = SequenceAt (s, zero)
            s_2 = SequenceErase (s, zero)
            s_out = SequenceInsert (s_2, last)
        }>
    }
    """
    assert_refused(model, "not-a-tensor", pipeline="raise")
