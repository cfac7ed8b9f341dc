"""The common part of the commands: run, report, and exit with the right code."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import IO, TYPE_CHECKING, NoReturn

import typer

from passes.builds.task import Done, InTheWay, Task, is_same, perform, refuse_weights, with_advice
from passes.errors import (
    FAILED,
    MISMATCH,
    BadModel,
    CannotWrite,
    DoesNotFit,
    PassesError,
    WrongUsage,
)

if TYPE_CHECKING:
    from passes.commands.delivery import Delivery
    from passes.reports.report import Report
    from passes.reports.report_file import ReportFile

Place = str | os.PathLike[str]
#: The last sentence on why the program fails, and the files that it wrote.
_FAILURES: list[str] = []
_WRITTEN: set[str] = set()


#: What stands for stdin or stdout in place of a path.
DASH = "-"


@dataclass(frozen=True)
class Streamed:
    """A task whose streams are files for as long as it takes."""

    task: Task
    to_stdout: bool
    names: tuple[tuple[str, str], ...]

    def named(self, text: str) -> str:
        """A text with `-` for the names of these files."""
        for path, name in self.names:
            text = text.replace(path, name)
        return text

    def deliver(self, done: Done) -> None:
        """Write the outcome to stdout, if that is its destination. Raises OSError."""
        if self.to_stdout and done.output:
            sys.stdout.buffer.write(Path(done.output).read_bytes())
            sys.stdout.buffer.flush()


@contextmanager
def as_files(task: Task) -> Iterator[Streamed]:
    """A task with files in place of stdin and stdout: a model from stdin is written to stdout
    unless an output is named."""
    from_stdin = task.model == DASH
    to_stdout = task.output == DASH or (from_stdin and task.output is None)
    if not from_stdin and not to_stdout:
        yield Streamed(task, False, ())
        return
    with tempfile.TemporaryDirectory() as folder:
        names: list[tuple[str, str]] = []
        if from_stdin:
            model = Path(folder) / "stdin.onnx"
            model.write_bytes(sys.stdin.buffer.read())
            task = replace(task, model=str(model))
            names.append((str(model), "stdin"))
        if to_stdout:
            output = Path(folder) / "stdout.onnx"
            task = replace(task, output=str(output))
            names.append((str(output), "stdout"))
        yield Streamed(task, to_stdout, tuple(names))


def rewrite(
    task: Task, delivery: Delivery, *, quiet: bool = False, html: Place | None = None
) -> None:
    """Do it, and exit with the code of the outcome; `html` is where its page is written."""
    from passes.reports.report_file import ReportFile

    json = delivery.json
    inputs = [options.inputs for options in task.pipeline.commands if options.inputs is not None]
    with failing():
        others = [Path(task.model), *map(Path, inputs)]
        with suppress(WrongUsage):  # the report is about that
            others.append(task.expected())
        check_reports((json, html), others)
    with as_files(task) as files:
        with progress() as say:
            done = with_advice(files.task, perform(files.task, say), say)
        print_it = complain if files.to_stdout else beside(json, html)
        broken = not done.output and done.exit_code
        with suppress(typer.Exit) if broken else nullcontext():  # if it can be written or not
            if done.report is not None and not quiet:
                last = _written(files.task, done) if done.output and not files.to_stdout else ""
                text = done.report.to_text(verbose=delivery.verbose, written=last)
                print_it(files.named(text))
            if json is not None:
                write(json, files.named(ReportFile.of(files.task, done).to_json()))
            if html is not None:
                write_page(html, ReportFile.of(files.task, done), files.named)
        try:
            files.deliver(done)
        except OSError as error:
            fail(f"stdout: cannot be written ({error.strerror})", FAILED)
        for remark in done.remarks if not quiet or done.exit_code == MISMATCH else ():
            complain(files.named(remark))
        if done.exit_code:
            fail(files.named(done.sentence), done.exit_code)


def _written(task: Task, done: Done) -> str:
    """Where the outcome is; after `optimize`, what it cost, too."""
    if done.report is None or not done.report.command.startswith("optimize"):
        return f"wrote {done.output}"
    from passes.reports.measured import megabytes

    sizes = [megabytes(os.path.getsize(path)) for path in (task.model, done.output)]
    size = " -> ".join(dict.fromkeys(sizes))
    return f"wrote {done.output}: {size}, {done.seconds:.1f} s of work"


@contextmanager
def failing(model: Path | None = None) -> Iterator[None]:
    """Leave with the sentence and the exit code of an error of this package, which may be about
    what `model` does not have."""
    try:
        yield
    except DoesNotFit as error:
        fail(f"{model}: {error}" if model else f"{error}", error.exit_code)
    except PassesError as error:
        fail(f"{error}", error.exit_code)


def check_reports(places: Sequence[Place | None], others: Sequence[Path]) -> None:
    """See that reports can be written, and over no other file of the command or one another.
    Raises what `check_report` raises."""
    known = list(others)
    for place in places:
        check_report(place, known)
        known += [] if place is None else [Path(place)]


def check_report(json: Place | None, others: Sequence[Path]) -> None:
    """See that the report can be written, and over no other file of the command nor the weights of
    its models, before any work is done.

    Raises:
        InTheWay: it would be written over another file.
        CannotWrite: it cannot be written.
    """
    if json is None or os.fspath(json) == DASH:
        return
    json = Path(json)
    try:
        with suppress(FileNotFoundError):
            json.stat()  # a link that leads to itself
        if any(is_same(json, other) for other in others):
            raise InTheWay(f"{json}: is a file of this command, not a place for its report")
        if json.is_dir():
            raise CannotWrite(f"{json}: cannot be written (it is a folder)")
        if not json.exists() and not json.parent.is_dir():
            raise CannotWrite(f"{json}: cannot be written (there is no folder {json.parent})")
        if not os.access(json if json.exists() else json.parent, os.W_OK):
            raise CannotWrite(f"{json}: cannot be written (permission denied)")
        for other in others:
            with suppress(BadModel):  # it is none, or that is told when it is loaded
                refuse_weights(other, [json])
    except OSError as error:
        raise CannotWrite(f"{json}: cannot be written ({error.strerror})") from error


def show(report: Report, json: Place | None) -> None:
    """Print the report, and write it where it is wanted as JSON."""
    beside(json)(report.to_text())
    if json is not None:
        write(json, report.to_json())


def write_page(
    path: Place,
    report: ReportFile,
    named: Callable[[str], str] = lambda text: text,
    remedies: Sequence[str] = (),
) -> None:
    """Write the page of a report, or leave with a sentence why that cannot be."""
    from passes.reports.pages.page import page_of
    from passes.reports.pages.writing import as_html

    write(path, named(as_html(page_of(report, remedies))))


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


def beside(*places: Place | None) -> Callable[[str], None]:
    """Return what prints the text of a command: on stderr if one of its files is stdout, which is
    for one thing."""
    return complain if DASH in [place and os.fspath(place) for place in places] else tell


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
                check_report(place, [])
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


@contextmanager
def progress(first: str = "") -> Iterator[Callable[[str], None] | None]:
    """Show progress on a line of stderr, `first` this, if that is a terminal."""
    if sys.stderr is None or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console

    with Console(stderr=True).status(first) as status:
        yield status.update
