"""A node of a recurrent operator, taken apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from onnx import TensorProto

from passes.ir.attributes import attribute, has, has_references, number, text
from passes.ir.operators import op_of
from passes.ir.places import CONTRIB
from passes.ir.versions import HAS_THRESHOLDED_RELU, SCAN_HAS_AXES
from passes.operators.cells import (
    DIRECTIONS,
    RECURRENT,
    Cell,
    CellInputs,
    Function,
    OpenActivations,
    functions_of,
)
from passes.rule import Site
from passes.types.value_types import FLOATS, Dim, dims_of, elem_type_of

#: Operators of onnxruntime's own domain that are cells, too, but do more.
OTHERS = (f"{CONTRIB}::DynamicQuantizeLSTM", f"{CONTRIB}::AttnLSTM")


@dataclass(frozen=True)
class CellForm:
    """The node's inputs and attributes.

    `directions`: for each, whether it is reversed; `functions` has the activations of each.
    `batch_first` is `layout`, `coupled` `input_forget`, `linear` `linear_before_reset`.
    """

    operator: str
    elem_type: int
    operands: CellInputs
    initials: Sequence[str]
    directions: Sequence[bool]
    functions: Sequence[Sequence[Function]]
    clip: float | None
    batch_first: bool
    coupled: bool
    linear: bool
    steps: Dim
    rows: Dim
    inputs: Dim
    hidden: Dim

    @classmethod
    def of(cls, site: Site) -> CellForm:
        """The form of the site's node.

        Raises:
            Refused: see the rule `expand-cell`.
        """
        node, operator = site.node, op_of(site.node)
        operands = CellInputs.of(node)
        (steps, rows, width), (count, *_), (*_, hidden) = (_dims(site, one) for one in operands[:3])
        way = text(node, "direction", "forward")
        directions, clip = DIRECTIONS.get(way, ()), number(node, "clip", 1.0)
        kind = elem_type_of(site.type_of(operands.x))
        referring = has_references(node)
        for code, wrong, what in (
            ("contrib", operator in OTHERS, f"{operator} does more than an LSTM of ONNX"),
            ("attribute-reference", referring, "callers of the function choose an attribute"),
            ("clip", not clip > 0, f"runtimes differ on clip = {clip:g}, which is not above 0"),
            ("element-type", kind not in FLOATS, f"it is of {TensorProto.DataType.Name(kind)}"),
            ("direction", not directions, f"the direction is {way!r}"),
            (
                "direction",
                isinstance(count, int) and count != len(directions),
                f"the direction is {way!r}, with weights of {count} directions",
            ),
        ):
            if wrong:
                raise site.refused(code, what)
        site.need_opset(SCAN_HAS_AXES, "has no such Scan")
        batch_first = bool(attribute(node, "layout", 0))
        return cls(
            operator,
            kind,
            operands,
            initials=[operands.h, operands.c][: len(RECURRENT[operator].states)],
            directions=directions,
            functions=_functions(site, len(directions)),
            clip=clip if has(node, "clip") else None,
            batch_first=batch_first,
            coupled=bool(attribute(node, "input_forget", 0)),
            linear=bool(attribute(node, "linear_before_reset", 0)),
            steps=rows if batch_first else steps,
            rows=steps if batch_first else rows,
            inputs=width,
            hidden=attribute(node, "hidden_size", None) or hidden,
        )

    @property
    def cell(self) -> Cell:
        """The facts about the operator."""
        return RECURRENT[self.operator]


def _dims(site: Site, name: str) -> Sequence[Dim]:
    """The three sizes of an input, as far as they are known."""
    dims = dims_of(site.type_of(name)) or ()
    return dims if len(dims) == 3 else (None,) * 3


def _functions(site: Site, directions: int) -> list[list[Function]]:
    """The activations of each direction. Raises Refused."""
    try:
        found = functions_of(site.node, directions)
    except OpenActivations as error:
        raise site.refused(error.code, f"{error}") from error
    if any(one.activation.name == "ThresholdedRelu" for own in found for one in own):
        site.need_opset(HAS_THRESHOLDED_RELU, "does not support ThresholdedRelu")
    return found
