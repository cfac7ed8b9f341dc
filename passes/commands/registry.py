"""The commands by name, those of other distributions with them, and functions made of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from inspect import Parameter, Signature, cleandoc
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from passes.commands.declaring import options_of, refuse_unknown
from passes.errors import PassesError, WrongUsage, nearest

if TYPE_CHECKING:
    from passes.commands.options import Options
    from passes.session import Result, Source

#: The entry points under which other distributions name modules that declare commands.
GROUP = "passes.commands"
_P = ParamSpec("_P")
_T = TypeVar("_T", bound="type[Options]")


class UnknownCommand(WrongUsage):
    """No command has this name."""


class BrokenCommands(PassesError):
    """The commands of another distribution cannot be imported."""


@dataclass(frozen=True)
class Command:
    """A command: its options, a line of help, and under which `suffix` its outcome is written
    beside the model: it may name the `{opset}`. Where no opset is named, another one may hold."""

    name: str
    options: type[Options]
    short_help: str
    suffix: str
    suffix_without_opset: str

    def ending(self, options: Options) -> str:
        """The suffix with these options."""
        named = options.opset is not None or options.for_ is not None
        return self.suffix if named else self.suffix_without_opset or self.suffix


_COMMANDS: dict[str, Command] = {}


def command(
    name: str, *, short_help: str, suffix: str, suffix_without_opset: str = ""
) -> Callable[[_T], _T]:
    """Register a class of options as the command `name`."""

    def enter(options: _T) -> _T:
        _COMMANDS[name] = Command(name, options, short_help, suffix, suffix_without_opset)
        return options

    return enter


@cache
def load_commands() -> dict[str, Command]:
    """Every command by name, the built-in ones first.

    Raises:
        BrokenCommands: the module of another distribution does not import.
    """
    import_module("passes.commands.rewriting")
    for entry in entry_points(group=GROUP):
        try:
            entry.load()
        except Exception as error:  # whatever the import of somebody else's module may raise
            raise BrokenCommands(
                f"the commands {entry.name!r} ({entry.value}) do not load: {error}"
            ) from error
    return _COMMANDS


def command_named(name: str) -> Command:
    """The command called `name`.

    Raises:
        UnknownCommand: there is none; the sentence names those most like it.
    """
    known = load_commands()
    if name not in known:
        raise UnknownCommand(f"there is no command {name!r}; {nearest(name, known)}")
    return known[name]


def command_of(options: Options) -> Command:
    """The command that these are the options of.

    Raises:
        UnknownCommand: they were declared, but not registered.
    """
    for known in load_commands().values():
        if known.options is type(options):
            return known
    raise UnknownCommand(f"{type(options).__name__} was not registered as a command")


def function_of(
    options: Callable[_P, Options], name: str
) -> Callable[Concatenate[Source, _P], Result]:
    """A function of a model and of the options of a class, by keyword, which runs its command.

    Raises:
        TypeError: there is no option of a name, or it has a value of another type.
        ValueError: an option has a value that it cannot have.
    """
    declared: Any = options

    def run(model: Source, /, *_: _P.args, **keywords: _P.kwargs) -> Result:
        from passes.session import Session

        refuse_unknown(name, declared, keywords)
        return Session.of([declared(**keywords)]).run(model)

    run.__name__ = run.__qualname__ = name
    run.__module__ = "passes"
    run.__doc__ = _documented(declared)
    own = [
        Parameter(option.name, Parameter.KEYWORD_ONLY, default=option.default)
        for option in options_of(declared).values()
    ]
    model = Parameter("model", Parameter.POSITIONAL_OR_KEYWORD)
    run.__dict__["__signature__"] = Signature([model, *own])  # help, inspect.signature read it
    return run


def _documented(declared: type) -> str:
    """The docstring of a command's function: its help, and a line for each option."""
    lines = [cleandoc(declared.__doc__ or ""), "", "Options:"]
    for option in options_of(declared).values():
        default = "" if option.default in (None, ()) else f" (default {option.default})"
        lines.append(f"    {option.name}: {option.help.text}{default}")
    return "\n".join(lines)
