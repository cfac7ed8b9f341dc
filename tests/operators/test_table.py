"""The table of operator traits agrees with the operators' own documents."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import onnx
from onnx import TensorProto, TypeProto, defs, helper

from passes.operators.table import TRAITS, traits_of
from passes.operators.traits import Fails, Shape, Values, Work
from passes.types.value_types import dims_of

_NEWEST = {
    schema.name: schema
    for schema in defs.get_all_schemas()
    if schema.domain == "" and not schema.deprecated
}
_ALL = {
    (f"{schema.domain}::" if schema.domain else "") + schema.name
    for schema in defs.get_all_schemas_with_history()
}
#: Operators of which nobody has asked anything yet.
_UNKNOWN = """
    AffineGrid Attention BitCast CausalConvWithState Col2Im DeformConv Det
    DynamicQuantizeLinear GridSample ImageDecoder LinearAttention MaxRoiPool
    NegativeLogLikelihoodLoss QLinearMatMul RegexFullMatch RoiAlign RotaryEmbedding
    SoftmaxCrossEntropyLoss StringConcat SwiGLU TfIdfVectorizer
"""
#: Operators that may give what is no tensor, if they are fed that: asked of where it matters.
_HAND_ON = {"Identity", "If", "Loop"}
_STANDARD = sorted(TRAITS.keys() & _NEWEST.keys())


def test_each_operator_has_a_row_and_each_row_an_operator() -> None:
    assert TRAITS.keys() <= _ALL
    without, known = _NEWEST.keys() - TRAITS.keys(), set(_UNKNOWN.split())
    assert without <= known, (
        f"{', '.join(sorted(without - known))}: no row in passes/operators: add one, or the name "
        "to _UNKNOWN here; CONTRIBUTING.md, 'A new operator'"
    )
    assert known <= without, "what has a row is not in _UNKNOWN"


def test_what_draws_is_what_is_not_deterministic() -> None:
    for op in _STANDARD:
        schema = _NEWEST[op]
        bodies = any(
            attribute.type == defs.OpSchema.AttrType.GRAPH
            for attribute in schema.attributes.values()
        )
        open_ = bodies or schema.has_context_dependent_function
        assert schema.non_deterministic or not TRAITS[op].draws, op
        assert TRAITS[op].draws or open_ or not schema.non_deterministic, op


def test_what_gives_tensors_gives_nothing_else() -> None:
    for op in sorted(set(_STANDARD) - _HAND_ON):
        kinds = {kind for output in _NEWEST[op].outputs for kind in output.types}
        assert TRAITS[op].tensors == all(kind.startswith("tensor(") for kind in kinds), op


def test_inputs_that_say_sizes_are_whole_numbers_behind_the_data() -> None:
    for op in _STANDARD:
        for position in TRAITS[op].fixed:
            kinds = set(_NEWEST[op].inputs[position].types)
            assert position > 0, op
            assert kinds <= {"tensor(int32)", "tensor(int64)"}, op


def test_what_goes_by_element_has_a_function_body_of_such() -> None:
    for op in _STANDARD:
        if TRAITS[op].by_element and _NEWEST[op].has_function:
            others = [node for node in _NEWEST[op].function_body.node if node.op_type != "Constant"]
            assert all(traits_of(node).by_element for node in others), op


def test_columns_do_not_contradict_each_other_or_the_types_that_are_taken() -> None:
    for op in _STANDARD:
        row = TRAITS[op]
        kinds = {kind for name in _NEWEST[op].inputs[:1] for kind in name.types}
        assert not row.draws or (row.fails, row.values) == (Fails.OPEN, Values.ROUNDS), op
        assert row.work is not Work.VIEW or row.values is Values.EXACT, op
        assert row.fails is not Fails.STRINGS or "tensor(string)" in kinds, op
        assert row.fails is not Fails.INTEGERS or "tensor(int64)" in kinds, op


#: What the schemas do not say: attributes, and inputs that are neither data nor omitted.
_ATTRIBUTES: Mapping[str, Mapping[str, Any]] = {
    "BitShift": {"direction": "LEFT"},
    "Cast": {"to": TensorProto.INT32},
}
_READ: Mapping[str, list[list[int]]] = {
    "CumSum": [[2, 3, 4], []],
    "DequantizeLinear": [[2, 3, 4], []],
    "InstanceNormalization": [[2, 3, 4], [3], [3]],
    "LayerNormalization": [[2, 3, 4], [4]],
    "PRelu": [[2, 3, 4], [3, 1]],
    "QuantizeLinear": [[2, 3, 4], []],
    "ReverseSequence": [[2, 3, 4], [3]],
    "ScatterElements": [[2, 3, 4], [1, 1, 1], [1, 1, 1]],
    "ScatterND": [[2, 3, 4], [1, 3], [1]],
    "CastLike": [[2, 3, 4], [5]],
}


def _type(op: str, position: int) -> int:
    """A type that an input may have, the same for all of one type variable."""
    inputs = _NEWEST[op].inputs
    kinds = set(inputs[min(position, len(inputs) - 1)].types)
    for kind in ("FLOAT", "INT64", "UINT8", "BOOL"):
        if f"tensor({kind.lower()})" in kinds:
            return int(TensorProto.DataType.Value(kind))
    raise AssertionError(kinds)


def _inferred(op: str, shapes: list[list[int]], **attributes: Any) -> list[object]:
    """The dims that onnx infers of what an operator gives of inputs with these."""
    names = [f"x{i}" for i in range(len(shapes))]
    values = [
        helper.make_tensor_value_info(name, _type(op, i), dims)
        for i, (name, dims) in enumerate(zip(names, shapes, strict=True))
    ]
    node = helper.make_node(op, names, ["y"], **attributes)
    graph = helper.make_graph([node], "one", values, [onnx.ValueInfoProto(name="y")])
    model = helper.make_model(graph)
    known: TypeProto = (
        onnx.shape_inference.infer_shapes(model, strict_mode=True).graph.output[0].type
    )
    return list(dims_of(known) or ())


def test_an_output_has_the_shape_of_the_first_input() -> None:
    for op in _of_shape(Shape.ELEMENTWISE, Shape.KEPT):
        shapes = _READ.get(op, [[2, 3, 4]])
        assert len(shapes) >= _NEWEST[op].min_input, op
        assert _inferred(op, shapes, **_ATTRIBUTES.get(op, {})) == [2, 3, 4], op


def test_an_output_has_the_shape_that_the_inputs_broadcast_to() -> None:
    for op in _of_shape(Shape.BROADCAST):
        shapes = [[3, 1], [2, 1, 4], [4]][: _NEWEST[op].max_input]
        assert _inferred(op, shapes, **_ATTRIBUTES.get(op, {})) == [2, 3, 4], op


def test_an_output_has_the_shape_without_the_axes() -> None:
    for op in _of_shape(Shape.REDUCED):
        assert _inferred(op, [[2, 3, 4]], keepdims=1) == [1, 1, 1], op
        assert _inferred(op, [[2, 3, 4]], keepdims=0) == [], op


def _of_shape(*shapes: Shape) -> list[str]:
    found = [op for op in _STANDARD if TRAITS[op].shape in shapes]
    assert found
    return found
