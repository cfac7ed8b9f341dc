"""Counters that take their step as floats: `Cast (Add (Mul (Cast (c), 1), 1))`, as paddle does.

A float holds each whole number up to its limit; beyond it the sum rounds, and the counter may stay
the same.
"""

from __future__ import annotations

from dataclasses import dataclass

from onnx import NodeProto, TensorProto

from passes.analysis.integers.integers import Integers
from passes.ir.attributes import attribute
from passes.ir.operator_traits import traits_of
from passes.ir.operators import op_of
from passes.loops.form import Carried

#: Up to where a float holds every whole number.
EXACT: dict[int, int] = {TensorProto.FLOAT: 1 << 24, TensorProto.DOUBLE: 1 << 53}
_SIGNS = {"Add": 1, "Sub": -1}
_UNITS = ("Mul", "Div")


@dataclass(frozen=True)
class FloatStep:
    """A whole `step`, exact as long as neither the counter nor any sum exceeds a limit: as many
    iterations as `exact_from` returns."""

    step: int
    limit: int

    def exact_from(self, first: int) -> int:
        """Return the number of iterations that count exactly, from a first number on."""
        return max(0, (self.limit - abs(first)) // abs(self.step)) if self.step else 0


def float_step(body: Integers, carried: Carried, elem_type: int, rank: int) -> FloatStep | None:
    """The step of a counter of this type and rank by floats; None where it is none."""
    node = _own(body, carried.body_output)
    if node is None or op_of(node) != "Cast" or attribute(node, "to", 0) != elem_type:
        return None
    name, step, beside = node.input[0], 0, 0
    while (node := _own(body, name)) is not None and op_of(node) != "Cast":
        found = _operand(body, node, rank)
        if found is None:
            return None
        name, number = found
        step += number
        beside += abs(number)
    limit = 0 if node is None else EXACT.get(attribute(node, "to", 0), 0)
    if node is None or not limit or node.input[0] != carried.body_input:
        return None
    return FloatStep(step, limit - beside + abs(step))


def _own(body: Integers, name: str) -> NodeProto | None:
    """Return the node of the body that computes a value, skipping nodes that only pass it on."""
    node = body.source(name) if body.is_own(name) else None
    while node is not None and traits_of(node).hands_on:
        name = node.input[0]
        node = body.source(name) if body.is_own(name) else None
    return node


def _operand(body: Integers, node: NodeProto, rank: int) -> tuple[str, int] | None:
    """Return the operand to which a node adds a whole number, and that number: 0 if it multiplies
    by 1."""
    if op_of(node) not in (*_SIGNS, *_UNITS):
        return None
    swaps = op_of(node) in ("Add", "Mul")
    for name, other in (node.input, reversed(node.input)) if swaps else (node.input,):
        array = body.constant_inside(other)
        if array is None or array.size != 1 or array.ndim > rank or array.dtype.kind != "f":
            continue
        number = float(array.item())
        if op_of(node) in _UNITS:
            return (name, 0) if number == 1 else None
        small = abs(number) < EXACT[TensorProto.FLOAT] and number == int(number)
        return (name, _SIGNS[op_of(node)] * int(number)) if small else None
    return None
