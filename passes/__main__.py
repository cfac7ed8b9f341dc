"""The command line, made of the declared commands."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from inspect import cleandoc
from typing import Annotated, Any

# Before numpy: what verification multiplies is small, so threads would wait for each other, most
# where the machine does other work, too, and sums would be split by how many of them there are.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import typer

from passes.cli import rewriting
from passes.cli.parameters import give_parameters, options_from, parameters_of
from passes.cli.running import call, complain, note_failure, report_failure
from passes.commands.registry import Command, load_commands
from passes.errors import DONE, INTERRUPTED, USAGE


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


app = typer.Typer(
    name="passes",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # rich takes longer to import than all else that help needs
    help="""Rewrite the control flow of ONNX models, and execute every rewrite before and after.

    Exit codes: 0 done; 1 failed, or the input is no valid model; 2 wrong usage; 3 the requested
    result could not be produced (under --strict also: something stays that the command is to
    rewrite); 4 a rewrite, or a model given to `verify` or `prove`, does not agree with the
    original.""",
)
for declared in load_commands().values():
    enter(app, declared)


def _version(asked: bool) -> None:
    if not asked:
        return
    from passes.ir.versions import tools

    own, *others = [f"{name} {version}" for name, version in tools().items() if name != "python"]
    typer.echo(f"{own} ({', '.join(others)}, python {tools()['python']})")
    raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            help="Show the version of this tool and of what it runs on, and exit.",
            callback=_version,
            is_eager=True,
        ),
    ] = False,
) -> None:
    pass


def main() -> None:
    """Run the command line."""
    for stream in range(3):  # what is closed would be the number of the next file that is opened
        try:
            os.fstat(stream)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    try:
        left = int(app(standalone_mode=False) or DONE)
    except Exception as error:
        left = _complained(error)
    if left:
        report_failure(sys.argv[1:], left)
    sys.exit(left)


def _complained(error: Exception) -> int:
    """Print why a command could not be run, and return the exit code."""
    if isinstance(error, typer.Abort):
        complain("interrupted")
        return INTERRUPTED
    # an error of usage, of a class that typer keeps to itself
    show: Callable[[], None] | None = getattr(error, "show", None)
    if show is None:
        raise error
    sentence = str(getattr(error, "message", error)).replace("Value error, ", "")  # pydantic's
    vars(error)["message"] = sentence
    show()
    note_failure(sentence)
    return USAGE


if __name__ == "__main__":
    main()
