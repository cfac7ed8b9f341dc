"""The command line; its commands are in rooms of their own."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Annotated

# Before numpy: what verification multiplies is small, so threads would wait for each other, most
# where the machine does other work, too, and sums would be split by how many of them there are.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import typer

from passes.cli import bisecting as command_bisecting
from passes.cli import building as command_building
from passes.cli import checking as command_checking
from passes.cli import inspection as command_inspection
from passes.cli import measuring as command_measuring
from passes.cli import operators as command_operators
from passes.cli import proving as command_proving
from passes.cli import rewriting as command_rewriting
from passes.cli import showing as command_showing
from passes.cli import streaming as command_streaming
from passes.cli.running import complain, note_failure, report_failure
from passes.errors import DONE, INTERRUPTED, USAGE, PassesError

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
app.add_typer(command_rewriting.make())
app.add_typer(command_building.app)
app.add_typer(command_checking.app)
app.add_typer(command_inspection.app)
app.add_typer(command_showing.app)
app.add_typer(command_operators.app)
app.add_typer(command_proving.app)
app.add_typer(command_measuring.app)
app.add_typer(command_bisecting.app)
app.add_typer(command_streaming.app)


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
    left = _left()
    if left:
        report_failure(sys.argv[1:], left)
    sys.exit(left)


def _left() -> int:
    """Run the command line, and return its exit code."""
    try:
        return int(app(standalone_mode=False) or DONE)
    except PassesError as error:
        complain(f"{error}")
        note_failure(f"{error}")
        return error.exit_code
    except typer.Abort:
        complain("interrupted")
        return INTERRUPTED
    except Exception as error:
        # an error of usage, of a class that typer keeps to itself
        show: Callable[[], None] | None = getattr(error, "show", None)
        if show is None:
            raise
        sentence = str(getattr(error, "message", error)).replace("Value error, ", "")  # pydantic's
        vars(error)["message"] = sentence
        show()
        note_failure(sentence)
        return USAGE


if __name__ == "__main__":
    main()
