"""Functions with the names of ONNX's operators compute what they say, under every command.

The rewrites run without verification: no rule may rest on a name alone.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest

import passes

pytestmark = pytest.mark.sampled

#: Each differs from the operator of ONNX that bears its name.
FUNCTIONS = """
<domain: "my", opset_import: ["" : 17]>
Identity (a) => (b) { most = Constant <value_float = 100.0> ()  b = Min (a, most) }
<domain: "my", opset_import: ["" : 17]>
Not (a) => (b) { b = Identity (a) }
<domain: "my", opset_import: ["" : 17]>
Less (a, b) => (c) { two = Constant <value_int = 2> ()  half = Div (b, two)  c = Less (a, half) }
<domain: "my", opset_import: ["" : 17]>
Add (a, b) => (c) { d = Add (a, b)  c = Add (d, b) }
<domain: "my", opset_import: ["" : 17]>
Cast (a) => (b) { one = Constant <value_int = 1> ()  b = Sub (a, one) }
<domain: "my", opset_import: ["" : 17]>
Gather (a, i) => (b) { zero = Constant <value_int = 0> ()  s = Mul (i, zero)  b = Gather (a, s) }
<domain: "my", opset_import: ["" : 17]>
Constant () => (b) { b = RandomUniform <shape = [1], seed = 1.0> () }
<domain: "my", opset_import: ["" : 17]>
Shape (a) => (b) { s = Shape (a)  b = Add (s, s) }
"""

HEAD = '<ir_version: 8, opset_import: ["" : 17, "my" : 1]>'

MODELS = {
    "identity on a state": """
        g (float[2] x) => (float[2] y) <int64 n = {3}> {
            y = Loop (n, , x) <body = step (int64 i, bool c, float[2] s) => (bool d, float[2] t) {
                d = Identity (c)
                u = my.Identity (s)
                t = Identity (u)
            }>
        }""",
    "identity of an invariant": """
        g (float[2] x) => (float[2] y) <int64 n = {3}> {
            y = Loop (n, , x) <body = step (int64 i, bool c, float[2] s) => (bool d, float[2] t) {
                d = Identity (c)
                k = my.Identity (x)
                t = Add (s, k)
            }>
        }""",
    "identity as the whole step": """
        g (float[2] x) => (float[2] y) <int64 n = {3}> {
            y = Loop (n, , x) <body = step (int64 i, bool c, float[2] s) => (bool d, float[2] t) {
                d = Identity (c)
                t = my.Identity (s)
            }>
        }""",
    "identity collected": """
        g (float[3,2] x) => (float[3,2] y) {
            y = Scan <num_scan_inputs = 1, body = step (float[2] r) => (float[2] t) {
                t = my.Identity (r)
            }> (x)
        }""",
    "identity of a branch": """
        g (float[2] x, bool c) => (float[2] y) {
            u = my.Identity (x)
            y = If (c) <
                then_branch = one () => (float[2] a) { a = Identity (u) },
                else_branch = other () => (float[2] b) { b = my.Identity (u) }
            >
        }""",
    "identity of a constant": """
        g (float[2] x) => (float[2] y) <int64 n = {3}, float[2] w = {500, 700}> {
            k = my.Identity (w)
            y = Loop (n, , x) <body = step (int64 i, bool c, float[2] s) => (bool d, float[2] t) {
                d = Identity (c)
                h = my.Identity (w)
                l = Add (h, k)
                t = Add (s, l)
            }>
        }""",
    "identity outside": """
        g (float[2] x) => (float[2] y) { y = my.Identity (x) }""",
    "less as a condition": """
        g (float[2] x) => (float[2] y) <int64 n = {9}, bool yes = {1}, int64 one = {1}> {
            y = Loop (n, yes, x)
            <body = step (int64 i, bool c, float[2] s) => (bool d, float[2] t) {
                j = Add (i, one)
                d = my.Less (j, n)
                t = Add (s, x)
            }>
        }""",
    "not as a condition": """
        g (float[2] x) => (float[2] y) <int64 n = {5}, bool yes = {1}> {
            y = Loop (n, yes, x)
            <body = step (int64 i, bool c, float[2] s) => (bool d, float[2] t) {
                e = my.Not (c)
                d = my.Not (e)
                t = Add (s, x)
            }>
        }""",
    "add as a counter": """
        g (float[2] x) => (float[2] y)
        <int64 n = {9}, bool yes = {1}, int64 one = {1}, int64 z = {0}> {
            _j, y = Loop (n, yes, z, x)
            <body = step (int64 i, bool c, int64 j, float[2] s)
                => (bool d, int64 k, float[2] t) {
                k = my.Add (j, one)
                d = Less (k, n)
                t = Add (s, x)
            }>
        }""",
    "cast of the trip count": """
        g (float[2] x) => (float[2] y) <int64 n = {4}> {
            m = my.Cast (n)
            y = Loop (m, , x) <body = step (int64 i, bool c, float[2] s) => (bool d, float[2] t) {
                d = Identity (c)
                t = Add (s, x)
            }>
        }""",
    "gather of a row": """
        g (float[4,2] x) => (float[4,2] y) <int64 n = {4}, bool yes = {1}> {
            y = Loop (n, yes) <body = step (int64 i, bool c) => (bool d, float[2] t) {
                d = Identity (c)
                r = my.Gather (x, i)
                t = Add (r, r)
            }>
        }""",
    "shape as a bound": """
        g (float[4] x) => (float[4] y) {
            s = my.Shape (x)
            m = Squeeze (s)
            y = Loop (m, , x) <body = step (int64 i, bool c, float[4] s) => (bool d, float[4] t) {
                d = Identity (c)
                t = Add (s, x)
            }>
        }""",
    "branches of an if": """
        g (float[2] x, bool c) => (float[2] y) {
            y = If (c) <
                then_branch = one () => (float[2] a) { u = my.Identity (x) a = Identity (u) },
                else_branch = other () => (float[2] b) { b = Identity (x) }
            >
        }""",
}

COMMANDS: dict[str, Callable[[onnx.ModelProto], passes.Result]] = {
    "simplify": lambda model: passes.simplify(model, verify=False),
    "hoist": lambda model: passes.hoist(model, verify=False),
    "raise": lambda model: passes.raise_(model, verify=False),
    "unroll": lambda model: passes.unroll(model, verify=False),
    "factor": lambda model: passes.unroll(model, factor=2, verify=False),
    "peel": lambda model: passes.unroll(model, peel="first", verify=False),
    "optimize": lambda model: passes.optimize(model, verify=False),
    "loop-only": lambda model: passes.optimize(model, target="loop-only", verify=False),
    "no-control-flow": lambda model: passes.optimize(model, target="no-control-flow", verify=False),
    "upgrade": lambda model: passes.upgrade(model, opset=21, verify=False),
}


def run(model: onnx.ModelProto) -> np.ndarray:
    session = onnxruntime.InferenceSession(model.SerializeToString())
    sizes = session.get_inputs()[0].shape
    feeds = {"x": np.arange(500, 500 + np.prod(sizes), dtype=np.float32).reshape(sizes)}
    if len(session.get_inputs()) > 1:
        feeds["c"] = np.array(True)
    return np.asarray(session.run(None, feeds)[0])


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("case", MODELS)
def test_gives_what_the_original_gives(case: str, command: str) -> None:
    model = onnx.parser.parse_model(HEAD + MODELS[case] + FUNCTIONS)
    np.testing.assert_array_equal(run(COMMANDS[command](model).model), run(model))


def test_a_function_with_the_name_of_an_operator_of_onnx_is_ambiguous(tmp_path: Path) -> None:
    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 17]>'
        "g (float[2] x) => (float[2] y) { y = Neg (x) }"
        '<domain: "", opset_import: ["" : 17]> Neg (a) => (b) { b = Abs (a) }'
    )
    with pytest.raises(passes.BadModel, match=r"the name of ONNX's own operator Neg"):
        passes.simplify(model)
