"""Which operands of a node change their element type with it, which cannot, and which take any."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cache

from onnx import TensorProto, defs

from passes.ir.places import holds_graphs
from passes.operators.element_types import Formal, Signature, signature
from passes.operators.table import TRAITS, UNKNOWN
from passes.operators.traits import Values
from passes.precision.flow import OMITTED, Flow, Step
from passes.types.dtypes import numpy_dtype
from passes.types.value_types import element

#: Attributes that choose the type of an output.
_CHOOSING = ("to", "dtype", "output_dtype", "output_datatype", "type")


@dataclass(frozen=True)
class Narrowing:
    """A change of element types: what is `wide` becomes `narrow`. `whole`: all operands of a node
    change together, and none between wide ones does; else each type variable by itself."""

    wide: int
    narrow: int
    whole: bool = True

    @property
    def names(self) -> tuple[str, str]:
        """The names of both types, as numpy has them."""
        return numpy_dtype(self.wide).name, numpy_dtype(self.narrow).name

    def fits(self, formal: Formal) -> bool:
        """Return whether an operand may have the narrow type, and onnxruntime has a kernel for it;
        it has hardly any for bfloat16, of which that is not asked."""
        if self.narrow == TensorProto.BFLOAT16:
            return self.narrow in formal.valid
        return formal.runs(self.narrow)


class Fixed(Enum):
    """An operand whose type does not change with its node."""

    OTHER = "it is not of the type that changes"
    WIDE = "the operator takes or gives the wide type only"
    ANY = "the operator takes whatever type there is"


#: What an operand is: fixed, or the type variable, with which it changes.
Operand = Fixed | str
#: The variable of a node that changes as a whole.
WHOLE = "*"


@dataclass(frozen=True)
class Operands:
    """The inputs and outputs of a node."""

    inputs: Sequence[Operand]
    outputs: Sequence[Operand]

    @property
    def variables(self) -> list[str]:
        """The type variables, each once."""
        named = [one for one in (*self.inputs, *self.outputs) if isinstance(one, str)]
        return list(dict.fromkeys(named))


def operands_of(step: Step, flow: Flow, change: Narrowing) -> Operands:
    """The operands of a node that is no loop and no If."""
    row = TRAITS.get(step.op, UNKNOWN)
    types = [_types(flow, numbers) for numbers in (step.inputs, step.outputs)]
    known = None if step.node.domain else signature(step.op, flow.opset)
    # the body of a SequenceMap is not followed, and the bits of a BitCast are those of one type
    if known is None or step.op == "BitCast" or holds_graphs(step.node):
        fixed = [_fixed(kinds, change) for kinds in types]
        return Operands(*fixed)
    if row.wraps:
        able = _wraps(step.op, flow.opset, change.narrow)
        kinds = [list(_wrapped(one, known, of, change, able)) for of, one in enumerate(types)]
        return Operands(*kinds)
    reads_any = row.values is Values.SIZES or step.op in ("Cast", "CastLike")
    inputs: list[Fixed | int] = list(types[0])
    first = known.input(0)
    if reads_any and first and inputs[0] == change.wide and change.narrow in first.valid:
        inputs[0] = Fixed.ANY
    sides = ((step.inputs, known.input, types[0]), (step.outputs, known.output, types[1]))
    odd = {
        formal.variable
        for numbers, formal_of, kinds in sides
        for position, kind in enumerate(kinds)
        if not kind and numbers[position] != OMITTED
        if (formal := formal_of(position)) is not None
    }

    def operand(kind: Fixed | int, formal: Formal | None) -> Operand:
        return kind if isinstance(kind, Fixed) else _operand(kind, formal, odd, change)

    return Operands(
        [operand(kind, known.input(position)) for position, kind in enumerate(inputs)],
        [operand(kind, known.output(position)) for position, kind in enumerate(types[1])],
    )


def _types(flow: Flow, numbers: Sequence[int]) -> list[int]:
    return [0 if one == OMITTED else flow.values[one].elem_type for one in numbers]


def _fixed(types: Sequence[int], change: Narrowing) -> list[Operand]:
    return [Fixed.WIDE if kind == change.wide else Fixed.OTHER for kind in types]


def _operand(kind: int, formal: Formal | None, odd: set[str], change: Narrowing) -> Operand:
    if kind != change.wide:
        return Fixed.OTHER
    if formal is None or formal.variable in odd or not change.fits(formal):
        return Fixed.WIDE
    return WHOLE if change.whole else formal.variable


def _wrapped(
    types: Sequence[int], known: Signature, of: int, change: Narrowing, able: bool
) -> Iterator[Operand]:
    """Yield the operands of an operator on sequences or optionals: what is in them has one type,
    but for positions, which are int32 or int64."""
    for position, kind in enumerate(types):
        formal = known.output(position) if of else known.input(position)
        positions = formal is not None and 0 < len(formal.valid) <= 2
        if kind != change.wide:
            yield Fixed.OTHER
        elif positions and formal is not None:
            yield formal.variable if change.fits(formal) else Fixed.WIDE
        else:
            yield WHOLE if able else Fixed.WIDE


@cache
def _wraps(op: str, opset: int, narrow: int) -> bool:
    """Return whether all sequences and optionals of an operator may hold tensors of a type."""
    schema = defs.get_schema(op, opset)
    tensor = f"tensor({element(narrow)})"
    wrapping = [one for one in schema.type_constraints if "seq(" in str(one.allowed_type_strs)]
    return all(
        any(tensor in name and name != tensor for name in one.allowed_type_strs) for one in wrapping
    )


@cache
def choosing_attribute(op: str, opset: int) -> str:
    """The attribute that chooses the type of an operator's output; empty if there is none."""
    if op == "ConstantOfShape":
        return "value"
    if not defs.has(op, opset):
        return ""
    known = defs.get_schema(op, opset).attributes
    return next((name for name in _CHOOSING if name in known), "")
