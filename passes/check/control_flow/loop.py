"""A Loop: its form, then its types."""

from __future__ import annotations

from collections.abc import Sequence

from passes.check.control_flow.carried import check_carried, check_returned, check_scalar
from passes.check.control_flow.site import Site, body_of, check_fed, check_inputs_given
from passes.check.lookup import Lookup
from passes.check.wording import count


def check_loop_form(site: Site) -> None:
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


def check_loop_types(site: Site, look: Lookup) -> None:
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


def _check_collected(site: Site, look: Lookup, names: Sequence[str]) -> None:
    scope = site.bodies["body"].scope
    for position, name in enumerate(names):
        kind = look.no_tensor(scope, name)
        if kind:
            raise site.error(
                f"collected value {position} ({name!r}) is a {kind}, but only tensors can be "
                "collected"
            )
