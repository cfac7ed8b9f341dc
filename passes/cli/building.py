"""The commands `run`, which does what a file describes, and `init`, which writes such a file."""

from __future__ import annotations

from dataclasses import replace
from inspect import Parameter
from pathlib import Path
from typing import Annotated, Any

import typer

from passes.cli.many import engine_of, limits_of, run
from passes.cli.parameters import give_parameters, options_from, parameters_of
from passes.cli.running import fail, failing, tell
from passes.commands.delivery import Working
from passes.errors import USAGE, WrongUsage

app = typer.Typer()


def _run(names: list[str] | None, config: Path | None, cache: bool, **given: Any) -> None:
    """Take models through a pipeline, as `passes.toml` describes it.

    PIPELINE is one of the file, and may be left out; MODEL are files, folders or patterns, by
    default those of the file. A model that is known from an earlier run is not worked on again.
    Exit 0 if no model fails the build, else the code of the worst.
    """
    from passes.builds import config as configuration
    from passes.builds.batch import batch_of
    from passes.builds.sources import listed

    verbose = given.pop("verbose")
    working = options_from(Working, given)
    with failing():
        path = config or configuration.find(Path.cwd())
        if path is None:
            raise WrongUsage("there is no passes.toml here or above; `passes init` writes one")
        file = configuration.load(path)
        pipeline, named = _split(names or [], file)
        if working.from_file is not None:
            named += listed(Path(working.from_file))
        batch = batch_of(
            file,
            pipeline,
            named,
            engine=engine_of(working, working.jobs or file.build.jobs),
            cache=cache,
            part=working.shard,
            limited=lambda limits: limits_of(working, limits),
        )
        if working.cache_dir is not None:
            batch = replace(batch, cache=Path(working.cache_dir))
        if working.results is not None:
            batch = replace(batch, results=Path(working.results))
        if working.html is not None:
            batch = replace(batch, html=Path(working.html))
    run(batch, working, verbose=verbose)


def _split(names: list[str], file: Any) -> tuple[str | None, list[str]]:
    """The pipeline, if the first name is one, and the models.

    Raises:
        BadConfig: the first name is neither a pipeline nor a path.
    """
    if not names:
        return None, []
    first, *rest = names
    if first in file.pipelines:
        return first, rest
    if not Path(first).exists() and not any(mark in first for mark in "*?[/."):
        file.pipeline(first, {})
    return None, names


def _init(force: bool = False) -> None:
    """Write a passes.toml that takes the models below this folder through `optimize`."""
    from passes.builds.config import example
    from passes.builds.sources import IN_FOLDERS

    path = Path("passes.toml")
    if path.exists() and not force:
        fail(f"{path}: exists already (use --force to overwrite it)", USAGE)
    models = sorted(one for one in Path().rglob("*") if one.suffix in IN_FOLDERS)
    try:
        path.write_text(example(models), encoding="utf-8")
    except OSError as error:
        fail(f"{path}: cannot be written ({error.strerror})", 1)
    many = "1 model" if len(models) == 1 else f"{len(models)} models"
    tell(f"wrote {path} ({many} below this folder); `passes run` builds them")


_NAMES: Any = Annotated[
    list[str] | None,
    typer.Argument(
        help="A pipeline of the file, then files, folders or patterns of models.",
        metavar="PIPELINE|MODEL",
        show_default=False,
    ),
]
_CONFIG: Any = Annotated[
    Path | None,
    typer.Option(
        "--config",
        help="The file that describes the build, instead of the passes.toml or pyproject.toml of "
        "this folder or the nearest one above.",
        metavar="FILE",
    ),
]
_CACHE: Any = Annotated[
    bool, typer.Option("--cache/--no-cache", help="Remember outcomes from run to run.")
]
_VERBOSE: Any = Annotated[
    bool, typer.Option("--verbose", "-v", help="Print a line for each model.")
]
_FORCE: Any = Annotated[bool, typer.Option("--force", help="Overwrite it if it exists.")]


def _only(name: str, default: Any, kind: Any) -> Parameter:
    return Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=kind)


give_parameters(
    _run,
    [
        _only("names", None, _NAMES),
        _only("config", None, _CONFIG),
        _only("cache", True, _CACHE),
        *parameters_of(Working),
        _only("verbose", False, _VERBOSE),
    ],
)
app.command("run", short_help="Build many models, as passes.toml describes it.")(_run)
give_parameters(_init, [_only("force", False, _FORCE)])
app.command("init", short_help="Write a passes.toml.")(_init)
