"""The element types of the inputs and outputs of an operator, at every version of it, and those
that a model holds.

The operators' schemas define what is valid. What onnxruntime's CPU kernels lack of it was measured
by loading a model of each operator and type in releases 1.18, 1.22 and 1.32 (which
`tests/instruments/measured_types.py` does), and is listed in `types.json`: by operator, version
and type variable, the types, each with the last release that lacks it where a newer one does not.
An operator that is not listed there is assumed to have all kernels that it needs.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from onnx import AttributeProto, GraphProto, NodeProto, TensorProto, TypeProto, defs

from passes.ir.constants import CONSTANT_TYPES
from passes.ir.model import Model
from passes.ir.operators import op_of
from passes.ir.scope import Owner
from passes.operators.table import where

_NAMES = {name.lower(): number for name, number in TensorProto.DataType.items()}

#: For each type one that holds all its values: a Cast there and back changes only the
#: payload of a NaN. Conversion between the 64-bit integers keeps the bits. The smallest number
#: of float8e8m0 is not a normal float, and onnx's Cast back doubles it.
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
#: Ops that only move elements, and so do the same with wider ones, or read none.
_MOVING = where(lambda row: 0 in row.moves) | {"ConstantOfShape", "Shape", "Size", "Where"}
#: Ops that only compare elements: with wider ones they do the same if the order stays.
_COMPARING = frozenset(
    {
        *("ArgMax", "ArgMin", "Clip", "Equal", "Greater", "GreaterOrEqual", "IsInf", "IsNaN"),
        *("Less", "LessOrEqual", "Max", "Min", "ReduceMax", "ReduceMin"),
    }
)
#: Ops that compute with wider numbers what a Cast back makes of their own result: integers wrap
#: around as they would have, and a float of more than twice the digits is rounded to the same.
_COMPUTING = frozenset(
    {
        *("Abs", "Add", "Ceil", "Div", "Floor", "Mod", "Mul", "Neg", "Reciprocal", "Relu"),
        *("Round", "Sign", "Sqrt", "Sub"),
    }
)
#: Those that sum up, which wraps around, too, but is rounded in between.
_SUMMING = frozenset({"CumSum", "Gemm", "MatMul", "ReduceProd", "ReduceSum", "Sum"})
#: Those that do the same if the wider type only keeps the bits.
_KEEP_BITS = frozenset({"Add", "Mul", "Sub"})


@dataclass(frozen=True)
class Formal:
    """An input or output of an operator: its type variable, the valid types, also of tensors in
    sequences and optionals, and those for which some release of onnxruntime, or every release,
    lacks a kernel."""

    variable: str
    valid: frozenset[int]
    lacked: frozenset[int]
    always_lacked: frozenset[int]

    def runs(self, elem_type: int) -> bool:
        """Return whether a tensor of a type may be used here, in every release of onnxruntime."""
        return elem_type in self.valid and elem_type not in self.lacked


@dataclass(frozen=True)
class Signature:
    """The inputs and outputs of one version of an operator; the last ones may be variadic."""

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
    """The types that an operator of the standard domain takes and returns; None where there is no
    such operator."""
    if not defs.has(op_type, opset):
        return None
    schema = defs.get_schema(op_type, opset)
    allowed = {
        constraint.type_param_str: _elements(constraint.allowed_type_strs)
        for constraint in schema.type_constraints
    }
    lacked = _lacked().get(op_type, {}).get(str(schema.since_version), {})

    def formal(parameter: defs.OpSchema.FormalParameter) -> Formal:
        variable = parameter.type_str
        valid = allowed.get(variable, _elements([variable]))
        names = [name.partition("@") for name in lacked.get(variable, "").split()]
        always = (_NAMES[name] for name, _, last in names if not last)
        return Formal(
            variable, valid, frozenset(_NAMES[name] for name, _, _ in names), frozenset(always)
        )

    return Signature(tuple(map(formal, schema.inputs)), tuple(map(formal, schema.outputs)))


def _elements(types: Iterable[str]) -> frozenset[int]:
    """The element types in types as schemas spell them: `tensor(float)`, `seq(tensor(float))`."""
    names = (name.rpartition("(")[2].rstrip(")") for name in types)
    return frozenset(_NAMES[name] for name in names if name in _NAMES)


@cache
def _lacked() -> dict[str, dict[str, dict[str, str]]]:
    table = files("passes.operators").joinpath("types.json").read_text("utf-8")
    found: dict[str, dict[str, dict[str, str]]] = json.loads(table)
    return found


def runs(op_type: str, opset: int, elem_type: int, variable: str = "T") -> bool:
    """Return whether a type variable of an operator may be a given type, in onnxruntime too."""
    known = signature(op_type, opset)
    formals = () if known is None else (*known.inputs, *known.outputs)
    mine = [formal for formal in formals if formal.variable == variable]
    return bool(mine) and mine[0].runs(elem_type)


def wider(op_type: str, opset: int, elem_type: int, variable: str = "T") -> int:
    """A wider type with which the op does the same, but for a Cast there and back, in onnxruntime
    too; 0 where there is none."""
    if not _does_the_same_wider(op_type, elem_type):
        return 0
    cast = signature("Cast", opset)
    found = _WIDER.get(elem_type, 0)
    while found and cast is not None and cast.inputs[0].valid >= {found, elem_type}:
        if runs(op_type, opset, found, variable):
            return found
        found = _WIDER.get(found, 0)
    return 0


def _does_the_same_wider(op_type: str, elem_type: int) -> bool:
    """Return whether an op computes the same on numbers of a wider type, but for a Cast back."""
    if elem_type == TensorProto.UINT64:
        return op_type in _MOVING | _KEEP_BITS
    rounded = _WIDER.get(elem_type) == TensorProto.FLOAT
    return op_type in _MOVING | _COMPARING | _COMPUTING or (op_type in _SUMMING and not rounded)


@dataclass(frozen=True)
class TypeNeed:
    """A type for a type variable of an operator that its schema does not allow, or for which
    some onnxruntime lacks a kernel."""

    op: str
    formal: Formal
    elem_type: int

    @property
    def is_lacked(self) -> bool:
        """True if it is valid, and only a kernel is missing."""
        return self.elem_type in self.formal.valid


def output_types_and_needs(
    node: NodeProto, opset: int, inputs: Sequence[int]
) -> tuple[Sequence[int], frozenset[TypeNeed]]:
    """The output types of a node without bodies, 0 where they are unknown, and its needs."""
    op = op_of(node)
    declared = declared_type(node) if node.attribute or op == "ConstantOfShape" else 0
    return _output_types_and_needs(op, opset, tuple(inputs), declared, len(node.output))


@cache
def _output_types_and_needs(
    op_type: str, opset: int, inputs: tuple[int, ...], declared: int, count: int
) -> tuple[Sequence[int], frozenset[TypeNeed]]:
    known = signature(op_type, opset)
    if known is None:
        return [0] * count, frozenset()
    bound = {
        formal.variable: elem_type
        for position, elem_type in enumerate(inputs)
        if elem_type and (formal := known.input(position)) is not None
    }
    outputs = []
    for position in range(count):
        formal = known.output(position)
        if formal is None or not formal.valid:  # a sequence, say
            outputs.append(0)
            continue
        elem_type = bound.get(formal.variable, 0) or declared
        if not elem_type and len(formal.valid) == 1:
            (elem_type,) = formal.valid
        outputs.append(elem_type)
    return outputs, needs_of(op_type, opset, inputs, outputs)


def needs_of(
    op_type: str, opset: int, inputs: Sequence[int], outputs: Sequence[int]
) -> frozenset[TypeNeed]:
    """The needs of a node, by the types of its inputs and outputs, 0 for those
    that are unknown; what is no tensor, a sequence, has none."""
    known = signature(op_type, opset)
    if known is None:
        return frozenset()
    pairs = [(known.input(position), elem_type) for position, elem_type in enumerate(inputs)]
    pairs += [(known.output(position), elem_type) for position, elem_type in enumerate(outputs)]
    return frozenset(
        TypeNeed(op_type, formal, elem_type)
        for formal, elem_type in pairs
        if formal is not None and formal.valid and elem_type and not formal.runs(elem_type)
    )


def declared_type(node: NodeProto) -> int:
    """The element type in a node's attributes; 0 where there is none."""
    for attribute in node.attribute:
        if (
            attribute.name in ("to", "dtype", "output_dtype")
            and attribute.type == AttributeProto.INT
        ):
            return int(attribute.i)
        if attribute.name == "value" and attribute.type == AttributeProto.TENSOR:
            return attribute.t.data_type
        if attribute.type == AttributeProto.SPARSE_TENSOR:
            return attribute.sparse_tensor.values.data_type
        if op_of(node) == "Constant" and attribute.name in CONSTANT_TYPES:
            return CONSTANT_TYPES[attribute.name]
    return TensorProto.FLOAT if op_of(node) == "ConstantOfShape" else 0


def held_types(model: Model) -> frozenset[int]:
    """The element types of all tensors of a model, and perhaps some more.

    They come in with inputs, weights and nodes of other domains, all declared, and from ops that
    choose one.
    """
    held: set[int] = set()
    for (owner, graphs), (_, operators) in zip(model.graphs, model.operators, strict=True):
        opset = model.opset(owner)
        chosen = {op: _chosen(op, opset) for op in operators}
        held.update(*filter(None, chosen.values()))
        choosing = {op for op, types in chosen.items() if types is None}
        for graph in graphs:
            held.update(_declared(graph))
            nodes = graph.node[:] if choosing else ()
            held.update(declared_type(node) for node in nodes if op_of(node) in choosing)
    return frozenset(held)


def _declared(owner: Owner) -> Iterator[int]:
    values = [*owner.value_info]
    if isinstance(owner, GraphProto):
        values += [*owner.input, *owner.output]
        yield from (tensor.data_type for tensor in owner.initializer)
        yield from (sparse.values.data_type for sparse in owner.sparse_initializer)
    for value in values:
        yield from _elem_types(value.type)


def _elem_types(type_: TypeProto) -> Iterator[int]:
    kind = type_.WhichOneof("value")
    if kind == "tensor_type":
        yield type_.tensor_type.elem_type
    elif kind in ("sequence_type", "optional_type"):
        yield from _elem_types(getattr(type_, kind).elem_type)


@cache
def _chosen(op: str, opset: int) -> frozenset[int] | None:
    """Return the types that an op produces and that none of its inputs has; None if an attribute
    chooses them."""
    known = signature(op, opset)
    if known is None:
        return None
    fed = {formal.variable for formal in known.inputs}
    free = [formal.valid for formal in known.outputs if formal.variable not in fed]
    if any(len(valid) != 1 for valid in free):
        return None
    return frozenset[int]().union(*free)
