"""What a command does to a model, as data: phases of rules that run together, in an order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from onnx import ModelProto

from passes.choices import Flag, RuleOptions
from passes.engine.rounds import Round
from passes.engine.target_opset import check_reachable
from passes.errors import nearest
from passes.ir.model import Model
from passes.onnxruntime.releases import Release
from passes.reports.report import Report
from passes.rule import UnknownRule, rule_named

#: The model that the rules of a phase run on, given the model so far, the opset that was asked for,
#: if any, and the options; None if the phase has nothing to do.
Start = Callable[[Model, int | None, RuleOptions], Model | None]
#: Changes the outcome of the last round of a phase, in place, given the opset that the phase
#: converts to, if it does, and the options.
Finish = Callable[[Round, int | None, RuleOptions], None]
#: Raises if a command cannot be run on a valid model, given the opset that was asked for, and the
#: release of onnxruntime that it is for.
Accept = Callable[[Model, int | None, Release | None, RuleOptions], None]
#: The outcome as it is to be written, and its report, given the original, and both as they are.
Deliver = Callable[
    [Model, ModelProto, Report, RuleOptions, Release | None], tuple[ModelProto, Report]
]


def _no_newer(
    model: Model, asked: int | None, release: Release | None, options: RuleOptions
) -> None:
    check_reachable(model, asked, release)


@dataclass(frozen=True)
class Phase:
    """Rules that run together, round after round, until none of them finds anything to do.

    On each site they are tried in their order. `converts`: they bring the whole model to a target
    opset, in one round. `start` and `finish` are done before the first and after the last round.
    `first`: before all other phases, once.
    """

    name: str
    rules: tuple[str, ...]
    converts: bool = False
    start: Start | None = None
    finish: Finish | None = None
    first: bool = False


@dataclass(frozen=True)
class Schedule:
    """Phases by priority: the first that can still change the model runs next.

    So earlier phases see each change first, and a second run finds nothing to do. `flags` are
    options of the rules that are always on. `aims` are the rules that do what the schedule is for,
    where the others only help; if none is named, all do, but those that run first. `accept` is
    done before all phases, `deliver` after them.
    """

    name: str
    phases: tuple[Phase, ...]
    flags: tuple[Flag, ...] = ()
    aims: tuple[str, ...] = ()
    accept: Accept = _no_newer
    deliver: Deliver | None = None

    @property
    def rules(self) -> tuple[str, ...]:
        """The rules of all phases but those that run first, in order."""
        return tuple(name for phase in self.phases if not phase.first for name in phase.rules)

    @property
    def converts(self) -> bool:
        """True if the command is there to bring a model to an opset."""
        return any(phase.converts and not phase.first for phase in self.phases)

    def aims_of(self, rules: Sequence[str] = ()) -> frozenset[str]:
        """The rules, or of those that were named, that must not refuse under --strict."""
        return frozenset(rules or self.aims or self.rules)

    def steps(
        self, rules: Sequence[str] = (), skip: Sequence[str] = ()
    ) -> tuple[tuple[Phase, ...], ...]:
        """The steps of the schedule, in order, each of phases that run until none finds anything
        to do.

        Of `rules`, if some are named, those of the schedule run in its order, and the others, each
        in a step of its own, after them; those in `skip` do not run. Phases that convert run in any
        case.

        Raises:
            UnknownRule: there is no rule of a name, only `upgrade` can run it, or one that is to be
                skipped would not run.
        """
        for name in (*rules, *skip):
            if rule_named(name).converts:
                raise UnknownRule(f"the rule {name!r} belongs to the command upgrade")
        for name in skip:
            if name not in self.rules and name not in rules:
                own = {*self.rules, *rules}
                known = sorted(one for one in own if not rule_named(one).converts)
                raise UnknownRule(
                    f"the rule {name!r} is none of {self.name}, which cannot skip it; "
                    f"{nearest(name, known)}"
                )
        chosen = [_chosen(phase, rules, skip) for phase in self.phases]
        others = [name for name in dict.fromkeys(rules) if name not in {*self.rules, *skip}]
        steps = [
            *((phase,) for phase in chosen if phase.first),
            tuple(phase for phase in chosen if phase.rules and not phase.first),
            *((Phase(name, (name,)),) for name in others),
        ]
        return tuple(step for step in steps if step)


def _chosen(phase: Phase, rules: Sequence[str], skip: Sequence[str]) -> Phase:
    if phase.converts:
        return phase
    kept = [name for name in phase.rules if name not in skip and (not rules or name in rules)]
    return replace(phase, rules=tuple(kept))
