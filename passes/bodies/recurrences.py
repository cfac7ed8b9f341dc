"""Carried values that can be computed without the loop, by how the body computes the next
one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from onnx import NodeProto, TensorProto

from passes.bodies.time_body import TimeBody
from passes.ir.operators import op_of
from passes.loops.form import Carried
from passes.types.value_types import FLOATS, elem_type_of


class Update(StrEnum):
    """The way in which the next value is computed from the previous one and `v`, which is
    independent of it."""

    UNCHANGED = "unchanged"  # the value itself
    COUNTER = "counter"  # the value + v, where v is an integer and the same in every iteration
    SUM = "sum"  # the value + v, or - v
    MAXIMUM = "maximum"  # the larger of the value and v
    MINIMUM = "minimum"  # the smaller of the value and v
    LAST = "last"  # v


#: The updates by the operator that makes them: those that the rules solve.
KINDS = {
    "Add": Update.SUM,
    "Sub": Update.SUM,
    "Max": Update.MAXIMUM,
    "Min": Update.MINIMUM,
}
#: The kinds of which only the last value can be computed: no operator gives all of them.
FINAL_ONLY = (Update.MAXIMUM, Update.MINIMUM)
_COUNTERS = frozenset({TensorProto.INT32, TensorProto.INT64})
#: What onnxruntime computes as the loop does. Its ReduceProd does not: of integers it does not wrap
#: around, and of floats it multiplies in an order in which products may overflow, or become 0.
_KERNELS = {
    Update.SUM: {TensorProto.INT32, TensorProto.INT64, TensorProto.FLOAT, TensorProto.DOUBLE},
    Update.MAXIMUM: {
        *(TensorProto.INT8, TensorProto.UINT8, TensorProto.INT32, TensorProto.INT64),
        *(TensorProto.FLOAT, TensorProto.DOUBLE),
    },
}
_KERNELS[Update.MINIMUM] = _KERNELS[Update.MAXIMUM]


@dataclass(frozen=True)
class Recurrence:
    """A carried value and its kind; `value` names `v`, which is subtracted where `negative`.

    `node` is the position of the node that computes the next value from the previous one.
    """

    carried: Carried
    kind: Update
    elem_type: int
    value: str = ""
    node: int | None = None
    negative: bool = False

    @property
    def needs(self) -> list[str]:
        """The values that must be computed before those of all iterations."""
        return [self.value] if self.value else []


def recurrence_of(body: TimeBody, carried: Carried) -> Recurrence:
    """The recurrence of a carried value.

    One of no other kind is a LAST that depends on itself.
    """
    elem_type = elem_type_of(body.rows.types.get(carried.body_input))
    origin = body.index.source(carried.body_output)
    if origin == carried.body_input:
        return Recurrence(carried, Update.UNCHANGED, elem_type)
    position = body.index.positions.get(origin)
    node = None if position is None else body.nodes[position]
    if node is None or not _steps(body, node, carried.body_input):
        return Recurrence(carried, Update.LAST, elem_type, carried.body_output)
    own = body.index.source(node.input[0]) == carried.body_input
    value = node.input[1] if own else node.input[0]
    kind = KINDS[op_of(node)]
    if kind is Update.SUM and elem_type in _COUNTERS and value not in body.varying:
        kind = Update.COUNTER
    return Recurrence(carried, kind, elem_type, value, position, op_of(node) == "Sub")


def _steps(body: TimeBody, node: NodeProto, state: str) -> bool:
    """Return whether a node computes the next value from the previous one and another value."""
    known = op_of(node) in KINDS
    if not known or len(node.input) != 2:
        return False
    first, second = (body.index.source(name) == state for name in node.input)
    return (first != second) and (first or op_of(node) != "Sub")


def check(body: TimeBody, recurrence: Recurrence, reads: Sequence[str]) -> None:
    """Check that a recurrence may be written with operators over all iterations.

    `reads` are the names of what reads values before the last.

    Raises:
        Refused: `reassociation`, `no-kernel` or `running`.
    """
    name = recurrence.carried.body_input
    if recurrence.kind not in (Update.SUM, *FINAL_ONLY):
        return
    in_order = recurrence.kind is Update.SUM or recurrence.elem_type not in FLOATS
    if not in_order and not body.site.options.allow_reassociation:
        raise body.site.refused(
            "reassociation",
            f"the running {recurrence.kind} {name!r} is of floats, and at once it may differ "
            "in the sign of a zero",
            name,
        )
    if recurrence.elem_type not in _KERNELS[recurrence.kind]:
        kind = TensorProto.DataType.Name(recurrence.elem_type)
        raise body.site.refused(
            "no-kernel",
            f"onnxruntime has no exact operator for the {recurrence.kind} of a sequence of "
            f"{kind}, which {name!r} is",
            name,
        )
    if recurrence.kind in FINAL_ONLY and reads:
        raise body.site.refused(
            "running",
            f"{reads[0]!r} reads every value of the running {recurrence.kind} {name!r}, and "
            "operators compute only the last one",
            name,
            reads[0],
        )
