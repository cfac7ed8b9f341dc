"""Which values of a model get the narrow type, and the model that is written."""

from __future__ import annotations

import onnx
import pytest
from onnx import ModelProto, TensorProto

from passes.ir.model import Model
from passes.precision.flow import Flow
from passes.precision.narrowing import Decision
from passes.precision.operands import Narrowing
from passes.precision.seeds import Reason, Seeds
from passes.precision.written import Written, written

FLOAT16 = Narrowing(TensorProto.FLOAT, TensorProto.FLOAT16)
INT32 = Narrowing(TensorProto.INT64, TensorProto.INT32, whole=False)
SEED = Reason("kept", "a test keeps it")


def cast(text: str, *kept: str, change: Narrowing = FLOAT16, stays: bool = True) -> Written:
    """Cast a model; the nodes of some operators, and the values of some names, keep their types."""
    model = onnx.parser.parse_model(text)
    onnx.checker.check_model(model, full_check=True)
    flow = Flow.of(Model(model))
    seeds = Seeds(
        {step.number: SEED for step in flow.steps if step.op in kept},
        {value.number: SEED for value in flow.values if value.name in kept},
    )
    found = written(Decision(flow, change, seeds, signature_stays=stays))
    onnx.checker.check_model(found.proto, full_check=True)
    return found


def nodes(model: ModelProto) -> list[str]:
    """The nodes of the main graph, in short."""
    return [
        f"{', '.join(node.output)} = {node.op_type}({', '.join(node.input)})"
        for node in model.graph.node
    ]


def body(model: ModelProto) -> list[str]:
    """The nodes of the only body."""
    (graph,) = (
        attribute.g for node in model.graph.node for attribute in node.attribute if attribute.g.node
    )
    return nodes(ModelProto(graph=graph))


CHAIN = """
    <ir_version: 8, opset_import: ["" : 17]>
    chain (float[N] x) => (float[N] y) {
      a = Exp (x)
      b = Neg (a)
      y = Abs (b)
    }
"""


def test_one_cast_at_each_end() -> None:
    assert nodes(cast(CHAIN).proto) == [
        "x/float16 = Cast(x)",
        "a = Exp(x/float16)",
        "b = Neg(a)",
        "y/float16 = Abs(b)",
        "y = Cast(y/float16)",
    ]


def test_inputs_and_outputs_of_the_narrow_type_need_no_cast() -> None:
    made = cast(CHAIN, stays=False)
    assert made.casts == 0
    ends = (*made.proto.graph.input, *made.proto.graph.output)
    assert {value.type.tensor_type.elem_type for value in ends} == {TensorProto.FLOAT16}


def test_a_node_between_wide_ones_stays_wide() -> None:
    assert nodes(cast(CHAIN, "Exp").proto) == ["a = Exp(x)", "b = Neg(a)", "y = Abs(b)"]


def test_a_value_that_two_nodes_read_is_cast_once() -> None:
    made = cast(
        """
        <ir_version: 8, opset_import: ["" : 17]>
        twice (float[2,2] x) => (float[2,2] y, float[2,2] z) {
          a = Exp (x)
          y = MatMul (a, a)
          z = MatMul (a, x)
        }
        """,
        "Exp",
    )
    assert nodes(made.proto) == [
        "x/float16 = Cast(x)",
        "a = Exp(x)",
        "a/float16 = Cast(a)",
        "y/float16 = MatMul(a/float16, a/float16)",
        "y = Cast(y/float16)",
        "z/float16 = MatMul(a/float16, x/float16)",
        "z = Cast(z/float16)",
    ]


def test_a_captured_value_is_cast_outside_of_the_loop() -> None:
    made = cast(
        """
        <ir_version: 8, opset_import: ["" : 17]>
        captured (float[2] h0, float[T,2] xs, float[2] w) => (float[2] h) {
          h = Scan <num_scan_inputs = 1, body = step (float[2] s, float[2] x) => (float[2] t) {
            p = Mul (x, w)
            t = Add (s, p)
          }> (h0, xs)
        }
        """,
        "Add",
    )
    assert nodes(made.proto) == [
        "xs/float16 = Cast(xs)",
        "w/float16 = Cast(w)",
        "h = Scan(h0, xs/float16)",
    ]
    assert body(made.proto) == [
        "p = Mul(x, w/float16)",
        "p/float = Cast(p)",
        "t = Add(s, p/float)",
    ]


def test_types_belong_to_slots() -> None:
    """One value is the initial value of two states, of which one stays wide."""
    made = cast(
        """
        <ir_version: 8, opset_import: ["" : 17]>
        slots (float[T,2] xs) => (float[2] h, float[2] c) <float[2] zeros = {0, 0}> {
          h, c = Scan <num_scan_inputs = 1, body = step (float[2] s, float[2] t, float[2] x)
              => (float[2] u, float[2] v) {
            u = Tanh (x)
            v = Add (t, x)
          }> (zeros, zeros, xs)
        }
        """,
        "Add",
    )
    assert nodes(made.proto)[-2] == "h/float16, c = Scan(zeros/float16, zeros, xs/float16)"
    assert {one.name: one.data_type for one in made.proto.graph.initializer} == {
        "zeros": TensorProto.FLOAT,
        "zeros/float16": TensorProto.FLOAT16,
    }


def test_a_tensor_whose_slices_are_all_read_wide_is_scanned_wide() -> None:
    made = cast(
        """
        <ir_version: 8, opset_import: ["" : 17]>
        scanned (float[2] h0, float[T,2] xs) => (float[2] h) {
          ys = Tanh (xs)
          h = Scan <num_scan_inputs = 1, body = step (float[2] s, float[2] x) => (float[2] t) {
            t = Add (s, x)
          }> (h0, ys)
        }
        """,
        "Add",
    )
    assert nodes(made.proto)[1:] == [
        "ys = Tanh(xs/float16)",
        "ys/float = Cast(ys)",
        "h = Scan(h0, ys/float)",
    ]
    assert body(made.proto) == ["t = Add(s, x)"]


def test_branches_agree_on_the_wider_type() -> None:
    made = cast(
        """
        <ir_version: 8, opset_import: ["" : 17]>
        branches (bool c, float[2] x) => (float[2] y) {
          a = If (c) <
            then_branch = yes () => (float[2] p) { p = Exp (x) },
            else_branch = no () => (float[2] q) { q = Tanh (x) }>
          y = Neg (a)
        }
        """,
        "Exp",
    )
    yes, no = (attribute.g for attribute in made.proto.graph.node[1].attribute)
    assert nodes(ModelProto(graph=yes)) == ["p = Exp(x)"]
    assert nodes(ModelProto(graph=no)) == ["q = Tanh(x/float16)", "q/float = Cast(q)"]
    assert no.output[0].name == "q/float"


SEQUENCE = """
    <ir_version: 8, opset_import: ["" : 17]>
    sequence (float[2] x) => (float[2] y) {
      first = Exp (x)
      s = SequenceConstruct (first, x)
      zero = Constant <value_int = 0> ()
      y = SequenceAt (s, zero)
    }
"""


def test_a_sequence_has_one_type_from_end_to_end() -> None:
    assert nodes(cast(SEQUENCE).proto)[2] == "s = SequenceConstruct(first, x/float16)"
    assert nodes(cast(SEQUENCE, "SequenceAt").proto) == [
        "x/float16 = Cast(x)",
        "first = Exp(x/float16)",
        "first/float = Cast(first)",
        "s = SequenceConstruct(first/float, x)",
        "zero = Constant()",
        "y = SequenceAt(s, zero)",
    ]


def test_a_large_constant_that_is_read_in_both_types_is_stored_once() -> None:
    made = cast(
        """
        <ir_version: 8, opset_import: ["" : 17]>
        both (float[2] x, float[3] e) => (float[65] y, float[65] z)
          <float[65] w = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21,
            22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43,
            44, 45, 46, 47, 48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61, 62, 63, 64, 65}>
        {
          y = Exp (w)
          z = Tanh (w)
        }
        """,
        "Exp",
    )
    assert [one.name for one in made.proto.graph.initializer] == ["w"]
    assert nodes(made.proto)[:2] == ["w/float16 = Cast(w)", "y = Exp(w)"]
    assert made.weights == (260, 260)


@pytest.mark.parametrize("shape", ["float16[2]", "float[2]"])
def test_an_attribute_that_chooses_a_type(shape: str) -> None:
    """A fill of no stated value is of float32."""
    made = cast(
        """
        <ir_version: 8, opset_import: ["" : 17]>
        fill (int64[1] n, float[N] x) => (float[N] y) {
          zeros = ConstantOfShape (n)
          y = Add (zeros, x)
        }
        """,
        *(["ConstantOfShape"] if shape == "float[2]" else []),
    )
    (fill,) = (node for node in made.proto.graph.node if node.op_type == "ConstantOfShape")
    types = [attribute.t.data_type for attribute in fill.attribute]
    assert types == ([TensorProto.FLOAT16] if shape == "float16[2]" else [])


def test_whole_numbers_stay_int64_where_an_operator_takes_nothing_else() -> None:
    made = cast(
        """
        <ir_version: 8, opset_import: ["" : 17]>
        whole (float[N] x, int64[1] n) => (float[M] y) {
          size = Shape (x)
          one = Constant <value_ints = [1]> ()
          length = Sub (size, one)
          y = Expand (x, length)
        }
        """,
        change=INT32,
    )
    assert nodes(made.proto) == [
        "size = Shape(x)",
        "size/int32 = Cast(size)",
        "one = Constant()",
        "length = Sub(size/int32, one)",
        "length/int64 = Cast(length)",
        "y = Expand(x, length/int64)",
    ]


def test_an_operator_that_is_unknown_keeps_its_types() -> None:
    made = cast(
        """
        <ir_version: 8, opset_import: ["" : 17, "my.domain" : 1]>
        unknown (float[2] x) => (float[2] y) {
          a = Tanh (x)
          b = my.domain.Mystery (a)
          y = Neg (b)
        }
        """
    )
    assert "b = Mystery(a/float)" in nodes(made.proto)


def test_omitted_outputs_stay_omitted() -> None:
    found = cast(
        """
        <ir_version: 10, opset_import: ["" : 21]>
        g (float[2] x, float[T,4] xs) => (float[2] y, float[T,2] ys) {
          y, "", ys = Scan <num_scan_inputs = 1, body = step (float[2] s, float[2] t, float[4] e)
              => (float[2] u, float[2] v, float[2] w) {
            a, "" = Split <axis = 0, num_outputs = 2> (e)
            m = Mul (s, a)
            u = Tanh (m)
            v = Add (t, u)
            w = Identity (u)
          }> (x, x, xs)
        }
        """,
        "Add",
    )
    assert nodes(found.proto) == [
        "x/float16 = Cast(x)",
        "xs/float16 = Cast(xs)",
        "y/float16, , ys/float16 = Scan(x/float16, x, xs/float16)",
        "y = Cast(y/float16)",
        "ys = Cast(ys/float16)",
    ]
    assert body(found.proto)[0] == "a,  = Split(e)"


def test_a_sparse_constant_is_cast() -> None:
    model = onnx.parser.parse_model("""
        <ir_version: 10, opset_import: ["" : 21]>
        g (float[3] x) => (float[3] y) { s = Constant () y = Mul (x, s) }
    """)
    values = onnx.helper.make_tensor("s", TensorProto.FLOAT, [1], [2.5])
    sparse = onnx.helper.make_sparse_tensor(
        values, onnx.helper.make_tensor("", TensorProto.INT64, [1], [1]), [3]
    )
    made = onnx.helper.make_attribute("sparse_value", sparse)
    model.graph.node[0].attribute.append(made)
    flow = Flow.of(Model(model))
    found = written(Decision(flow, FLOAT16, Seeds(), signature_stays=True)).proto
    onnx.checker.check_model(found, full_check=True)
    assert nodes(found) == [
        "x/float16 = Cast(x)",
        "s = Constant()",
        "s/float16 = Cast(s)",
        "y/float16 = Mul(x/float16, s/float16)",
        "y = Cast(y/float16)",
    ]
    assert found.graph.node[1] == model.graph.node[0]
