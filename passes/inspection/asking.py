"""The answers of the rules about loops and Ifs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from passes.choices import RuleOptions
from passes.engine.fixpoint import Engine
from passes.engine.plugins import load_rules
from passes.engine.schedules import SCHEDULES, UPGRADE
from passes.inspection.inspection import Answer
from passes.ir.model import Model
from passes.ir.places import Key, Place

#: The schedules whose rules are asked unless all of them are to be.
_MAIN = ("raise", "unroll", "optimize")


def main_rules() -> list[str]:
    """Return the rules of `upgrade`, `raise`, `unroll` and `optimize`."""
    return [*UPGRADE.rules, *_names(_MAIN)]


def all_rules() -> list[str]:
    """Return the rules of all schedules."""
    return [*UPGRADE.rules, *_names(SCHEDULES)]


def ask(
    model: Model, places: Sequence[Place], rules: Sequence[str], target: int, options: RuleOptions
) -> Mapping[Key, Sequence[Answer]]:
    """Return the answers of each rule about these places, by the key of their scope and index.

    Rules that upgrade write opset `target`, the others that of the model; those of `optimize` have
    the flags of that command.
    """
    known, optimize = load_rules(), SCHEDULES["optimize"]
    upgrades = [known[name] for name in UPGRADE.rules if name in rules]
    rounds = [Engine(upgrades, target, options).ask(model, places)]
    rest = [name for name in rules if name not in UPGRADE.rules]
    for flags, own in ((optimize.flags, True), ((), False)):
        asked = [known[name] for name in rest if (name in optimize.rules) == own]
        rounds.append(Engine(asked, None, options.with_flags(flags)).ask(model, places))
    found: dict[Key, dict[Answer, None]] = defaultdict(dict)
    for round_ in rounds:
        for done in round_.rewritten:
            answer = Answer(done.rule.name, "rewrites", note=done.written.note)
            found[(*done.scope.key, done.index)][answer] = None
        for refusal in round_.refused:
            why, place = refusal.reason, refusal.place
            answer = Answer(refusal.rule.name, "refuses", code=why.code, sentence=why.sentence)
            found[(*place.scope.key, place.index)][answer] = None
    return {key: tuple(answers) for key, answers in found.items()}


def _names(schedules: Iterable[str]) -> list[str]:
    names = dict.fromkeys(name for schedule in schedules for name in SCHEDULES[schedule].rules)
    known = load_rules()
    return [name for name in names if name in known and name not in UPGRADE.rules]
