"""Makes a command of a function: its parameters become options, beside those of all commands."""

from __future__ import annotations

from collections.abc import Callable
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from passes.cli.options import CommonOptions, ModelFile, Output, refuse_both
from passes.cli.running import Task, rewrite

if TYPE_CHECKING:
    from passes.session import Progress, Result


def rewriting(
    app: typer.Typer,
    name: str,
    *,
    short_help: str,
    suffix: str,
    suffix_without_opset: str = "",
    instead: Callable[[Path, Path | None, CommonOptions, dict[str, Any]], bool] | None = None,
) -> Callable[[Callable[..., Result]], None]:
    """Make a command of a function that takes a model, options of its own, and those of all.

    The function's parameters become options of the command, those of `CommonOptions` with them.
    The outcome goes beside the model by default, under `suffix`, which may name the opset, or under
    another where no opset was named. `instead` may do something else with a model, and tells so.
    """

    def enter(call: Callable[..., Result]) -> None:
        # what only type checkers import is not there when the annotations are read
        unread = {"WithOpset": Any, "Result": Any}
        parameters = signature(call, locals=unread, eval_str=True).parameters.values()
        own = [parameter for parameter in parameters if parameter.kind == Parameter.KEYWORD_ONLY]

        def command(model: Path, output: Path | None, **given: Any) -> None:
            mine = {parameter.name: given.pop(parameter.name) for parameter in own}
            common = CommonOptions(**given)
            refuse_both(common.opset, common.for_)
            if instead is not None and instead(model, output, common, mine):
                return

            def run(say: Progress | None) -> Result:
                return call(model, **mine, **common.for_library(say))

            named = tuple(mine.get("rule") or ())
            ending = suffix
            if suffix_without_opset and common.opset is None and common.for_ is None:
                ending = suffix_without_opset
            rewrite(Task(model, output, ending, run, common, named))

        head = [_parameter("model", ModelFile), _parameter("output", Output, None)]
        everyone = signature(CommonOptions, eval_str=True).parameters.values()
        _give_parameters(command, [*head, *own, *everyone])
        command.__doc__ = call.__doc__
        app.command(name, short_help=short_help)(command)

    return enter


def _parameter(name: str, annotation: Any, default: Any = Parameter.empty) -> Parameter:
    return Parameter(name, Parameter.POSITIONAL_OR_KEYWORD, default=default, annotation=annotation)


def _give_parameters(command: Callable[..., None], parameters: list[Parameter]) -> None:
    """Make typer see these parameters."""
    ordered = [parameter.replace(kind=Parameter.KEYWORD_ONLY) for parameter in parameters]
    # inspect.signature reads it; a function has no such attribute in the type stubs
    command.__signature__ = Signature(ordered)  # type: ignore[attr-defined]
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in ordered}
