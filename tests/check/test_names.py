"""Names: defined once, before they are used."""

from __future__ import annotations

import pytest
from onnx import helper, parser

from .conftest import Complaint

HEADER = '<ir_version: 8, opset_import: ["" : 13]>'


def test_undefined_name(complaint: Complaint) -> None:
    assert complaint(f"{HEADER} g (float x) => (float y) {{ y = Relu (z) }}") == (
        "main/relu_0: 'z' is defined nowhere"
    )


def test_name_of_a_body_used_outside(complaint: Complaint) -> None:
    assert (
        complaint(f"""{HEADER}
        g (bool c, float x) => (float y) {{
          v = If (c) <
            then_branch = t () => (float a) {{ k = Neg (x) a = Neg (k) }},
            else_branch = e () => (float b) {{ b = Neg (x) }}
          >
          y = Add (v, k)
        }}
    """)
        == "main/add_1: 'k' is defined nowhere here; the one of main/if_0.then_branch is its own"
    )


def test_used_before_it_is_defined(complaint: Complaint) -> None:
    assert complaint(f"{HEADER} g (float x) => (float y) {{ y = Relu (z) z = Neg (x) }}") == (
        "main/relu_0: 'z' is used before main/neg_1 defines it; the nodes are not in order"
    )


def test_a_body_uses_what_is_defined_after_its_node(complaint: Complaint) -> None:
    assert complaint(f"""{HEADER}
        g (bool c, float x) => (float y) {{
          y = If (c) <
            then_branch = t () => (float a) {{ a = Neg (k) }},
            else_branch = e () => (float b) {{ b = Neg (x) }}
          >
          k = Neg (x)
        }}
    """) == (
        "main/if_0.then_branch/neg_0: 'k' is used before main/neg_1 defines it; the nodes are not "
        "in order"
    )


def test_cycle(complaint: Complaint) -> None:
    assert (
        complaint(f"""{HEADER}
        g (float x) => (float y) {{
          a = Add (x, c)
          b = Relu (a)
          [last] c = Neg (b)
          y = Neg (c)
        }}
    """)
        == "main: the nodes form a cycle: relu_1 -> last -> add_0 -> relu_1"
    )


def test_cycle_through_a_body(complaint: Complaint) -> None:
    assert (
        complaint(f"""{HEADER}
        g (bool c, float x) => (float y) {{
          y = If (c) <
            then_branch = t () => (float a) {{ a = Neg (y) }},
            else_branch = e () => (float b) {{ b = Neg (x) }}
          >
        }}
    """)
        == "main: the nodes form a cycle: if_0 -> if_0"
    )


def test_a_long_cycle_is_shortened(complaint: Complaint) -> None:
    chain = "".join(f"v{i + 1} = Neg (v{i})" for i in range(100))
    assert complaint(
        f"{HEADER} g (float x) => (float y) {{ {chain} v0 = Neg (v100) y = Neg(x) }}"
    ) == (
        "main: the nodes form a cycle: neg_1 -> neg_2 -> neg_3 -> neg_4 -> neg_5 -> neg_6 -> "
        "neg_7 -> (93 more) -> neg_0 -> neg_1"
    )


@pytest.mark.slow
def test_a_cycle_of_100_000_nodes_needs_no_stack(complaint: Complaint) -> None:
    model = parser.parse_model(f"{HEADER} g (float x) => (float y) {{ y = Neg (x) }}")
    model.graph.node.extend(
        helper.make_node("Neg", [f"v{i}"], [f"v{(i + 1) % 100_000}"]) for i in range(100_000)
    )
    told = complaint(model)
    assert told.endswith("neg_7 -> neg_8 -> (99992 more) -> neg_1 -> neg_2")


def test_defined_by_two_nodes(complaint: Complaint) -> None:
    assert (
        complaint(f"""{HEADER}
        g (float x) => (float y) {{ y = Relu (x) [other] y = Neg (x) }}
    """)
        == "main/other: 'y' is already defined by main/relu_0"
    )


def test_node_output_named_like_an_input(complaint: Complaint) -> None:
    assert complaint(f"{HEADER} g (float x) => (float y) {{ x = Relu (x) y = Neg (x) }}") == (
        "main/relu_0: 'x' is already defined by an input"
    )


def test_node_output_named_like_an_initializer(complaint: Complaint) -> None:
    assert (
        complaint(f"""{HEADER}
        g (float x) => (float y) <float w = {{1}}> {{ w = Relu (x) y = Neg (w) }}
    """)
        == "main/relu_0: 'w' is already defined by an initializer"
    )


def test_node_output_that_hides_an_outer_value(complaint: Complaint) -> None:
    assert complaint(f"""{HEADER}
        g (bool c, float x) => (float y) {{
          k = Neg (x)
          y = If (c) <
            then_branch = t () => (float a) {{ k = Relu (x) a = Neg (k) }},
            else_branch = e () => (float b) {{ b = Neg (x) }}
          >
        }}
    """) == (
        "main/if_1.then_branch/relu_0: output 'k' hides an outer value that is defined by "
        "main/neg_0; only an input of a body may do that"
    )


def test_input_listed_twice(complaint: Complaint) -> None:
    assert complaint(f"{HEADER} g (float x, float x) => (float y) {{ y = Neg (x) }}") == (
        "main: input 'x' is listed twice"
    )


def test_initializer_listed_twice(complaint: Complaint) -> None:
    assert (
        complaint(f"""{HEADER}
        g (float x) => (float y) <float w = {{1}}, float w = {{2}}> {{ y = Add (x, w) }}
    """)
        == "main: initializer 'w' is listed twice"
    )


def test_output_of_the_model_that_nobody_defines(complaint: Complaint) -> None:
    assert complaint(f"{HEADER} g (float x) => (float y, float z) {{ y = Neg (x) }}") == (
        "main: output 'z' is defined nowhere"
    )


def test_output_of_a_body_that_nobody_defines(complaint: Complaint) -> None:
    assert (
        complaint(f"""{HEADER}
        g (bool c, float x) => (float y) {{
          y = If (c) <
            then_branch = t () => (float a) {{ k = Neg (x) }},
            else_branch = e () => (float b) {{ b = Neg (x) }}
          >
        }}
    """)
        == "main/if_0.then_branch: output 'a' is defined nowhere"
    )


def test_input_without_a_type(complaint: Complaint) -> None:
    assert complaint(f"{HEADER} g (x) => (float y) {{ y = Neg (x) }}") == (
        "main: input 'x' has no type"
    )


def test_ir_3_wants_the_initializers_of_a_body_among_its_inputs(complaint: Complaint) -> None:
    """onnxruntime refuses this; without the rule being kept in the main graph it runs."""
    assert (
        complaint("""
        <ir_version: 3, opset_import: ["" : 9]>
        g (float[2,3] x, float[3] i) => (float[3] y) {
          y = Scan <num_scan_inputs = 1, body = b (float[3] s, float[3] e) => (float[3] t)
            <float[3] w = {1, 2, 3}> { u = Add (s, e) t = Mul (u, w) }> (i, x)
        }
    """)
        == "main/scan_0.body: initializer 'w' is no input of its body, as IR version 3 demands"
    )
