"""Ifs that are conditions: `c and b`, `c or b`, as exporters write what stops at the first."""

from __future__ import annotations

from onnx import NodeProto, TensorProto

from passes.analysis.bodies.body_types import are_shapes_proven
from passes.analysis.safety.randomness import is_pure
from passes.ir import scope as scoping
from passes.ir.constants import Constants
from passes.ir.graph_index import GraphIndex
from passes.operators.table import traits_of
from passes.operators.traits import Work
from passes.rule import Edit, Site
from passes.rules.simplify.inferred_branch import InferredBranch
from passes.rules.simplify.inlining import chosen, unpacked
from passes.types.value_types import dims_of, elem_type_of
from passes.writing.author import Author

_BRANCHES = ("then_branch", "else_branch")
_MOST_NODES = 16
_CHEAP = (Work.FREE, Work.VIEW, Work.MOVE, Work.LIGHT)


def short_circuit(site: Site) -> Edit | None:
    """The Edit for an If that computes a condition from its own and at most one other; None where
    it does more, or where that other one may fail or takes work."""
    if len(site.node.output) != 1:
        return None
    graphs = dict(scoping.subgraphs(site.node))
    returned = {
        part: GraphIndex(graphs[part]).source(graphs[part].output[0].name) for part in _BRANCHES
    }
    then, other = (_known(site, part, name) for part, name in returned.items())
    if then == other:  # two values, or one constant
        return None
    part = "then_branch" if then is None else "else_branch" if other is None else ""
    if part and not _is_cheap(site, part, returned[part]):
        return None
    author = Author.at(site, "if")
    bodies = [unpacked(site, part, author)] if part else []
    condition, output = site.node.input[0], site.node.output[0]
    if part:
        graph = bodies[0].graph
        value = GraphIndex(graph).source(graph.output[0].name)
        known = bool(other if then is None else then)
        # where the branch that is known is taken, the condition is the opposite of `part`
        if known == (part == "then_branch"):
            condition = author.op("Not", condition)
        author.op("Or" if known else "And", condition, value, outputs=[output])
    else:
        author.op("Identity" if then else "Not", condition, outputs=[output])
    return chosen(site, bodies, author, "a condition")


def _known(site: Site, part: str, name: str) -> bool | None:
    """Return the value of a branch if it is the same whenever the branch is taken: a constant, or
    the condition itself; else None.

    A constant must have the shape of the condition.
    """
    condition = site.node.input[0]
    dims = dims_of(site.type_of(condition))
    if dims is None or any(dim != 1 for dim in dims):
        return None
    scope = site.body_scope(part)
    if name == condition and site.model.home(scope, name) == site.model.home(site.scope, name):
        return part == "then_branch"
    value = Constants(site.model, scope).value(name)
    if value is None or value.dtype != bool or value.shape != dims:
        return None
    return bool(value.item())


def _is_cheap(site: Site, part: str, name: str) -> bool:
    """Return whether a branch may run in any case, and returns a value of the condition's shape."""
    scope = site.body_scope(part)
    nodes = list(scope.owner.node)
    if len(nodes) > _MOST_NODES or not all(
        traits_of(node).work in _CHEAP and is_pure(node) for node in nodes
    ):
        return False
    if not are_shapes_proven(site):
        return False
    branch = InferredBranch.seen(site, dict(scoping.subgraphs(site.node))[part], part)
    single = dims_of(site.type_of(site.node.input[0]))
    if branch.dims_of(name) != single or elem_type_of(branch.type_of(name)) != TensorProto.BOOL:
        return False
    return all(branch.cannot_fail(node) and _takes_no_work(branch, node) for node in nodes)


def _takes_no_work(branch: InferredBranch, node: NodeProto) -> bool:
    """Return whether a node gives single elements, or sizes and constants."""
    shapes = (branch.dims_of(name) for name in node.output)
    single = all(dims is not None and all(dim == 1 for dim in dims) for dims in shapes)
    return single or traits_of(node).work is Work.FREE
