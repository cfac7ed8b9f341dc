"""A stage of a pipeline: rules that run together."""

from __future__ import annotations

from dataclasses import dataclass

from onnx import ModelProto

from passes.engine.plugins import rule
from passes.ir import scope as scoping
from passes.ir.operators import op_of
from passes.ir.versions import SCAN_8
from passes.rule import Rule


@dataclass(frozen=True)
class Stage:
    """Rules that run together, to a fixpoint.

    `converts`: they bring the whole model to a target opset, in one round. `as_needed`: only where
    an opset was asked for, or the model holds a Scan-8, which the later stages do not know.
    `flags` are options of its rules that are on, whatever the command says. `then`: what runs
    behind it where it rewrote something.
    """

    rules: tuple[str, ...]
    converts: bool = False
    as_needed: bool = False
    flags: frozenset[str] = frozenset()
    then: tuple[Stage, ...] = ()

    def applies_to(self, model: ModelProto, opset: int, *, asked: bool) -> bool:
        """Whether the stage has anything to do with a model of this opset.

        `asked`: the user named an opset to go to.
        """
        return not self.as_needed or asked or (opset <= SCAN_8 and _holds_scan(model))

    def is_part_of(self, other: Stage) -> bool:
        """Whether it finds nothing to do in a model in which the other one finds nothing."""
        fits = not self.converts and self.flags == other.flags
        return fits and set(self.rules) <= set(other.rules)


def rules_of(stage: Stage) -> list[Rule]:
    """The rules of a stage, in order."""
    return [rule(name) for name in stage.rules]


def _holds_scan(model: ModelProto) -> bool:
    return any(
        op_of(node) == "Scan"
        for _, owner in scoping.owners(model)
        for graph in scoping.graphs_below(owner)
        for node in graph.node
    )
