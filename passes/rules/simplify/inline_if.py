"""The rule `inline-if`: an If whose condition is known becomes the branch that it takes."""

from __future__ import annotations

from onnx import NodeProto

from passes.ir.operators import op_of
from passes.rule import Edit, NothingToDo, Refused, Site, register
from passes.rules.simplify.inlining import inlined
from passes.rules.simplify.short_circuit import short_circuit


def considers(node: NodeProto, opset: int, target: int) -> bool:
    """Whether a node is an If."""
    return op_of(node) == "If"


@register("inline-if", considers=considers, optional=True)
def inline_if(site: Site) -> Edit:
    """Replace an If whose condition is constant by the branch that it takes.

    Before:

        <bool c = {1}>
        y = If (c) <then_branch = a () => (p) { t = Neg (x) p = Exp (t) }, else_branch = ...>

    After:

        t_1 = Neg (x)
        y = Exp (t_1)

    Values of the branch get unique names. Outer values that it returns are copied by an Identity.

    An If that is itself a condition goes, too, as TorchScript writes `c and b` and `c or b`:

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
    value = site.constant(site.node.input[0])
    if value is None or value.size != 1:
        edit = short_circuit(site)
        if edit is not None:
            return edit
        if site.options.flat:
            name = site.node.input[0]
            what = f"the branch depends on {name!r}, which is known only at run time"
            raise Refused("condition-unknown", what, [site.path, name])
        raise NothingToDo
    return inlined(site, "then_branch" if value.item() else "else_branch")
