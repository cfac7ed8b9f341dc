"""Recurrent cells as Scan-8, the batched Scan that a person would write for the same cell, and
the operator."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import ModelProto

#: Per cell: its states, the gates of its weights, and its nodes; `{axis}` is that of a row, and
#: `{count}` how a newer Split says its parts.
CELLS = {
    "RNN": (
        ["h"],
        1,
        """a = MatMul (x_t, W)  b = MatMul (h_in, R)  c = Add (a, b)  d = Add (c, bias)
           h_out = Tanh (d)""",
    ),
    "GRU": (
        ["h"],
        3,
        """a = MatMul (x_t, W)  aa = Add (a, bias)  b = MatMul (h_in, R)
           az, ar, an = Split <axis = {axis}{count}> (aa)
           bz, br, bn = Split <axis = {axis}{count}> (b)
           z0 = Add (az, bz)  z = Sigmoid (z0)  r0 = Add (ar, br)  r = Sigmoid (r0)
           n0 = Mul (r, bn)  n1 = Add (an, n0)  n = Tanh (n1)
           d = Sub (h_in, n)  k = Mul (z, d)  h_out = Add (n, k)""",
    ),
    "LSTM": (
        ["h", "c"],
        4,
        """a = MatMul (x_t, W)  b = MatMul (h_in, R)  s = Add (a, b)  t = Add (s, bias)
           i0, o0, f0, g0 = Split <axis = {axis}{count}> (t)
           i = Sigmoid (i0)  o = Sigmoid (o0)  f = Sigmoid (f0)  g = Tanh (g0)
           fc = Mul (f, c_in)  ig = Mul (i, g)  c_out = Add (fc, ig)
           tc = Tanh (c_out)  h_out = Mul (o, tc)""",
    ),
}


def scan_8(cell: str, width: int, *, ragged: bool) -> ModelProto:
    """The cell as the operator document of Scan-8 would write it, for any batch and time."""
    states, gates, nodes = CELLS[cell]
    lens = "int64[B] lens, " if ragged else ""
    body = _body(states, nodes.format(axis=0, count=""), f"float[{width}]", "x_t")
    return _model(
        8,
        f"""{_head(states, width, lens)} {_weights(width, gates)} {{
            {_outputs(states)} = Scan <num_scan_inputs = 1, body = {body}>
               ({"lens" if ragged else '""'}, {_initials(states)}, x) }}""",
        width,
        gates,
    )


def by_hand(cell: str, width: int, *, ragged: bool) -> ModelProto:
    """One Scan over time whose body handles the whole batch; ragged rows are masked by Where."""
    states, gates, nodes = CELLS[cell]
    nodes = nodes.format(axis=1, count=f", num_outputs = {gates}")
    kind = f"float[B,{width}]"
    if not ragged:
        body = _body(states, nodes, kind, "x_t")
        return _model(
            21,
            f"""{_head(states, width, "")} {_weights(width, gates)} {{
                {_outputs(states)} = Scan <num_scan_inputs = 1, scan_input_axes = [1],
                   scan_output_axes = [1], body = {body}> ({_initials(states)}, x) }}""",
            width,
            gates,
        )
    for name in states:
        nodes = nodes.replace(f"{name}_out =", f"{name}_new =").replace("(c_out)", "(c_new)")
    nodes += "".join(f"  {name}_out = Where (on, {name}_new, {name}_in)" for name in states)
    nodes += "  nought = Constant <value = float {0.0}> ()  y_t = Where (on, h_new, nought)"
    body = _body(states, nodes, kind, "x_t", mask="bool[B,1] on")
    return _model(
        21,
        f"""{_head(states, width, "int64[B] lens, ")} {_weights(width, gates)} {{
            shape = Shape (x)  one = Constant <value = int64 {{1}}> ()
            zero = Constant <value = int64 {{0}}> ()
            T = Gather (shape, one)  steps = Range (zero, T, one)
            last = Constant <value = int64[1] {{-1}}> ()
            column = Unsqueeze (steps, last)  on_flat = Less (column, lens)
            on_all = Unsqueeze (on_flat, last)
            {_outputs(states)} = Scan <num_scan_inputs = 2, scan_input_axes = [1, 0],
               scan_output_axes = [1], body = {body}> ({_initials(states)}, x, on_all) }}""",
        width,
        gates,
    )


def operator(cell: str, width: int, steps: int, rows: int) -> ModelProto:
    """The operator, with drawn weights."""
    _, gates, _ = CELLS[cell]
    wide = width * gates
    shapes = {"w": (1, wide, width), "r": (1, wide, width), "b": (1, 2 * wide)}
    extra = ", linear_before_reset = 1" if cell == "GRU" else ""
    text = f"""<ir_version: 10, opset_import: ["" : 21]>
        cell (float[{steps},{rows},{width}] x) => (float[{steps},1,{rows},{width}] y)
            <float[1,{wide},{width}] w, float[1,{wide},{width}] r, float[1,{2 * wide}] b> {{
            y = {cell} <hidden_size = {width}{extra}> (x, w, r, b) }}"""
    model: ModelProto = onnx.parser.parse_model(text)
    draw = np.random.default_rng(0)
    del model.graph.initializer[:]
    for name, shape in shapes.items():
        value = (draw.standard_normal(shape) / np.sqrt(width)).astype(np.float32)
        model.graph.initializer.append(onnx.numpy_helper.from_array(value, name))
    return model


def products(cell: str, width: int) -> ModelProto:
    """Nothing but the two products of the cell, for all rows and steps at once."""
    _, gates, _ = CELLS[cell]
    return _model(
        21,
        f"""products (float[N,{width}] x, float[N,{width}] h) => (a, b) {_weights(width, gates)} {{
            a = MatMul (x, W)  b = MatMul (h, R) }}""",
        width,
        gates,
    )


def _head(states: list[str], width: int, lens: str) -> str:
    initials = ", ".join(f"float[B,{width}] {name}0" for name in states)
    finals = ", ".join(f"float[B,{width}] {name}T" for name in states)
    ends = f"(float[B,T,{width}] x)".replace("(", f"({lens}{initials}, ")
    return f"cell {ends} => ({finals}, float[B,T,{width}] y)"


def _weights(width: int, gates: int) -> str:
    wide = width * gates
    return f"<float[{width},{wide}] W, float[{width},{wide}] R, float[{wide}] bias>"


def _initials(states: list[str]) -> str:
    return ", ".join(f"{name}0" for name in states)


def _outputs(states: list[str]) -> str:
    return ", ".join([*(f"{name}T" for name in states), "y"])


def _body(states: list[str], nodes: str, kind: str, scanned: str, mask: str = "") -> str:
    inputs = ", ".join([*(f"{kind} {name}_in" for name in states), f"{kind} {scanned}"])
    inputs += f", {mask}" if mask else ""
    outputs = ", ".join([*(f"{kind} {name}_out" for name in states), f"{kind} y_t"])
    own = "" if mask else "  y_t = Identity (h_out)"
    return f"step ({inputs}) => ({outputs}) {{ {nodes}{own} }}"


def _model(opset: int, graph: str, width: int, gates: int) -> ModelProto:
    """The model, its weights drawn."""
    draw = np.random.default_rng(0)
    shapes = {"W": (width, width * gates), "R": (width, width * gates), "bias": (width * gates,)}
    head, weights, tail = graph.partition(_weights(width, gates))
    del weights
    text = f'<ir_version: {4 if opset == 8 else 8}, opset_import: ["" : {opset}]> {head}{tail}'
    model: ModelProto = onnx.parser.parse_model(text)
    for name, shape in shapes.items():
        value = draw.standard_normal(shape) / np.sqrt(width)
        model.graph.initializer.append(onnx.numpy_helper.from_array(value.astype(np.float32), name))
    return model
