"""The types and shapes of a Scan of opset 9 or later."""

from __future__ import annotations

from passes.check.control_flow.carried import check_carried, check_returned, check_tensor_input
from passes.check.control_flow.scan_form import ScanNames, scan_names
from passes.check.control_flow.site import CheckedSite
from passes.check.lookup import Lookup


def check_scan_types(site: CheckedSite, look: Lookup) -> None:
    """Axes within the ranks, equal lengths, and types that agree inside and outside."""
    parts = scan_names(site)
    for name in site.node.input:
        check_tensor_input(site, look, name)
    check_carried(site, look, parts.body, parts.carried)
    check_scanned_types(site, look, parts)
    _check_lengths(site, look, parts)
    _check_output_axes(site, look, parts)
    check_returned(site, look, parts.body, parts.body.heading.returned)


def check_scanned_types(site: CheckedSite, look: Lookup, parts: ScanNames) -> None:
    """The body takes elements of the type that the scanned input holds."""
    for position, (outer, inner) in enumerate(parts.scanned):
        held, taken = look.kind(site.scope, outer), look.kind(parts.body.scope, inner)
        if held and taken and held != taken:
            raise site.error(
                f"scanned input {position} holds {held} ({outer!r}), but the body takes {taken} "
                f"({inner!r})"
            )


def _axes(site: CheckedSite, name: str, number: int) -> list[int] | None:
    if site.is_open(name):
        return None
    return list(site.attributes[name].ints) if name in site.attributes else [0] * number


def _check_lengths(site: CheckedSite, look: Lookup, parts: ScanNames) -> None:
    axes = _axes(site, "scan_input_axes", len(parts.scanned))
    if axes is None:
        return
    seen: tuple[str, int, int] | None = None
    for position, ((name, _), axis) in enumerate(zip(parts.scanned, axes, strict=True)):
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


def _check_output_axes(site: CheckedSite, look: Lookup, parts: ScanNames) -> None:
    axes = _axes(site, "scan_output_axes", len(parts.collected))
    if axes is None:
        return
    for position, (name, axis) in enumerate(zip(parts.collected, axes, strict=True)):
        dims = look.dims(parts.body.scope, name)
        if dims is not None and not -len(dims) - 1 <= axis <= len(dims):
            raise site.error(
                f"scan_output_axes[{position}] is {axis}, but what is collected from {name!r} has "
                f"rank {len(dims) + 1}"
            )
