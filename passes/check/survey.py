"""One cheap pass over a model that finds the few nodes that need checks."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass, field

from passes.check.operators import NodeInScope, plain_operators
from passes.errors import BadModel
from passes.ir import scope as scoping
from passes.ir.model import Model
from passes.ir.scope import Scope

#: Protobuf parses 100 nested messages, and each body costs three: no file holds more.
DEEPEST = 32


@dataclass(frozen=True)
class Survey:
    """The findings of a pass over a model.

    `places`: every node that may hold a graph or a text, is a Constant, calls a function, or is not
    a known operator, outer nodes before what their bodies hold. `scopes`: every graph and function.
    `notes`: what is accepted, though the operator document rules it out.
    """

    places: list[NodeInScope] = field(default_factory=list)
    scopes: list[Scope] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def nodes(self) -> int:
        """The number of nodes, at any depth."""
        return sum(len(scope.owner.node) for scope in self.scopes)

    def visit(
        self, model: Model, scope: Scope, opset: int, plain: Set[str], depth: int = 1
    ) -> None:
        """Add what a scope of a model holds, at any depth."""
        if depth > DEEPEST:
            raise BadModel(
                f"graphs are nested more than {DEEPEST} deep, which no file can hold",
                path=scope.path.split("/")[0],
            )
        self.scopes.append(scope)
        of_graph = model.index(scope.owner)
        for index, op in enumerate(of_graph.ops):
            if op not in plain:
                bodies = scope.inner(index)
                node = of_graph.nodes[index]
                self.places.append(NodeInScope(node, index, scope, opset, bodies))
                for inner in bodies:
                    self.visit(model, inner, opset, plain, depth + 1)


def survey(model: Model) -> Survey:
    """Every graph, and every node that needs checks.

    The others, which is nearly all in a large model, cost one look at their op_type; a node
    of another domain that has the name of a plain operator is therefore not listed.

    Raises:
        BadModel: the bodies are nested deeper than a file can hold.
    """
    called = {function.name for function in model.proto.functions}
    found = Survey()
    for scope in scoping.scopes(model.proto):
        opset = model.opset(scope.owner)
        found.visit(model, scope, opset, plain_operators(opset) - called)
    return found
