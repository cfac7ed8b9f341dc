"""Named lists of stages, and the rules of each in the order in which they are tried."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from onnx import ModelProto

from passes import scope as scoping
from passes.plugins import rule
from passes.rule import Rule

SCAN_8 = 8


@dataclass(frozen=True)
class Stage:
    """Rules that run together, to a fixpoint.

    `converts`: they bring the whole model to a target opset, in one round. `only_scan_8`: the
    stage is for models that hold a Scan-8, which the later stages do not know.
    """

    rules: tuple[str, ...]
    converts: bool = False
    only_scan_8: bool = False

    def applies_to(self, model: ModelProto, opset: int) -> bool:
        """Whether the stage has anything to do with a model of this opset."""
        return not self.only_scan_8 or (opset <= SCAN_8 and _holds_scan(model))


# `scan-8` first: `opset` leaves a Scan of version 8 to it.
_UPGRADE = Stage(("scan-8", "opset"), converts=True)
_UPGRADE_SCAN_8 = Stage(_UPGRADE.rules, converts=True, only_scan_8=True)

PIPELINES: dict[str, tuple[Stage, ...]] = {
    "upgrade": (_UPGRADE,),
    "lower": (_UPGRADE_SCAN_8, Stage(("lower-scan",))),
    "raise": (_UPGRADE_SCAN_8, Stage(("count-loop", "raise-loop"))),
    "unroll": (_UPGRADE_SCAN_8, Stage(("unroll",))),
    "unroll-partial": (_UPGRADE_SCAN_8, Stage(("lower-scan",)), Stage(("unroll-partial",))),
}

#: (earlier, later): pairs that a stage holding both must keep in this order.
_ORDER = (("scan-8", "opset"), ("count-loop", "raise-loop"))


def stages_of(pipeline: str) -> tuple[Stage, ...]:
    """The stages of a pipeline.

    Raises:
        ValueError: a stage names two rules in an order that does not work.
    """
    for stage in PIPELINES[pipeline]:
        check_order(stage.rules)
    return PIPELINES[pipeline]


def rules_of(stage: Stage) -> list[Rule]:
    """The rules of a stage, in order."""
    return [rule(name) for name in stage.rules]


def check_order(names: Sequence[str]) -> None:
    """See that rules which depend on each other stand in the order that works."""
    for earlier, later in _ORDER:
        if {earlier, later} <= set(names) and names.index(earlier) > names.index(later):
            raise ValueError(f"the rule {earlier!r} must run before {later!r}")


def _holds_scan(model: ModelProto) -> bool:
    return any(
        node.op_type == "Scan" and scoping.is_onnx_domain(node.domain)
        for _, owner in scoping.owners(model)
        for graph in scoping.graphs_below(owner)
        for node in graph.node
    )
