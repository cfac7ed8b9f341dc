"""A node of a recurrent operator, taken apart."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from onnx import NodeProto, TensorProto

from passes.ir.attributes import attribute, attribute_proto, has, has_references, number, text
from passes.ir.operators import op_of
from passes.ir.places import CONTRIB
from passes.ir.versions import HAS_THRESHOLDED_RELU, SCAN_HAS_AXES
from passes.operators.cells import (
    DIRECTIONS,
    RECURRENT,
    Activation,
    Cell,
    CellInputs,
    activation_named,
)
from passes.rule import Site
from passes.types.value_types import FLOATS, Dim, dims_of, elem_type_of

#: Operators of onnxruntime's own domain that are cells, too, but do more.
OTHERS = (f"{CONTRIB}::DynamicQuantizeLSTM", f"{CONTRIB}::AttnLSTM")


@dataclass(frozen=True)
class Function:
    """An activation function with the values of its parameters."""

    activation: Activation
    parameters: Mapping[str, Any]


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
    """The activations of each direction; parameters go in order to those that take one."""
    node, default = site.node, RECURRENT[op_of(site.node)].activations
    given = attribute_proto(node, "activations")
    names = [one.decode() for one in given.strings] if given else [*default] * directions
    if len(names) < len(default) * directions:
        what = f"it has {len(names)} activations, {len(default) * directions} are needed"
        raise site.refused("activation", what)
    lists = {one: iter(_floats(node, f"activation_{one}")) for one in ("alpha", "beta")}
    found = [_activation(site, name, lists) for name in names]
    every = len(default)
    return [found[way * every : (way + 1) * every] for way in range(directions)]


def _activation(site: Site, written: str, lists: Mapping[str, Iterator[float]]) -> Function:
    known = activation_named(written)
    if known is None:
        raise site.refused("activation", f"the activation {written!r} is unknown")
    parameters = dict[str, float]()
    for parameter in known.parameters:
        value = next(lists[parameter], known.default(parameter))
        if value is None:
            what = f"runtimes differ on the {parameter} of {known.name} where it is left out"
            raise site.refused("default-differs", what)
        parameters[parameter] = value
    if known.name == "ThresholdedRelu":
        site.need_opset(HAS_THRESHOLDED_RELU, "does not support ThresholdedRelu")
    return Function(known, parameters)


def _floats(node: NodeProto, name: str) -> list[float]:
    given = attribute_proto(node, name)
    return list(given.floats) if given else []
