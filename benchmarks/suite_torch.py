"""Loops that torch's exporters wrote (golden_models/exported), at sizes that people use."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import ModelProto, numpy_helper

from benchmarks.suite import Case, add_weights, drawn, model

_FOLDER = Path(__file__).parent.parent / "golden_models" / "exported" / "torch"


def cases(quick: bool) -> Iterator[Case]:
    """Scripted Loops that collect in a sequence or fill a buffer, and the Scan of torch.scan."""
    yield _cell(2, 3, 4, 2) if quick else _cell(128, 4, 128, 256)
    yield _recurrence(3, 2, 4) if quick else _recurrence(128, 8, 256)
    yield _stacked(4, 3) if quick else _stacked(512, 512)
    yield _softmax(4, 3) if quick else _softmax(512, 1_000)
    yield _filled(4, 3) if quick else _filled(256, 256)
    yield _nested(4, 3) if quick else _nested(32, 32)


def _cell(steps: int, batch: int, width: int, hidden: int) -> Case:
    """An LSTM written out in Python, its weights parameters."""
    wide = 4 * hidden
    original = _exported(
        "script_cell.opset13",
        {
            "x0_d0,2,3] x0": f"x0_d0,{batch},{width}] x0",
            "float[3,8]": f"float[{width},{wide}]",
            "float[2,8]": f"float[{hidden},{wide}]",
            '"onnx::Concat_62" = Constant <value: tensor = int64[1] {2}>':
                f'"onnx::Concat_62" = Constant <value: tensor = int64[1] {{{hidden}}}>',
        },
    )  # fmt: skip
    state = f"float[{batch},{hidden}]"
    noughts = ", ".join(["0"] * batch * hidden)
    by_hand = f"""cell (float[T,{batch},{width}] x0) => (float[T,{batch},{hidden}] y0, {state} y1)
        <{state} nought = {{{noughts}}}> {{ p = MatMul (x0, x1)
        h, y1, y0 = Scan <num_scan_inputs = 1, body = step
            ({state} h_in, {state} c_in, float[{batch},{wide}] p_t)
            => ({state} h_out, {state} c_out, {state} y_t) {{
            r = MatMul (h_in, x2)  s = Add (p_t, r)
            i0, f0, g0, o0 = Split <axis = 1> (s)
            i = Sigmoid (i0)  f = Sigmoid (f0)  g = Tanh (g0)  o = Sigmoid (o0)
            fc = Mul (f, c_in)  ig = Mul (i, g)  c_out = Add (fc, ig)
            tc = Tanh (c_out)  h_out = Mul (o, tc)  y_t = Identity (h_out)
        }}> (nought, nought, p) }}"""
    weights = drawn(0, X1=(width, wide), X2=(hidden, wide))
    weights = {name.lower(): value for name, value in weights.items()}
    add_weights(original, weights)
    feeds = drawn(1, x0=(steps, batch, width))
    return Case("torch: LSTM", original, feeds, model(by_hand, weights, 17))


def _recurrence(steps: int, batch: int, width: int) -> Case:
    """torch.scan, which is a Scan whose body is as small as it gets: the same by hand."""
    original = _exported(
        "operator_scanned_recurrence.opset18",
        {"5,2,3]": f"{steps},{batch},{width}]", "[2,3]": f"[{batch},{width}]",
         "[3,3]": f"[{width},{width}]"},
        {"zeros": (batch, width)},
    )  # fmt: skip
    weights = drawn(0, X1=(width, width))
    add_weights(original, {"x1": weights["X1"]})
    return Case("torch: scan", original, drawn(1, x0=(steps, batch, width)), original)


def _stacked(steps: int, width: int) -> Case:
    """A state that is appended to a list."""
    sizes = {"x0_d0,3]": f"x0_d0,{width}]", 'float[3] "h.11"': f'float[{width}] "h.11"'}
    original = _exported("script_list_stacked.opset13", sizes)
    (zeros,) = (node for node in original.graph.node if "onnx::Loop_3" in node.output)
    zeros.attribute[0].t.CopyFrom(numpy_helper.from_array(_nought((width,))))
    by_hand = f"""stacked (float[T,{width}] x0) => (float[T,{width}] y0) {{
        size = Constant <value_ints = [{width}]> ()  noughts = ConstantOfShape (size)
        h, y0 = Scan <num_scan_inputs = 1, body = step (float[{width}] h_in, float[{width}] x_t)
            => (float[{width}] h_out, float[{width}] y_t) {{
            half = Constant <value = float {{0.5}}> ()  a = Mul (h_in, half)  b = Add (a, x_t)
            h_out = Tanh (b)  y_t = Identity (h_out) }}> (noughts, x0) }}"""
    return Case("torch: list", original, drawn(1, x0=(steps, width)), model(by_hand))


def _softmax(steps: int, width: int) -> Case:
    """The two best of each row, appended to a list."""
    original = _exported("script_softmax_steps.opset18", {"x0_d0,3]": f"x0_d0,{width}]"})
    by_hand = f"""best (float[T,{width}] x0) => (float[2,T] y0) {{
        two = Constant <value_ints = [2]> ()  p = Softmax <axis = -1> (x0)  top, at = TopK (p, two)
        low = Constant <value = float {{0.1}}> ()  high = Constant <value = float {{0.9}}> ()
        clipped = Clip (top, low, high)  y0 = Transpose <perm = [1, 0]> (clipped) }}"""
    return Case("torch: two best", original, drawn(1, x0=(steps, width)), model(by_hand))


def _filled(steps: int, width: int) -> Case:
    """A buffer that is filled row by row."""
    original = _exported("script_buffer_filled.opset18", {"x0_d0,3]": f"x0_d0,{width}]"})
    by_hand = f"""filled (float[T,{width}] x0) => (float[T,{width}] y0) {{
        two = Constant <value = float {{2}}> ()  one = Constant <value = float {{1}}> ()
        d = Mul (x0, two)  y0 = Add (d, one) }}"""
    return Case("torch: buffer", original, drawn(1, x0=(steps, width)), model(by_hand))


def _nested(steps: int, width: int) -> Case:
    """A weighted sum over all elements in two loops: their order is that of the roundings."""
    original = _exported("script_nested_loops.opset9", {"x0_d0,3]": f"x0_d0,{width}]"})
    by_hand = f"""nested (float[T,{width}] x0) => (float[1] y0) {{
        zero = Constant <value = int64 {{0}}> ()  one = Constant <value = int64 {{1}}> ()
        first = Constant <value_ints = [0]> ()  rows = Shape <start = 0, end = 1> (x0)
        t = Squeeze (rows, first)  wide = Constant <value = int64 {{{width}}}> ()
        i = Range (zero, t, one)  j = Range (zero, wide, one)
        second = Constant <value_ints = [1]> ()  column = Unsqueeze (i, second)
        d = Sub (column, j)  f = Cast <to = 1> (d)  m = Mul (x0, f)
        to = Constant <value_ints = [-1, 1]> ()  all = Reshape (m, to)
        nought = Constant <value_floats = [0.0]> ()
        y0 = Scan <num_scan_inputs = 1, body = step (float[1] s_in, float[1] m_t)
            => (float[1] s_out) {{ s_out = Add (s_in, m_t) }}> (nought, all) }}"""
    feeds = drawn(1, x0=(steps, width))
    return Case("torch: nested", original, feeds, model(by_hand), opset=18)


def _exported(
    name: str, sizes: Mapping[str, str], zeros: Mapping[str, tuple[int, ...]] | None = None
) -> ModelProto:
    """An exported model with other sizes, `sizes` being replaced in its text."""
    loaded = onnx.load(_FOLDER / f"{name}.onnx")
    for one in [one for one in loaded.graph.initializer if one.name in (zeros or {})]:
        loaded.graph.initializer.remove(one)
    del loaded.graph.value_info[:]
    text = onnx.printer.to_text(loaded)
    for old, new in sizes.items():
        text = text.replace(old, new)
    made: ModelProto = onnx.parser.parse_model(text)
    add_weights(made, {name: _nought(shape) for name, shape in (zeros or {}).items()})
    return made


def _nought(shape: tuple[int, ...]) -> NDArray[np.generic]:
    return np.zeros(shape, np.float32)
