"""Model-local functions."""

from __future__ import annotations

from tests.written import changed

from .conftest import Complaint

MODEL = """
    <ir_version: 9, opset_import: ["" : 18, "d" : 1]>
    g (float[4] x) => (float[4] y) { y = d.f (x) }
"""
HEAD = '<domain: "d", opset_import: ["" : 18, "d" : 1]>'


def test_a_function_captures_nothing(complaint: Complaint) -> None:
    assert complaint(f"{MODEL} {HEAD} f (a) => (b) {{ b = Add (a, x) }}") == (
        "d.f/add_0: 'x' is defined nowhere in the function, and a function sees no names of the "
        "model"
    )


def test_a_name_defined_nowhere(complaint: Complaint) -> None:
    assert complaint(f"{MODEL} {HEAD} f (a) => (b) {{ b = Add (a, k) }}") == (
        "d.f/add_0: 'k' is defined nowhere in the function"
    )


def test_a_function_calls_itself(complaint: Complaint) -> None:
    assert complaint(f"{MODEL} {HEAD} f (a) => (b) {{ b = d.f (a) }}") == (
        "functions call each other in a circle: d.f -> d.f"
    )


def test_functions_call_each_other_from_a_body(complaint: Complaint) -> None:
    assert (
        complaint(f"""{MODEL}
        {HEAD} f (a) => (b) {{ b = d.h (a) }}
        {HEAD} h (a) => (b) {{
          c = Constant <value = bool {{1}}> ()
          b = If (c) <
            then_branch = t () => (p) {{ p = d.f (a) }},
            else_branch = e () => (q) {{ q = Neg (a) }}
          >
        }}
    """)
        == "functions call each other in a circle: d.f -> d.h -> d.f"
    )


def test_a_function_is_there_twice(complaint: Complaint) -> None:
    body = f"{HEAD} f (a) => (b) {{ b = Neg (a) }}"
    assert complaint(f"{MODEL} {body} {body}") == "d.f: the function is there twice"


def test_a_call_with_too_many_inputs(complaint: Complaint) -> None:
    assert complaint(
        f"{changed(MODEL, {'(x) }': '(x, x) }'})} {HEAD} f (a) => (b) {{ b = Neg (a) }}"
    ) == ("main/f_0: the call has 2 inputs, but function d.f takes 1")


def test_a_call_with_too_many_outputs(complaint: Complaint) -> None:
    assert complaint(
        f"{changed(MODEL, {'y = d': 'y, z = d'})} {HEAD} f (a) => (b) {{ b = Neg (a) }}"
    ) == ("main/f_0: the call has 2 outputs, but function d.f gives 1")


def test_an_output_that_nobody_defines(complaint: Complaint) -> None:
    assert complaint(f"{MODEL} {HEAD} f (a) => (b) {{ c = Neg (a) }}") == (
        "d.f: output 'b' is defined nowhere"
    )


def test_an_input_listed_twice(complaint: Complaint) -> None:
    assert complaint(f"{MODEL} {HEAD} f (a, a) => (b) {{ b = Neg (a) }}") == (
        "d.f: input 'a' is listed twice"
    )


def test_an_opset_in_which_an_operator_differs(complaint: Complaint) -> None:
    old = changed(HEAD, {"18": "13"})
    assert complaint(f"{MODEL} {old} f (a) => (b) {{ b = ReduceMax <axes = [0]> (a) }}") == (
        "d.f/reducemax_0: the function imports opset 13 and the model opset 18, but ReduceMax "
        "differs between them"
    )


def test_an_opset_that_is_too_old(complaint: Complaint) -> None:
    old = changed(HEAD, {"18": "6"})
    assert complaint(f"{MODEL} {old} f (a) => (b) {{ b = Neg (a) }}") == (
        "d.f: opset 6 is imported, but 7 is the oldest that is supported"
    )


def test_no_import_of_the_default_domain(complaint: Complaint) -> None:
    assert complaint(
        f'{MODEL} <domain: "d", opset_import: ["d" : 1]> f (a) => (b) {{ b = Neg (a) }}'
    ) == ("d.f/neg_0: there is no opset import for the default domain, which Neg belongs to")


def test_a_loop_inside_a_function(complaint: Complaint) -> None:
    """Its types come from the call."""
    assert (
        complaint(f"""{MODEL} {HEAD}
        f (a) => (b) {{
          m = Constant <value = float {{3}}> ()
          b = Loop <body = l (int64 i, bool c, float[4] s) => (bool d, float[4] t)
            {{ d = Identity (c) t = Neg (s) }}> (m, , a)
        }}
    """)
        == "d.f/loop_1: the trip count ('m') is float, not int64"
    )
