"""The command line, made of the declared commands."""

from __future__ import annotations

from collections.abc import Callable
from inspect import cleandoc
from typing import Any

import typer

from passes.cli import rewriting
from passes.cli.parameters import give_parameters, options_from, parameters_of
from passes.cli.running import call
from passes.commands.registry import Command


def enter(app: typer.Typer, command: Command) -> None:
    """Make a command of the command line of a declared one."""
    run = rewriting.caller(command) if command.suffix else _caller(command)
    run.__doc__ = cleandoc(command.options.__doc__ or "")
    take = rewriting.parameters if command.suffix else parameters_of
    give_parameters(run, take(command.options))
    group, _, name = command.name.rpartition(" ")
    inner = typer.Typer(no_args_is_help=bool(group))
    inner.command(name, short_help=command.short_help)(run)
    app.add_typer(inner, name=group or None, help=command.group)


def _caller(command: Command) -> Callable[..., None]:
    """What the command line calls for a command that is no step of a pipeline."""

    def run(**given: Any) -> None:
        call(options_from(command.options, given))

    return run
