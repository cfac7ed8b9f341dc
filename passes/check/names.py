"""Checks that every name means one value, defined before it is used.

Slow and thorough; used only if onnx's checker has complained, to find the place and the reason.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from onnx import FunctionProto, ModelProto

from passes.check.cycles import circle, find_cycle
from passes.errors import BadModel
from passes.ir import scope as scoping
from passes.ir.graph_index import GraphIndex
from passes.ir.scope import Place, Scope


def unresolved(place: Place, name: str, model: ModelProto) -> BadModel:
    """The error for a node that uses a name that is not defined before it."""
    for enclosing in place.scope.chain():
        producers = GraphIndex(enclosing.owner).positions
        if name in producers:
            return _out_of_order(place, name, enclosing, producers)
    return BadModel(f"{name!r} is defined nowhere{_hint(place, name, model)}", path=place.path)


def _out_of_order(place: Place, name: str, home: Scope, producers: dict[str, int]) -> BadModel:
    nodes = home.owner.node

    def read_by(index: int) -> Iterator[int]:
        return (producers[read] for read in scoping.free_names(nodes[index]) if read in producers)

    cycle = find_cycle(_index_in(place, home), read_by)
    if cycle is not None:  # found against the flow of data; reported along it
        labels = [scoping.label(nodes[index], index) for index in reversed(cycle)]
        return BadModel(f"the nodes form a cycle: {circle(labels)}", path=home.path)
    producer = Place(nodes[producers[name]], producers[name], home)
    return BadModel(
        f"{name!r} is used before {producer.path} defines it; the nodes are not in order",
        path=place.path,
    )


def _index_in(place: Place, home: Scope) -> int:
    """The position in `home` of the node that is `place`, or that holds it."""
    if home is place.scope:
        return place.index
    position = place.scope.key[len(home.key)]
    assert isinstance(position, int)
    return position


def _hint(place: Place, name: str, model: ModelProto) -> str:
    """Return where else the name is defined."""
    outermost = place.scope.outermost
    if isinstance(outermost.owner, FunctionProto):
        if name in scoping.defined(model.graph):
            return " in the function, and a function sees no names of the model"
        return " in the function"
    for scope in _below(outermost):
        if name in scoping.defined(scope.owner):
            return f" here; the one of {scope.path} is its own"
    return ""


def _below(scope: Scope) -> Iterator[Scope]:
    for index in range(len(scope.owner.node)):
        for inner in scope.inner(index):
            yield inner
            yield from _below(inner)


@dataclass(frozen=True)
class _Known:
    """The names that are defined at one place of a graph, and what defines each."""

    outer: _Known | None
    own: dict[str, str] = field(default_factory=dict)

    def find(self, name: str) -> str | None:
        level: _Known | None = self
        while level is not None:
            if name in level.own:
                return level.own[name]
            level = level.outer
        return None


def check_names(model: ModelProto) -> None:
    """Names of every graph and function, at every depth."""
    for scope in scoping.scopes(model):
        _check_scope(scope, None, model)


def _check_scope(scope: Scope, outer: _Known | None, model: ModelProto) -> None:
    known = _Known(outer)
    _add_inputs(scope, known)
    _add_initializers(scope, known, model.ir_version)
    for index, node in enumerate(scope.owner.node):
        place = Place(node, index, scope)
        for name in node.input:
            if name and known.find(name) is None:
                raise unresolved(place, name, model)
        for inner in scope.inner(index):
            _check_scope(inner, known, model)
        for name in filter(None, node.output):
            _add_output(place, name, known)
    _check_outputs(scope, known)


def _add_inputs(scope: Scope, known: _Known) -> None:
    for name in scoping.input_names(scope.owner):
        if not name:
            raise BadModel("an input has no name", path=scope.path)
        if name in known.own:
            raise BadModel(f"input {name!r} is listed twice", path=scope.path)
        known.own[name] = "an input"


def _add_initializers(scope: Scope, known: _Known, ir_version: int) -> None:
    owner = scope.owner
    if isinstance(owner, FunctionProto):
        return
    listed = [tensor.name for tensor in owner.initializer]
    listed += [sparse.values.name for sparse in owner.sparse_initializer]
    for name in listed:
        if not name:
            raise BadModel("an initializer has no name", path=scope.path)
        if known.own.get(name) == "an initializer":
            raise BadModel(f"initializer {name!r} is listed twice", path=scope.path)
        # onnxruntime runs a main graph that breaks the rule of IR 3, but not a body
        if ir_version == 3 and name not in known.own and scope.outer is not None:
            raise BadModel(
                f"initializer {name!r} is no input of its body, as IR version 3 demands",
                path=scope.path,
            )
        known.own[name] = "an initializer"


def _add_output(place: Place, name: str, known: _Known) -> None:
    if name in known.own:
        raise BadModel(f"{name!r} is already defined by {known.own[name]}", path=place.path)
    shadowed = known.find(name)
    if shadowed is not None:
        raise BadModel(
            f"output {name!r} hides an outer value that is defined by {shadowed}; only an input "
            "of a body may do that",
            path=place.path,
        )
    known.own[name] = place.path


def _check_outputs(scope: Scope, known: _Known) -> None:
    """An outer value may be returned as it is; onnx's checker and onnxruntime reject such
    bodies."""
    for name in scoping.output_names(scope.owner):
        if not name:
            raise BadModel("an output has no name", path=scope.path)
        if known.find(name) is None:
            raise BadModel(f"output {name!r} is defined nowhere", path=scope.path)
