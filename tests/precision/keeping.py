"""Which nodes and values of a model stay in float32, and two models that tests share."""

from __future__ import annotations

from collections.abc import Sequence

import onnx
from onnx import TensorProto

from passes.ir.model import Model
from passes.precision.defaults import float_seeds
from passes.precision.flow import Flow
from passes.precision.seeds import Seeds

EMA = """
    <ir_version: 8, opset_import: ["" : 17]>
    ema (float[N] h0, float[T,N] xs, float[T,N] ts) => (float[N] h) {
      a = Constant <value_float = -0.5> ()
      at = Mul (ts, a)
      decays = Exp (at)
      h = Scan <num_scan_inputs = 2, body = step
        (float[N] h_in, float[N] x, float[N] decay) => (float[N] h_out) {
          one = Constant <value_float = 1.0> ()
          new = Sub (one, decay)
          added = Mul (new, x)
          left = Mul (decay, h_in)
          h_out = Add (left, added)
        }> (h0, xs, decays)
    }
"""

RNN = """
    <ir_version: 8, opset_import: ["" : 17]>
    rnn (float[B,H] h0, float[T,B,I] xs, float[I,H] W, float[H,H] R) => (float[B,H] h) {
      h = Scan <num_scan_inputs = 1, body = step
        (float[B,H] h_in, float[B,I] x) => (float[B,H] h_out) {
          wx = MatMul (x, W)
          rh = MatMul (h_in, R)
          a = Add (wx, rh)
          h_out = Tanh (a)
        }> (h0, xs)
    }
"""


def seeds(
    model: str | Model,
    narrow: int = TensorProto.FLOAT16,
    keep: Sequence[str] = (),
    half: Sequence[str] = (),
) -> tuple[Flow, Seeds]:
    """The flow of a model and its seeds."""
    if isinstance(model, str):
        proto = onnx.parser.parse_model(model)
        onnx.checker.check_model(proto, full_check=True)
        model = Model(proto)
    flow = Flow.of(model)
    return flow, float_seeds(flow, narrow, keep, half)


def kept(
    model: str | Model,
    narrow: int = TensorProto.FLOAT16,
    keep: Sequence[str] = (),
    half: Sequence[str] = (),
) -> dict[str, str]:
    """The code of each node that is kept, by its first output, and of each value."""
    flow, found = seeds(model, narrow, keep, half)
    codes = {flow.steps[one].node.output[0]: why.code for one, why in found.steps.items()}
    return codes | {flow.values[one].name: why.code for one, why in found.values.items()}
