"""Which nodes may be run again, or on values that the original never saw."""

from __future__ import annotations

import onnx
import pytest
from onnx import GraphProto, NodeProto

from passes.analysis.safety.speculation import RANDOM, SPECULATABLE, is_pure, speculatable
from passes.ir import scope

# -- purity -----------------------------------------------------------------------------------


def node(text: str) -> NodeProto:
    return onnx.parser.parse_node(text)


@pytest.mark.parametrize("op", sorted(RANDOM))
def test_random_ops_are_impure(op: str) -> None:
    assert not is_pure(node(f"y = {op} (x)"))


@pytest.mark.parametrize(
    ("text", "pure"),
    [
        ("y = Add (a, b)", True),
        ("y = ai.onnx.Add (a, b)", True),
        ("y = ai.onnx.ml.Scaler (a)", True),
        ("y = com.acme.Dice (a)", False),
        ("y = Dropout (x)", True),
        ("y = Dropout (x, ratio)", True),
        ('y = Dropout (x, ratio, "")', True),
        ("y = Dropout (x, ratio, training)", False),
    ],
)
def test_purity_of_a_node(text: str, pure: bool) -> None:
    assert is_pure(node(text)) is pure


def test_a_random_op_makes_what_holds_it_impure_at_any_depth() -> None:
    def nested(op: str) -> NodeProto:
        return node(f"""
            y = If (c) <then_branch = a () => (float p) {{
              p = If (d) <then_branch = k () => (float q) {{ q = {op} (x) }},
                          else_branch = l () => (float q) {{ q = Abs (x) }}>
            }}, else_branch = b () => (float p) {{ p = Neg (x) }}>
        """)

    assert is_pure(nested("Neg"))
    assert not is_pure(nested("Bernoulli"))


# -- speculation ------------------------------------------------------------------------------


def culprits(graph: str, fixed: tuple[str, ...] = ()) -> list[str]:
    body: GraphProto = onnx.parser.parse_graph(graph)
    return [one.op_type for one in speculatable(body, fixed)]


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
        for one in scope.graphs_below(graph)
        for value in (*one.input, *one.output, *one.value_info)
    ]
    types = {value.name: value.type for value in values}
    return [one.op_type for one in speculatable(graph, (), types)]


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
        assert [one.op_type for one in speculatable(body, ["k"], types)] == found
        assert [one.op_type for one in speculatable(body, (), types)] == [op]


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
        assert [node.op_type for node in speculatable(body, ["z"], types)] == found
        assert [node.op_type for node in speculatable(body)] == ["Scan"]
        for attribute in body.node[0].attribute:
            if attribute.name == "scan_input_axes":
                attribute.ClearField("ints")
                attribute.ref_attr_name = "axes"  # of a function
        assert [node.op_type for node in speculatable(body, ["z"], types)] == ["Scan"]


def test_bodies_may_be_speculated_where_all_they_hold_may() -> None:
    branches = """
        y = If (c) <then_branch = p () => (float[2] t) { t = NODE },
                    else_branch = q () => (float[2] e) { e = Neg (x) }>
    """
    assert typed_culprits(branches.replace("NODE", "Exp (x)"), "float") == []
    assert typed_culprits(branches.replace("NODE", "Compress (x, c)"), "float") == ["If"]
    ragged = branches.replace("float[2] t", "float[N] t").replace("NODE", "Exp (k)")
    assert typed_culprits(ragged, "float") == ["If"]


def test_every_speculatable_op_is_an_op() -> None:
    assert all(onnx.defs.has(op) for op in SPECULATABLE)
    assert SPECULATABLE.isdisjoint(RANDOM)
