"""The types and shapes of a Scan of opset 8: batch on axis 0, time on axis 1, sequence_lens."""

from __future__ import annotations

from passes.check.control_flow.carried import check_returned
from passes.check.control_flow.scan_types import check_inputs
from passes.check.control_flow.site import CheckedSite
from passes.check.lookup import Lookup
from passes.errors import count

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
    check_inputs(site, look)
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
