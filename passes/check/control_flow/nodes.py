"""Every Scan, Loop and If of a model: first their form, then their types."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from passes.check.control_flow import scan_form
from passes.check.control_flow.carried import check_carried, check_returned, check_scalar
from passes.check.control_flow.scan_8_types import check_scan_8_types
from passes.check.control_flow.scan_form import check_scan_form, is_scan_8
from passes.check.control_flow.scan_types import check_scan_types
from passes.check.control_flow.site import CheckedSite, body_of, check_fed, check_inputs_given
from passes.check.graph_declarations import Headings
from passes.check.lookup import Lookup
from passes.check.node_in_scope import NodeInScope
from passes.check.wording import count
from passes.ir.operators import op_of


def _check_loop_form(site: CheckedSite) -> None:
    """Counts of inputs and outputs."""
    body = body_of(site, "body")
    inputs, outputs = len(site.node.input), len(site.node.output)
    if inputs < 2:
        raise site.error(
            f"Loop has {count(inputs, 'input')}, but takes at least 2, trip count and condition "
            "(an empty name leaves one out)"
        )
    check_inputs_given(site, 2)
    check_fed(site, body, inputs, " (iteration number, condition and carried values)")
    returned = len(body.heading.returned)
    if returned != outputs + 1:
        rest = f" and the {count(outputs, 'output')} of the node" if outputs else ""
        raise site.error(
            f"the body returns {count(returned, 'value')}, but must return {outputs + 1}: the "
            f"condition{rest}"
        )
    if outputs < inputs - 2:
        raise site.error(
            f"the node has {count(outputs, 'output')}, but {count(inputs - 2, 'carried value')}"
        )


def _check_loop_types(site: CheckedSite, look: Lookup) -> None:
    """Trip count and condition have their types, carried values keep theirs."""
    body = site.bodies["body"]
    trips, condition, *carried = site.node.input[:]
    if trips:
        check_scalar(site, look, trips, "int64", "the trip count")
    if condition:
        check_scalar(site, look, condition, "bool", "the condition")
    number, again, *taken = body.heading.taken
    answer, *returned = body.heading.returned
    for name, expected, sentence in (
        (number, "int64", "the body takes its iteration number"),
        (again, "bool", "the body takes its condition"),
        (answer, "bool", "the body returns its condition"),
    ):
        found = look.kind(body.scope, name)
        if found and found != expected:
            raise site.error(f"{sentence} ({name!r}) as {found}, not {expected}")
    states = returned[: len(carried)]
    check_carried(site, look, body, list(zip(carried, taken, states, strict=True)))
    _check_collected(site, look, returned[len(carried) :])
    check_returned(site, look, body, returned)


def _check_collected(site: CheckedSite, look: Lookup, names: Sequence[str]) -> None:
    scope = site.bodies["body"].scope
    for position, name in enumerate(names):
        kind = look.no_tensor(scope, name)
        if kind:
            raise site.error(
                f"collected value {position} ({name!r}) is a {kind}, but only tensors can be "
                "collected"
            )


_THEN, _ELSE = "then_branch", "else_branch"


def _check_if_form(site: CheckedSite) -> None:
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


def _check_if_types(site: CheckedSite, look: Lookup) -> None:
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


def _check_scan_types(site: CheckedSite, look: Lookup) -> None:
    if is_scan_8(site):
        check_scan_8_types(site, look)
    else:
        check_scan_types(site, look)


#: What checks the form and the types of each operator.
_CHECKS: Mapping[
    str, tuple[Callable[[CheckedSite], None], Callable[[CheckedSite, Lookup], None]]
] = {
    "Scan": (check_scan_form, _check_scan_types),
    "Loop": (_check_loop_form, _check_loop_types),
    "If": (_check_if_form, _check_if_types),
}
#: Without these a Scan or Loop cannot be checked further; a function's caller may choose them.
_OPEN = ("body", "num_scan_inputs")


def loop_sites(places: Iterable[NodeInScope], headings: Headings) -> list[CheckedSite]:
    """The Scan, Loop and If nodes among `places`."""
    return [CheckedSite.of(place, headings) for place in places if op_of(place.node) in _CHECKS]


def check_form(sites: Iterable[CheckedSite]) -> None:
    """Check what can be counted; inference may crash on a model that fails here."""
    for site in sites:
        if not site.is_open(*_OPEN):
            _CHECKS[op_of(site.node)][0](site)


def tolerated_deviations(sites: Iterable[CheckedSite]) -> Iterator[str]:
    """Deviations from the specification that every runtime accepts: a sentence each."""
    for site in sites:
        if op_of(site.node) == "Scan":
            yield from scan_form.tolerated_deviations(site)


def check_types(sites: Iterable[CheckedSite], look: Lookup) -> None:
    """Check types, which are inferred only where there is a loop."""
    for site in sites:
        if site.is_open(*_OPEN, "then_branch", "else_branch"):
            continue
        _CHECKS[op_of(site.node)][1](site, look)
