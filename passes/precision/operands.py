"""Which operands of a node change their element type with it, which cannot, and which take any."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from onnx import TensorProto, defs

from passes.ir.places import holds_graphs
from passes.operators.element_types import Formal, signature
from passes.operators.traits import Values
from passes.precision.flow import OMITTED, Flow, Step
from passes.types.dtypes import numpy_dtype

#: Attributes that choose the type of an output.
_CHOOSING = ("to", "dtype", "output_dtype", "output_datatype", "type")
#: The type variable of what changes as a whole, and of what has the wide type only.
_WHOLE, WIDE = "*", "wide"
#: The type variable with which an operand changes; None if it takes whatever type there is, or is
#: not of the type that changes.
Operand = str | None


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


@dataclass(frozen=True)
class Operands:
    """The inputs and outputs of a node."""

    inputs: Sequence[Operand]
    outputs: Sequence[Operand]

    @property
    def variables(self) -> Sequence[str]:
        """The type variables that may be narrow, each once; else the one that is wide."""
        named = dict.fromkeys(one for one in (*self.inputs, *self.outputs) if one)
        return [one for one in named if one != WIDE] or [*named]


def operands_of(step: Step, flow: Flow, change: Narrowing) -> Operands:
    """The operands of a node that is no loop and no If."""
    # the body of a SequenceMap is not followed, and the bits of a BitCast are those of one type
    fixed = step.op == "BitCast" or holds_graphs(step.node)
    known = None if fixed else signature(step.op, flow.opset)
    formals = [known.input(at) if known else None for at in range(len(step.inputs))]
    formals += [known.output(at) if known else None for at in range(len(step.outputs))]
    slots = list(zip((*step.inputs, *step.outputs), formals, strict=True))
    unknown = {
        formal.variable
        for one, formal in slots
        if formal and one != OMITTED and not flow.elem_type(one)
    }

    def operand(place: int, number: int, formal: Formal | None) -> Operand:
        if flow.elem_type(number) != change.wide:
            return None
        reads_any = step.row.values is Values.SIZES or step.op in ("Cast", "CastLike")
        if formal and place == 0 and reads_any and change.narrow in formal.valid:
            return None
        if formal is None or formal.variable in unknown or not change.fits(formal):
            return WIDE
        # a sequence and what is in it have one type, but positions, int32 or int64, their own
        whole = change.whole or (step.row.wraps and len(formal.valid) > 2)
        return _WHOLE if whole else formal.variable

    operands = [operand(place, *slot) for place, slot in enumerate(slots)]
    return Operands(operands[: len(step.inputs)], operands[len(step.inputs) :])


@cache
def choosing_attribute(op: str, opset: int) -> str:
    """The attribute that chooses the type of an operator's output; empty if there is none."""
    if op == "ConstantOfShape":
        return "value"
    if not defs.has(op, opset):
        return ""
    known = defs.get_schema(op, opset).attributes
    return next((name for name in _CHOOSING if name in known), "")
