"""Tensors that do not hold what they say."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx
import pytest
from onnx import ModelProto, TensorProto, numpy_helper

from .conftest import Complaint


def model_with(change: Callable[[TensorProto], object]) -> ModelProto:
    model: ModelProto = onnx.parser.parse_model("""
        <ir_version: 8, opset_import: ["" : 13]>
        g (float[2] x) => (float[2] y) <float[2] w = {1, 2}> { y = Add (x, w) }
    """)
    change(model.graph.initializer[0])
    return model


def raw(content: bytes, data_type: int = TensorProto.FLOAT) -> Callable[[TensorProto], None]:
    def change(tensor: TensorProto) -> None:
        tensor.ClearField("float_data")
        tensor.raw_data = content
        tensor.data_type = data_type

    return change


CASES: list[tuple[Callable[[TensorProto], object], str]] = [
    (
        lambda tensor: tensor.dims.append(-3),
        "main: initializer 'w' has a negative dim in [2, -3]",
    ),
    (
        lambda tensor: tensor.dims.extend([2**40, 2**40]),
        "main: initializer 'w' has dims [2, 1099511627776, 1099511627776], more than any file can "
        "hold",
    ),
    (
        lambda tensor: tensor.dims.append(2),
        "main: initializer 'w' holds 2 values in float_data, but dims [2, 2] of float take 4",
    ),
    (
        lambda tensor: tensor.ClearField("float_data"),
        "main: initializer 'w' holds no values in float_data, but dims [2] of float take 2",
    ),
    (
        raw(b"1234567"),
        "main: initializer 'w' holds 7 bytes, but dims [2] of float take 8",
    ),
    (
        raw(b"123456789"),
        "main: initializer 'w' holds 9 bytes, but dims [2] of float take 8",
    ),
    (
        raw(b"12345678", TensorProto.STRING),
        "main: initializer 'w' holds strings as raw data",
    ),
    (
        lambda tensor: setattr(tensor, "data_type", 77),
        f"main: initializer 'w' has data type 77, which the installed onnx {onnx.__version__} does "
        "not know",
    ),
    (
        lambda tensor: setattr(tensor, "data_type", 0),
        "main: initializer 'w' has no data type",
    ),
]


@pytest.mark.parametrize(("change", "sentence"), CASES)
def test_initializer(
    complaint: Complaint, change: Callable[[TensorProto], object], sentence: str
) -> None:
    # where onnx's checker sees it as well, ours is still the sentence
    assert complaint(model_with(change)) == sentence


def test_large_weights_are_measured_too(complaint: Complaint) -> None:
    """They are not shown to onnx's checker, which would serialize them."""
    model = model_with(lambda tensor: None)
    weight = numpy_helper.from_array(np.zeros((1024, 1024), np.float32), "w")
    weight.dims[0] = 1025
    model.graph.initializer[0].CopyFrom(weight)
    assert complaint(model) == (
        "main: initializer 'w' holds 4194304 bytes, but dims [1025, 1024] of float take 4198400"
    )


def test_constant_of_a_body(complaint: Complaint) -> None:
    model = onnx.parser.parse_model("""
        <ir_version: 8, opset_import: ["" : 13]>
        g (bool c, float[2] x) => (float[2] y) {
          y = If (c) <
            then_branch = t () => (float[2] a) { a = Constant <value = float[2] {1, 2}> () },
            else_branch = e () => (float[2] b) { b = Neg (x) }
          >
        }
    """)
    branch = model.graph.node[0].attribute[0].g
    branch.node[0].attribute[0].t.dims[0] = 1
    assert complaint(model) == (
        "main/if_0.then_branch/constant_0: the tensor of attribute value holds 2 values in "
        "float_data, but dims [1] of float take 1"
    )


def test_element_type_of_an_input(complaint: Complaint) -> None:
    model = model_with(lambda tensor: None)
    model.graph.input[0].type.tensor_type.elem_type = 99
    assert complaint(model) == (
        f"main: input 'x' has element type 99, which the installed onnx {onnx.__version__} does "
        "not know"
    )


def test_texts_are_utf_8(complaint: Complaint) -> None:
    """But those of operators of other domains, which keep bytes in them."""
    model = onnx.parser.parse_model("""
        <ir_version: 8, opset_import: ["" : 17, "my" : 1]>
        g (string[1] x, float[2,2] m) => (string[1] y, float[2,2] n, float[2,2] o)
          <string[1] k = {"key"}> {
          c = Constant <value = bool {1}> ()
          y = Where (c, x, k)
          n = Einsum <equation = "ij->ji"> (m)
          o = my.Packed <content = "key"> (m)
        }
    """)
    model.graph.node[3].attribute[0].s = b"\xff\xfe"
    assert "UTF" not in complaint(model)
    model.graph.node[2].attribute[0].s = b"ij->j\xff"
    assert (
        complaint(model)
        == "main/einsum_2: attribute equation holds b'ij->j\\xff', which is no UTF-8"
    )
    model.graph.initializer[0].string_data[0] = b"k\xe9y"
    assert complaint(model) == "main: initializer 'k' holds b'k\\xe9y', which is no UTF-8"
