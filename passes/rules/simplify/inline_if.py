"""The rule `inline-if`: an If whose condition is known becomes the branch that it takes."""

from __future__ import annotations

from dataclasses import replace

from passes.analysis.bodies.liveness import dead_after_rewrite
from passes.analysis.integers.decided import decided
from passes.analysis.integers.integers import Integers
from passes.rule import Edit, NothingToDo, Site, nodes_of, register
from passes.rules.simplify.inlining import inlined
from passes.rules.simplify.short_circuit import short_circuit


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
