"""Which element types the inputs and outputs of an operator have, at every version of it.

What is valid, the operators' schemas say. What onnxruntime's CPU kernels lack of it was measured
by loading a model of each operator and type in releases 1.18, 1.22 and 1.32 (which
`tests/measured_types.py` does), and is listed in `types.json`: by operator, version
and type variable the types, with the last release that lacks them where a newer one does not. Of
an operator that is not listed there, onnxruntime is taken to have all that it needs.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from onnx import AttributeProto, NodeProto, TensorProto, defs

from passes.ir.constant_nodes import CONSTANT_TYPES
from passes.ir.operators import op_of

_NAMES = {name.lower(): number for name, number in TensorProto.DataType.items()}
_TYPES = {f"tensor({name})": number for name, number in _NAMES.items()}

#: For each type those that hold all its values: a Cast there and back changes nothing but the
#: payload of a NaN. Conversion between the 64-bit integers keeps the bits. The smallest number
#: of float8e8m0 is none of the normal ones of float, which onnx's Cast back doubles.
_WIDER: Mapping[int, int] = {
    TensorProto.BOOL: TensorProto.UINT8,
    TensorProto.INT2: TensorProto.INT8,
    TensorProto.UINT2: TensorProto.UINT8,
    TensorProto.INT4: TensorProto.INT8,
    TensorProto.UINT4: TensorProto.UINT8,
    TensorProto.INT8: TensorProto.INT32,
    TensorProto.UINT8: TensorProto.INT32,
    TensorProto.INT16: TensorProto.INT32,
    TensorProto.UINT16: TensorProto.INT32,
    TensorProto.UINT32: TensorProto.INT64,
    TensorProto.UINT64: TensorProto.INT64,
    TensorProto.FLOAT4E2M1: TensorProto.FLOAT,
    TensorProto.FLOAT6E2M3: TensorProto.FLOAT,
    TensorProto.FLOAT6E3M2: TensorProto.FLOAT,
    TensorProto.FLOAT8E4M3FN: TensorProto.FLOAT,
    TensorProto.FLOAT8E4M3FNUZ: TensorProto.FLOAT,
    TensorProto.FLOAT8E5M2: TensorProto.FLOAT,
    TensorProto.FLOAT8E5M2FNUZ: TensorProto.FLOAT,
    TensorProto.FLOAT16: TensorProto.FLOAT,
    TensorProto.BFLOAT16: TensorProto.FLOAT,
}
#: Ops that only move elements, and so do the same with wider ones.
_MOVING = frozenset(
    {
        *("Compress", "Concat", "ConstantOfShape", "Expand", "Flatten", "Gather"),
        *("GatherElements", "GatherND", "Reshape", "ReverseSequence", "Scatter"),
        *("ScatterElements", "ScatterND", "Shape", "Size", "Slice", "Split", "Squeeze", "Tile"),
        *("Transpose", "Unsqueeze", "Where"),
    }
)
#: Ops that only compare elements: with wider ones they do the same if the order stays.
_COMPARING = frozenset(
    {
        *("ArgMax", "ArgMin", "Clip", "Equal", "Greater", "GreaterOrEqual", "IsInf", "IsNaN"),
        *("Less", "LessOrEqual", "Max", "Min", "ReduceMax", "ReduceMin"),
    }
)


@dataclass(frozen=True)
class Formal:
    """An input or output of an operator: its type variable, what it may stand for, and for which
    of these some release of onnxruntime lacks a kernel, or all releases do."""

    variable: str
    valid: frozenset[int]
    lacked: frozenset[int]
    always_lacked: frozenset[int]

    def runs(self, elem_type: int) -> bool:
        """Whether a tensor of a type may stand here, in every release of onnxruntime."""
        return elem_type in self.valid and elem_type not in self.lacked


@dataclass(frozen=True)
class Signature:
    """The inputs and outputs of one version of an operator; the last ones may stand for many."""

    inputs: tuple[Formal, ...]
    outputs: tuple[Formal, ...]

    def input(self, position: int) -> Formal | None:
        """The input at a position."""
        return self.inputs[min(position, len(self.inputs) - 1)] if self.inputs else None

    def output(self, position: int) -> Formal | None:
        """The output at a position."""
        return self.outputs[min(position, len(self.outputs) - 1)] if self.outputs else None


@cache
def signature(op_type: str, opset: int) -> Signature | None:
    """The types that an operator of the standard domain takes and gives; None where there is none
    of this name."""
    if not defs.has(op_type, opset):
        return None
    schema = defs.get_schema(op_type, opset)
    allowed = {
        one.type_param_str: frozenset(
            _TYPES[name] for name in one.allowed_type_strs if name in _TYPES
        )
        for one in schema.type_constraints
    }
    lacked = _lacked().get(op_type, {}).get(str(schema.since_version), {})

    def formal(said: defs.OpSchema.FormalParameter) -> Formal:
        variable = said.type_str
        valid = allowed.get(variable, frozenset(filter(None, [_TYPES.get(variable)])))
        names = [name.partition("@") for name in lacked.get(variable, "").split()]
        always = (_NAMES[name] for name, _, last in names if not last)
        return Formal(
            variable, valid, frozenset(_NAMES[name] for name, _, _ in names), frozenset(always)
        )

    return Signature(tuple(map(formal, schema.inputs)), tuple(map(formal, schema.outputs)))


@cache
def _lacked() -> dict[str, dict[str, dict[str, str]]]:
    table = files("passes.onnxruntime").joinpath("types.json").read_text("utf-8")
    found: dict[str, dict[str, dict[str, str]]] = json.loads(table)
    return found


def runs(op_type: str, opset: int, elem_type: int, variable: str = "T") -> bool:
    """Whether a type variable of an operator may stand for a type, in onnxruntime too."""
    known = signature(op_type, opset)
    formals = () if known is None else (*known.inputs, *known.outputs)
    mine = [formal for formal in formals if formal.variable == variable]
    return bool(mine) and mine[0].runs(elem_type)


def wider(op_type: str, opset: int, elem_type: int, variable: str = "T") -> int:
    """A type that may stand in the place of another one, in onnxruntime too, the op doing the
    same but for a Cast there and back; 0 where there is none."""
    if op_type not in _MOVING and (op_type not in _COMPARING or elem_type == TensorProto.UINT64):
        return 0
    cast = signature("Cast", opset)
    found = _WIDER.get(elem_type, 0)
    while found and cast is not None and cast.inputs[0].valid >= {found, elem_type}:
        if runs(op_type, opset, found, variable):
            return found
        found = _WIDER.get(found, 0)
    return 0


@dataclass(frozen=True)
class Need:
    """That a type variable of an operator stands for a type for which its schema, or the kernels
    of some onnxruntime, do not let it stand."""

    op: str
    formal: Formal
    elem_type: int

    @property
    def is_lacked(self) -> bool:
        """Whether only a kernel is lacked."""
        return self.elem_type in self.formal.valid


def given_and_needed(
    node: NodeProto, opset: int, inputs: Sequence[int]
) -> tuple[Sequence[int], frozenset[Need]]:
    """The types of what a node without bodies gives, 0 where that does not show, and its needs."""
    op = op_of(node)
    said = _said_type(node) if node.attribute or op == "ConstantOfShape" else 0
    return _given_and_needed(op, opset, tuple(inputs), said, len(node.output))


@cache
def _given_and_needed(
    op_type: str, opset: int, inputs: tuple[int, ...], said: int, count: int
) -> tuple[Sequence[int], frozenset[Need]]:
    known = signature(op_type, opset)
    if known is None:
        return [0] * count, frozenset()
    bound = {
        formal.variable: elem_type
        for position, elem_type in enumerate(inputs)
        if elem_type and (formal := known.input(position)) is not None
    }
    given = []
    for position in range(count):
        formal = known.output(position)
        elem_type = 0 if formal is None else bound.get(formal.variable, 0) or said
        if formal is not None and not elem_type and len(formal.valid) == 1:
            (elem_type,) = formal.valid
        given.append(elem_type)
    return given, needs_of(op_type, opset, inputs, given)


def needs_of(
    op_type: str, opset: int, inputs: Sequence[int], outputs: Sequence[int]
) -> frozenset[Need]:
    """What a node needs that there is not, by the types of its inputs and outputs, 0 for those
    that are not known."""
    known = signature(op_type, opset)
    if known is None:
        return frozenset()
    pairs = [(known.input(at), elem_type) for at, elem_type in enumerate(inputs)]
    pairs += [(known.output(at), elem_type) for at, elem_type in enumerate(outputs)]
    return frozenset(
        Need(op_type, formal, elem_type)
        for formal, elem_type in pairs
        if formal is not None and elem_type and not formal.runs(elem_type)
    )


def _said_type(node: NodeProto) -> int:
    """The element type that attributes say, 0 where they say none."""
    for one in node.attribute:
        if one.name in ("to", "dtype", "output_dtype") and one.type == AttributeProto.INT:
            return int(one.i)
        if one.name == "value" and one.type == AttributeProto.TENSOR:
            return one.t.data_type
        if one.type == AttributeProto.SPARSE_TENSOR:
            return one.sparse_tensor.values.data_type
        if op_of(node) == "Constant" and one.name in CONSTANT_TYPES:
            return CONSTANT_TYPES[one.name]
    return TensorProto.FLOAT if op_of(node) == "ConstantOfShape" else 0
