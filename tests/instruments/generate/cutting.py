"""Smaller versions of a model: a node, a state or an output less, what it made an input."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from onnx import GraphProto, ModelProto, NodeProto, TypeProto, helper

from passes.ir import scope as scoping
from passes.ir.model import Model
from passes.ir.operators import is_onnx_domain
from passes.ir.protos import replace_all
from passes.ir.scope import Place
from passes.loops.form import LoopForm
from passes.types.value_types import dims_of, elem_type_of


def smaller(model: ModelProto) -> Iterator[ModelProto]:
    """Models with one thing less each, large things first; some of them may be invalid."""
    for number in range(len(model.graph.output)):
        made = _copy(model)
        del made.graph.output[number]
        yield from _pruned(made)
    places = len(list(scoping.walk_model(model)))
    for number in reversed(range(places)):
        yield from _without_node(model, number)
    for number in range(places):
        yield from _with_less_of_a_loop(model, number)
    bare = _copy(model)
    for place in scoping.walk_model(bare):
        for field in ("name", "doc_string", "metadata_props"):
            place.node.ClearField(field)
    yield bare


def _copy(model: ModelProto) -> ModelProto:
    made = ModelProto()
    made.CopyFrom(model)
    return made


def _place(model: ModelProto, number: int) -> Place:
    return list(scoping.walk_model(model))[number]


def _without_node(model: ModelProto, number: int) -> Iterator[ModelProto]:
    made = _copy(model)
    place = _place(made, number)
    read = _read(made.graph)
    if _becomes_input(made, place, [name for name in place.node.output if name in read]):
        del place.scope.owner.node[place.index]
        yield from _pruned(made)


def _becomes_input(model: ModelProto, place: Place, names: list[str], body: str = "") -> bool:
    """Make values inputs of the model, whatever depth they are made at."""
    types = Model(model).types
    scope = place.scope
    for name in filter(None, names):
        said = types.of(scope, name)
        if body:
            graph = next(graph for part, graph in scoping.subgraphs(place.node) if part == body)
            key = (*scope.key, place.index, body)
            said = types.of(scoping.Scope("", key, graph, scope), name)
        if said is None or not said.HasField("tensor_type") or dims_of(said) is None:
            return False
        if any(value.name == name for value in model.graph.input):
            return False
        model.graph.input.append(helper.make_value_info(name, _settled(said)))
    return True


def _settled(said: TypeProto) -> TypeProto:
    """The type, its unknown dims 2."""
    known = {"B", "T", "S", "N", "W"}
    dims = [dim if isinstance(dim, int) or dim in known else 2 for dim in dims_of(said) or ()]
    return helper.make_tensor_type_proto(elem_type_of(said), dims)


def _with_less_of_a_loop(model: ModelProto, number: int) -> Iterator[ModelProto]:
    node = _place(model, number).node
    if node.op_type not in ("Loop", "Scan") or not is_onnx_domain(node.domain):
        return
    form = LoopForm.from_node(node, model.opset_import[0].version)
    for field, fewest in (("carried", 0), ("collected", 0), ("scanned", 1)):
        for position in range(len(getattr(form, field))):
            made = _copy(model)
            if len(getattr(form, field)) > fewest and _drop(made, number, field, position):
                yield from _pruned(made)


def _drop(model: ModelProto, number: int, field: str, position: int) -> bool:
    """Drop a carried, scanned or collected value of a loop."""
    place = _place(model, number)
    form = LoopForm.from_node(place.node, model.opset_import[0].version)
    parts = list(getattr(form, field))
    gone = parts.pop(position)
    if field != "scanned":
        result = gone.final if field == "carried" else gone.tensor
        if result in _read(model.graph) and not _becomes_input(model, place, [result]):
            return False
    if field != "collected" and not _becomes_input(model, place, [gone.body_input], "body"):
        return False
    changed: dict[str, Any] = {field: tuple(parts)}
    place.node.CopyFrom(replace(form, **changed).to_node())
    return True


def _read(graph: GraphProto) -> set[str]:
    names = {value.name for value in graph.output}
    for node in graph.node:
        names.update(node.input)
        for _, inner in scoping.subgraphs(node):
            names |= _read(inner)
    return names


def _pruned(model: ModelProto) -> Iterator[ModelProto]:
    """Without what nothing needs any more; then as it is, since that may be what matters."""
    pruned = _copy(model)
    _prune(pruned.graph)
    yield _without_unread_inputs(pruned)
    yield _without_unread_inputs(model)


def _without_unread_inputs(model: ModelProto) -> ModelProto:
    read = _read(model.graph)
    replace_all(model.graph.input, [value for value in model.graph.input if value.name in read])
    return model


def _prune(graph: GraphProto) -> None:
    before = -1
    while before != len(graph.node):
        before = len(graph.node)
        read = _read(graph)
        kept: list[NodeProto] = [
            node for node in graph.node if any(name in read for name in node.output)
        ]
        if len(kept) < before:
            replace_all(graph.node, kept)
    for node in graph.node:
        for _, inner in scoping.subgraphs(node):
            _prune(inner)
    read = _read(graph)
    kept_weights = [tensor for tensor in graph.initializer if tensor.name in read]
    if len(kept_weights) < len(graph.initializer):
        replace_all(graph.initializer, kept_weights)
    del graph.value_info[:]
