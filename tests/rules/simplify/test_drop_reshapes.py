"""drop-reshapes: Reshapes whose result has the shape that they started from."""

from __future__ import annotations

import pytest
from onnx import GraphProto

import passes
from passes.testing import as_model, assert_rewrite
from tests.written import changed

ALONE = {"rules": ("drop-reshapes",)}


#: `n` is reshaped to `last` in a branch.
IN_BRANCH = """
<ir_version: 8, opset_import: ["" : 21]>
g (bool c, float[T,4] x) => (float[T,4] y) <int64[1] k = {1}> {
   y = If (c) <
      then_branch = a () => (float[T,4] p) {
         n = Neg (x)
         last = Identity (n)
         p = Identity (last)
      },
      else_branch = b () => (float[T,4] q) { q = Abs (x) }>
}
"""


def in_branch(nodes: str, constants: str) -> str:
    """The model with other nodes between `n` and `last`, and these initializers."""
    fixed = {"int64[1] k = {1}": constants}
    return changed(IN_BRANCH, {"last = Identity (n)": nodes} | fixed)


def ops(text: str) -> list[str]:
    result = assert_rewrite(text, pipeline="simplify", options=ALONE, budget=20)
    branches: list[GraphProto] = [
        attribute.g for attribute in result.model.graph.node[-1].attribute
    ]
    return [node.op_type for node in next(branch for branch in branches if branch.name == "a").node]


@pytest.mark.parametrize(
    ("nodes", "constants"),
    [
        ("a = Reshape (n, s) last = Squeeze (a, k)", "int64[3] s = {0, 1, 4}, int64[1] k = {1}"),
        ("a = Unsqueeze (n, k) last = Squeeze (a, k)", "int64[2] k = {0, -1}"),
        ("a = Unsqueeze (n, k) last = Reshape (a, s)", "int64[1] k = {1}, int64[2] s = {-1, 4}"),
        (
            "a = Reshape (n, s) last = Reshape (a, t)",
            "int64[3] s = {0, 2, 2}, int64[2] t = {-1, 4}",
        ),
        ("last = Reshape (n, s)", "int64[2] s = {0, 4}"),
        ("last = Reshape (n, s)", "int64[2] s = {0, 0}"),
        (
            "a = Reshape (n, s) b = Unsqueeze (a, k) d = Squeeze (b, k) last = Reshape (d, t)",
            "int64[3] s = {-1, 2, 2}, int64[1] k = {2}, int64[2] t = {-1, 4}",
        ),
    ],
)
def test_reshapes_back_to_the_same_shape_are_removed(nodes: str, constants: str) -> None:
    assert ops(in_branch(nodes, constants))[-2:] == ["Identity", "Identity"]


@pytest.mark.parametrize(
    ("nodes", "constants", "kind"),
    [
        ("a = Transpose (n) last = Reshape (a, s)", "int64[2] s = {-1, 4}", "float[T,4]"),
        # the sizes may be exchanged
        ("a = Reshape (n, s) last = Reshape (a, t)",
         "int64[1] s = {-1}, int64[2] t = {-1, 4}", "float[4,T]"),
        ("a = Reshape (n, s) last = Reshape (a, t)",
         "int64[1] s = {-1}, int64[2] t = {1, -1}", "float[T,U]"),
        # fails where there are no elements
        ("a = Reshape (n, s) last = Reshape (a, s)", "int64[2] s = {0, -1}", "float[T,4]"),
        ("last = Reshape <allowzero = 1> (n, s)", "int64[2] s = {0, 4}", "float[T,4]"),
        ("last = Squeeze (n)", "", "float[T,4]"),
        # onnxruntime drops all axes of size 1
        ("last = Squeeze (n, k)", "int64[0] k = {}", "float[T,4]"),
        ("a = Squeeze (n, k) last = Unsqueeze (a, k)", "int64[1] k = {0}", "float[T,4]"),
    ],
)  # fmt: skip
def test_reshapes_to_another_shape_stay(nodes: str, constants: str, kind: str) -> None:
    text = changed(in_branch(nodes, constants), {"float[T,4]": kind})
    before = as_model(text).graph.node[-1].attribute
    branch = next(one.g for one in before if one.g.name == "a")
    result = assert_rewrite(text, pipeline="simplify", options=ALONE, budget=20)
    after = next(
        attribute.g
        for attribute in result.model.graph.node[-1].attribute
        if attribute.g.name == "a"
    )
    assert [node.op_type for node in after.node] == [node.op_type for node in branch.node]


def test_axes_may_be_attributes() -> None:
    nodes = "a = Unsqueeze <axes = [1]> (n) last = Squeeze <axes = [1]> (a)"
    text = changed(in_branch(nodes, ""), {'"" : 21': '"" : 11'})
    assert ops(text)[-2:] == ["Identity", "Identity"]


def test_nodes_in_loops_stay() -> None:
    text = """
    <ir_version: 10, opset_import: ["" : 21]>
    g (float[T,4] x) => (float[T,4] y) <int64[1] k = {1}, int64 three = {3}> {
       y = Loop <body = step (int64 i, bool go, float[T,4] s) => (bool on, float[T,4] t) {
          on = Identity (go) c = Unsqueeze (s, k) t = Squeeze (c, k) }> (three, "", x)
    }"""
    model = as_model(text)
    result = assert_rewrite(model, pipeline="simplify", options=ALONE)
    assert result.model == model


def test_a_caller_may_choose_that_a_zero_is_a_size() -> None:
    text = """<ir_version: 10, opset_import: ["" : 21, "f" : 1]>
    g (bool c, float[T,4] x) => (float[T,4] y) { y = f.same <z: int = 1> (c, x) }
    <domain: "f", opset_import: ["" : 21]>
    same <z> (c, x) => (y) {
       y = If (c) <then_branch = a () => (float[T,4] p) {
                     n = Neg (x) s = Constant <value_ints = [0, 4]> ()
                     p = Reshape <allowzero: int = @z> (n, s)
                   }, else_branch = b () => (float[T,4] q) { q = Abs (x) }>
    }"""
    model = as_model(text)
    assert passes.simplify(model, rules=("drop-reshapes",)).model is model
