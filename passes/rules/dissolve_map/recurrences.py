"""Carried values that can be computed without the loop: what they are, by how the body makes
the next one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from onnx import NodeProto, TensorProto

from passes.ir.operators import op_of
from passes.loops.form import Carried
from passes.rule import Refused
from passes.rules.time_axis.time_body import TimeBody
from passes.types.value_types import elem_type_of


class Kind(StrEnum):
    """How the next value comes from the last one, `v` being computed without it."""

    UNCHANGED = "unchanged"  # the value itself
    COUNTER = "counter"  # the value + v, where v is an integer and the same in every iteration
    SUM = "sum"  # the value + v, or - v
    PRODUCT = "product"  # the value * v
    MAXIMUM = "maximum"  # the larger of the value and v
    MINIMUM = "minimum"  # the smaller of the value and v
    LAST = "last"  # v


KINDS = {
    "Add": Kind.SUM,
    "Sub": Kind.SUM,
    "Mul": Kind.PRODUCT,
    "Max": Kind.MAXIMUM,
    "Min": Kind.MINIMUM,
}
#: The kinds of which only the last value is known: there is no operator for all of them.
FINAL_ONLY = (Kind.PRODUCT, Kind.MAXIMUM, Kind.MINIMUM)
FLOATS = frozenset(
    {TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16, TensorProto.BFLOAT16}
)
_COUNTERS = frozenset({TensorProto.INT32, TensorProto.INT64})
#: What onnxruntime computes as the loop does; its ReduceProd of integers does not wrap around.
_KERNELS = {
    Kind.SUM: {TensorProto.INT32, TensorProto.INT64, TensorProto.FLOAT, TensorProto.DOUBLE},
    Kind.PRODUCT: {TensorProto.FLOAT, TensorProto.DOUBLE},
    Kind.MAXIMUM: {
        *(TensorProto.INT8, TensorProto.UINT8, TensorProto.INT32, TensorProto.INT64),
        *(TensorProto.FLOAT, TensorProto.DOUBLE),
    },
}
_KERNELS[Kind.MINIMUM] = _KERNELS[Kind.MAXIMUM]


@dataclass(frozen=True)
class Recurrence:
    """A carried value and what it is; `value` names v, which is subtracted where `negative`.

    `node` is the position of what computes the next value from the last one.
    """

    carried: Carried
    kind: Kind
    elem_type: int
    value: str = ""
    node: int | None = None
    negative: bool = False

    @property
    def needs(self) -> list[str]:
        """What must be known before the values of all iterations are."""
        return [self.value] if self.value else []


def recurrence_of(body: TimeBody, carried: Carried) -> Recurrence:
    """What a carried value is.

    A recurrence that is none of these is taken for a LAST that depends on itself.
    """
    elem_type = elem_type_of(body.rows.types.get(carried.body_input))
    origin = body.origin(carried.body_output)
    if origin == carried.body_input:
        return Recurrence(carried, Kind.UNCHANGED, elem_type)
    at = body.producers.get(origin)
    node = None if at is None else body.nodes[at]
    if node is None or not _steps(body, node, carried.body_input):
        return Recurrence(carried, Kind.LAST, elem_type, carried.body_output)
    own = body.origin(node.input[0]) == carried.body_input
    value = node.input[1] if own else node.input[0]
    kind = KINDS[op_of(node)]
    if kind is Kind.SUM and elem_type in _COUNTERS and value not in body.varying:
        kind = Kind.COUNTER
    return Recurrence(carried, kind, elem_type, value, at, op_of(node) == "Sub")


def _steps(body: TimeBody, node: NodeProto, state: str) -> bool:
    """Whether a node makes the next value of the last one and another value."""
    known = op_of(node) in KINDS
    if not known or len(node.input) != 2:
        return False
    first, second = (body.origin(name) == state for name in node.input)
    return (first != second) and (first or op_of(node) != "Sub")


def check(body: TimeBody, one: Recurrence, reads: Sequence[str]) -> None:
    """See that a recurrence may be written with operators over all iterations.

    `reads` are the names by which others read values of iterations before the last.

    Raises:
        Refused: `reassociation`, `no-kernel` or `running`.
    """
    path, name = body.site.path, one.carried.body_input
    if one.kind not in (Kind.SUM, *FINAL_ONLY):
        return
    if one.elem_type in FLOATS and not body.site.options.allow_reassociation:
        raise Refused(
            "reassociation",
            f"the running {one.kind} {name!r} is of floats, and at once it may differ in rounding, "
            "or in the sign of a zero; --allow-reassociation allows that",
            [path, name],
        )
    if one.elem_type not in _KERNELS[one.kind]:
        kind = TensorProto.DataType.Name(one.elem_type)
        raise Refused(
            "no-kernel",
            f"onnxruntime has no exact operator for the {one.kind} of a sequence of {kind}, which "
            f"{name!r} is",
            [path, name],
        )
    if one.kind in FINAL_ONLY and reads:
        raise Refused(
            "running",
            f"{reads[0]!r} reads every value of the running {one.kind} {name!r}, and operators "
            "give the last one only",
            [path, name, reads[0]],
        )
