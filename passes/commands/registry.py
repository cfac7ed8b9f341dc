"""The commands by name, those of other distributions with them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any, TypeVar

from passes.errors import PassesError, WrongUsage, nearest

if TYPE_CHECKING:
    from passes.commands.options import Options
    from passes.commands.standalone import Standalone

#: The entry points under which other distributions name modules that declare commands.
GROUP = "passes.commands"
#: The modules that declare those of this package, in the order in which they are shown.
_OWN = (
    "rewriting",
    "casting",
    "building",
    "checking",
    "looking",
    "comparing",
    "streaming",
    "viewing",
    "manual",
)
_T = TypeVar("_T", bound="type[Options | Standalone]")


class UnknownCommand(WrongUsage):
    """No command has this name."""


class BrokenCommands(PassesError):
    """The commands of another distribution cannot be imported."""


@dataclass(frozen=True)
class Schema:
    """The form of the JSON of a command: a title, and the `module` and name of the dataclass."""

    title: str
    module: str
    name: str


@dataclass(frozen=True)
class Command:
    """A command: its options, and a line of help. One that rewrites has a `suffix` under which its
    outcome is written beside the model: it may name the `{opset}`. Where no opset is named, another
    one may hold. Of a name in two words, `group` is the help of the first."""

    name: str
    options: type[Any]
    short_help: str
    suffix: str = ""
    suffix_without_opset: str = ""
    group: str = ""
    schema: Schema | None = None

    def ending(self, options: Options) -> str:
        """The suffix with these options."""
        named = options.opset is not None or options.for_ is not None
        return self.suffix if named else self.suffix_without_opset or self.suffix


_COMMANDS: dict[str, Command] = {}


def command(name: str, **declared: Any) -> Callable[[_T], _T]:
    """Register a class of options as the command `name`; `declared` are fields of `Command`."""

    def enter(options: _T) -> _T:
        _COMMANDS[name] = Command(name, options, **declared)
        return options

    return enter


@cache
def load_commands() -> dict[str, Command]:
    """Every command by name, the built-in ones first.

    Raises:
        BrokenCommands: the module of another distribution does not import.
    """
    for module in _OWN:
        import_module(f"passes.commands.{module}")
    for entry in entry_points(group=GROUP):
        try:
            entry.load()
        except Exception as error:  # whatever the import of somebody else's module may raise
            raise BrokenCommands(
                f"the commands {entry.name!r} ({entry.value}) do not load: {error}"
            ) from error
    return _COMMANDS


def rewriting_commands() -> Mapping[str, Command]:
    """The commands that rewrite a model: the steps of pipelines. Raises BrokenCommands."""
    return {name: one for name, one in load_commands().items() if one.suffix}


def command_named(name: str) -> Command:
    """The command called `name`, which rewrites.

    Raises:
        UnknownCommand: there is none; the sentence names those most like it.
    """
    known = rewriting_commands()
    if name not in known:
        raise UnknownCommand(f"there is no command {name!r}; {nearest(name, known)}")
    return known[name]


def command_of(options: Options) -> Command:
    """The command that these are the options of.

    Raises:
        UnknownCommand: they were declared, but not registered.
    """
    for known in _COMMANDS.values():
        if known.options is type(options):
            return known
    raise UnknownCommand(f"{type(options).__name__} was not registered as a command")
