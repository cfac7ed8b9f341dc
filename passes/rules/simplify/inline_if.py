"""The rule `inline-if`: an If whose condition is known becomes the branch that it takes."""

from __future__ import annotations

from dataclasses import replace

from onnx import NodeProto, TensorProto

from passes.analysis.bodies.body_types import are_shapes_proven
from passes.analysis.bodies.liveness import dead_after_rewrite
from passes.analysis.integers.decided import decided
from passes.analysis.integers.integers import Integers
from passes.analysis.safety.randomness import is_pure
from passes.ir import scope as scoping
from passes.ir.constants import Constants
from passes.ir.graph_index import GraphIndex
from passes.operators.table import traits_of
from passes.operators.traits import Work
from passes.rule import Edit, NothingToDo, Site, nodes_of, register
from passes.rules.simplify.inlining import InferredBranch, chosen, inlined, unpacked
from passes.types.value_types import dims_of, elem_type_of
from passes.writing.author import Author


@register("inline-if", considers=nodes_of("If"), optional=True)
def inline_if(site: Site) -> Edit:
    """Replace an If whose condition is known by the branch that it takes.

    Before:

        <bool c = {1}>
        y = If (c) <then_branch = a () => (p) { t = Neg (x) p = Exp (t) }, else_branch = ...>

    After:

        t_1 = Neg (x)
        y = Exp (t_1)

    Values of the branch get unique names. Outer values that it returns are copied by an Identity.
    The condition is also known where it follows from constants and sizes, as `squeeze` exports it:
    from sizes that are known, and from comparisons that any size decides the same way. Of sizes in
    the body of a Loop, only those that follow from outside count, whatever the body declares.

    An If that is itself a condition is replaced, too, as TorchScript writes `c and b` and `c or b`:

        y = If (c) <then_branch = a () => (p) { p = Greater (n, m) },
                    else_branch = b () => (q) { q = Identity (c) }>

    becomes

        p = Greater (n, m)
        y = And (c, p)

    One branch must return the condition, or a constant. What the other one returns must be proven
    to have the shape of the condition, a single element, by a few nodes that take no work and
    cannot fail.

    Refuses:
    - `condition-unknown`: `--target no-control-flow`: the branch is known only at run time
    """
    found = decided(site, site.node.input[0])
    if found is None or found[0].size != 1:
        edit = short_circuit(site)
        if edit is not None:
            return edit
        if site.options.flat:
            name = site.node.input[0]
            what = f"the branch depends on {name!r}, which is known only at run time"
            raise site.refused("condition-unknown", what, name)
        raise NothingToDo
    value, context = found
    edit = inlined(site, "then_branch" if value.item() else "else_branch")
    covered = dead_after_rewrite(site, Integers(site), (), edit.nodes)
    return replace(edit, covered=covered, context=context)


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
