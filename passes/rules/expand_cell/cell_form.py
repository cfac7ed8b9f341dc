"""An RNN, GRU or LSTM node, taken apart."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from onnx import NodeProto, TensorProto

from passes.ir.attributes import attribute, attribute_proto, has, has_references, number, text
from passes.ir.imports import CONTRIB
from passes.ir.operators import op_of
from passes.ir.versions import HAS_THRESHOLDED_RELU, SCAN_HAS_AXES
from passes.rule import Refused, Site
from passes.types.value_types import FLOATS, Dim, dims_of, elem_type_of

#: The operators, and their activations by default.
CELLS: Mapping[str, Sequence[str]] = {
    "RNN": ("Tanh",),
    "GRU": ("Sigmoid", "Tanh"),
    "LSTM": ("Sigmoid", "Tanh", "Tanh"),
}
#: Operators of onnxruntime's own domain that are cells, too, but do more.
OTHERS = (f"{CONTRIB}::DynamicQuantizeLSTM", f"{CONTRIB}::AttnLSTM")

#: The parameters of each activation with their defaults; None where runtimes differ on it.
_PARAMETERS: Mapping[str, Mapping[str, float | None]] = {
    "Affine": {"alpha": None, "beta": None},
    "Elu": {"alpha": 1.0},
    "HardSigmoid": {"alpha": 0.2, "beta": 0.5},
    "LeakyRelu": {"alpha": 0.01},
    "Relu": {},
    "ScaledTanh": {"alpha": None, "beta": None},
    "Sigmoid": {},
    "Softplus": {},
    "Softsign": {},
    "Tanh": {},
    "ThresholdedRelu": {"alpha": None},
}
_DIRECTIONS = {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}


@dataclass(frozen=True)
class Activation:
    """An activation by its name in the documents, with the parameters that it takes."""

    name: str
    parameters: Mapping[str, Any]


@dataclass(frozen=True)
class CellForm:
    """The node's inputs, "" where they are left out, and its attributes.

    `directions`: for each, whether it is reversed; `functions` has the activations of each.
    `batch_first` is `layout`, `coupled` `input_forget`, `linear` `linear_before_reset`.
    """

    operator: str
    elem_type: int
    x: str
    w: str
    r: str
    b: str
    lengths: str
    initials: Sequence[str]
    peepholes: str
    directions: Sequence[bool]
    functions: Sequence[Sequence[Activation]]
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
        _check(site)
        inputs = [*node.input, *[""] * 8][:8]
        x, w, r, b, lengths = inputs[:5]
        elem_type = elem_type_of(site.type_of(x))
        if elem_type not in FLOATS:
            kind = TensorProto.DataType.Name(elem_type)
            raise Refused("element-type", f"{x!r} is of type {kind}, no float", [site.path, x])
        directions = _DIRECTIONS.get(text(node, "direction", "forward"), ())
        (count, *_), (*_, hidden) = _dims(site, w, 3), _dims(site, r, 3)
        if not directions or (count not in (None, len(directions)) and not isinstance(count, str)):
            what = f"{text(node, 'direction', 'forward')!r} with weights of {count} directions"
            raise Refused("direction", f"the direction is {what}", [site.path])
        batch_first = bool(attribute(node, "layout", 0))
        steps, rows, width = _dims(site, x, 3)
        return cls(
            operator,
            elem_type,
            *(x, w, r, b, lengths),
            initials=inputs[5:7] if operator == "LSTM" else inputs[5:6],
            peepholes=inputs[7] if operator == "LSTM" else "",
            directions=directions,
            functions=_functions(site, len(directions)),
            clip=number(node, "clip", 0.0) if has(node, "clip") else None,
            batch_first=batch_first,
            coupled=bool(attribute(node, "input_forget", 0)),
            linear=bool(attribute(node, "linear_before_reset", 0)),
            steps=rows if batch_first else steps,
            rows=steps if batch_first else rows,
            inputs=width,
            hidden=attribute(node, "hidden_size", None) or hidden,
        )

    @property
    def gates(self) -> int:
        """The number of gates of W, R and B."""
        return {"RNN": 1, "GRU": 3, "LSTM": 4}[self.operator]


def _check(site: Site) -> None:
    node, path = site.node, site.path
    if op_of(node) in OTHERS:
        what = f"{op_of(node)} does more than an LSTM of ONNX"
        raise Refused("contrib", what, [path])
    if site.target < SCAN_HAS_AXES:
        what = f"the opset is {site.target}, below {SCAN_HAS_AXES}"
        raise Refused("opset-too-old", what, [path])
    if has_references(node):
        what = "an attribute is chosen by the callers of the function"
        raise Refused("attribute-reference", what, [path])
    clip = number(node, "clip", 1.0)
    if not clip > 0:
        what = f"runtimes differ on clip = {clip:g}, which is not above 0"
        raise Refused("clip", what, [path])


def _dims(site: Site, name: str, rank: int) -> Sequence[Dim]:
    return dims_of(site.type_of(name)) or (None,) * rank


def _functions(site: Site, directions: int) -> list[list[Activation]]:
    """The activations of each direction; parameters go in order to those that take one."""
    node, default = site.node, CELLS[op_of(site.node)]
    given = attribute_proto(node, "activations")
    names = [one.decode() for one in given.strings] if given else [*default] * directions
    if len(names) < len(default) * directions:
        what = f"it has {len(names)} activations, {len(default) * directions} are needed"
        raise Refused("activation", what, [site.path])
    lists = {
        parameter: iter(_floats(node, f"activation_{parameter}")) for parameter in ("alpha", "beta")
    }
    found = [_activation(site, name, lists) for name in names]
    every = len(default)
    return [found[way * every : (way + 1) * every] for way in range(directions)]


def _activation(site: Site, written: str, lists: Mapping[str, Iterator[float]]) -> Activation:
    names = [name for name in _PARAMETERS if name.lower() == written.lower()]
    if not names:
        raise Refused("activation", f"the activation {written!r} is unknown", [site.path])
    parameters = dict[str, float]()
    for parameter, default in _PARAMETERS[names[0]].items():
        value = next(lists[parameter], default)
        if value is None:
            what = f"runtimes differ on the {parameter} of {names[0]} where it is left out"
            raise Refused("default-differs", what, [site.path])
        parameters[parameter] = value
    if names[0] == "ThresholdedRelu" and site.target < HAS_THRESHOLDED_RELU:
        what = f"ThresholdedRelu is unsupported by opset {site.target}"
        raise Refused("opset-too-old", what, [site.path])
    return Activation(names[0], parameters)


def _floats(node: NodeProto, name: str) -> list[float]:
    given = attribute_proto(node, name)
    return list(given.floats) if given else []
