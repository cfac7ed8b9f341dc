"""Checks that Scan and Loop share: the types of carried and scalar values."""

from __future__ import annotations

from collections.abc import Sequence

from passes.check.control_flow.site import CheckedBody, CheckedSite
from passes.check.lookup import Lookup
from passes.ir.operators import op_of


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


def check_tensor_input(site: CheckedSite, look: Lookup, name: str) -> None:
    """Only tensors can be scanned, and carried by a Scan."""
    kind = look.no_tensor(site.scope, name)
    if kind:
        raise site.error(f"{name!r} is a {kind}, but {op_of(site.node)} takes tensors only")


def _differ(left: str, right: str) -> bool:
    """Return whether both are known and differ; an optional may hold what it is compared with."""
    if left == right or not left or not right:
        return False
    return left.removeprefix("optional(").rstrip(")") != right.removeprefix("optional(").rstrip(")")
