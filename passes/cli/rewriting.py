"""The commands that rewrite a model, made of their declarations."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from inspect import Parameter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from passes.builds.sources import common_folder, output_of
from passes.builds.task import Task
from passes.cli.many import engine_of, limits_of, models_of
from passes.cli.many import run as run_many
from passes.cli.parameters import give_parameters, options_from, parameters_of
from passes.cli.running import check_report, failing, rewrite, tell, write
from passes.commands.declaring import options_of
from passes.commands.delivery import Delivery, Many
from passes.commands.options import Binding, Options
from passes.commands.pipeline import Pipeline
from passes.commands.registry import Command, load_commands
from passes.errors import WrongUsage

if TYPE_CHECKING:
    from passes.builds.batch import Batch

_Path = str | os.PathLike[str]
_MODELS: Any = Annotated[
    list[Path] | None,
    typer.Argument(
        help="The model: binary, or .onnxtxt, .json, ...; `-` is stdin. Or many: files, "
        "folders, patterns.",
        metavar="MODEL",
        show_default=False,
        readable=False,  # what reads a file tells why it cannot be read
    ),
]
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

    def run(models: list[Path] | None, **given: Any) -> None:
        delivery = options_from(Delivery, given)
        many = options_from(Many, given)
        lowest = given.pop("lowest", False)
        with failing():
            found = models_of(models or [], many)
            if lowest:
                if len(found) > 1:
                    raise WrongUsage("--lowest takes one model")
                _lowest(Path(found[0]), delivery, given)
                return
            options = options_from(command.options, given)
            if _is_one(found, models or [], many):
                task = _task(found[0], command, options, delivery, many.html)
                rewrite(task, delivery, quiet=many.quiet, html=many.html)
                return
            batch = _batch(found, command, options, delivery, many)
        run_many(batch, many, verbose=delivery.verbose)

    run.__doc__ = command.options.__doc__
    delivery = {one.name: one for one in parameters_of(Delivery)}
    output = delivery.pop("output")
    first = Parameter("models", Parameter.KEYWORD_ONLY, default=None, annotation=_MODELS)
    own = parameters_of(command.options, own_first=Options)
    many = parameters_of(Many)
    if command.name == "convert":
        lowest = Parameter("lowest", Parameter.KEYWORD_ONLY, default=False, annotation=_LOWEST)
        own.insert(0, lowest)
    give_parameters(run, [first, output, *own, *delivery.values(), *many])
    app.command(command.name, short_help=command.short_help)(run)


def _is_one(found: Sequence[str], given: Sequence[Path], many: Many) -> bool:
    """Return whether one model is meant, not a list of one, and nothing that only lists have."""
    one = Many(html=many.html)
    alone = [*map(str, given)] == [*found] and len(found) == 1
    return alone and many in (one, replace(one, quiet=True))


def _task(
    model: str, command: Command, options: Options, delivery: Delivery, html: _Path | None
) -> Task:
    output = None if delivery.output is None else os.fspath(delivery.output)
    kept = tuple(os.fspath(place) for place in (delivery.json, html) if place is not None)
    ending, strict = command.ending(options), delivery.strict
    return Task(model, Pipeline([options]), output, ending, strict, delivery.force, kept)


def _batch(
    models: Sequence[str], command: Command, options: Options, delivery: Delivery, many: Many
) -> Batch:
    """Many models by one command.

    Raises:
        WrongUsage: an option is for one model.
    """
    from passes.builds.batch import Batch

    if delivery.output is not None and len(models) > 1:
        raise WrongUsage("--output is for one model; --out-dir is for many")
    if delivery.json is not None:
        raise WrongUsage("--json is for one model; --results is for many")
    tasks = [_task(model, command, options, delivery, many.html) for model in models]
    if many.out_dir is not None:
        template = os.path.join(os.fspath(many.out_dir), "{folder}", "{name}")
        folder = common_folder(models)
        tasks = [replace(task, output=output_of(template, task.model, folder)) for task in tasks]
    cache = None if many.cache_dir is None else Path(many.cache_dir)
    results = None if many.results is None else Path(many.results)
    html = None if many.html is None else Path(many.html)
    limits = limits_of(many)
    engine = engine_of(many, many.jobs or 1)
    return Batch([(task, limits) for task in tasks], engine, cache, results, html=html)


def _lowest(model: Path, delivery: Delivery, given: dict[str, Any]) -> None:
    """Report how far down a model can be converted."""
    named = {
        "--opset": given["opset"],
        "--for": given["for_"],
        "--ir-version": given["ir_version"],
        "--output": delivery.output,
        **{f"--{option.key}": given[name] for name, option in options_of(Binding).items()},
    }
    for option, value in named.items():
        if value is not None:
            raise typer.BadParameter(f"does not go together with {option}", param_hint="--lowest")
    from passes import api

    with failing():
        check_report(delivery.json, (model,))
        found = api.lowest_opset(model, inline=given["inline"] or ())
    tell(found.to_text(verbose=delivery.verbose))
    if delivery.json is not None:
        write(delivery.json, found.to_json())


def make() -> typer.Typer:
    """An application with every command that rewrites."""
    app = typer.Typer()
    for command in load_commands().values():
        enter(app, command)
    return app
