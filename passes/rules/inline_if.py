"""The rule `inline-if`: an If whose condition is known becomes the branch that it takes."""

from __future__ import annotations

from onnx import NodeProto

from passes.operators import op_of
from passes.rule import Edit, NothingToDo, Refused, Site, register
from passes.rules.inlined import inlined


def considers(node: NodeProto, opset: int, target: int) -> bool:
    """Whether a node is an If."""
    return op_of(node) == "If"


@register("inline-if", considers=considers, optional=True)
def inline_if(site: Site) -> Edit:
    """Write the branch that an If takes in its place, where its condition is constant.

    Before:

        <bool c = {1}>
        y = If (c) <then_branch = a () => (p) { t = Neg (x) p = Exp (t) }, else_branch = ...>

    After:

        t_1 = Neg (x)
        y = Exp (t_1)

    Values of the branch get names that occur nowhere else. Outer values that it returns are
    handed on by an Identity.

    Refuses:
    - `condition-unknown`: `--target no-control-flow`: which branch is taken, only the run tells
    """
    value = site.constant(site.node.input[0])
    if value is None or value.size != 1:
        if site.options.get("flat"):
            name = site.node.input[0]
            what = f"which branch is taken, {name!r} tells, and only when the model runs"
            raise Refused("condition-unknown", what, [site.path, name])
        raise NothingToDo
    return inlined(site, "then_branch" if value.item() else "else_branch")
