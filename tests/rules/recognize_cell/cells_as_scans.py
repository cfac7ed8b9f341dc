"""Steps of an LSTM and a GRU as the bodies of Scans, with weights, and what becomes of them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache

import numpy as np
import onnx
import pytest
from in_both_executors import tensors
from moved_work import ops

from passes.testing import as_model, assert_refused, assert_rewrite
from passes.verify.reference import ReferenceExecutor
from tests.written import changed

WIDTH, INPUTS = 2, 3

#: An LSTM step for any number of rows, steps and states; `cell` chooses them and adds the weights.
LSTM = """
<ir_version: 8, opset_import: ["" : 18]>
g (float[ROWS,WIDTH] h0, float[ROWS,WIDTH] c0, float[TIME,ROWS,3] x)
=> (float[ROWS,WIDTH] hT, float[ROWS,WIDTH] cT, float[TIME,ROWS,WIDTH] ys)
{
    hT, cT, ys = Scan <num_scan_inputs = 1,
        scan_input_axes = [0], scan_input_directions = [0],
        scan_output_axes = [0], scan_output_directions = [0],
        body = step (float[ROWS,WIDTH] h_in, float[ROWS,WIDTH] c_in, float[ROWS,3] x_t)
        => (float[ROWS,WIDTH] h_out, float[ROWS,WIDTH] c_out, float[ROWS,WIDTH] y)
        {
            a = MatMul (x_t, W)  b = MatMul (h_in, R)  ab = Add (a, b)  s = Add (ab, bias)
            i0, o0, f0, g0 = Split <axis = 1, num_outputs = 4> (s)
            i = Sigmoid (i0)  o = Sigmoid (o0)  f = Sigmoid (f0)  g = Tanh (g0)
            fc = Mul (f, c_in)  ig = Mul (i, g)  c_out = Add (fc, ig)
            t = Tanh (c_out)  h_out = Mul (o, t)
            y = Identity (h_out)
        }> (h0, c0, x)
}
"""
SUMS = "a = MatMul (x_t, W)  b = MatMul (h_in, R)  ab = Add (a, b)  s = Add (ab, bias)"
SPLIT = "i0, o0, f0, g0 = Split <axis = 1, num_outputs = 4> (s)"
ACTIVATED = "i = Sigmoid (i0)  o = Sigmoid (o0)  f = Sigmoid (f0)  g = Tanh (g0)"

#: A GRU step that resets the state after the product.
GRU = """
<ir_version: 8, opset_import: ["" : 18]>
g (float[ROWS,WIDTH] h0, float[TIME,ROWS,3] x)
=> (float[ROWS,WIDTH] hT, float[TIME,ROWS,WIDTH] ys)
{
    hT, ys = Scan <num_scan_inputs = 1,
        scan_input_axes = [0], scan_input_directions = [0],
        scan_output_axes = [0], scan_output_directions = [0],
        body = step (float[ROWS,WIDTH] h_in, float[ROWS,3] x_t)
        => (float[ROWS,WIDTH] h_out, float[ROWS,WIDTH] y)
        {
            a = MatMul (x_t, W)  aa = Add (a, bias)  b = MatMul (h_in, R)
            az, ar, an = Split <axis = 1, num_outputs = 3> (aa)
            bz, br, bn = Split <axis = 1, num_outputs = 3> (b)
            z0 = Add (az, bz)  z = Sigmoid (z0)  r0 = Add (ar, br)  r = Sigmoid (r0)
            n0 = Mul (r, bn)  n1 = Add (an, n0)  n = Tanh (n1)
            d = Sub (h_in, n)  k = Mul (z, d)  h_out = Add (n, k)
            y = Identity (h_out)
        }> (h0, x)
}
"""
UPDATE = "d = Sub (h_in, n)  k = Mul (z, d)  h_out = Add (n, k)"
#: The same in another spelling.
MIXED = """one = Constant <value = float {1}> ()  rest = Sub (one, z)
    p = Mul (rest, n)  q = Mul (z, h_in)  h_out = Add (p, q)"""


def drawn(width: int, gates: int, scale: float) -> dict[str, np.ndarray]:
    draw = np.random.default_rng(7)
    wide = gates * width
    shapes = {"W": (INPUTS, wide), "R": (width, wide), "bias": (wide,)}
    return {
        name: (scale * draw.standard_normal(shape)).astype(np.float32)
        for name, shape in shapes.items()
    }


def weights(gates: int) -> dict[str, np.ndarray]:
    return drawn(WIDTH, gates, 1.0)


def cell(
    text: str,
    *,
    batch: str = "2",
    time: str = "T",
    width: int = WIDTH,
    given: Mapping[str, np.ndarray] | None = None,
) -> onnx.ModelProto:
    """A model of these sizes; those of its weights that are no inputs are initializers."""
    sizes = {"ROWS": batch, "TIME": time, "WIDTH": str(width)}
    model = as_model(changed(text, {name: size for name, size in sizes.items() if name in text}))
    elem = onnx.helper.tensor_dtype_to_np_dtype(model.graph.input[0].type.tensor_type.elem_type)
    inputs = {value.name for value in model.graph.input}
    for name, value in (weights(4 if "c_out" in text else 3) if given is None else given).items():
        if name not in inputs and re.search(rf"\b{name}\b", text):
            tensor = onnx.numpy_helper.from_array(value.astype(elem), name)
            model.graph.initializer.append(tensor)
    return model


def fed(text: str, inputs: str) -> str:
    """The model with more inputs."""
    return changed(text, {"[TIME,ROWS,3] x)": f"[TIME,ROWS,3] x, {inputs})"})


def everywhere(model: onnx.ModelProto) -> list[str]:
    """The ops of the main graph and of branches."""
    found = ops(model)
    for node in model.graph.node:
        for attribute in node.attribute:
            if node.op_type == "If":
                found += [node.op_type for node in attribute.g.node]
    return found


def recognized(model: onnx.ModelProto, **options: object) -> onnx.ModelProto:
    """The outcome, verified, in which the loop is gone."""
    result = assert_rewrite(model, pipeline="recognize-cell", options=options)
    found = everywhere(result.model)
    assert "Scan" not in found, [refusal.sentence for refusal in result.report.refusals]
    assert {"LSTM", "GRU"} & {*found}
    return result.model


def not_a_cell(model: onnx.ModelProto) -> None:
    assert_refused(model, "not-a-cell", pipeline="recognize-cell")


@cache
def of_any_batch(step: str) -> tuple[onnx.ModelProto, onnx.ModelProto]:
    """A model for any number of rows, before and after."""
    before = cell(step, batch="B")
    return before, assert_rewrite(before, pipeline="recognize-cell").model


@cache
def of_two_rows(step: str) -> tuple[onnx.ModelProto, onnx.ModelProto]:
    """A model for any time, before and after."""
    before = cell(step)
    return before, recognized(before)


STEPS = [pytest.param(LSTM, id="LSTM"), pytest.param(GRU, id="GRU")]


def reference(model: onnx.ModelProto, feeds: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    return tensors(ReferenceExecutor(), model, feeds)


BACKWARDS = {"scan_input_directions = [0]": "scan_input_directions = [1]"}
COLLECTED_BACKWARDS = {"scan_output_directions = [0]": "scan_output_directions = [1]"}
