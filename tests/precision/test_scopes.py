"""Casts of values whose names, scopes and trip counts are easily confused."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import ModelProto

from passes.choices import Half, Retyping, RuleOptions
from passes.ir.model import Model
from passes.precision.casting import cast
from passes.types.dtypes import Array
from passes.verify.reference import ReferenceExecutor

#: A name in two sibling bodies, of which one adds it up and the other does not.
SIBLINGS = """
    <ir_version: 8, opset_import: ["" : 17]>
    siblings (float[2] h, float[T,2] x) => (float[2] y, float[T,2] z) {
      y = Scan <num_scan_inputs = 1, body = adds (float[2] s, float[2] p) => (float[2] v) {
        v = Add (s, p)
      }> (h, x)
      u, z = Scan <num_scan_inputs = 1, body = maps (float[2] s, float[2] p)
          => (float[2] v, float[2] w) {
        v = Tanh (p)
        w = Neg (v)
      }> (h, x)
    }
"""
#: A value that is read through two levels, and an inner one of its name.
SHADOWED = """
    <ir_version: 8, opset_import: ["" : 17]>
    shadowed (float[2] h, float[T,2] x, bool c) => (float[2] y) {
      a = Tanh (h)
      y = Scan <num_scan_inputs = 1, body = step (float[2] s, float[2] p) => (float[2] v) {
        q = If (c) <
          then_branch = yes () => (float[2] r) { r = Mul (a, p) },
          else_branch = no () => (float[2] t) { b = Exp (p) t = Add (b, a) }>
        v = Add (s, q)
      }> (h, x)
    }
"""
#: A loop that its condition on floats ends, and that may run no iteration.
ENDS = """
    <ir_version: 8, opset_import: ["" : 17]>
    ends (float[2] h, int64 n, bool c) => (float[2] y, float[K,2] z) <float most = {4}> {
      y, z = Loop <body = step (int64 i, bool k, float[2] s)
          => (bool more, float[2] v, float[2] w) {
        v = Add (s, s)
        w = Sin (v)
        size = ReduceMax <keepdims = 0> (v)
        more = Less (size, most)
      }> (n, c, h)
    }
"""


def outputs(model: ModelProto, **feeds: Array) -> list[Array]:
    """The outputs of a model, in order, as tensors."""
    found = ReferenceExecutor().run(model, feeds).outputs.values()
    return [np.asarray(value, np.float32) for value in found]


@pytest.mark.parametrize("half", Half)
@pytest.mark.parametrize("length", [0, 1, 9])
@pytest.mark.parametrize("text", [SIBLINGS, SHADOWED, ENDS])
def test_outcomes_are_valid_and_near(text: str, length: int, half: str) -> None:
    model = onnx.parser.parse_model(text)
    made, _ = cast(Model(model), RuleOptions(retyping=Retyping(to=half)))
    onnx.checker.check_model(made, full_check=True)
    draw = np.random.default_rng(length)
    for condition in (True, False):
        known = {
            "h": draw.normal(size=2).astype(np.float32),
            "x": draw.normal(size=(length, 2)).astype(np.float32),
            "n": np.array(length, np.int64),
            "c": np.array(condition),
        }
        feeds = {one.name: known[one.name] for one in model.graph.input}
        for old, new in zip(outputs(model, **feeds), outputs(made, **feeds), strict=True):
            assert old.shape == new.shape
            assert np.allclose(old, new, rtol=0, atol=5e-2 * max(1, np.abs(old).max(initial=0)))


def test_a_state_of_one_name_stays_float32_in_one_body_alone() -> None:
    model = onnx.parser.parse_model(SIBLINGS)
    made, _ = cast(Model(model), RuleOptions(retyping=Retyping(to=Half.float16)))
    bodies = [a.g for node in made.graph.node for a in node.attribute if a.name == "body"]
    types = [[one.type.tensor_type.elem_type for one in body.input] for body in bodies]
    assert types[0] == [onnx.TensorProto.FLOAT] * 2
    assert types[1] == [onnx.TensorProto.FLOAT16] * 2
