"""Reads bodies that run a recurrent operator for one step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from onnx import NodeProto

from passes.ir.attributes import attribute, text
from passes.ir.operators import op_of
from passes.loops.form import Carried
from passes.operators.cells import RECURRENT, Operands
from passes.rules.recognize_cell.reading.columns import Reader
from passes.rules.recognize_cell.reading.forms import Cell


@dataclass(frozen=True)
class OperatorCell(Cell):
    """The step of a recurrent operator, written as that operator, `node`, over one step."""

    node: NodeProto = field(default_factory=NodeProto)

    @property
    def weights(self) -> tuple[str, str, str, str]:
        """W, R, B and P of the operator, "" where one is left out."""
        operands = Operands.of(self.node)
        return operands.w, operands.r, operands.b, operands.peepholes


def operator_cell(read: Reader, element: str, states: Sequence[Carried]) -> OperatorCell | None:
    """The cell, None where the body has no recurrent operator.

    Raises:
        Refused: `not-a-cell` where the body does something else with an element or a state.
    """
    steps = [node for node in read.body.nodes if op_of(node) in RECURRENT]
    if not steps:
        return None
    (node, *others), operator = steps, op_of(steps[0])
    x, *weights, lengths, h, c, peepholes = Operands.of(node)
    if (
        others
        or lengths
        or attribute(node, "layout", 0)
        or text(node, "direction", "") not in _WAYS
    ):
        raise read.refusal(f"its {operator} is not alone, or has lengths or directions")
    if read.origin(x) != element:
        raise read.refusal(f"its {operator} reads {x!r}, which is not an element", x)
    ordered = []
    for place, initial in enumerate([h, c][: len(RECURRENT[operator].states)]):
        found = [one for one in states if one.body_input == read.origin(initial)]
        after = [read.origin(one.body_output) for one in found]
        made = {read.origin(name) for name in _made(node, place)}
        if len(found) != 1 or after[0] not in made:
            what = f"its {operator} does not read state {place} of the step before"
            raise read.refusal(what, *node.output)
        ordered.append(found[0])
    given = [name for name in (*weights, peepholes) if name]
    dims = [read.dims(name) or () for name in given[:2]]
    widths = [one[-1] for one in dims if len(one) == 3 and isinstance(one[-1], int)]
    if len(ordered) != len(states) or len(widths) != 2 or not all(map(read.is_leaf, given)):
        raise read.refusal(f"the body does more than its {operator}, or computes its weights")
    return OperatorCell(operator, tuple(ordered), widths[0], widths[1], node=node)


_WAYS = ("", "forward", "reverse")


def _made(node: NodeProto, place: int) -> list[str]:
    """The outputs that are a state after one step: Y is h, too."""
    names = node.output[:2] if place == 0 else node.output[2:3]
    return [name for name in names if name]
