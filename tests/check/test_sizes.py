"""Sizes that no machine holds, and sizes that onnx's inference does not bear."""

from __future__ import annotations

import onnx

from passes.types.shape_inference import infer_shapes

from .conftest import Complaint


def test_absurd_input(complaint: Complaint) -> None:
    assert complaint("""
        <ir_version: 8, opset_import: ["" : 13]>
        g (float[4611686018427387904] x) => (float[2] y) { y = Neg (x) }
    """) == (
        "main: input 'x' has static sizes [4611686018427387904], more elements than any machine "
        "can hold"
    )


def test_absurd_product_in_a_body(complaint: Complaint) -> None:
    assert complaint("""
        <ir_version: 8, opset_import: ["" : 13]>
        g (float[2] x, bool c) => (y) {
            y = If (c) <
                then_branch = yes () => (a) <float[N,1048576,1048577] a> { a = Neg (x) },
                else_branch = no () => (b) { b = Neg (x) }
            >
        }
    """) == (
        "main/if_0.then_branch: value 'a' has static sizes [1048576, 1048577], more elements than "
        "any machine can hold"
    )


def test_as_large_as_a_machine_may_hold(complaint: Complaint) -> None:
    assert not complaint("""
        <ir_version: 8, opset_import: ["" : 13]>
        g (float[N,1099511627776] x) => (float[N,1099511627776] y) { y = Neg (x) }
    """)


def test_a_vector_too_long_for_a_shape() -> None:
    # computed with as a shape, it would take a hundred gigabytes
    model = onnx.parser.parse_model("""
        <ir_version: 8, opset_import: ["" : 13]>
        g (float[2147483648] x, float[1] w) => (y) { y = Sub (x, w) }
    """)
    (y,) = infer_shapes(model).graph.output
    assert [dim.dim_value for dim in y.type.tensor_type.shape.dim] == [2147483648]


def test_one_that_becomes_a_vector() -> None:
    model = onnx.parser.parse_model("""
        <ir_version: 8, opset_import: ["" : 13]>
        g (float[65536,32768] x, float[1] w) => (y) <int64[1] all = {-1}> {
            flat = Reshape (x, all)
            y = Sub (flat, w)
        }
    """)
    (y,) = infer_shapes(model).graph.output
    assert [dim.dim_value for dim in y.type.tensor_type.shape.dim] == [2147483648]


def test_shapes_are_computed_with_beside_a_large_tensor() -> None:
    model = onnx.parser.parse_model("""
        <ir_version: 8, opset_import: ["" : 15]>
        g (float[65536,32768] x, float[2,3] w, float[24] v) => (y) {
            sizes = Shape (w)
            doubled = Add (sizes, sizes)
            y = Reshape (v, doubled)
        }
    """)
    (y,) = infer_shapes(model).graph.output
    assert [dim.dim_value for dim in y.type.tensor_type.shape.dim] == [4, 6]


def test_a_negative_size_is_not_computed_with() -> None:
    # a Slice of one would end the process
    model = onnx.parser.parse_model("""
        <ir_version: 8, opset_import: ["" : 13]>
        g (float[-4611686018427387904] x, float[-1,2] w) => (y, z)
            <int64[1] one = {1}, int64[1] end = {100}> {
            y = Slice (x, one, end)
            z = Neg (w)
        }
    """)
    y, z = infer_shapes(model).graph.output
    assert not y.type.tensor_type.shape.dim[0].HasField("dim_value")
    assert [dim.dim_value for dim in z.type.tensor_type.shape.dim] == [0, 2]
    assert model.graph.input[1].type.tensor_type.shape.dim[0].dim_value == -1
