"""Which nodes may run on values that the original never saw, or where it ran none, or may go."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
import onnx
import pytest
from onnx import GraphProto, TypeProto

from passes.analysis.safety.may_fail import (
    failing_on_other_values,
    may_go,
    may_run_on_nothing,
    may_run_unreached,
)
from passes.analysis.safety.shapes_fit import Known
from passes.ir import scope
from passes.types.value_types import tensor_type


def failing(
    body: GraphProto, fixed: Iterable[str] = (), types: Mapping[str, TypeProto] | None = None
) -> list[str]:
    """The ops that fail on other values; types are those declared, unless given."""
    if types is None:
        types = {value.name: value.type for value in (*body.input, *body.value_info, *body.output)}
    constants = {name: np.zeros(1, np.int64) for name in fixed}
    known = Known.of_types(21, types, constants.get)
    return [node.op_type for node in failing_on_other_values(body, known)]


def culprits(graph: str, fixed: tuple[str, ...] = ()) -> list[str]:
    return failing(onnx.parser.parse_graph(graph), fixed)


def test_arithmetic_may_run_on_anything() -> None:
    assert culprits("b (float[2] x) => (float[2] y) { a = Exp (x) y = Div2 (a) }") == ["Div2"]
    assert culprits("b (float[2] x) => (float[2] y) { a = Exp (x) y = Log (a) }") == []


@pytest.mark.parametrize(
    "op", ["Gather (x, i)", "Div (x, i)", "Mod (x, i)", "Reshape (x, i)", "NonZero (x)"]
)
def test_what_fails_or_sizes_its_output_by_values_may_not(op: str) -> None:
    assert culprits(f"b (int64[2] x, int64[2] i) => (y) {{ y = {op} }}") == [op.split()[0]]


@pytest.mark.parametrize(
    "op",
    [
        "Slice (x, k, k)",
        "Slice (x, k, k, k, k)",
        "Squeeze (x, k)",
        "Unsqueeze (x, k)",
        "ReduceSum (x, k)",
        "ReduceMean (x, k)",
        "CumSum (x, k)",
        "Tile (x, k)",
        'Pad (x, k, "", k)',
        "Split (x, k)",
        "RNN (x, x, x, x, k)",
    ],
)
def test_sizes_axes_and_lengths_must_be_fixed(op: str) -> None:
    name = op.split()[0]
    graph = f"b (float[2,2] x, int64[1] k) => (y) {{ y = {op} }}"
    assert culprits(graph) == [name]
    assert culprits(graph, ("k",)) == []
    constant = "<int64[1] k = {0}>"
    assert culprits(f"b (float[2,2] x) => (y) {constant} {{ y = {op} }}") == []
    written = f"b (float[2,2] x) => (y) {{ k = Constant <value_ints = [0]> () y = {op} }}"
    assert culprits(written) == []


def test_an_omitted_input_is_fixed() -> None:
    assert culprits('b (float[4] x) => (y) { y = Slice (x, s, e, "", s) }', ("s", "e")) == []
    assert culprits('b (x) => (y) { y = RNN (x, x, x, x, "", x) }') == []


def test_a_cast_may_fail_on_a_string() -> None:
    cast = "y = Cast <to = 1> ({})"
    assert culprits(f"b (float[2] x) => (float[2] y) {{ {cast.format('x')} }}") == []
    assert culprits(f"b (string[2] x) => (float[2] y) {{ {cast.format('x')} }}") == ["Cast"]
    moved = f"b (string[2] x) => (float[2] y) {{ a = Identity (x) {cast.format('a')} }}"
    assert culprits(moved) == ["Cast"]


def test_other_domains_and_nested_loops_may_not() -> None:
    assert culprits("b (float x) => (float y) { y = com.acme.Add (x) }") == ["Add"]
    assert culprits("b (float x) => (float y) { y = com.acme.Constant (x) }") == ["Constant"]
    loop = "Loop <body = b (int64 i, bool go) => (bool on) { on = Not (go) }> (n, c)"
    assert culprits(f"b (float x) => (float y) {{ y = {loop} }}") == ["Loop"]


def typed_culprits(nodes: str, kind: str) -> list[str]:
    text = f"""
        <ir_version: 10, opset_import: ["" : 21]>
        b ({kind}[2] x, {kind}[2] z, bool c) => ({kind}[2] y) {{ {nodes} }}
    """
    graph = onnx.shape_inference.infer_shapes(onnx.parser.parse_model(text)).graph
    values = [
        value
        for node in scope.graphs_below(graph)
        for value in (*node.input, *node.output, *node.value_info)
    ]
    types = {value.name: value.type for value in values}
    return failing(graph, (), types)


@pytest.mark.parametrize("op", ["Div", "Mod <fmod = 1>", "Pow"])
def test_floats_may_be_divided_and_integers_may_not(op: str) -> None:
    assert typed_culprits(f"y = {op} (x, z)", "float") == []
    assert typed_culprits(f"y = {op} (x, z)", "int64") == [op.split()[0]]


@pytest.mark.parametrize("op", ["GRU", "LSTM"])
def test_sequences_must_be_there_to_be_read(op: str) -> None:
    """Where there is none, onnxruntime's process ends."""
    read = "y = {} (v, z, z, z, k)"
    sizes = {"3,2,4": [], "3,0,4": [op], "T,2,4": [op], "3,B,4": [op]}
    for size, found in sizes.items():
        body: GraphProto = onnx.parser.parse_graph(
            f"b (float[{size}] v, int32[2] k) => (y) {{ {read.format(op)} }}"
        )
        types = {value.name: value.type for value in body.input}
        assert failing(body, ["k"], types) == found
        assert failing(body, (), types) == [op]


def test_a_scan_must_have_something_to_scan() -> None:
    """Where there is nothing, onnxruntime fails; and lengths that differ are a failure anyway."""
    scan = """b (float[{}] v, float[{}] w) => (s, r) {{ s, r = Scan (z, v, w) <num_scan_inputs = 2,
        scan_input_axes = [0, 1], body = each (float s_in, float a, float b)
        => (float s_out, float r_t) {{ s_out = Add (s_in, a)  r_t = Neg (b) }}> }}"""
    sizes = {
        ("3", "1,3"): [],
        ("0", "1,0"): ["Scan"],
        ("T", "1,3"): ["Scan"],
        ("3", "1,2"): ["Scan"],
    }
    for (one, other), found in sizes.items():
        body: GraphProto = onnx.parser.parse_graph(scan.format(one, other))
        types = {value.name: value.type for value in body.input}
        assert failing(body, ["z"], types) == found
        assert failing(body, (), {}) == ["Scan"]
        for attribute in body.node[0].attribute:
            if attribute.name == "scan_input_axes":
                attribute.ClearField("ints")
                attribute.ref_attr_name = "axes"  # of a function
        assert failing(body, ["z"], types) == ["Scan"]


def test_bodies_may_be_speculated_where_all_they_hold_may() -> None:
    def branches(node: str, size: str = "2") -> str:
        return f"""
        y = If (c) <then_branch = p () => (float[{size}] t) {{ t = {node} }},
                    else_branch = q () => (float[2] e) {{ e = Neg (x) }}>
        """

    assert typed_culprits(branches("Exp (x)"), "float") == []
    assert typed_culprits(branches("Compress (x, c)"), "float") == ["If"]
    assert typed_culprits(branches("Exp (k)", size="N"), "float") == ["If"]


# -- nodes that the original does not run -----------------------------------------------------

_TYPES = "float[2,3] x, int64[N,3] n, float[N,3] y, int64 i, bool c, bool[2] d, string[2] s"
_CONSTANTS = {
    "two": np.array([2]),
    "zero": np.array([0]),
    "shape": np.array([3, 2]),
    "inside": np.array(1),
    "outside": np.array(2),
}
_BRANCHES = """
    If ({}) <then_branch = p () => (float[2,3] t) {{ t = {} }},
             else_branch = q () => (float[2,3] e) {{ e = Neg (x) }}>
"""
_COUNTS = """
    Loop <body = b (int64 j, bool go) => (bool on, float {1}) {{ on = Identity (go) }}> ({0}, "")
"""


def known_node(text: str) -> tuple[onnx.NodeProto, Known]:
    """A node, and what is known of the values that it may read."""
    graph = onnx.parser.parse_graph(f"g ({_TYPES}) => (z) {{ z = {text} }}")
    types = {value.name: value.type for value in graph.input}
    types |= {name: tensor_type(7, one.shape) for name, one in _CONSTANTS.items()}
    return graph.node[0], Known.of_types(21, types, _CONSTANTS.get)


@pytest.mark.parametrize(
    ("text", "may"),
    [
        ("Add (x, x)", True),
        ("Add (y, x)", False),  # N may be neither 1 nor 2
        ("Add (unknown, unknown)", True),
        ("Cast <to = 7> (x)", True),
        ("Cast <to = 7> (s)", False),
        ("Cast <to = 7> (unknown)", False),
        ("Div (x, x)", True),
        ("Div (n, two)", True),
        ("Div (n, zero)", False),
        ("Gather (x, inside)", True),
        ("Gather (x, outside)", False),
        ("Gather (x, i)", False),
        ("ArgMax (x)", True),
        ("ArgMax (y)", False),  # N may be 0
        ("Conv (x, x)", False),  # there is no check for its shapes
        ("com.acme.Neg (x)", False),
        (_BRANCHES.format("c", "Exp (x)"), True),
        (_BRANCHES.format("d", "Exp (x)"), False),  # two conditions
        (_BRANCHES.format("c", "Gather (x, i)"), False),
        (_COUNTS.format("i", "x"), True),
        (_COUNTS.format("i", "y"), False),  # rows of N
        (_COUNTS.format("n", "x"), False),  # several trip counts
    ],
)
def test_what_may_run_where_the_original_does_not(text: str, may: bool) -> None:
    node, known = known_node(text)
    assert may_run_unreached(node, known) is may


@pytest.mark.parametrize(
    ("text", "carrying", "may"),
    [
        ("Div (n, n)", "n", True),  # there is no element
        ("Gather (x, i)", "i", True),
        ("Gather (x, i)", "x", False),  # the index is there, the slice is not
        ("NonZero (x)", "x", False),
        ("LSTM (x, x, x)", "x", False),
        ("ArgMax (x)", "x", True),
        ("ArgMax (y)", "y", False),
    ],
)
def test_what_may_run_on_nothing(text: str, carrying: str, may: bool) -> None:
    node, known = known_node(text)
    assert may_run_on_nothing(node, known, {carrying}) is may


def test_a_range_may_go_that_counts_in_fixed_steps() -> None:
    graph = onnx.parser.parse_graph("g (int64 a, int64 b) => (y) { y = Range (a, b, step) }")
    types = dict.fromkeys(["a", "b", "step"], tensor_type(7, ()))
    for step, may in ((2, True), (0, False)):
        known = Known.of_types(21, types, {"step": np.array(step)}.get)
        assert may_go(graph.node[0], known) is may
        assert not may_run_unreached(graph.node[0], known)


def test_of_what_nothing_is_known_goes_what_fits_all_shapes() -> None:
    for text, may in (("Neg (x)", True), ("Transpose <perm = [1, 0]> (x)", False)):
        assert may_go(onnx.parser.parse_node(f"y = {text}"), Known.nothing()) is may
