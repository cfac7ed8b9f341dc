"""Finds the rules: the built-in packages and those that other distributions register."""

from __future__ import annotations

import importlib
from functools import cache
from importlib.metadata import EntryPoint, entry_points

from passes.errors import PassesError, WrongUsage, nearest
from passes.rule import RULES, Rule

GROUP = "passes.rules"
# Loaded the way third parties are, even from a checkout that is not installed.
_BUILT_IN = ("passes.converters.rules", "passes.rules")


class UnknownRule(WrongUsage):
    """No rule has this name."""


class BrokenRules(PassesError):
    """The rules of another distribution cannot be imported."""


@cache
def load_rules() -> dict[str, Rule]:
    """Return every rule by name; the modules of the entry points register them on import.

    Raises:
        BrokenRules: the module of another distribution does not import.
    """
    for module in _BUILT_IN:
        importlib.import_module(module)
    for entry in entry_points(group=GROUP):
        if entry.value not in _BUILT_IN:
            _load(entry)
    return RULES


def _load(entry: EntryPoint) -> None:
    try:
        entry.load()
    except Exception as error:  # whatever the import of somebody else's module may raise
        raise BrokenRules(
            f"the rules {entry.name!r} ({entry.value}) do not load: {error}"
        ) from error


def rule(name: str) -> Rule:
    """The rule called `name`.

    Raises:
        UnknownRule: there is none; the sentence names those most like it.
    """
    rules = load_rules()
    if name not in rules:
        raise UnknownRule(
            f"there is no rule {name!r}; {nearest(name, rules)} (`passes list` shows all)"
        )
    return rules[name]
