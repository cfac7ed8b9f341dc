"""Rewrites a model: the steps of a schedule, in each the phase that can still change it, in that
round after round."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from onnx import ModelProto

from passes.choices import RuleOptions
from passes.engine.full_check import check_edits
from passes.engine.rounds import Round
from passes.engine.schedules import Phase
from passes.engine.sweep import Sweep
from passes.engine.target_opset import target_opset
from passes.errors import PassesError
from passes.ir import scope as scoping
from passes.ir.model import Model
from passes.ir.names import Names
from passes.ir.places import import_contrib
from passes.ir.protos import copied
from passes.ir.scope import Place
from passes.rule import Rule, rule_named

_MOST_ROUNDS = 32


class NotConverging(PassesError):
    """The rules undo each other's work."""


def rewrite(
    model: Model,
    steps: Sequence[Sequence[Phase]],
    asked: int | None,
    options: RuleOptions,
    clean: Callable[[ModelProto], None] | None = None,
) -> list[Round]:
    """Run the steps, one after the other: of the phases of a step the first that can still change
    the model runs next, until none can. A phase may if another one changed the model since it ran.

    `asked` is the opset that was asked for; `clean` is that of the engine.

    Raises:
        NotConverging: the phases undo each other's work, or the rules of one.
        Invalidated: Edits of a rule of another package are invalid.
    """
    rounds: list[Round] = []
    for phases in steps:
        first, changes, settled = model, Counter[Phase](), set[Phase]()
        while phase := next((one for one in phases if one not in settled), None):
            settled.add(phase)
            start = phase.start(model, asked, options) if phase.start else model
            if start is None:
                continue
            target = target_opset(model, asked, options.default_opset) if phase.converts else None
            rules = [rule_named(name) for name in phase.rules]
            rounds += Engine(rules, target, options, clean).fixpoint(start)
            last = rounds[-1]
            if phase.finish:
                phase.finish(last, target, options)
            if last.proto is not model.proto:
                settled, model = {phase}, last.after
                changes[phase] += 1
                if _too_often(changes[phase], first):
                    raise NotConverging(f"the phase {phase.name!r} still changes the model")
    return rounds


@dataclass(frozen=True)
class Engine:
    """Rules, the opset their Edits are written in (None: the model's own), and their options.

    `clean` drops dead nodes from an outcome, so that no rule counts them as readers.
    """

    rules: Sequence[Rule]
    target: int | None = None
    options: RuleOptions = field(default_factory=RuleOptions)
    clean: Callable[[ModelProto], None] | None = None

    def fixpoint(self, model: Model) -> list[Round]:
        """Apply until nothing changes; with a target opset, in a single round. Rounds that leave
        fewer nodes come to an end, and do not count.

        Raises:
            NotConverging: the rules undo each other's work.
            Invalidated: Edits of a rule of another package are invalid.
        """
        rounds: list[Round] = []
        first, times = model, 0
        while not _too_often(times, first):
            rounds.append(self.round(model))
            if self.target is not None or not rounds[-1].rewritten:
                return rounds
            check_edits(rounds[-1])
            if self.clean is not None:
                self.clean(rounds[-1].proto)
            times += _size(rounds[-1].after) >= _size(model)
            model = rounds[-1].after
        rules = ", ".join(rule.name for rule in self.rules)
        raise NotConverging(f"the rules {rules} still change the model after {len(rounds)} rounds")

    def round(self, model: Model) -> Round:
        """Consider every site once, innermost first."""
        tried = tuple(rule.name for rule in self.rules)
        outcome = Round(model, model.proto, tried, self.target)
        target = self.target or model.opset()
        rules = list(_closer(self.rules, model, target))
        if not self._any_considered(model, rules):
            return outcome
        copy = copied(model.proto)
        sweep = Sweep(rules, self.options, outcome, Names(model.names))
        owners = zip(scoping.scopes(model.proto), scoping.owners(copy), strict=True)
        for scope, (_, owner) in owners:
            replace(sweep, opset=model.opset(scope.owner)).rewrite(scope, owner)
        if outcome.rewritten:
            if self.target is None:
                import_contrib(copy)
            outcome.proto = copy
        return outcome

    def ask(self, model: Model, places: Sequence[Place]) -> Round:
        """Return what each rule by itself would do at some sites, with the model unchanged; with a
        target opset, what they would do together."""
        tried = tuple(rule.name for rule in self.rules)
        outcome = Round(model, model.proto, tried, self.target)
        names = Names(model.names)
        for rules in [(rule,) for rule in self.rules] if self.target is None else [self.rules]:
            sweep = Sweep(rules, self.options, outcome, names)
            for place in places:
                replace(sweep, opset=model.opset_at(place.scope)).ask(place)
        return outcome

    def _any_considered(self, model: Model, rules: Sequence[Rule]) -> bool:
        for (owner, graphs), (_, operators) in zip(model.graphs, model.operators, strict=True):
            opset = model.opset(owner)
            target = self.target or opset
            asked = {
                op: [one for one in rules if one.considers_op(op, opset, target) is not False]
                for op in operators
            }
            for index in map(model.index, graphs):
                pairs = zip(index.nodes, index.ops, strict=True)
                if any(
                    one.considers(node, opset, target) for node, op in pairs for one in asked[op]
                ):
                    return True
        return False


def _closer(rules: Sequence[Rule], model: Model, target: int) -> Iterator[Rule]:
    """Yield the rules that may apply to a model, given its operators."""
    for rule in rules:
        if rule.closer is None:
            yield rule
        elif considers := rule.closer(model, target):
            yield replace(rule, considers=considers)


def _size(model: Model) -> int:
    """The number of nodes, at every depth."""
    return sum(len(graph.node) for _, graphs in model.graphs for graph in graphs)


def _too_often(times: int, model: Model) -> bool:
    """Return whether the same rules changed a model more often than 32 times, and once for each
    node with bodies: what one loop does without use may only show once the next one is gone."""
    if times < _MOST_ROUNDS:
        return False
    holders = sum(scoping.holds_graphs(place.node) for place in scoping.walk_model(model.proto))
    return times >= _MOST_ROUNDS + holders
