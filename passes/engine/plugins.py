"""Finds the rules: the built-in packages and those that other distributions register."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path

from passes.errors import PassesError, WrongUsage, nearest
from passes.rule import RULES, Rule

GROUP = "passes.rules"
_BUILT_IN = ("passes.converters", "passes.rules")


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
    for module in _modules().values():
        import_module(module)
    for entry in entry_points(group=GROUP):
        if entry.module.partition(".")[0] != "passes":  # older installations list the built-in ones
            _load(entry)
    return RULES


@cache
def _modules() -> dict[str, str]:
    """The modules of the built-in packages, by the name of the rule that each may define: a rule is
    located in the file of its name, so that it is found without importing the others."""
    found = {}
    for package in _BUILT_IN:
        (folder,) = map(Path, import_module(package).__path__)
        for file in sorted(folder.rglob("*.py")):
            parts = file.relative_to(folder).with_suffix("").parts
            found[file.stem.replace("_", "-")] = ".".join((package, *parts))
    return found


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
    if name not in RULES and name in _modules():
        import_module(_modules()[name])
    rules = RULES if name in RULES else load_rules()
    if name not in rules:
        raise UnknownRule(
            f"there is no rule {name!r}; {nearest(name, rules)} (`passes list` shows all)"
        )
    return rules[name]
