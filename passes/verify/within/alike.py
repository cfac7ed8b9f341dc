"""Which node of a model another one has after a cast: the same in the same order, but for Casts."""

from __future__ import annotations

from collections.abc import Iterator

from onnx import ModelProto

from passes.ir.operators import op_of
from passes.ir.places import Key, Place, Scope, scopes


def places_before(before: ModelProto, after: ModelProto) -> dict[Key, Place]:
    """The place in `before` of each node of `after`, by its key; none of nodes in graphs that
    differ in more than Casts and constants."""
    outer = {scope.path: scope for scope in scopes(before)}
    pairs = ((outer[one.path], one) for one in scopes(after) if one.path in outer)
    return {key: place for pair in pairs for key, place in _paired(*pair)}


def _paired(before: Scope, after: Scope) -> Iterator[tuple[Key, Place]]:
    old, new = _nodes(before), _nodes(after)
    if [op_of(one.node) for one in old] != [op_of(one.node) for one in new]:
        return
    for one, other in zip(old, new, strict=True):
        yield (*after.key, other.index), one
        bodies = zip(before.inner(one.index), after.inner(other.index), strict=True)
        for inner, pair in bodies:
            yield from _paired(inner, pair)


def _nodes(scope: Scope) -> list[Place]:
    """The nodes of a graph that a cast neither adds nor removes."""
    places = (Place(node, index, scope) for index, node in enumerate(scope.owner.node))
    return [one for one in places if op_of(one.node) not in ("Cast", "Constant")]
