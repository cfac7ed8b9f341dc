"""The form of a Scan: its counts, lists and bodies, without any type."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from passes.check.control_flow.site import (
    CheckedBody,
    CheckedSite,
    body_of,
    check_fed,
    check_inputs_given,
)
from passes.check.wording import count
from passes.ir.versions import NEGATIVE_AXES, SCAN_HAS_AXES
from passes.loops.writing import AXES_AND_DIRECTIONS


@dataclass(frozen=True)
class ScanNames:
    """The names of a Scan, sorted by what they are for; outer names and those of the body."""

    lengths: str
    carried: list[tuple[str, str, str]]  # initial, body input, body output
    scanned: list[tuple[str, str]]  # outer, body input
    collected: Sequence[str]  # body output
    body: CheckedBody


def is_scan_8(site: CheckedSite) -> bool:
    """Return whether the Scan belongs to opset 8, with batch and sequence_lens."""
    return site.opset < SCAN_HAS_AXES


def check_scan_form(site: CheckedSite) -> None:
    """Counts of inputs, outputs and lists, and that the form is that of the opset."""
    _check_stamp(site)
    body = body_of(site, "body")
    first = 1 if is_scan_8(site) else 0
    check_inputs_given(site, first)
    fed = len(site.node.input) - first
    _check_fed(site, body, fed)
    scanned = _scanned_count(site, fed)
    carried = fed - scanned
    collected = _check_outputs(site, body, carried)
    if is_scan_8(site):
        _check_flags(site, "directions", scanned, "scanned input")
        return
    _check_count(site, "scan_input_axes", scanned, "scanned input")
    _check_count(site, "scan_output_axes", collected, "collected output")
    _check_flags(site, "scan_input_directions", scanned, "scanned input")
    _check_flags(site, "scan_output_directions", collected, "collected output")


def scan_names(site: CheckedSite) -> ScanNames:
    """The names of a Scan whose form was checked."""
    body = site.bodies["body"]
    first = 1 if is_scan_8(site) else 0
    outer, inner = list(site.node.input)[first:], body.heading.taken
    split = len(outer) - site.attributes["num_scan_inputs"].i
    returned = body.heading.returned
    return ScanNames(
        site.node.input[0] if first else "",
        list(zip(outer[:split], inner[:split], returned[:split], strict=True)),
        list(zip(outer[split:], inner[split:], strict=True)),
        returned[split:],
        body,
    )


def _check_stamp(site: CheckedSite) -> None:
    """A Scan-8 in a newer opset, or the other way round, as a wrong conversion leaves it."""
    if is_scan_8(site):
        sign = next((name for name in AXES_AND_DIRECTIONS if name in site.attributes), "")
        if sign:
            raise _wrong_form(site, 9, f"it has the attribute {sign}")
    elif "directions" in site.attributes:
        raise _wrong_form(site, 8, "it has the attribute directions")
    elif site.node.input and not site.node.input[0]:
        raise _wrong_form(site, 8, "its first input is empty")


def _check_fed(site: CheckedSite, body: CheckedBody, fed: int) -> None:
    """The body takes what the node feeds; off by one, sequence_lens may be why."""
    taken = len(body.heading.taken)
    meaning = ""
    if is_scan_8(site):
        meaning = " beside sequence_lens"
        meaning += ", which a Scan-9 does not have" if taken == fed + 1 else ""
    elif taken == fed - 1:
        meaning = ", as a Scan-8 with sequence_lens would"
    check_fed(site, body, fed, meaning)


def _wrong_form(site: CheckedSite, form: int, sign: str) -> Exception:
    still = "still " if form == 8 else ""
    return site.error(
        f"Scan is {still}written in the form of Scan-{form} ({sign}), but its opset is {site.opset}"
    )


def _scanned_count(site: CheckedSite, fed: int) -> int:
    if "num_scan_inputs" not in site.attributes:
        raise site.error("Scan has no num_scan_inputs")
    scanned = site.attributes["num_scan_inputs"].i
    if scanned < 1:
        raise site.error(f"num_scan_inputs is {scanned}, but a Scan needs at least 1")
    if scanned > fed:
        raise site.error(f"num_scan_inputs is {scanned}, but the node has {count(fed, 'input')}")
    return scanned


def _check_outputs(site: CheckedSite, body: CheckedBody, carried: int) -> int:
    """Check the number of outputs, and return how many are collected."""
    returned, outputs = len(body.heading.returned), len(site.node.output)
    if returned != outputs:
        raise site.error(
            f"the body returns {count(returned, 'value')}, but the node has "
            f"{count(outputs, 'output')}"
        )
    if outputs < carried:
        raise site.error(
            f"the node has {count(outputs, 'output')}, but {count(carried, 'carried value')}"
        )
    return outputs - carried


def _check_count(site: CheckedSite, name: str, expected: int, noun: str) -> None:
    if name not in site.attributes or site.is_open(name):
        return
    found = len(site.attributes[name].ints)
    if found != expected:
        entries = "1 entry" if found == 1 else f"{found or 'no'} entries"
        raise site.error(f"{name} has {entries}, but the node has {count(expected, noun)}")


def _check_flags(site: CheckedSite, name: str, expected: int, noun: str) -> None:
    _check_count(site, name, expected, noun)
    if name not in site.attributes:
        return
    for position, flag in enumerate(site.attributes[name].ints):
        if flag not in (0, 1):
            raise site.error(
                f"{name}[{position}] is {flag}, but must be 0 (forward) or 1 (reverse)"
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
