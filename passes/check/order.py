"""Why a name means nothing where it is used: no definition, a later one, or a cycle."""

from __future__ import annotations

from collections.abc import Iterator

from onnx import FunctionProto, ModelProto

from passes.check.cycles import circle, find_cycle
from passes.errors import BadModel
from passes.ir import scope as scoping
from passes.ir.scope import Owner, Place, Scope


def unresolved(place: Place, name: str, model: ModelProto) -> BadModel:
    """The error for a node that uses a name nobody has defined before it."""
    for at in place.scope.chain():
        makers = _makers(at.owner)
        if name in makers:
            return _out_of_order(place, name, at, makers)
    return BadModel(f"{name!r} is defined nowhere{_hint(place, name, model)}", path=place.path)


def _out_of_order(place: Place, name: str, at: Scope, makers: dict[str, int]) -> BadModel:
    nodes = at.owner.node

    def read_by(index: int) -> Iterator[int]:
        return (makers[one] for one in scoping.free_names(nodes[index]) if one in makers)

    cycle = find_cycle(_index_in(place, at), read_by)
    if cycle is not None:  # found against the flow of data; told along it
        labels = [scoping.label(nodes[index], index) for index in reversed(cycle)]
        return BadModel(f"the nodes form a cycle: {circle(labels)}", path=at.path)
    maker = Place(nodes[makers[name]], makers[name], at)
    return BadModel(
        f"{name!r} is used before {maker.path} defines it; the nodes are not in order",
        path=place.path,
    )


def _makers(owner: Owner) -> dict[str, int]:
    return {name: at for at, node in enumerate(owner.node) for name in node.output if name}


def _index_in(place: Place, at: Scope) -> int:
    """The position in `at` of the node that is `place`, or that holds it."""
    if at is place.scope:
        return place.index
    position = place.scope.key[len(at.key)]
    assert isinstance(position, int)
    return position


def _hint(place: Place, name: str, model: ModelProto) -> str:
    """Where else the name has a meaning."""
    *_, outermost = place.scope.chain()
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
