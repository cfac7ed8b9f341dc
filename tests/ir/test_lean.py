"""Copies of models with other tensors."""

from __future__ import annotations

import onnx
from onnx import TensorProto

from passes.ir.lean import constants, with_tensors

MODEL = onnx.parser.parse_model("""
    <ir_version: 8, opset_import: ["" : 16, "my" : 1]>
    g (bool b, float[1] x) => (float[1] y) <float[1] a = {1}> {
       y = If (b) <
          then_branch = then () => (float[1] one) <float[1] c = {2}> {
             k = Constant <value = float[1] {3}> ()
             n = Constant <value_float = 4.0> ()
             one = Sum (x, a, c, k, n)
          },
          else_branch = else () => (float[1] other) {
             other = my.Held <body = inner () => (float[1] v) {
                v = Constant <value = float[1] {5}> ()
             }> (x)
          }
       >
    }
""")


def values(model: onnx.ModelProto) -> list[float]:
    """The constants, at any depth."""
    return [one.float_data[0] for one in constants(model.graph)]


def test_a_copy_in_which_nothing_changes_is_equal() -> None:
    assert with_tensors(MODEL, lambda tensor: tensor) == MODEL
    assert values(MODEL) == [1, 2, 3, 5]


def test_initializers_and_constants_are_replaced_at_any_depth() -> None:
    def doubled(tensor: TensorProto) -> TensorProto:
        new = TensorProto(name=tensor.name, data_type=tensor.data_type, dims=tensor.dims)
        new.float_data.append(2 * tensor.float_data[0])
        return new

    copy = with_tensors(MODEL, doubled)
    assert values(copy) == [2, 4, 6, 10]
    assert values(MODEL) == [1, 2, 3, 5]


def test_a_constant_is_left_out_with_its_tensor() -> None:
    copy = with_tensors(MODEL, lambda tensor: None if tensor.float_data[0] == 3 else tensor)
    assert values(copy) == [1, 2, 5]
    then = copy.graph.node[0].attribute[0].g
    assert [node.output[0] for node in then.node] == ["n", "one"]


def test_fields_of_the_model_may_be_left_out() -> None:
    copy = with_tensors(MODEL, lambda tensor: tensor, without=("ir_version",))
    assert copy.ir_version == 0
    assert copy.graph == MODEL.graph
