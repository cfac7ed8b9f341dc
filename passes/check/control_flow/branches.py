"""An If: its form, then its types."""

from __future__ import annotations

from passes.check.control_flow.carried import check_returned, check_scalar
from passes.check.control_flow.site import Site, body_of
from passes.check.lookup import Lookup
from passes.check.wording import count

_THEN, _ELSE = "then_branch", "else_branch"


def check_if_form(site: Site) -> None:
    """Both branches exist, take nothing, and return as many values as the node has outputs."""
    bodies = {name: body_of(site, name) for name in (_THEN, _ELSE) if not site.is_open(name)}
    for name, body in bodies.items():
        taken = len(body.heading.taken)
        if taken:
            raise site.error(f"{name} takes {count(taken, 'input')}, but a branch is fed none")
    returned = {name: len(body.heading.returned) for name, body in bodies.items()}
    if len(set(returned.values())) > 1:
        raise site.error(
            f"{_THEN} returns {count(returned[_THEN], 'value')}, but {_ELSE} "
            f"{returned[_ELSE] or 'none'}"
        )
    outputs = len(site.node.output)
    for name, found in returned.items():
        if found != outputs:
            raise site.error(
                f"the node has {count(outputs, 'output')}, but {name} returns "
                f"{count(found, 'value')}"
            )


def check_if_types(site: Site, look: Lookup) -> None:
    """The condition is a bool, and both branches return the same types."""
    check_scalar(site, look, site.node.input[0], "bool", "the condition")
    then, other = site.bodies[_THEN], site.bodies[_ELSE]
    pairs = zip(then.heading.returned, other.heading.returned, strict=True)
    for position, (first, second) in enumerate(pairs):
        left, right = look.kind(then.scope, first), look.kind(other.scope, second)
        if left and right and left != right:
            raise site.error(
                f"output {position} is {left} in {_THEN} ({first!r}), but {right} in {_ELSE} "
                f"({second!r})"
            )
    check_returned(site, look, then, then.heading.returned)
