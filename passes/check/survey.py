"""One cheap pass over a model that finds the few nodes worth a look."""

from __future__ import annotations

from collections.abc import Iterator, Set

from passes import scope as scoping
from passes.check.operators import plain_operators
from passes.errors import BadModel
from passes.model import Model
from passes.scope import Place, Scope

#: Protobuf parses 100 nested messages, and each body costs three: no file holds more.
DEEPEST = 32


def survey(model: Model) -> list[Place]:
    """Every node that holds a graph, is a Constant, calls a function, or is no known operator.

    Outer nodes before what their bodies hold. The rest, which is nearly everything in a large
    model, costs one look at its op_type; a node of another domain that borrows the name of a
    plain operator is therefore not listed.

    Raises:
        BadModel: the bodies are nested deeper than a file can hold.
    """
    called = {function.name for function in model.proto.functions}
    found: list[Place] = []
    for scope in scoping.scopes(model.proto):
        opset = model.opset(scope.owner)
        found.extend(_notable(scope, plain_operators(opset) - called, 1))
    return found


def _notable(scope: Scope, plain: Set[str], depth: int) -> Iterator[Place]:
    if depth > DEEPEST:
        raise BadModel(
            f"graphs are nested more than {DEEPEST} deep, which no file can hold",
            path=scope.path.split("/")[0],
        )
    for index, node in enumerate(scope.owner.node):
        if node.op_type in plain:
            continue
        yield Place(node, index, scope)
        for inner in scope.inner(index):
            yield from _notable(inner, plain, depth + 1)
