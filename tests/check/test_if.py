"""If: it has both branches, which return the same number of values of the same types."""

from __future__ import annotations

from tests.written import changed

from .conftest import Complaint

IF = """
<ir_version: 8, opset_import: ["" : 16]>
g (bool c, float x) => (float y)
{
    y = If (c) <
        then_branch = t () => (float a) { a = Neg (x) },
        else_branch = e () => (float b) { b = Relu (x) }
    >
}
"""
ELSE = "else_branch = e () => (float b) { b = Relu (x) }"


def test_it_is_valid_as_it_is(complaint: Complaint) -> None:
    assert complaint(IF) == ""


def test_no_else_branch(complaint: Complaint) -> None:
    text = """
    <ir_version: 8, opset_import: ["" : 16]>
    g (bool c, float x) => (float y)
    {
        y = If (c) <then_branch = t () => (float a) { a = Neg (x) }>
    }
    """
    assert complaint(text) == "main/if_0: If has no else_branch"


def test_no_then_branch(complaint: Complaint) -> None:
    text = """
    <ir_version: 8, opset_import: ["" : 16]>
    g (bool c, float x) => (float y)
    {
        y = If (c) <else_branch = e () => (float b) { b = Relu (x) }>
    }
    """
    assert complaint(text) == "main/if_0: If has no then_branch"


def test_a_branch_with_an_input(complaint: Complaint) -> None:
    assert complaint(changed(IF, {"t ()": "t (float k)"})) == (
        "main/if_0: then_branch takes 1 input, but a branch is fed none"
    )


def test_branches_that_return_different_numbers(complaint: Complaint) -> None:
    assert complaint(changed(IF, {"float b": "float b, float x"})) == (
        "main/if_0: then_branch returns 1 value, but else_branch 2"
    )


def test_a_node_with_another_number_of_outputs(complaint: Complaint) -> None:
    assert complaint(changed(IF, {"y = If": "y, z = If"})) == (
        "main/if_0: the node has 2 outputs, but then_branch returns 1 value"
    )


def test_branches_of_different_types(complaint: Complaint) -> None:
    other = "else_branch = e () => (double b) { b = Cast <to = 11> (x) }"
    assert complaint(changed(IF, {ELSE: other})) == (
        "main/if_0: output 0 is float in then_branch ('a'), but double in else_branch ('b')"
    )


def test_branches_of_different_types_that_are_inferred(complaint: Complaint) -> None:
    other = "else_branch = e () => (b) { b = Shape (x) }"
    assert complaint(changed(IF, {ELSE: other})) == (
        "main/if_0: output 0 is float in then_branch ('a'), but int64 in else_branch ('b')"
    )


def test_a_tensor_in_one_branch_a_sequence_in_the_other(complaint: Complaint) -> None:
    other = "else_branch = e () => (seq(float) b) { b = SequenceConstruct (x) }"
    assert complaint(changed(IF, {ELSE: other})) == (
        "main/if_0: output 0 is float in then_branch ('a'), but seq(float) in else_branch ('b')"
    )


def test_condition_of_another_type(complaint: Complaint) -> None:
    assert complaint(changed(IF, {"bool c": "float c"})) == (
        "main/if_0: the condition ('c') is float, not bool"
    )


def test_several_conditions(complaint: Complaint) -> None:
    assert complaint(changed(IF, {"bool c": "bool[2] c"})) == (
        "main/if_0: the condition ('c') holds 2 values, but must be a scalar"
    )


def test_output_declared_as_another_type(complaint: Complaint) -> None:
    assert complaint(changed(IF, {"float y": "int32 y"})) == (
        "main/if_0: output 0 is declared int32 ('y'), but the body returns float ('a')"
    )
