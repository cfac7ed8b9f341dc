"""The page of all commands and options, made of the command line, which is made of declarations."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from enum import Enum, StrEnum
from functools import cache
from typing import Any

import typer.main

import passes.__main__
from passes.commands.declaring import options_of
from passes.commands.delivery import Delivery, Many
from passes.commands.options import Options
from passes.commands.registry import load_commands, rewriting_commands

_HEAD = """# Commands and options

`passes COMMAND --help` shows the same. `python -m passes` is `passes` where the package is not
installed as a program.

| command | what it does |
|---|---|
"""
_GROUPS = (
    ("What every command that rewrites takes", Options),
    ("Where the outcome and its report are written", Delivery),
    ("Many models", Many),
)


def page() -> str:
    """The page in Markdown: each command with its own options, then the options that they share."""
    program: Any = typer.main.get_command(passes.__main__.app)
    commands: dict[str, Any] = {}
    for name, one in program.commands.items():
        inner = getattr(one, "commands", None)
        commands |= {name: one} if inner is None else {f"{name} {key}": inner[key] for key in inner}
    rewriting = rewriting_commands()
    lines = [_HEAD.rstrip("\n")]
    lines += [f"| [`{name}`](#{_anchor(name)}) | {_line(one)} |" for name, one in commands.items()]
    shared = {name for _, group in _GROUPS for name in options_of(group)}
    for name, one in commands.items():
        own = [
            option
            for option in one.params
            if _is_option(option) and not (name in rewriting and option.name in shared)
        ]
        lines += [
            "",
            f"## passes {name} {{#{_anchor(name)}}}",
            "",
            inspect.cleandoc(one.help or _line(one)),
            "",
            _usage(name, one),
        ]
        lines += ["", *_table(own)] if own else []
        if name in rewriting:
            lines += ["", _shared()]
    upgrade = {option.name: option for option in commands["upgrade"].params}
    for title, group in _GROUPS:
        found = [upgrade[name] for name in options_of(group) if name in upgrade]
        lines += ["", f"## {title}", "", *_table(found)]
    return "\n".join(lines) + "\n"


def _shared() -> str:
    links = ", ".join(f"[{title[0].lower()}{title[1:]}](#{_anchor(title)})" for title, _ in _GROUPS)
    return f"Shared options: {links}."


def _anchor(title: str) -> str:
    return title.lower().replace(" ", "-")


def _is_option(option: Any) -> bool:
    return option.opts[0].startswith("-") and not option.hidden and option.name != "help"


def _line(command: Any) -> str:
    """The first sentence of a command's help."""
    return str(command.short_help or inspect.cleandoc(command.help or "").partition("\n")[0])


def _usage(name: str, command: Any) -> str:
    names = [
        f"{option.metavar}{'...' if option.nargs == -1 else ''}"
        for option in command.params
        if not _is_option(option)
    ]
    return "\n".join(("```text", " ".join(("passes", name, *names, "[OPTIONS]")), "```"))


def _table(options: Iterable[Any]) -> list[str]:
    rows = [_row(option) for option in options]
    return ["| option | meaning | default |", "|---|---|---|", *rows]


def _row(option: Any) -> str:
    flags = ", ".join(f"`{flag}`" for flag in (*option.opts, *option.secondary_opts))
    words = [str(word) for word in _words().get(option.name, ())]
    value = option.default.value if isinstance(option.default, Enum) else option.default
    if words:
        flags += " " + " ".join(f"`{word}`" for word in words)
    elif option.metavar:
        flags += f" `{option.metavar}`"
    default = "" if value in (None, False, (), [], "") else f"`{value}`"
    if option.secondary_opts and value is True:
        default = f"`{option.opts[0]}`"
    return f"| {flags} | {_cell(option.help or '')} | {default} |"


@cache
def _words() -> dict[str, type[StrEnum]]:
    """The words that options may have, by name."""
    return {
        name: option.help.among
        for command in load_commands().values()
        for name, option in options_of(command.options).items()
        if option.help.among is not None
    }


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
