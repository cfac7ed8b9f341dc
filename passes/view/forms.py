"""The forms of the page: of the commands that rewrite, and of `check`; and options of what is
entered, which open no file of this machine."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, fields
from typing import Any

from passes.choices import Executors, Target
from passes.commands.checking import Check
from passes.commands.declaring import Option, flags_of, options_of
from passes.commands.options import Binding, Options
from passes.commands.reading import ENTRIES, NUMBERS, WrongText, read_options
from passes.commands.registry import command_named, command_of, rewriting_commands
from passes.targets.profile import names
from passes.verify.runtimes.executors import modules

#: The options of `check` that a form has.
_FACTS = (*(one.name for one in fields(Binding)), "max_trips")


def forms() -> dict[str, Any]:
    """The forms: of each command its options, those of all commands after its own; of `check`."""
    commands = [
        {
            "name": command.name,
            "help": command.short_help,
            "own": [*_inputs(command.options, _own_first(command.options))],
            "shared": [*_inputs(command.options, [one.name for one in fields(Options)])],
        }
        for command in rewriting_commands().values()
    ]
    return {"commands": commands, "targets": names(), "facts": [*_inputs(Check, _FACTS)]}


def _own_first(declared: type[Options]) -> list[str]:
    """The options that not every command has, those of the class itself first."""
    every = {one.name for one in fields(Options)}
    own = [one.name for one in fields(declared) if one.name not in every]
    return sorted(own, key=lambda name: name not in vars(declared).get("__annotations__", {}))


def _words(option: Option) -> Sequence[str]:
    """The words that an option may have, empty if they are not known."""
    if option.help.among is not None:
        return [*map(str, option.help.among)]
    if option.name == "target":
        return [*dict.fromkeys([*map(str, Target), *names()])]
    return [*map(str, Executors), *modules()] if option.name == "executor" else []


def _inputs(declared: type, wanted: Sequence[str]) -> Iterator[dict[str, Any]]:
    """The inputs of a form for options of a class, those that a form has."""
    known = options_of(declared, "file")
    for name in wanted:
        option = known.get(name)
        kind = "" if option is None else _kind(option)
        if option is None or not kind:
            continue
        default = None if option.default in (None, (), MISSING) else option.default
        yield {
            "name": name,
            "flag": f"--{option.key}",
            "kind": kind,
            "words": _words(option),
            "help": option.help.text,
            "hint": option.help.metavar or "",
            "default": default if isinstance(default, bool | None) else f"{default}",
        }


def _kind(option: Option) -> str:
    """What the page shows for an option; empty for one whose value is a file, or no text."""
    if option.annotation is bool:
        return "flag"
    if option.annotation == Sequence[str] or option.annotation in ENTRIES:
        return "list"
    return "text" if option.annotation in (*NUMBERS, str) else ""


def options_entered(command: str, entered: Mapping[str, Any]) -> Options:
    """The options of a command.

    Raises:
        UnknownCommand: there is none of this name.
        WrongText: an option has a value that it cannot have, or that names a file.
    """
    declared = command_named(command).options
    options: Options = read_options(declared, _plain(declared, entered))
    return options


def check_entered(model: str, target: str, entered: Mapping[str, Any]) -> Check:
    """The options of a check of a model. Raises WrongText."""
    if target not in names():
        raise WrongText(f"there is no target {target!r}")
    return read_options(Check, {**_plain(Check, entered), "model": model, "target": target})


def _plain(declared: type, entered: Mapping[str, Any]) -> dict[str, Any]:
    """What was entered, without what is empty."""
    known, found = options_of(declared, "file"), {}
    for name, value in entered.items():
        if name not in known or not _kind(known[name]):
            raise WrongText(f"there is no option {name!r}")
        kind, words = _kind(known[name]), _words(known[name])
        right = {"flag": bool, "list": list, "text": str}[kind]
        texts = value if isinstance(value, list) else [value]
        if not isinstance(value, right) or (
            kind != "flag" and not all(isinstance(one, str) for one in texts)
        ):
            raise WrongText(f"--{known[name].key} is {value!r}, not a {kind}")
        if any(one.partition("=")[2].startswith("@") for one in texts if isinstance(one, str)):
            raise WrongText(f"--{known[name].key}: the page opens no files; use the command line")
        if words and not set(texts) <= {*words, ""}:
            raise WrongText(f"--{known[name].key} is {value!r}, not one of {', '.join(words)}")
        if value not in ("", []):
            found[name] = value
    return found


def command_line(options: Options | Check, model: str, *, strict: bool) -> str:
    """The command line that does the same to a model."""
    words = ["check" if isinstance(options, Check) else command_of(options).name, model]
    flags = [*flags_of(options), *["--fix"] * isinstance(options, Check), *["--strict"] * strict]
    return shlex.join(["passes", *words, *flags])
