"""Applies rules, round after round, until they find nothing more to do."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field

from onnx import ModelProto

from passes.choices import RuleOptions
from passes.engine.memory import Memory
from passes.engine.rounds import Round
from passes.engine.sweep import Sweep
from passes.engine.template import Template
from passes.errors import PassesError
from passes.ir import scope as scoping
from passes.ir.model import Model
from passes.ir.names import Names
from passes.rule import Rule

_MOST_ROUNDS = 32


class NotConverging(PassesError):
    """The rules undo each other's work."""


@dataclass(frozen=True)
class Engine:
    """Rules, the opset their Edits are written in (None: the model's own), and their options."""

    rules: Sequence[Rule]
    target: int | None = None
    options: RuleOptions = field(default_factory=RuleOptions)
    progress: Callable[[str], None] | None = None

    def fixpoint(self, model: Model) -> list[Round]:
        """Apply until nothing changes; with a target opset one round is all there is.

        Raises:
            NotConverging: the rules still change the model after 32 rounds, and one for each node
                with bodies: what one loop does in vain may only show once the next one is gone.
        """
        rounds: list[Round] = []
        first = model
        while len(rounds) < _MOST_ROUNDS or len(rounds) < _MOST_ROUNDS + _holders(first):
            rounds.append(self.round(model))
            if self.target is not None or not rounds[-1].rewritten:
                return rounds
            model = Model(rounds[-1].proto, model.path)
        rules = ", ".join(rule.name for rule in self.rules)
        raise NotConverging(f"the rules {rules} still change the model after {len(rounds)} rounds")

    def round(self, model: Model) -> Round:
        """Consider every site once, innermost first."""
        stage = tuple(rule.name for rule in self.rules)
        outcome = Round(model, model.types, model.proto, stage)
        if not self._any_considered(model):
            return outcome
        copy = ModelProto()
        copy.CopyFrom(model.proto)
        names = Names(scoping.all_names(owner for _, owner in scoping.owners(copy)))
        memory = Memory()
        templates: dict[Hashable, Template] = {}
        for scope, (_, owner) in zip(
            scoping.scopes(model.proto), scoping.owners(copy), strict=True
        ):
            opset = model.opset(scope.owner)
            Sweep(
                rules=self.rules,
                options=self.options,
                converting=self.target is not None,
                outcome=outcome,
                names=names,
                memory=memory,
                opset=opset,
                target=self.target or opset,
                templates=templates,
            ).rewrite(scope, owner)
        if outcome.rewritten:
            outcome.proto = copy
        return outcome

    def _any_considered(self, model: Model) -> bool:
        for _, owner in scoping.owners(model.proto):
            opset = model.opset(owner)
            target = self.target or opset
            for graph in scoping.graphs_below(owner):
                nodes = graph.node[:]
                if any(one.considers(node, opset, target) for node in nodes for one in self.rules):
                    return True
        return False


def _holders(model: Model) -> int:
    """How many nodes have bodies."""
    return sum(scoping.holds_graphs(one.node) for one in scoping.walk_model(model.proto))
