"""Every Scan, Loop and If of a model: first their form, then their types."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from passes.check.control_flow.scan_types import (
    check_carried,
    check_returned,
    check_scalar,
    check_scan_8_types,
    check_scan_types,
)
from passes.check.control_flow.site import CheckedSite
from passes.check.graph_declarations import Headings
from passes.check.lookup import Lookup
from passes.check.operators import NodeInScope
from passes.errors import BadModel, count
from passes.ir.operators import op_of
from passes.ir.versions import NEGATIVE_AXES, SCAN_HAS_AXES
from passes.loops.parts import AXES_AND_DIRECTIONS, graph_of


def _check_loop_types(site: CheckedSite, look: Lookup) -> None:
    """Trip count and condition have their types, carried values keep theirs."""
    body, form = site.bodies["body"], site.form
    assert form.condition is not None  # of a Loop
    if form.trip_count:
        check_scalar(site, look, form.trip_count, "int64", "the trip count")
    if form.condition.initial:
        check_scalar(site, look, form.condition.initial, "bool", "the condition")
    for name, expected, sentence in (
        (form.iteration, "int64", "the body takes its iteration number"),
        (form.condition.body_input, "bool", "the body takes its condition"),
        (form.condition.body_output, "bool", "the body returns its condition"),
    ):
        found = look.kind(body.scope, name)
        if found and found != expected:
            raise site.error(f"{sentence} ({name!r}) as {found}, not {expected}")
    check_carried(site, look)
    _check_collected(site, look)
    check_returned(site, look, body, form.body_outputs[1:])


def _check_collected(site: CheckedSite, look: Lookup) -> None:
    scope = site.bodies["body"].scope
    for position, collected in enumerate(site.form.collected):
        kind = look.no_tensor(scope, collected.body_output)
        if kind:
            raise site.error(
                f"collected value {position} ({collected.body_output!r}) is a {kind}, but only "
                "tensors can be collected"
            )


_THEN, _ELSE = "then_branch", "else_branch"


def _check_if_form(site: CheckedSite) -> None:
    """Both branches exist, take nothing, and return as many values as the node has outputs."""
    bodies = [name for name in (_THEN, _ELSE) if not site.is_open(name)]
    for name in bodies:
        graph_of(site.node, name)
    for name in bodies:
        taken = len(site.bodies[name].heading.taken)
        if taken:
            raise site.error(f"{name} takes {count(taken, 'input')}, but a branch is fed none")
    returned = {name: len(site.bodies[name].heading.returned) for name in bodies}
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


def _check_loop_form(site: CheckedSite) -> None:
    _ = site.form  # raises


def _is_scan_8(site: CheckedSite) -> bool:
    """Return whether the Scan belongs to opset 8, with batch and sequence_lens."""
    return site.opset < SCAN_HAS_AXES


def _check_scan_form(site: CheckedSite) -> None:
    """No Scan-8 in a newer opset, or the other way round, as a wrong conversion leaves it."""
    if _is_scan_8(site):
        sign = next((name for name in AXES_AND_DIRECTIONS if name in site.attributes), "")
        if sign:
            raise _wrong_form(site, 9, f"it has the attribute {sign}")
    elif "directions" in site.attributes:
        raise _wrong_form(site, 8, "it has the attribute directions")
    elif site.node.input and not site.node.input[0]:
        raise _wrong_form(site, 8, "its first input is empty")
    _check_loop_form(site)


def _wrong_form(site: CheckedSite, form: int, sign: str) -> Exception:
    still = "still " if form == 8 else ""
    return site.error(
        f"Scan is {still}written in the form of Scan-{form} ({sign}), but its opset is {site.opset}"
    )


def _tolerated_deviations(site: CheckedSite) -> Iterator[str]:
    """Yield what the operator document forbids at the opset, but every runtime accepts."""
    if _is_scan_8(site) or site.opset >= NEGATIVE_AXES:
        return
    for name in ("scan_input_axes", "scan_output_axes"):
        for position, axis in enumerate(
            site.attributes[name].ints if name in site.attributes else ()
        ):
            if axis < 0:
                yield (
                    f"{site.place.path}: {name}[{position}] is {axis}, though axes may be negative "
                    f"from opset {NEGATIVE_AXES} on, and this is opset {site.opset}: it is counted "
                    "from the end"
                )


def _check_scan_types(site: CheckedSite, look: Lookup) -> None:
    if _is_scan_8(site):
        check_scan_8_types(site, look)
    else:
        check_scan_types(site, look)


#: What checks the form and the types of each operator.
_CHECKS: Mapping[
    str, tuple[Callable[[CheckedSite], None], Callable[[CheckedSite, Lookup], None]]
] = {
    "Scan": (_check_scan_form, _check_scan_types),
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
        if site.is_open(*_OPEN):
            continue
        try:
            _CHECKS[op_of(site.node)][0](site)
        except BadModel as error:
            raise error.at(path=site.place.path) from error.__cause__


def tolerated_deviations(sites: Iterable[CheckedSite]) -> Iterator[str]:
    """Deviations from the specification that every runtime accepts: a sentence each."""
    for site in sites:
        if op_of(site.node) == "Scan":
            yield from _tolerated_deviations(site)


def check_types(sites: Iterable[CheckedSite], look: Lookup) -> None:
    """Check types, which are inferred only where there is a loop."""
    for site in sites:
        if site.is_open(*_OPEN, "then_branch", "else_branch"):
            continue
        _CHECKS[op_of(site.node)][1](site, look)
