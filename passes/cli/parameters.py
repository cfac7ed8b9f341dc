"""Makes parameters of typer of declared options, and options of what typer read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import MISSING
from inspect import Parameter, Signature
from pathlib import Path
from types import GenericAlias
from typing import Annotated, Any, TypeVar

import typer

from passes.cli.running import fail
from passes.commands.declaring import Option, options_of
from passes.commands.reading import ENTRIES, NUMBERS, WrongText, read_options

#: Short forms, by name.
_SHORT = {"output": ["-o"], "verbose": ["-v"], "quiet": ["-q"], "jobs": ["-j"]}
_T = TypeVar("_T")


def parameters_of(declared: type, own_first: type | None = None) -> list[Parameter]:
    """The parameters of the command line for the options of a class.

    `own_first`: a class that it is derived from, whose options come last.
    """
    inherited = set(options_of(own_first)) if own_first is not None else set()
    options = options_of(declared, "cli").values()
    return [parameter(one) for one in sorted(options, key=lambda one: one.name in inherited)]


def _named(path: Path | None) -> Path | None:
    """The path of a file. Raises typer.BadParameter for stdin."""
    if path == Path("-"):
        raise typer.BadParameter("only commands that rewrite read stdin; name a file")
    return path


def _argument(option: Option) -> Any:
    """What typer has to know of a positional argument; one that is no string is a file."""
    name, text = option.help.metavar or option.key.upper(), option.help.text
    if option.annotation is str:
        kind: Any = str
        declared: Any = typer.Argument(help=text, metavar=name)
    elif option.annotation is Any:
        kind = Path
        # what reads a file tells why it cannot be read
        declared = typer.Argument(help=text, metavar=name, callback=_named, readable=False)
    else:
        kind = GenericAlias(list, str if option.annotation == Sequence[str] else Path)
        declared = typer.Argument(help=text, metavar=name, readable=False, show_default=False)
    return Annotated[kind | None if option.default is not MISSING else kind, declared]


def parameter(option: Option) -> Parameter:
    """The parameter of an option or an argument."""
    help_ = option.help
    if option.is_argument:
        needed = Parameter.empty if option.default is MISSING else None
        return Parameter(
            option.name, Parameter.KEYWORD_ONLY, default=needed, annotation=_argument(option)
        )
    flags = [f"--{option.key}", *_SHORT.get(option.name, ())]
    if option.annotation is bool and option.default:
        flags[0] += f"/--no-{option.key}"
    metavar = help_.metavar or (f"[{'|'.join(help_.among)}]" if help_.among is not None else None)
    if metavar is None and option.annotation in NUMBERS:
        metavar = "N"
    declared: Any = typer.Option(*flags, help=help_.text, metavar=metavar)
    kind: Any = bool if option.annotation is bool else str
    default: Any = option.default
    if default is not None and kind is str:
        default = f"{default}"
    if option.annotation == tuple[str, str]:
        default = "=".join(option.default)
    if option.annotation in (Sequence[str], *ENTRIES):
        kind, default = GenericAlias(list, kind) | None, None
    elif option.optional:
        kind = kind | None
    annotation: Any = Annotated[kind, declared]
    return Parameter(option.name, Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def options_from(declared: Callable[..., _T], given: dict[str, Any]) -> _T:
    """The options of a class from what typer read, which is taken out of `given`. Leaves with a
    sentence if an option has a value that it cannot have."""
    try:
        return read_options(declared, given)
    except WrongText as error:
        fail(f"{error}", error.exit_code)


def give_parameters(function: Callable[..., None], parameters: Sequence[Parameter]) -> None:
    """Make typer see these parameters of a function that takes any keywords."""
    function.__dict__["__signature__"] = Signature(list(parameters))  # inspect.signature reads it
    function.__annotations__ = {one.name: one.annotation for one in parameters}
