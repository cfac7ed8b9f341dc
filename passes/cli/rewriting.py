"""The commands that rewrite a model, made of their declarations."""

from __future__ import annotations

from inspect import Parameter
from pathlib import Path
from typing import Annotated, Any

import typer

from passes.cli.parameters import give_parameters, options_from, parameters_of
from passes.cli.running import Task, check_report, exit_code_of, fail, rewrite, tell, write
from passes.commands.delivery import Delivery
from passes.commands.options import Options
from passes.commands.registry import Command, load_commands

MODEL_HELP = "The model: binary, or .onnxtxt, .json, ..."
_MODEL: Any = Annotated[Path, typer.Argument(help=MODEL_HELP)]
_LOWEST: Any = Annotated[
    bool,
    typer.Option(
        "--lowest",
        help="Write no model and execute nothing: report the oldest opset that the model can be "
        "converted to, and for each opset down to 7 what blocks it.",
    ),
]


def enter(app: typer.Typer, command: Command) -> None:
    """Make a command of the command line of a declared one."""

    def run(model: Path, **given: Any) -> None:
        delivery = options_from(Delivery, given)
        if given.pop("lowest", False):
            return _lowest(model, delivery, given)
        options = options_from(command.options, given)
        return rewrite(Task(model, command, options, delivery))

    run.__doc__ = command.options.__doc__
    delivery = {one.name: one for one in parameters_of(Delivery)}
    output = delivery.pop("output")
    first = Parameter("model", Parameter.KEYWORD_ONLY, annotation=_MODEL)
    own = parameters_of(command.options, own_first=Options)
    if command.name == "convert":
        lowest = Parameter("lowest", Parameter.KEYWORD_ONLY, default=False, annotation=_LOWEST)
        own.insert(0, lowest)
    give_parameters(run, [first, output, *own, *delivery.values()])
    app.command(command.name, short_help=command.short_help)(run)


def _lowest(model: Path, delivery: Delivery, given: dict[str, Any]) -> None:
    """Report how far down a model can be converted."""
    named = {
        "--opset": given["opset"],
        "--for": given["for_"],
        "--ir-version": given["ir_version"],
        "--output": delivery.output,
    }
    for option, value in named.items():
        if value is not None:
            raise typer.BadParameter(f"does not go together with {option}", param_hint="--lowest")
    from passes import api
    from passes.errors import PassesError

    check_report(delivery.json, (model,))
    try:
        found = api.lowest_opset(model, inline=given["inline"] or ())
    except PassesError as error:
        fail(f"{error}", exit_code_of(error))
    tell(found.to_text(verbose=delivery.verbose))
    if delivery.json is not None:
        write(delivery.json, found.to_json())


def make() -> typer.Typer:
    """An application with every command that rewrites."""
    app = typer.Typer()
    for command in load_commands().values():
        enter(app, command)
    return app
