"""The library's functions: one for each command, made of its options."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import MISSING
from enum import StrEnum
from inspect import Parameter, Signature, cleandoc
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from passes.commands.building import Run
from passes.commands.casting import Cast
from passes.commands.checking import Check
from passes.commands.comparing import Bisect, Prove, Verify
from passes.commands.declaring import Option, Source, options_of, refuse_unknown
from passes.commands.looking import Inspect, KnownOperators
from passes.commands.options import Options
from passes.commands.rewriting import (
    Convert,
    Expand,
    Hoist,
    Lower,
    LowestOpset,
    Optimize,
    Raise,
    Reroll,
    Simplify,
    Unroll,
    Upgrade,
)
from passes.commands.streaming import Close, Stream

if TYPE_CHECKING:
    from passes.session import Result

_P = ParamSpec("_P")
_C = TypeVar("_C")
_R = TypeVar("_R")
#: The sentences of a help text about exit codes, to the end of their paragraph.
_EXITS = re.compile(r"\s*\bExit \d.*?(?=\n\n|\Z)", re.DOTALL)


def rewriting(
    declared: Callable[_P, Options], name: str
) -> Callable[Concatenate[Source, _P], Result]:
    """A function of a model and of the options of a class, by keyword, which runs its command.

    Raises:
        TypeError: there is no option of a name, or it has a value of another type.
        ValueError: an option has a value that it cannot have.
    """

    own: Any = declared

    def run(model: Source, /, *_: _P.args, **keywords: _P.kwargs) -> Result:
        from passes.session import Session

        refuse_unknown(name, own, keywords)
        return Session.of([own(**keywords)]).run(model)

    return _shown(run, name, declared, [Parameter("model", Parameter.POSITIONAL_OR_KEYWORD)])


def function_of(declared: Callable[_P, _C], name: str, run: Callable[[_C], _R]) -> Callable[_P, _R]:
    """A function of the arguments and options of a class, which runs its command. Raises what
    `rewriting` raises."""

    own: Any = declared

    def call(*arguments: _P.args, **keywords: _P.kwargs) -> _R:
        refuse_unknown(name, own, keywords)
        return run(declared(*arguments, **keywords))

    return _shown(call, name, declared, [], cleandoc(run.__doc__ or ""))


def _shown(
    function: Callable[_P, _R],
    name: str,
    declared: Any,
    first: Sequence[Parameter],
    returned: str = "",
) -> Callable[_P, _R]:
    """The function, with the name, the signature and the documentation that `help` shows: the help
    of the command without its exit codes, what is `returned`, and a line for each option."""
    options = sorted(options_of(declared, "api").values(), key=lambda one: not one.positional)
    about, _, raised = returned.partition("\n\nRaises:\n")
    listed = "\n".join(["Options:", *map(_line, options)])
    helped = _EXITS.sub("", cleandoc(declared.__doc__ or ""))
    parts = [helped, about, listed, raised and f"Raises:\n{raised}"]
    function.__name__ = function.__qualname__ = name
    function.__module__ = "passes"
    function.__doc__ = "\n\n".join(filter(None, parts))
    function.__dict__["__signature__"] = Signature([*first, *map(_parameter, options)])
    return function


def _line(option: Option) -> str:
    default = "" if option.default in (None, (), "", MISSING) else f" (default {option.default})"
    return f"    {option.name}: {option.help.text}{default}"


def _parameter(option: Option) -> Parameter:
    kind = Parameter.POSITIONAL_OR_KEYWORD if option.positional else Parameter.KEYWORD_ONLY
    default = Parameter.empty if option.default is MISSING else option.default
    return Parameter(
        option.name, kind, default=f"{default}" if isinstance(default, StrEnum) else default
    )


upgrade = rewriting(Upgrade, "upgrade")
convert = rewriting(Convert, "convert")
lower = rewriting(Lower, "lower")
raise_ = rewriting(Raise, "raise_")
expand = rewriting(Expand, "expand")
reroll = rewriting(Reroll, "reroll")
unroll = rewriting(Unroll, "unroll")
hoist = rewriting(Hoist, "hoist")
simplify = rewriting(Simplify, "simplify")
optimize = rewriting(Optimize, "optimize")
cast = rewriting(Cast, "cast")
inspect = function_of(Inspect, "inspect", Inspect.run)
lowest_opset = function_of(LowestOpset, "lowest_opset", LowestOpset.run)
known_operators = function_of(KnownOperators, "known_operators", KnownOperators.run)
compare = function_of(Verify, "compare", Verify.run)
prove = function_of(Prove, "prove", Prove.run)
bisect = function_of(Bisect, "bisect", Bisect.run)
check_target = function_of(Check, "check_target", Check.run)
stream = function_of(Stream, "stream", Stream.run)
close = function_of(Close, "close", Close.run)
run = function_of(Run, "run", Run.run)
