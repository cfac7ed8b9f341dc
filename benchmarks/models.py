"""Models of any size to measure on."""

from __future__ import annotations

import numpy as np
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, helper, numpy_helper, parser

FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
_SHAPE = (1, 1, 2, 2)


def chain(nodes: int, *, changing: int = 0, opset: int = 8) -> ModelProto:
    """A chain of `nodes`; every `changing`-th is an Upsample-7 that means nothing since 9."""
    return _model(_chain_graph(nodes, changing), opset)


def squeezed(nodes: int, *, changing: int = 0, opset: int = 17) -> ModelProto:
    """A chain of about `nodes`; every `changing`-th is an Unsqueeze with a Squeeze behind, whose
    axes are attributes before opset 13."""
    graph = GraphProto(name="chain")
    graph.input.append(helper.make_tensor_value_info("v_0", FLOAT, _SHAPE))
    graph.initializer.append(numpy_helper.from_array(np.array([1]), "axes"))
    index = 0
    while index < nodes:
        name, middle, after = (f"v_{index + step}" for step in range(3))
        if changing and index % changing == 0:
            graph.node.append(helper.make_node("Unsqueeze", [name, "axes"], [middle]))
            graph.node.append(helper.make_node("Squeeze", [middle, "axes"], [after]))
            index += 2
        else:
            graph.node.append(_chain_node(index, 0))
            index += 1
    graph.output.append(helper.make_tensor_value_info(f"v_{index}", FLOAT, _SHAPE))
    return _model(graph, opset)


def chosen(nodes: int, *, opset: int = 17) -> ModelProto:
    """A chain of `nodes` on N rows, with an If in the middle that an input decides, `rate`: in each
    branch a node reads the chain so far."""
    graph = _chain_graph(nodes, 0)
    for value in (*graph.input, *graph.output):
        value.type.tensor_type.shape.dim[0].dim_param = "N"
    graph.input.append(helper.make_tensor_value_info("rate", INT64, []))
    graph.initializer.append(numpy_helper.from_array(np.array(16_000), "wide"))
    middle = graph.node[nodes // 2]
    branches = {
        f"{name}_branch": helper.make_graph(
            [helper.make_node(op, [middle.input[0]], [name])],
            name,
            [],
            [helper.make_tensor_value_info(name, FLOAT, ["N", *_SHAPE[1:]])],
        )
        for name, op in (("then", "Abs"), ("else", "Neg"))
    }
    rest = [helper.make_node("Equal", ["rate", "wide"], ["is_wide"])]
    rest.append(helper.make_node("If", ["is_wide"], [middle.output[0]], **branches))
    rest += graph.node[nodes // 2 + 1 :]
    del graph.node[nodes // 2 :]
    graph.node.extend(rest)
    return _model(graph, opset)


def nested(loops: int, *, nodes: int = 10, changing: int = 10, opset: int = 8) -> ModelProto:
    """A chain of Loops, each with a chain of `nodes` in its body."""
    graph = GraphProto(name="loops")
    graph.input.append(helper.make_tensor_value_info("trips", INT64, []))
    graph.input.append(helper.make_tensor_value_info("x_0", FLOAT, _SHAPE))
    for number in range(loops):
        body = _loop_body(nodes, changing)
        names = ["trips", "", f"x_{number}"]
        graph.node.append(helper.make_node("Loop", names, [f"x_{number + 1}"], body=body))
    graph.output.append(helper.make_tensor_value_info(f"x_{loops}", FLOAT, _SHAPE))
    return _model(graph, opset)


def convolutions(blocks: int, *, channels: int = 16, opset: int = 11) -> ModelProto:
    """A CNN: a convolution, a normalization and a Relu in each block, on images of 16 by 16."""
    draw = np.random.default_rng(0)
    graph = GraphProto(name="convolutions")
    shape = ["N", channels, 16, 16]
    graph.input.append(helper.make_tensor_value_info("x_0", FLOAT, shape))
    for number in range(blocks):
        kernel = draw.standard_normal((channels, channels, 3, 3)) / 12
        numbers = np.abs(draw.standard_normal((4, channels))) + 0.5
        for name, value in zip(("kernel", *"sbmv"), (kernel, *numbers), strict=True):
            tensor = numpy_helper.from_array(value.astype(np.float32), f"{name}_{number}")
            graph.initializer.append(tensor)
        read = [f"x_{number}", f"kernel_{number}"]
        graph.node.add(op_type="Conv", input=read, output=[f"c_{number}"])
        graph.node[-1].attribute.append(helper.make_attribute("pads", [1] * 4))
        read = [f"c_{number}", *(f"{name}_{number}" for name in "sbmv")]
        graph.node.add(op_type="BatchNormalization", input=read, output=[f"n_{number}"])
        graph.node.add(op_type="Relu", input=[f"n_{number}"], output=[f"x_{number + 1}"])
    graph.output.append(helper.make_tensor_value_info(f"x_{blocks}", FLOAT, shape))
    return _model(graph, opset)


_SUM = """
    sum (float[2] sum_in, float[2] next) => (float[2] sum_out, float[2] all) {
        sum_out = Add (sum_in, next)
        all = Identity (sum_out)
    }
"""


def sums(sites: int) -> ModelProto:
    """A chain of Scan-8, each with the sum of the operator document as its body."""
    graph = GraphProto(name="sums")
    graph.input.append(helper.make_tensor_value_info("x", FLOAT, ["B", "T", 2]))
    graph.input.append(helper.make_tensor_value_info("y_0", FLOAT, ["B", 2]))
    body = parser.parse_graph(_SUM)
    for number in range(sites):
        outputs = [f"y_{number + 1}", f"z_{number}"]
        names = ["", f"y_{number}", "x"]
        graph.node.append(helper.make_node("Scan", names, outputs, body=body, num_scan_inputs=1))
    graph.output.append(helper.make_tensor_value_info(f"y_{sites}", FLOAT, ["B", 2]))
    return _model(graph, 8)


_CELL = """
    <ir_version: 4, opset_import: ["" : 8]>
    rnn (int64[{batch}] lens, float[{batch},{width}] h0, float[{batch},{steps},{width}] x)
        => (float[{batch},{width}] h, float[{batch},{steps},{width}] hs)
    {{
        h, hs = Scan <num_scan_inputs = 1, body = cell
            (float[{width}] h_in, float[{width}] x_t)
            => (float[{width}] h_out, float[{width}] h_all)
        {{
            a = MatMul (x_t, W)
            b = MatMul (h_in, R)
            c = Add (a, b)
            d = Add (c, bias)
            h_out = Tanh (d)
            h_all = Identity (h_out)
        }}> ({lens}, h0, x)
    }}
"""


def rnn(batch: int, width: int, steps: int, *, ragged: bool) -> ModelProto:
    """An RNN cell as the body of a Scan-8, its weights captured."""
    lens = "lens" if ragged else '""'
    model = parser.parse_model(_CELL.format(batch=batch, width=width, steps=steps, lens=lens))
    if not ragged:
        del model.graph.input[0]
    draw = np.random.default_rng(0)
    for name, shape in (("W", (width, width)), ("R", (width, width)), ("bias", (width,))):
        weight = (draw.standard_normal(shape) / np.sqrt(width)).astype(np.float32)
        model.graph.initializer.append(numpy_helper.from_array(weight, name))
    return model


def _chain_graph(nodes: int, changing: int) -> GraphProto:
    graph = GraphProto(name="chain")
    graph.input.append(helper.make_tensor_value_info("v_0", FLOAT, _SHAPE))
    graph.node.extend(_chain_node(index, changing) for index in range(nodes))
    graph.output.append(helper.make_tensor_value_info(f"v_{nodes}", FLOAT, _SHAPE))
    return graph


def _chain_node(index: int, changing: int) -> NodeProto:
    inputs, outputs = [f"v_{index}"], [f"v_{index + 1}"]
    if changing and index % changing == 0:
        return helper.make_node("Upsample", inputs, outputs, mode="nearest", scales=[1.0] * 4)
    # an attribute, as most nodes of real models have some
    return helper.make_node("LeakyRelu", inputs, outputs, alpha=0.5)


def _loop_body(nodes: int, changing: int) -> GraphProto:
    body = _chain_graph(nodes, changing)
    body.input.insert(0, helper.make_tensor_value_info("i", INT64, []))
    body.input.insert(1, helper.make_tensor_value_info("again", BOOL, []))
    body.node.add(op_type="Identity", input=["again"], output=["still"])
    body.output.insert(0, helper.make_tensor_value_info("still", BOOL, []))
    return body


def _model(graph: GraphProto, opset: int) -> ModelProto:
    imports = [helper.make_opsetid("", opset)]
    model: ModelProto = helper.make_model(graph, opset_imports=imports)
    model.ir_version = max(4, helper.find_min_ir_version_for(imports))
    return model
