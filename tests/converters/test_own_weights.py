"""Weights move into the body that alone reads them, and are never copied."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import GraphProto, ModelProto, TensorProto, helper, numpy_helper

from passes.ir import scope as scoping
from passes.testing import assert_rewrite

WIDTH = 40  # a weight of 6,400 bytes


def cells(*outputs: str, more: str = "", ir_version: int = 8) -> ModelProto:
    """A Scan-8 for each output, all with the same weight W."""
    nodes = "".join(
        f"""{out} = Scan <num_scan_inputs = 1,
        body = cell (float[{WIDTH}] s, float[{WIDTH}] x_t) => (float[{WIDTH}] t)
        {{ a = MatMul (x_t, W) t = Add (s, a) }}> ("", h, x) """
        for out in outputs
    )
    ends = ", ".join(f"float[B,{WIDTH}] {out}" for out in (*outputs, *(["z"] if more else [])))
    model = onnx.parser.parse_model(
        f"""<ir_version: {ir_version}, opset_import: ["" : 8]>
        cells (float[B,{WIDTH}] h, float[B,T,{WIDTH}] x) => ({ends}) {{ {nodes} {more} }}"""
    )
    weight = np.arange(WIDTH * WIDTH, dtype=np.float32).reshape(WIDTH, WIDTH) / 4096
    model.graph.initializer.append(numpy_helper.from_array(weight, "W"))
    if ir_version < 4:
        kind = helper.make_tensor_value_info("W", TensorProto.FLOAT, weight.shape)
        model.graph.input.append(kind)
    return model


def weights(model: ModelProto) -> list[str]:
    """The graphs that hold a weight, once for each."""
    return [
        graph.name
        for graph in scoping.graphs_below(model.graph)
        if isinstance(graph, GraphProto)
        for tensor in graph.initializer
        if list(tensor.dims) == [WIDTH, WIDTH]
    ]


@pytest.mark.parametrize("opset", [9, 13, 21])
def test_the_weight_of_one_scan_moves_into_its_body(opset: int) -> None:
    result = assert_rewrite(cells("y"), opset=opset)
    assert weights(result.model) == ["cell"]


@pytest.mark.slow
def test_at_ir_3_it_is_an_input_no_more() -> None:
    result = assert_rewrite(cells("y", ir_version=3), opset=21)
    assert weights(result.model) == ["cell"]
    assert scoping.input_names(result.model.graph) == ["h", "x"]


@pytest.mark.sampled(3)  # each model, each opset
@pytest.mark.parametrize("opset", [9, 21])
@pytest.mark.parametrize(
    "model", [cells("y", "y2"), cells("y", more="z = MatMul (h, W)")], ids=["two scans", "a node"]
)
def test_a_weight_that_others_read_stays(model: ModelProto, opset: int) -> None:
    result = assert_rewrite(model, opset=opset)
    assert weights(result.model) == ["cells"]


@pytest.mark.slow
def test_a_weight_that_a_caller_may_override_stays() -> None:
    model = cells("y")
    kind = helper.make_tensor_value_info("W", TensorProto.FLOAT, (WIDTH, WIDTH))
    model.graph.input.append(kind)
    result = assert_rewrite(model, opset=21)
    assert weights(result.model) == ["cells"]
    assert "W" in scoping.input_names(result.model.graph)


def test_a_weight_that_is_an_output_stays() -> None:
    model = cells("y")
    model.graph.output.append(helper.make_tensor_value_info("W", TensorProto.FLOAT, (WIDTH, WIDTH)))
    assert weights(assert_rewrite(model, opset=21).model) == ["cells"]
