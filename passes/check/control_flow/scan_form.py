"""The two forms of a Scan, that of opset 8 and that of later opsets."""

from __future__ import annotations

from collections.abc import Iterator

from passes.check.control_flow.site import CheckedSite
from passes.ir.versions import NEGATIVE_AXES, SCAN_HAS_AXES
from passes.loops.writing import AXES_AND_DIRECTIONS


def is_scan_8(site: CheckedSite) -> bool:
    """Return whether the Scan belongs to opset 8, with batch and sequence_lens."""
    return site.opset < SCAN_HAS_AXES


def check_stamp(site: CheckedSite) -> None:
    """A Scan-8 in a newer opset, or the other way round, as a wrong conversion leaves it."""
    if is_scan_8(site):
        sign = next((name for name in AXES_AND_DIRECTIONS if name in site.attributes), "")
        if sign:
            raise _wrong_form(site, 9, f"it has the attribute {sign}")
    elif "directions" in site.attributes:
        raise _wrong_form(site, 8, "it has the attribute directions")
    elif site.node.input and not site.node.input[0]:
        raise _wrong_form(site, 8, "its first input is empty")


def _wrong_form(site: CheckedSite, form: int, sign: str) -> Exception:
    still = "still " if form == 8 else ""
    return site.error(
        f"Scan is {still}written in the form of Scan-{form} ({sign}), but its opset is {site.opset}"
    )


def tolerated_deviations(site: CheckedSite) -> Iterator[str]:
    """Yield what the operator document forbids at the opset, but every runtime accepts."""
    if is_scan_8(site) or site.opset >= NEGATIVE_AXES:
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
