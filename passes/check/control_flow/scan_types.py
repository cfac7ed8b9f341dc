"""The types and shapes of a Scan, of opset 8 or a later one, and checks that Loop and If share."""

from __future__ import annotations

from collections.abc import Sequence

from passes.check.control_flow.site import CheckedBody, CheckedSite
from passes.check.lookup import Lookup
from passes.errors import count
from passes.ir.operators import op_of


def check_scan_types(site: CheckedSite, look: Lookup) -> None:
    """Axes within the ranks, equal lengths, and types that agree inside and outside."""
    _check_inputs(site, look)
    if not site.is_open("scan_input_axes"):
        _check_lengths(site, look)
    if not site.is_open("scan_output_axes"):
        _check_output_axes(site, look)
    check_returned(site, look, site.bodies["body"], site.form.body_outputs)


def _check_inputs(site: CheckedSite, look: Lookup) -> None:
    """The inputs are tensors of the types that the body takes and returns."""
    body = site.bodies["body"]
    for name in filter(None, site.node.input):
        _check_tensor_input(site, look, name)
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


def check_carried(site: CheckedSite, look: Lookup) -> None:
    """A carried value keeps its type."""
    scope = site.bodies["body"].scope
    for position, carried in enumerate(site.form.carried):
        initial, taken, returned = carried.initial, carried.body_input, carried.body_output
        start = look.kind(site.scope, initial)
        inside, back = look.kind(scope, taken), look.kind(scope, returned)
        if _differ(start, inside):
            raise site.error(
                f"carried value {position} starts as {start} ({initial!r}), but the body takes "
                f"{inside} ({taken!r})"
            )
        if _differ(start, back):
            raise site.error(
                f"carried value {position} starts as {start} ({initial!r}), but the body returns "
                f"{back} ({returned!r})"
            )
        if _differ(inside, back):
            raise site.error(
                f"the body takes carried value {position} as {inside} ({taken!r}), but returns "
                f"{back} ({returned!r})"
            )


def check_returned(
    site: CheckedSite, look: Lookup, body: CheckedBody, returned: Sequence[str]
) -> None:
    """Check that the values that the body returns have the declared types of the node's outputs."""
    for position, (outer, inner) in enumerate(zip(site.node.output[:], returned, strict=True)):
        declared = look.declared(site.scope, outer) if outer else ""
        if declared and _differ(declared, found := look.kind(body.scope, inner)):
            raise site.error(
                f"output {position} is declared {declared} ({outer!r}), but the body returns "
                f"{found} ({inner!r})"
            )


def check_scalar(site: CheckedSite, look: Lookup, name: str, dtype: str, what: str) -> None:
    """A trip count or condition is one value of its type."""
    kind = look.kind(site.scope, name)
    if kind and kind != dtype:
        raise site.error(f"{what} ({name!r}) is {kind}, not {dtype}")
    dims = look.dims(site.scope, name)
    if dims is None:
        return
    if len(dims) > 1:
        raise site.error(f"{what} ({name!r}) has rank {len(dims)}, but must be a scalar")
    if dims and isinstance(dims[0], int) and dims[0] != 1:
        raise site.error(f"{what} ({name!r}) holds {dims[0]} values, but must be a scalar")


def _check_tensor_input(site: CheckedSite, look: Lookup, name: str) -> None:
    """Only tensors can be scanned, and carried by a Scan."""
    kind = look.no_tensor(site.scope, name)
    if kind:
        raise site.error(f"{name!r} is a {kind}, but {op_of(site.node)} takes tensors only")


def _differ(left: str, right: str) -> bool:
    """Return whether both are known and differ; an optional may hold what it is compared with."""
    if left == right or not left or not right:
        return False
    return left.removeprefix("optional(").rstrip(")") != right.removeprefix("optional(").rstrip(")")


_Size = tuple[str, int] | None  # a static size, and the value that has it


def check_scan_8_types(site: CheckedSite, look: Lookup) -> None:
    """Batch and time agree, lengths are possible, and so are the types inside and outside."""
    scanned = [one.tensor for one in site.form.scanned]
    carried = [one.initial for one in site.form.carried]
    for name in scanned:
        dims = look.dims(site.scope, name)
        if dims is not None and len(dims) < 2:
            raise site.error(
                f"{name!r} has rank {len(dims)}, but a scanned input of Scan-8 has a batch and a "
                "time axis"
            )
    for name in carried:
        if look.dims(site.scope, name) == ():
            raise site.error(
                f"{name!r} is a scalar, but a carried value of Scan-8 has a batch axis"
            )
    _check_inputs(site, look)
    batch = _agreed(site, look, [*scanned, *carried], 0, "batch")
    time = _agreed(site, look, scanned, 1, "time")
    if lengths := site.form.lengths:
        _check_lens_shape(site, look, lengths, batch)
        _check_lens_values(site, look, lengths, time)
    check_returned(site, look, site.bodies["body"], site.form.body_outputs)


def _agreed(site: CheckedSite, look: Lookup, names: list[str], axis: int, what: str) -> _Size:
    """The size of an axis that all must agree on, where it is static."""
    agreed: _Size = None
    for name in names:
        dims = look.dims(site.scope, name)
        size = dims[axis] if dims is not None else None
        if not isinstance(size, int):
            continue
        if agreed is not None and agreed[1] != size:
            raise site.error(
                f"{agreed[0]!r} has {agreed[1]} on its {what} axis {axis}, but {name!r} has {size}"
            )
        agreed = agreed or (name, size)
    return agreed


def _check_lens_shape(site: CheckedSite, look: Lookup, name: str, batch: _Size) -> None:
    kind, dims = look.kind(site.scope, name), look.dims(site.scope, name)
    if kind and kind != "int64":
        raise site.error(f"sequence_lens ({name!r}) is {kind}, not int64")
    if dims is None:
        return
    if len(dims) != 1:
        raise site.error(f"sequence_lens ({name!r}) has rank {len(dims)}, not 1")
    if batch is not None and isinstance(dims[0], int) and dims[0] != batch[1]:
        entries = count(dims[0], "length")
        raise site.error(
            f"sequence_lens ({name!r}) holds {entries}, but {batch[0]!r} has a batch of {batch[1]}"
        )


def _check_lens_values(site: CheckedSite, look: Lookup, name: str, time: _Size) -> None:
    for position, length in enumerate(look.constant(site.scope, name) or ()):
        if length < 0:
            raise site.error(f"sequence_lens[{position}] ({name!r}) is {length}, which is negative")
        if time is not None and length > time[1]:
            raise site.error(
                f"sequence_lens[{position}] ({name!r}) is {length}, but {time[0]!r} has only "
                f"{count(time[1], 'time step')}"
            )
