"""Every Scan, Loop and If of a model: first their form, then their types."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from passes.check.control_flow import scan_form
from passes.check.control_flow.branches import check_if_form, check_if_types
from passes.check.control_flow.loop import check_loop_form, check_loop_types
from passes.check.control_flow.scan_8_types import check_scan_8_types
from passes.check.control_flow.scan_form import check_scan_form, is_scan_8
from passes.check.control_flow.scan_types import check_scan_types
from passes.check.control_flow.site import Site
from passes.check.graph_declarations import Headings
from passes.check.lookup import Lookup
from passes.check.node_in_scope import NodeInScope
from passes.ir.operators import op_of

_FORM: dict[str, Callable[[Site], None]] = {
    "Scan": check_scan_form,
    "Loop": check_loop_form,
    "If": check_if_form,
}
_TYPES: dict[str, Callable[[Site, Lookup], None]] = {
    "Loop": check_loop_types,
    "If": check_if_types,
}
#: Without these a Scan or Loop cannot be checked further; a function's caller may choose them.
_OPEN = ("body", "num_scan_inputs")


def loop_sites(places: Iterable[NodeInScope], headings: Headings) -> list[Site]:
    """The Scan, Loop and If nodes among `places`."""
    return [Site.of(place, headings) for place in places if op_of(place.node) in _FORM]


def check_form(sites: Iterable[Site]) -> None:
    """Check what can be counted; inference may crash on a model that fails here."""
    for site in sites:
        if not site.is_open(*_OPEN):
            _FORM[op_of(site.node)](site)


def taken_as_meant(sites: Iterable[Site]) -> Iterator[str]:
    """Deviations from the specification that every runtime accepts: a sentence each."""
    for site in sites:
        if op_of(site.node) == "Scan":
            yield from scan_form.taken_as_meant(site)


def check_types(sites: Iterable[Site], look: Lookup) -> None:
    """Check types, which are inferred only where there is a loop."""
    for site in sites:
        if site.is_open(*_OPEN, "then_branch", "else_branch"):
            continue
        if op_of(site.node) == "Scan":
            _check_scan_types(site, look)
        else:
            _TYPES[op_of(site.node)](site, look)


def _check_scan_types(site: Site, look: Lookup) -> None:
    if is_scan_8(site):
        check_scan_8_types(site, look)
    else:
        check_scan_types(site, look)
