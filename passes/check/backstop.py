"""onnx's own checker as a backstop: the copy of a model that it gets, and its complaints.

The checker is stricter than runtimes, and than what this project holds for valid. `mended` removes
everything that it is known to reject without need, so that its other complaints count.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Set
from itertools import islice

import onnx
from google.protobuf.message import EncodeError
from onnx import FunctionProto, GraphProto, ModelProto, TensorProto, TypeProto
from onnx.checker import ValidationError

from passes.errors import BadModel
from passes.ir import scope as scoping
from passes.ir.boundary import return_copy
from passes.ir.external_data import external_tensors
from passes.ir.lean import constants, with_tensors
from passes.ir.model import Model
from passes.ir.operators import SPELLED_OUT, op_of
from passes.ir.places import imports_of
from passes.ir.protos import copied
from passes.ir.scope import Owner, Place

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


#: The opsets of GroupNormalization-18.
_DEPRECATED_GROUPS = range(18, 21)
_LARGE = 1 << 18  # elements; small ones are as fast to serialize as to replace


def light(model: ModelProto) -> ModelProto:
    """The model for the checker: itself, or a copy without large weights.

    The checker serializes what it gets, which fails above 2 GB; and it looks for external data
    in the working directory.
    """
    if not any(map(_is_heavy, constants(model.graph))):
        return model
    return with_tensors(model, lambda one: _stub(one) if _is_heavy(one) else one)


def mended(model: ModelProto) -> ModelProto:
    """A copy without what the checker rejects, but onnxruntime runs or the IR allows."""
    lean = light(model)
    copy = copied(lean)
    # an initializer of the main graph that IR 3 wants to be an input as well; and opset imports
    # at IR 1 and 2, which came before them
    copy.ir_version = max(copy.ir_version, 4)
    for tensor in external_tensors(copy):
        # checked when the model was loaded; the checker knows no folder
        tensor.CopyFrom(_stub(tensor))
    _give_types(copy.graph)
    for _, owner in scoping.owners(copy):
        deprecated = Model(copy).opset(owner) in _DEPRECATED_GROUPS
        for graph in scoping.graphs_below(owner):
            _normalize(graph)
            if deprecated:
                _normalize_instances(graph)
        _return_own_values(owner, set())
    return copy


def _is_heavy(tensor: TensorProto) -> bool:
    return tensor.data_location == TensorProto.EXTERNAL or math.prod(tensor.dims) > _LARGE


def _stub(tensor: TensorProto) -> TensorProto:
    return TensorProto(name=tensor.name, data_type=tensor.data_type, dims=[0])


def _give_types(graph: GraphProto) -> None:
    """Declare shapes of unknown rank, and types that are left to inference."""
    for value in (*graph.input, *graph.output):
        if value.type.WhichOneof("value") is None:
            value.type.tensor_type.elem_type = TensorProto.FLOAT
        if value.type.HasField("tensor_type"):
            _give_shape(value.type)


def _give_shape(kind: TypeProto) -> None:
    if not kind.tensor_type.HasField("shape"):
        kind.tensor_type.shape.SetInParent()


def _normalize(owner: Owner) -> None:
    """Name an unnamed graph; write the default domain as the empty name."""
    if not owner.name:
        owner.name = "graph"
    for node in owner.node:
        if node.domain == SPELLED_OUT:
            node.domain = ""


def _normalize_instances(owner: Owner) -> None:
    """Replace GroupNormalization-18, which is deprecated but the only one in its opsets, by another
    op of the same signature."""
    for node in owner.node:
        if op_of(node) == "GroupNormalization" and node.domain == "":
            node.op_type = "InstanceNormalization"
            kept = [attribute for attribute in node.attribute if attribute.name != "num_groups"]
            del node.attribute[:]
            node.attribute.extend(kept)


def _return_own_values(owner: Owner, outer: Set[str]) -> None:
    """Put an Identity between an outer value and an output of a body that is that value.

    The name of the value stays what it was outside; the body's output gets a new one.
    """
    known = scoping.defined(owner)
    for node in owner.node:
        for _, graph in scoping.subgraphs(node):
            _return_own_values(graph, outer | known)
    if isinstance(owner, FunctionProto):
        return
    for position, value in enumerate(owner.output):
        if value.name in outer and value.name not in known:
            return_copy(owner, value, f"{value.name}/returned_{position}")
