"""What is folded in bodies: only what is the same, to the bit, in every executor."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import GraphProto, ModelProto, NodeProto, numpy_helper

from passes.engine.region import cut
from passes.engine.rewriting import Engine
from passes.ir.model import Model
from passes.rule import rule_named
from passes.testing import as_model, assert_refused, assert_rewrite

GOLDEN_MODELS = Path(__file__).parents[3] / "golden_models"
FOLDING = {"rules": ("fold-constants",)}


def branch_of(nodes: str, constants: str = "", function: str = "") -> str:
    return f"""
    <ir_version: 10, opset_import: ["" : 21, "local" : 1]>
    g (bool c, float[2] x) => (float[N] z) {{
       z = If (c) <then_branch = a () => (float[K] y) <{constants}> {{ {nodes} }},
                   else_branch = b () => (float[2] q) {{ q = Neg (x) }}>
    }}
    {function}
    """


def folded(text: str) -> dict[str, np.ndarray]:
    """What is constant in the branch afterwards, and so was folded."""
    result = assert_rewrite(text, pipeline="hoist", options=FOLDING)
    return {node.output[0]: value_of(node) for node in nodes_of(result.model) if is_constant(node)}


def nodes_of(model: ModelProto) -> list[NodeProto]:
    branches: list[GraphProto] = [attribute.g for attribute in model.graph.node[0].attribute]
    branch = next(graph for graph in branches if graph.name == "a")
    return list(branch.node)


def is_constant(node: NodeProto) -> bool:
    return node.op_type == "Constant"


def value_of(node: NodeProto) -> np.ndarray:
    return np.asarray(numpy_helper.to_array(node.attribute[0].t))


@pytest.mark.parametrize(
    ("node", "constants", "value"),
    [
        ("k = Add (w, v)", "float[2] w = {0.1, 1e30}, float[2] v = {0.2, 1}", [0.3, 1e30]),
        ("k = Div (w, v)", "float[2] w = {1, -1}, float[2] v = {3, 0}", [1 / 3, -np.inf]),
        ("k = Sqrt (w)", "float[2] w = {2, -1}", [2**0.5, np.nan]),
        ("i = Sub (w, v) k = Cast <to = 1> (i)", "int64[2] w = {3, 4}, int64 v = {5}", [-2, -1]),
        ("i = Mul (w, w) k = Cast <to = 1> (i)", "int8[2] w = {100, 2}", [16, 4]),
        ("b = Less (w, v) k = Cast <to = 1> (b)", "float[2] w = {1, 2}, float v = {2}", [1, 0]),
        ("i = NonZero (w) k = Cast <to = 1> (i)", "float[3] w = {1, 0, 2}", [[0, 2]]),
        ("i = Cast <to = 7> (w) k = Cast <to = 1> (i)", "float[2] w = {1.9, -1.9}", [1, -1]),
        ("k = Where (b, w, v)", "bool[2] b = {1, 0}, float[2] w = {1, 2}, float v = {5}", [1, 5]),
        ("k = Pad (w, at)", "float[1] w = {1}, int64[2] at = {0, 1}", [1, 0]),
        ("i = ReduceProd <keepdims = 0> (w) k = Cast <to = 1> (i)", "int64[2] w = {6, 7}", 42),
        ("k = CastLike (w, v)", "int64[2] w = {3, -4}, float v = {0}", [3, -4]),
        ("k = CastLike (w, x)", "int64[2] w = {3, -4}", [3, -4]),
        (
            "n = Shape (x) i = CastLike (w, n) k = CastLike (i, x)",
            "float[2] w = {1.9, -1.9}",
            [1, -1],
        ),
    ],
)
def test_exact_nodes_are_computed(node: str, constants: str, value: object) -> None:
    found = folded(branch_of(f"{node} l = Mul (x, k) m = Shape (x) y = Reshape (l, m)", constants))
    np.testing.assert_array_equal(found["k"], np.array(value, np.float32))


@pytest.mark.parametrize(
    ("node", "constants"),
    [
        ("k = Exp (w)", "float[2] w = {1, 2}"),
        ("k = MatMul (w, v)", "float[2] w = {1, 2}, float[2,2] v = {1, 2, 3, 4}"),
        ("k = ReduceSum (w)", "float[2] w = {1, 2}"),
        ("h = Add (w, w) k = Cast <to = 1> (h)", "float16[2] w = {1, 2}"),
        ("h = Cast <to = 10> (w) k = Cast <to = 1> (h)", "double[2] w = {1, 2}"),
        ("i = Cast <to = 6> (w) k = Mul (x, x)", "float[2] w = {1e10, 2}"),
        ("i = Div (w, v) k = Mul (x, x)", "int32 w = {-2147483648}, int32 v = {-1}"),
        ("i = ReduceProd (w) k = Mul (x, x)", "int64[2] w = {4611686018427387904, 2}"),
        ('b = BitShift <direction = "LEFT"> (w, v) k = Mul (x, x)', "uint8 w = {1}, uint8 v = {9}"),
        ("i = NonZero (w) k = Mul (x, x)", "float w = {1}"),
        ("s = Cast <to = 8> (w) k = Mul (x, x)", "float[2] w = {1, 2}"),
        ("i = CastLike (w, v) k = Mul (x, x)", "float[2] w = {1e10, 2}, int32 v = {0}"),
        ("k = CastLike (x, w)", "float w = {1}"),
        ("k = RandomUniformLike <seed = 1.0> (w)", "float[2] w = {1, 2}"),
    ],
)
def test_what_executors_may_round_or_decide_otherwise_stays(node: str, constants: str) -> None:
    model = as_model(branch_of(f"{node} l = Mul (x, k) y = Neg (l)", constants))
    before = len(nodes_of(model))
    after = assert_rewrite(model, pipeline="hoist", options=FOLDING).model
    assert len(nodes_of(after)) == before
    assert not any(map(is_constant, nodes_of(after)))


def test_an_identity_matrix_is_not_taken_for_sizes() -> None:
    """An EyeLike, too, reads nothing but sizes, and may be of whole numbers."""
    text = """
    <ir_version: 10, opset_import: ["" : 21]>
    g (bool c, int64[1,2] x) => (int64[1,2] z) {
       z = If (c) <then_branch = a () => (int64[1,2] y) { e = EyeLike (x)  y = Add (e, x) },
                   else_branch = b () => (int64[1,2] q) { q = Neg (x) }>
    }
    """
    assert folded(text) == {}


def test_a_long_chain_takes_one_round() -> None:
    chain = "".join(f"k{i + 1} = Add (k{i}, k0) " for i in range(100))
    found = folded(branch_of(f"{chain} y = Mul (x, k100)", "float[1] k0 = {1}"))
    assert found["k100"].tolist() == [101]


def test_the_weights_that_only_folded_nodes_read_go() -> None:
    model = as_model(branch_of("k = Add (w, w) y = Mul (x, k)", "float[1] w = {1}"))
    after = assert_rewrite(model, pipeline="hoist", options=FOLDING).model
    branches: list[GraphProto] = [attribute.g for attribute in after.graph.node[0].attribute]
    assert not any(graph.initializer for graph in branches)


def test_a_returned_value_keeps_a_node_of_its_own() -> None:
    after = assert_rewrite(
        branch_of("y = Add (w, w)", "float[2] w = {1, 2}"), pipeline="hoist", options=FOLDING
    ).model
    assert [node.op_type for node in nodes_of(after)] == ["Constant", "Identity"]


def test_an_attribute_of_a_function_is_no_constant() -> None:
    text = """
    <ir_version: 10, opset_import: ["" : 21, "local" : 1]>
    g (bool c, float[2] x) => (float[2] y) { y = local.f <by = 2.0, axis = 0> (c, x) }
    <domain: "local", opset_import: ["" : 21]> f <by, axis> (c, x) => (y) {
       y = If (c) <then_branch = a () => (p) {
             k = Constant <value_float : float = @by> ()
             l = Add (k, k)
             w = Constant <value_floats = [1.0, 2.0]> ()
             v = Concat <axis : int = @axis> (w, w)
             m = ReduceMax <keepdims = 0> (v)
             n = Mul (l, m)
             p = Mul (x, n) },
          else_branch = b () => (q) { q = Neg (x) }>
    }
    """
    result = assert_rewrite(text, pipeline="hoist", options=FOLDING)
    assert result.report.records == []


def test_what_a_function_casts_like_may_be_of_any_type() -> None:
    text = """
    <ir_version: 10, opset_import: ["" : 21, "local" : 1]>
    g (bool c, float[2] x, double[2] z) => (float[2] y, double[2] w) {
        y = local.f (c, x)  w = local.f (c, z) }
    <domain: "local", opset_import: ["" : 21]> f (c, x) => (y) {
       y = If (c) <then_branch = a () => (p) {
             two = Constant <value_int = 2> ()  k = CastLike (two, x)  p = Mul (x, k) },
          else_branch = b () => (q) { q = Neg (x) }>
    }
    """
    assert assert_rewrite(text, pipeline="hoist", options=FOLDING).report.records == []


def test_the_sentence_of_what_fails_tells_why() -> None:
    nodes = "k = Gather (w, at) y = Mul (x, k)"
    text = branch_of(nodes, "float[2] w = {1, 2}, int64 at = {2}")
    (sentence,) = assert_refused(text, "fails", pipeline="hoist", options=FOLDING)
    assert "indices must lie in" in sentence


def test_below_opset_9_a_constant_holds_floats_alone() -> None:
    text = """
    <ir_version: 4, opset_import: ["" : 8]>
    g (bool c, float[2] x) => (float[2] z) {
       z = If (c) <then_branch = a () => (float[2] y) <float[2] w = {1, 2}, float[2] v = {3, 4}> {
                       k = Add (w, v)
                       size = Shape (w)
                       same = Reshape (x, size)
                       y = Add (same, k)
                   },
                   else_branch = b () => (float[2] q) { q = Neg (x) }>
    }"""
    result = assert_rewrite(text, pipeline="hoist", options=FOLDING)
    assert [node.op_type for node in nodes_of(result.model)] == [
        *("Constant", "Shape", "Reshape", "Add")
    ]


@pytest.mark.parametrize(
    ("node", "value"),
    [
        ("k = Shape (x)", [2]),
        ("k = Shape <start = 1> (w)", [3]),
        ("k = Size (x)", 2),
        ("s = Shape (w) k = Gather <axis = 0> (s, one)", [3]),
        ("s = Shape (w) k = Gather <axis = 0> (s, minus)", 3),
        ("s = Shape (w) k = Slice (s, one, two)", [3]),
    ],
)
def test_sizes_that_are_known_are_written(node: str, value: object) -> None:
    branch = f"{node} f = Cast <to = 1> (k) a = ReduceSum <keepdims = 0> (f) y = Mul (x, a)"
    found = folded(sized(branch))
    np.testing.assert_array_equal(found["f"], np.array(value, np.float32))


@pytest.mark.parametrize(
    "node",
    [
        "k = Shape (w)",
        "k = Size (w)",
        "s = Shape (w) i = Neg (one) k = Gather <axis = 0> (s, zero)",
    ],
)
def test_sizes_that_only_the_run_tells_are_asked_for(node: str) -> None:
    branch = f"{node} f = Cast <to = 1> (k) a = ReduceSum <keepdims = 0> (f) y = Mul (x, a)"
    assert "k" not in folded(sized(branch))


def sized(nodes: str) -> str:
    return f"""
    <ir_version: 10, opset_import: ["" : 21]>
    g (float[2] x, float[N,3] w, bool c) => (float[2] z)
       <int64[1] zero = {{0}}, int64[1] one = {{1}}, int64[1] two = {{2}}, int64 minus = {{-1}}> {{
       z = If (c) <then_branch = a () => (float[2] y) {{ {nodes} }},
                   else_branch = b () => (float[2] q) {{ q = Neg (x) }}>
    }}
    """


def test_what_a_loop_carries_may_change_its_size() -> None:
    text = """
    <ir_version: 10, opset_import: ["" : 21]>
    g (float[2] x) => (float[N] y, int64[3] n) <int64 three = {3}> {
       y, n = Loop <body = step (int64 i, bool go, float[2] s) => (bool on, float[M] t, int64 k) {
          on = Identity (go) t = Concat <axis = 0> (s, x) k = Size (s) }> (three, "", x)
    }"""
    model = as_model(text)
    assert assert_rewrite(model, pipeline="hoist", options=FOLDING).model == model


@pytest.mark.parametrize(("other", "told"), [("float[2]", True), ("float[3]", False)])
def test_a_function_knows_a_size_where_all_calls_agree(other: str, told: bool) -> None:
    text = f"""
    <ir_version: 10, opset_import: ["" : 21, "local" : 1]>
    g (bool c, float[2] x, {other} w) => (int64[1] y, int64[1] z) {{
       y = local.f (c, x)
       z = local.f (c, w)
    }}
    <domain: "local", opset_import: ["" : 21]> f (c, x) => (y) {{
       y = If (c) <then_branch = a () => (p) {{ p = Shape (x) }},
                   else_branch = b () => (q) {{ s = Shape (x) q = Neg (s) }}>
    }}
    """
    result = assert_rewrite(text, pipeline="hoist", options=FOLDING)
    assert ("Shape" not in str(result.model.functions[0])) == told


def test_sizes_that_a_guard_hands_on_rest_on_what_is_guarded() -> None:
    """Cut out without it, nothing would tell the size: the type that is inferred does not."""
    model = onnx.load(GOLDEN_MODELS / "hoist" / "sizes_behind_a_guard.before.onnxtxt")
    (round_, *_) = Engine([rule_named("fold-constants")]).fixpoint(Model(model))
    (shape, gather) = round_.rewritten
    assert [node.op_type for node in shape.edit.context] == ["Shape", "Add", "Where", "Reshape"]
    before = cut(round_, shape).before
    assert [value.name for value in before.graph.input] == ["x", "ok"]
    assert [node.op_type for node in gather.edit.context] == ["Constant"]
