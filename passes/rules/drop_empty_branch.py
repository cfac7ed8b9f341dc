"""The rule `drop-empty-branch`: no If is needed where its other branch gives nothing, either."""

from __future__ import annotations

from dataclasses import replace

from onnx import NodeProto

from passes import scope as scoping
from passes.operators import op_of
from passes.rule import Edit, NothingToDo, Refused, Site, register
from passes.rules.affine import Atom
from passes.rules.context import context_of
from passes.rules.entered import exceeding
from passes.rules.inlined import inlined
from passes.rules.integers import Integers
from passes.rules.leftovers import leftovers
from passes.rules.on_nothing import gives_nothing_anew, runs_on_nothing
from passes.rules.static_sizes import stands_in_loop
from passes.rules.where_empty import WhereEmpty
from passes.value_types import elem_type_of


def considers(node: NodeProto, opset: int, target: int) -> bool:
    """Whether a node is an If."""
    return op_of(node) == "If"


@register("drop-empty-branch", considers=considers, optional=True)
def drop_empty_branch(site: Site) -> Edit:
    """Write the branch for some rows in the place of an If whose other one is for none.

    Before:

        some = Greater (T, zero)
        y = If (some) <then_branch = a () => (float[T,2] p) { p = Neg (x) },
                       else_branch = b () => (float[T,2] q) { q = ConstantOfShape (none) }>

    After, where T is the size of x, and `none` is 0, 2:

        y = Neg (x)

    The condition must compare a size, or a sum of sizes, with 0 by Greater, as `raise-loop`
    writes it. Where it does not hold, these sizes are 0, and from that must follow that both
    branches give tensors of the same sizes, without elements, and that no op of either branch
    can fail. Ifs with loops or branches in them stay, and so do those in the body of a Loop, whose
    values may change their shapes from one iteration to the next.

    Refuses:
    - `may-differ`: that both branches give the same where there are no rows is not proven
    - `may-fail`: an op of a branch could fail where there are no rows, or is not known to run
    """
    zeros = _zeros(site)
    levels = [
        WhereEmpty.seen(site, graph, part, zeros) for part, graph in scoping.subgraphs(site.node)
    ]
    some, none = sorted(levels, key=lambda level: level.scope.key[-1] != "then_branch")
    _check_same(site, some, none)
    for level, may_run in ((some, runs_on_nothing), (none, gives_nothing_anew)):
        for node in level.graph.node:
            if not may_run(level, node):
                raise Refused(
                    "may-fail",
                    f"{op_of(node)} {list(node.output)} could fail where there are no rows",
                    [site.path, *node.output],
                )
    edit = inlined(site, "then_branch")
    covered = leftovers(site, Integers(site), (), edit.nodes)
    return replace(edit, note="for no rows, too", covered=covered, context=context_of(site))


def _zeros(site: Site) -> list[Atom]:
    """The sizes that are 0 where the second branch is taken.

    Raises:
        NothingToDo: it is taken elsewhere, a branch holds bodies, or the If stands in a Loop.
    """
    graphs = [graph for _, graph in scoping.subgraphs(site.node)]
    holds_bodies = any(scoping.holds_graphs(node) for graph in graphs for node in graph.node)
    if holds_bodies or stands_in_loop(site.scope):
        raise NothingToDo
    found = exceeding(site)
    if found is None:
        raise NothingToDo
    count, bound = found
    if bound.number != 0 or count.constant or not count.terms or not count.at_least(0):
        raise NothingToDo
    return [atom for atom, _ in count.terms]


def _check_same(site: Site, some: WhereEmpty, none: WhereEmpty) -> None:
    """See that both branches give empty tensors of the same sizes.

    Raises:
        Refused: `may-differ` where they may not.
    """
    pairs = zip(*(scoping.output_names(level.graph) for level in (some, none)), strict=True)
    for name, (one, other) in zip(site.node.output, pairs, strict=True):
        dims, others = some.dims_of(one), none.dims_of(other)
        kinds = {elem_type_of(some.type_of(one)), elem_type_of(none.type_of(other))}
        alike = dims is not None and None not in dims and dims == others and len(kinds) == 1
        if not alike or 0 not in (dims or ()):
            raise Refused(
                "may-differ",
                f"{name!r} is not proven to be empty, and of the same shape, whichever branch is "
                "taken where there are no rows",
                [site.path, name],
            )
