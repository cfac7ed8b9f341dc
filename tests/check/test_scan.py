"""Scan of opset 9 and later, and of opset 8: its form, its axes, lengths and types."""

from __future__ import annotations

from onnx import parser

from passes.check import check
from passes.ir.model import Model
from tests.written import changed

from .conftest import Complaint

#: Running sums of the rows of `x`, and their negatives, which are collected.
SCAN = """
<ir_version: 8, opset_import: ["" : 16]>
g (float[5,3] x, float[3] i) => (float[3] p)
{
    p, q = Scan <num_scan_inputs = 1,
        body = b (float[3] s, float[3] e) => (float[3] t, float[3] o) {
        t = Add (s, e)
        o = Neg (t)
    }> (i, x)
}
"""
#: The same for a batch of 2, as opset 8 writes it.
SCAN_8 = """
<ir_version: 8, opset_import: ["" : 8]>
g (float[2,5,3] x, float[2,3] i, int64[2] l) => (float[2,3] p)
{
    p, q = Scan <num_scan_inputs = 1,
        body = b (float[3] s, float[3] e) => (float[3] t, float[3] o) {
        t = Add (s, e)
        o = Neg (t)
    }> ("", i, x)
}
"""
#: Two tensors that are scanned together.
TWO = """
<ir_version: 8, opset_import: ["" : 16]>
g (float[5,3] x, float[4,3] z, float[3] i) => (float[3] p)
{
    p, q = Scan <num_scan_inputs = 2,
        body = b (float[3] s, float[3] e, float[3] f) => (float[3] t, float[3] o) {
        u = Add (s, e)
        t = Add (u, f)
        o = Neg (t)
    }> (i, x, z)
}
"""
WITH_LENGTHS = {'("", i, x)': "(l, i, x)"}


def with_attribute(attribute: str, text: str = SCAN) -> str:
    return changed(text, {"num_scan_inputs = 1": f"num_scan_inputs = 1, {attribute}"})


def of_lengths(lengths: str) -> dict[str, str]:
    """Changes of SCAN_8, which then has an initializer as its sequence_lens."""
    declared = {"(float[2,3] p)": f"(float[2,3] p) <int64[2] k = {{{lengths}}}>"}
    return declared | {'("", i, x)': "(k, i, x)"}


def test_both_forms_are_valid_as_they_are(complaint: Complaint) -> None:
    assert (complaint(SCAN), complaint(SCAN_8)) == ("", "")
    assert complaint(changed(SCAN_8, WITH_LENGTHS)) == ""


def test_no_body(complaint: Complaint) -> None:
    text = """
    <ir_version: 8, opset_import: ["" : 16]>
    g (float[5,3] x, float[3] i) => (float[3] p) { p, q = Scan <num_scan_inputs = 1> (i, x) }
    """
    assert complaint(text) == "main/scan_0: Scan has no body"


def test_a_body_that_is_no_graph(complaint: Complaint) -> None:
    text = """
    <ir_version: 8, opset_import: ["" : 16]>
    g (float[5,3] x, float[3] i) => (float[3] p)
    {
        p, q = Scan <num_scan_inputs = 1, body = 3> (i, x)
    }
    """
    assert complaint(text) == "main/scan_0: attribute body of Scan holds no graph"


def test_too_few_inputs_for_the_body(complaint: Complaint) -> None:
    assert complaint(changed(SCAN, {"(i, x)": "(x)"})) == (
        "main/scan_0: the body takes 2 inputs, but the node feeds 1"
    )


def test_too_many_inputs_for_the_body(complaint: Complaint) -> None:
    """One more may be the sequence_lens of a Scan-8 that somebody has only stamped anew."""
    assert complaint(changed(SCAN, {"(i, x)": "(i, i, x)"})) == (
        "main/scan_0: the body takes 2 inputs, but the node feeds 3, as a Scan-8 with "
        "sequence_lens would"
    )


def test_an_initializer_may_not_be_fed(complaint: Complaint) -> None:
    """A body's input that names an initializer is a constant."""
    constant = {"(float[3] t, float[3] o) {": "(float[3] t, float[3] o) <float[3] s = {1, 2, 3}> {"}
    assert complaint(changed(SCAN, constant)) == (
        "main/scan_0: the body takes 1 input, but the node feeds 2, as a Scan-8 with "
        "sequence_lens would"
    )


def test_an_output_too_few(complaint: Complaint) -> None:
    assert complaint(changed(SCAN, {"p, q =": "p ="})) == (
        "main/scan_0: the body returns 2 values, but the node has 1 output"
    )


def test_fewer_outputs_than_carried_values(complaint: Complaint) -> None:
    text = """
    <ir_version: 8, opset_import: ["" : 16]>
    g (float[5,3] x, float[3] i) => (float[3] p)
    {
        p = Scan <num_scan_inputs = 1,
            body = b (float[3] s, float[3] r, float[3] e) => (float[3] t) {
            t = Sum (s, r, e)
        }> (i, i, x)
    }
    """
    assert complaint(text) == ("main/scan_0: the node has 1 output, but 2 carried values")


def test_no_num_scan_inputs(complaint: Complaint) -> None:
    assert (
        complaint(changed(SCAN, {"num_scan_inputs = 1,": ""}))
        == "main/scan_0: Scan has no num_scan_inputs"
    )


def test_num_scan_inputs_zero(complaint: Complaint) -> None:
    assert complaint(changed(SCAN, {"num_scan_inputs = 1": "num_scan_inputs = 0"})) == (
        "main/scan_0: num_scan_inputs is 0, but a Scan needs at least 1"
    )


def test_num_scan_inputs_larger_than_the_inputs(complaint: Complaint) -> None:
    assert complaint(changed(SCAN, {"num_scan_inputs = 1": "num_scan_inputs = 3"})) == (
        "main/scan_0: num_scan_inputs is 3, but the node has 2 inputs"
    )


def test_number_of_axes(complaint: Complaint) -> None:
    assert complaint(with_attribute("scan_input_axes = [0, 0]")) == (
        "main/scan_0: scan_input_axes has 2 entries, but the node has 1 scanned input"
    )


def test_number_of_output_axes(complaint: Complaint) -> None:
    assert complaint(with_attribute("scan_output_axes = [0, 0]")) == (
        "main/scan_0: scan_output_axes has 2 entries, but the node has 1 collected output"
    )


def test_number_of_directions(complaint: Complaint) -> None:
    attributes = "num_scan_inputs = 2, scan_input_directions = [0]"
    text = changed(TWO, {"num_scan_inputs = 2": attributes, "(i, x, z)": "(i, x, x)"})
    assert complaint(text) == (
        "main/scan_0: scan_input_directions has 1 entry, but the node has 2 scanned inputs"
    )


def test_a_direction_that_is_none(complaint: Complaint) -> None:
    assert complaint(with_attribute("scan_output_directions = [2]")) == (
        "main/scan_0: scan_output_directions[0] is 2, but must be 0 (forward) or 1 (reverse)"
    )


def test_axis_out_of_range(complaint: Complaint) -> None:
    assert complaint(with_attribute("scan_input_axes = [2]")) == (
        "main/scan_0: scan_input_axes[0] is 2, but 'x' has rank 2"
    )


def test_negative_axis_out_of_range(complaint: Complaint) -> None:
    assert complaint(with_attribute("scan_input_axes = [-3]")) == (
        "main/scan_0: scan_input_axes[0] is -3, but 'x' has rank 2"
    )


def test_output_axis_out_of_range(complaint: Complaint) -> None:
    assert complaint(with_attribute("scan_output_axes = [2]")) == (
        "main/scan_0: scan_output_axes[0] is 2, but what is collected from 'o' has rank 2"
    )


def test_a_negative_axis_before_opset_11_is_taken_with_a_note() -> None:
    text = with_attribute("scan_output_axes = [-1]", changed(SCAN, {'"" : 16': '"" : 10'}))
    assert check(Model(parser.parse_model(text))).notes == [
        "main/scan_0: scan_output_axes[0] is -1, though axes may be negative from opset 11 on, "
        "and this is opset 10: it is counted from the end"
    ]


def test_a_scalar_cannot_be_scanned(complaint: Complaint) -> None:
    assert complaint(changed(SCAN, {"float[5,3] x": "float x"})) == (
        "main/scan_0: 'x' has rank 0, but a scanned input needs an axis to scan"
    )


def test_a_sequence_cannot_be_scanned(complaint: Complaint) -> None:
    assert complaint(changed(SCAN, {"float[5,3] x": "seq(float[3]) x"})) == (
        "main/scan_0: 'x' is a seq(float), but Scan takes tensors only"
    )


def test_an_input_left_out(complaint: Complaint) -> None:
    assert (
        complaint(changed(SCAN, {"(i, x)": '(i, "")'}))
        == "main/scan_0: input 1 of Scan is empty, but not optional"
    )


def test_unequal_lengths(complaint: Complaint) -> None:
    assert complaint(TWO) == (
        "main/scan_0: 'x' has length 5 on its scanned axis 0, but 'z' has length 4 on axis 0"
    )


def test_lengths_that_are_not_static_may_turn_out_equal(complaint: Complaint) -> None:
    assert complaint(changed(TWO, {"float[5,3] x": "float[N,3] x"})) == ""


def test_carried_value_enters_as_another_type(complaint: Complaint) -> None:
    assert complaint(changed(SCAN, {"float[3] s": "double[3] s"})) == (
        "main/scan_0: carried value 0 starts as float ('i'), but the body takes double ('s')"
    )


def test_carried_value_leaves_as_another_type(complaint: Complaint) -> None:
    assert complaint(changed(SCAN, {"float[3] t": "double[3] t"})) == (
        "main/scan_0: carried value 0 starts as float ('i'), but the body returns double ('t')"
    )


def test_elements_of_another_type(complaint: Complaint) -> None:
    assert complaint(changed(SCAN, {"float[3] e": "int32[3] e"})) == (
        "main/scan_0: scanned input 0 holds float ('x'), but the body takes int32 ('e')"
    )


def test_output_declared_as_another_type(complaint: Complaint) -> None:
    assert complaint(changed(SCAN, {"=> (float[3] p)": "=> (double[3] p)"})) == (
        "main/scan_0: output 0 is declared double ('p'), but the body returns float ('t')"
    )


def test_stamped_9_but_the_first_input_is_empty(complaint: Complaint) -> None:
    assert complaint(changed(SCAN_8, {'"" : 8': '"" : 9'})) == (
        "main/scan_0: Scan is still written in the form of Scan-8 (its first input is empty), but "
        "its opset is 9"
    )


def test_stamped_11_but_with_directions(complaint: Complaint) -> None:
    stamped = changed(SCAN_8, WITH_LENGTHS | {'"" : 8': '"" : 11'})
    assert complaint(with_attribute("directions = [1]", stamped)) == (
        "main/scan_0: Scan is still written in the form of Scan-8 (it has the attribute "
        "directions), but its opset is 11"
    )


def test_stamped_8_but_with_axes(complaint: Complaint) -> None:
    without_lengths = changed(SCAN_8, {'("", i, x)': "(i, x)"})
    assert complaint(with_attribute("scan_input_axes = [0]", without_lengths)) == (
        "main/scan_0: Scan is written in the form of Scan-9 (it has the attribute "
        "scan_input_axes), but its opset is 8"
    )


def test_stamped_8_but_without_room_for_the_lengths(complaint: Complaint) -> None:
    assert complaint(changed(SCAN_8, {'("", i, x)': "(i, x)"})) == (
        "main/scan_0: the body takes 2 inputs, but the node feeds 1 beside sequence_lens, which a "
        "Scan-9 does not have"
    )


def test_scan_at_opset_7(complaint: Complaint) -> None:
    assert complaint(changed(SCAN_8, {'"" : 8': '"" : 7'})) == (
        "main/scan_0: opset 7 has no operator Scan, which came with opset 8"
    )


def test_lengths_of_another_type(complaint: Complaint) -> None:
    assert complaint(changed(SCAN_8, WITH_LENGTHS | {"int64[2] l": "int32[2] l"})) == (
        "main/scan_0: sequence_lens ('l') is int32, not int64"
    )


def test_lengths_of_rank_2(complaint: Complaint) -> None:
    assert complaint(changed(SCAN_8, WITH_LENGTHS | {"int64[2] l": "int64[2,1] l"})) == (
        "main/scan_0: sequence_lens ('l') has rank 2, not 1"
    )


def test_number_of_lengths(complaint: Complaint) -> None:
    assert complaint(changed(SCAN_8, WITH_LENGTHS | {"int64[2] l": "int64[3] l"})) == (
        "main/scan_0: sequence_lens ('l') holds 3 lengths, but 'x' has a batch of 2"
    )


def test_a_length_beyond_the_last_step(complaint: Complaint) -> None:
    text = changed(SCAN_8, of_lengths("5, 6"))
    assert complaint(text) == (
        "main/scan_0: sequence_lens[1] ('k') is 6, but 'x' has only 5 time steps"
    )


def test_a_negative_length(complaint: Complaint) -> None:
    text = changed(SCAN_8, of_lengths("-1, 6") | {"float[2,5,3] x": "float[2,T,3] x"})
    assert complaint(text) == "main/scan_0: sequence_lens[0] ('k') is -1, which is negative"


def test_a_length_from_a_constant_node(complaint: Complaint) -> None:
    constant = "k = Constant <value = int64[2] {9, 1}> ()  p, q = Scan"
    assert complaint(changed(SCAN_8, {"p, q = Scan": constant, '("", i, x)': "(k, i, x)"})) == (
        "main/scan_1: sequence_lens[0] ('k') is 9, but 'x' has only 5 time steps"
    )


def test_lengths_that_the_caller_may_override(complaint: Complaint) -> None:
    text = changed(SCAN_8, of_lengths("9, 1") | {"int64[2] l": "int64[2] k"})
    assert complaint(text) == ""


def test_lengths_of_0_and_of_all_steps(complaint: Complaint) -> None:
    assert complaint(changed(SCAN_8, of_lengths("0, 5"))) == ""


def test_batch_of_a_state(complaint: Complaint) -> None:
    assert complaint(changed(SCAN_8, {"float[2,3]": "float[7,3]"})) == (
        "main/scan_0: 'x' has 2 on its batch axis 0, but 'i' has 7"
    )


def test_time_of_two_scanned_inputs(complaint: Complaint) -> None:
    text = """
    <ir_version: 8, opset_import: ["" : 8]>
    g (float[2,5,3] x, float[2,6,3] z, float[2,3] i) => (float[2,3] p)
    {
        p, q = Scan <num_scan_inputs = 2,
            body = b (float[3] s, float[3] e, float[3] f) => (float[3] t, float[3] o) {
            u = Add (s, e)
            t = Add (u, f)
            o = Neg (t)
        }> ("", i, x, z)
    }
    """
    assert complaint(text) == "main/scan_0: 'x' has 5 on its time axis 1, but 'z' has 6"


def test_no_time_axis(complaint: Complaint) -> None:
    assert complaint(changed(SCAN_8, {"float[2,5,3] x": "float[2] x"})) == (
        "main/scan_0: 'x' has rank 1, but a scanned input of Scan-8 has a batch and a time axis"
    )


def test_no_batch_axis(complaint: Complaint) -> None:
    assert complaint(changed(SCAN_8, {"float[2,3] i": "float i"})) == (
        "main/scan_0: 'i' is a scalar, but a carried value of Scan-8 has a batch axis"
    )


def test_number_of_directions_of_a_scan_8(complaint: Complaint) -> None:
    assert complaint(with_attribute("directions = [0, 1]", SCAN_8)) == (
        "main/scan_0: directions has 2 entries, but the node has 1 scanned input"
    )
