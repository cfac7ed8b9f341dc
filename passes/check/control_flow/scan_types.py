"""The types and shapes of a Scan of opset 9 or later."""

from __future__ import annotations

from passes.check.control_flow.carried import check_carried, check_returned, check_tensor_input
from passes.check.control_flow.site import CheckedSite
from passes.check.lookup import Lookup


def check_scan_types(site: CheckedSite, look: Lookup) -> None:
    """Axes within the ranks, equal lengths, and types that agree inside and outside."""
    check_inputs(site, look)
    if not site.is_open("scan_input_axes"):
        _check_lengths(site, look)
    if not site.is_open("scan_output_axes"):
        _check_output_axes(site, look)
    check_returned(site, look, site.bodies["body"], site.form.body_outputs)


def check_inputs(site: CheckedSite, look: Lookup) -> None:
    """The inputs are tensors of the types that the body takes and returns."""
    body = site.bodies["body"]
    for name in filter(None, site.node.input):
        check_tensor_input(site, look, name)
    check_carried(site, look)
    for position, scanned in enumerate(site.form.scanned):
        outer, inner = scanned.tensor, scanned.body_input
        held, taken = look.kind(site.scope, outer), look.kind(body.scope, inner)
        if held and taken and held != taken:
            raise site.error(
                f"scanned input {position} holds {held} ({outer!r}), but the body takes {taken} "
                f"({inner!r})"
            )


def _check_lengths(site: CheckedSite, look: Lookup) -> None:
    seen: tuple[str, int, int] | None = None
    for position, scanned in enumerate(site.form.scanned):
        name, axis = scanned.tensor, scanned.axis
        dims = look.dims(site.scope, name)
        if dims is None:
            continue
        if not -len(dims) <= axis < len(dims):
            raise site.error(
                f"scan_input_axes[{position}] is {axis}, but {name!r} has rank {len(dims)}"
                if "scan_input_axes" in site.attributes
                else f"{name!r} has rank {len(dims)}, but a scanned input needs an axis to scan"
            )
        length = dims[axis]
        if not isinstance(length, int):
            continue
        if seen is not None and seen[2] != length:
            raise site.error(
                f"{seen[0]!r} has length {seen[2]} on its scanned axis {seen[1]}, but {name!r} has "
                f"length {length} on axis {axis}"
            )
        seen = seen or (name, axis, length)


def _check_output_axes(site: CheckedSite, look: Lookup) -> None:
    scope = site.bodies["body"].scope
    for position, collected in enumerate(site.form.collected):
        name, axis = collected.body_output, collected.axis
        dims = look.dims(scope, name)
        if dims is not None and not -len(dims) - 1 <= axis <= len(dims):
            raise site.error(
                f"scan_output_axes[{position}] is {axis}, but what is collected from {name!r} has "
                f"rank {len(dims) + 1}"
            )
