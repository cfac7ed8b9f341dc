"""onnx's own checker as a backstop, its complaints in one sentence with a node path."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice

import onnx
from google.protobuf.message import EncodeError
from onnx import ModelProto
from onnx.checker import ValidationError

from passes.errors import BadModel
from passes.ir import scope as scoping
from passes.ir.operators import op_of
from passes.ir.places import imports_of
from passes.ir.scope import Place

_CONTEXT = "==> Context:"
_NODE = re.compile(r"Name: (.*?) ?OpType: (\S*)", re.DOTALL)


def complaint(model: ModelProto) -> str | None:
    """The checker's complaint about a model; None: there is none; empty: it cannot run.

    It cannot on a model that serializes to more than 2 GB.
    """
    try:
        content = model.SerializeToString()
    except (EncodeError, ValueError):
        return ""
    if len(content) > onnx.checker.MAXIMUM_PROTOBUF:
        return ""
    try:
        onnx.checker.check_model(content)
    except (ValidationError, ValueError, RuntimeError) as error:
        return str(error)
    return None


def as_error(message: str, model: ModelProto) -> BadModel:
    """A complaint of the checker as an error: one line, and the path where it can be found."""
    return BadModel(f"onnx's checker reports: {_condensed(message)}", path=_path(message, model))


def _condensed(message: str) -> str:
    text = " ".join(message.split(_CONTEXT)[0].split())
    text = re.sub(r"^\[[^\]]*\]\s*", "", text)
    text = re.sub(r"\S+\.(?:cc|h):\d+\S*\s*", "", text)
    return text.rstrip(". ")


def _path(message: str, model: ModelProto) -> str:
    """The path of the node that a message speaks of, where it is known."""
    found = _NODE.search(message.partition(_CONTEXT)[2])
    if found is None:
        return ""
    name, op_type = found.group(1).strip(), found.group(2)
    candidates = [
        place
        for place in scoping.walk_model(model)
        if op_of(place.node) == op_type and place.node.name == name
    ]
    inside = [place for holder in candidates for place in _below(holder)]
    if len(candidates) > 1 or inside:
        candidates = list(islice(_failing([*inside, *candidates], message, model), 1))
    return candidates[0].path if candidates else ""


def _below(place: Place) -> Iterator[Place]:
    """The nodes in the bodies of a node: the checker names only the outermost node."""
    for inner in place.scope.inner(place.index):
        yield from scoping.walk(inner)


def _failing(places: list[Place], message: str, model: ModelProto) -> Iterator[Place]:
    """Those of several similar nodes about which the checker complains in the same words."""
    for place in places:
        try:
            onnx.checker.check_node(place.node, _context(place, model))
        except (ValidationError, ValueError, RuntimeError) as error:
            if _condensed(str(error)) == _condensed(message):
                yield place


def _context(place: Place, model: ModelProto) -> onnx.checker.C.CheckerContext:
    imports = imports_of(model, place.scope.outermost.owner)
    context = onnx.checker.C.CheckerContext()
    context.ir_version = model.ir_version
    context.opset_imports = {entry.domain: entry.version for entry in imports}
    return context
