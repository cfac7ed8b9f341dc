"""What commands print, write and exit with."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from itertools import pairwise
from pathlib import Path
from typing import IO, Any, NoReturn

import typer

from passes.commands.declaring import Place, options_of
from passes.commands.places import DASH, check_reports
from passes.commands.standalone import Output, Standalone
from passes.errors import DONE, FAILED, DoesNotFit, PassesError

#: The last sentence on why the program fails, and the files that it wrote.
_FAILURES: list[str] = []
_WRITTEN: set[str] = set()


def call(command: Standalone) -> None:
    """Run a command that is no step of a pipeline, show its results, and exit with the code of the
    worst."""
    options = options_of(type(command)).items()
    places = {name: getattr(command, name) for name, one in options if one.help.report}
    named = [getattr(command, name) for name, one in options if one.is_argument]
    with failing(named[0] if named else None):
        check_reports([*places.values()], command.files())
        with progress() as say:
            show(command.outputs(say), places, say)


def show(outputs: Iterable[Output], places: Mapping[str, Place | None], say: Line) -> None:
    """Show what a command gives, and exit with the code of the worst; `say` has the line of
    progress."""
    code = DONE
    for output in outputs:
        say.clear()
        code = max(code, output.exit_code)
        _show(output, places)
    if code:
        raise typer.Exit(code)


def _show(output: Output, places: Mapping[str, Place | None]) -> None:
    """Print and write one result, and exit if it is a failure."""
    with suppress(typer.Exit) if output.exit_code else nullcontext():  # if it can be written or not
        if output.text:  # on stderr if a file is written to stdout, which is for one thing
            taken = DASH in [place and os.fspath(place) for place in places.values()]
            (complain if taken else tell)(output.text)
        for name, text in output.files.items():
            if (place := places[name]) is not None:
                write(place, text())
    for remark in output.remarks:
        complain(remark)
    if output.failure:
        fail(output.failure, output.exit_code)


@contextmanager
def failing(model: Any = None) -> Iterator[None]:
    """Leave with the sentence and the exit code of an error of this package, which may be about
    what `model` does not have."""
    try:
        yield
    except PassesError as error:
        named = model is not None and isinstance(error, DoesNotFit)
        fail(f"{model}: {error}" if named else f"{error}", error.exit_code)


def write(path: Place, text: str) -> None:
    """Write a file, or leave with a sentence why that cannot be."""
    _WRITTEN.add(os.fspath(path))
    if os.fspath(path) == DASH:
        tell(text.removesuffix("\n"))
        return
    try:
        Path(path).write_text(text, encoding="utf-8")
    except OSError as error:
        fail(f"{path}: cannot be written ({error.strerror})", FAILED)


def tell(text: str) -> None:
    """Print on stdout. Where its reader has gone, the work was done all the same."""
    try:
        typer.echo(text)
    except BrokenPipeError:
        _silence(sys.stdout)
    except OSError as error:
        _silence(sys.stdout)
        fail(f"the output cannot be written ({error.strerror})", FAILED)


def fail(sentence: str, code: int) -> NoReturn:
    """Leave with a sentence and an exit code."""
    complain(sentence)
    note_failure(sentence)
    raise typer.Exit(code)


def note_failure(sentence: str) -> None:
    """Remember why the program fails, for its report."""
    _FAILURES.append(sentence)


def report_failure(arguments: Sequence[str], code: int) -> None:
    """Write the report of a command line that failed before there was one, if one is wanted."""
    from passes.reports.report_file import ReportFile

    places = [following for one, following in pairwise(arguments) if one == "--json"]
    places += [one.removeprefix("--json=") for one in arguments if one.startswith("--json=")]
    for place in places:
        if place and place not in _WRITTEN and _FAILURES:
            with suppress(OSError, PassesError, typer.Exit):  # the place may be what failed
                check_reports([place], [])
                write(place, ReportFile.of_failure(_FAILURES[-1], code).to_json())


def complain(sentence: str) -> None:
    """Print a sentence on stderr, if that is possible: the exit code tells the rest."""
    try:
        typer.echo(sentence, err=True)
    except OSError:
        _silence(sys.stderr)


def _silence(stream: IO[str]) -> None:
    """Let what is still to be flushed at the end go nowhere: it would change the exit code."""
    with suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


class Line:
    """A line on stderr that tells of progress, and is written over, where stderr is a terminal."""

    def __init__(self) -> None:
        self._shown = sys.stderr is not None and sys.stderr.isatty()

    def __call__(self, text: str) -> None:
        """Show a text in place of the one before."""
        if self._shown:
            sys.stderr.write(f"\r\x1b[K{text}")
            sys.stderr.flush()

    def clear(self) -> None:
        """Leave the line empty for what is printed next."""
        self("")


@contextmanager
def progress() -> Iterator[Line]:
    """A line of progress, which is empty at the end."""
    line = Line()
    try:
        yield line
    finally:
        line.clear()
