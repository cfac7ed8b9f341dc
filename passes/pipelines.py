"""Named lists of rules, in the order in which they run."""

from __future__ import annotations

from collections.abc import Sequence

from passes.plugins import rule
from passes.rule import Rule

PIPELINES: dict[str, tuple[str, ...]] = {
    # Scan-8 first: `opset` leaves a Scan of version 8 to it.
    "upgrade": ("scan-8", "opset"),
}

#: (earlier, later): pairs that a pipeline holding both must keep in this order.
_ORDER = (("scan-8", "opset"),)


def rules_of(pipeline: str) -> list[Rule]:
    """The rules of a pipeline.

    Raises:
        ValueError: the pipeline names two rules in an order that does not work.
    """
    names = PIPELINES[pipeline]
    check_order(names)
    return [rule(name) for name in names]


def check_order(names: Sequence[str]) -> None:
    """See that rules which depend on each other stand in the order that works."""
    for earlier, later in _ORDER:
        if {earlier, later} <= set(names) and names.index(earlier) > names.index(later):
            raise ValueError(f"the rule {earlier!r} must run before {later!r}")
