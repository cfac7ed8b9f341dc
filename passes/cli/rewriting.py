"""The commands that rewrite, on one model or on many."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from inspect import Parameter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from passes.cli.parameters import options_from, parameters_of
from passes.cli.running import call, fail, failing, progress, show
from passes.commands.declaring import Place
from passes.commands.delivery import Delivery, Many
from passes.commands.options import Options
from passes.commands.pipeline import Pipeline
from passes.commands.places import DASH, check_reports
from passes.commands.registry import Command
from passes.commands.standalone import Output
from passes.commands.task import Done, Task, perform, with_advice
from passes.errors import FAILED, MISMATCH, WrongUsage

if TYPE_CHECKING:
    from passes.builds.batch import Batch

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


def parameters(declared: type[Options]) -> list[Parameter]:
    """The parameters of a command that rewrites, those of its own before those that all have."""
    first = Parameter("models", Parameter.KEYWORD_ONLY, default=None, annotation=_MODELS)
    json, output, *delivery = parameters_of(Delivery)
    own = parameters_of(declared, own_first=Options)
    return [first, output, *own, json, *delivery, *parameters_of(Many)]


def caller(command: Command) -> Callable[..., None]:
    """What the command line calls for a command that rewrites."""

    def run(models: list[Path] | None, **given: Any) -> None:
        delivery, many = options_from(Delivery, given), options_from(Many, given)
        with failing():
            found = _models(models or [], many)
            options: Options = options_from(command.options, given)
            if (other := options.instead(found, delivery)) is not None:
                call(other)
                return
            if _is_one(found, models or [], many):
                task = _task(found[0], command, options, delivery, many.html)
                _refuse_places(task, delivery, many)
            else:
                batch = _batch(found, command, options, delivery, many)
                with progress() as say:
                    show(many.shown(batch, say, verbose=delivery.verbose), {}, say)
                return
        with _as_files(task) as files, progress() as say:
            done = with_advice(files.task, perform(files.task, say), say)
            say("")  # what fails from here on has a line of its own
            files.deliver(done)
            stdout = DASH if files.to_stdout else None
            places = {"json": delivery.json, "html": many.html, "output": stdout}
            show([_output(files, done, delivery, many)], places, say)

    return run


def _models(given: Sequence[Path], many: Many) -> Sequence[str]:
    """The models that are named on the command line, without those of other shards.

    Raises:
        WrongUsage: a path names nothing, or there is none.
    """
    from passes.builds.sources import found, listed, shard

    named = [*map(str, given)]
    if many.from_file is not None:
        named += listed(Path(many.from_file))
    if not named:
        raise typer.BadParameter("name one, or a list of them by --from-file", param_hint="MODEL")
    for name in named if many.out_dir is None else ():
        if os.path.isdir(name):
            raise WrongUsage(f"{name}: is a folder; with --out-dir, its models are taken")
    models = found(named)
    return shard(models, many.shard) if many.shard is not None else models


def _is_one(found: Sequence[str], given: Sequence[Path], many: Many) -> bool:
    """Return whether one model is meant, not a list of one, and nothing that only lists have."""
    one = Many(html=many.html)
    alone = [*map(str, given)] == [*found] and len(found) == 1
    return alone and many in (one, replace(one, quiet=True))


def _task(
    model: str, command: Command, options: Options, delivery: Delivery, html: Place | None
) -> Task:
    output = None if delivery.output is None else os.fspath(delivery.output)
    kept = tuple(os.fspath(place) for place in (delivery.json, html) if place is not None)
    ending, strict = command.ending(options), delivery.strict
    return Task(model, Pipeline([options]), output, ending, strict, delivery.force, kept)


def _refuse_places(task: Task, delivery: Delivery, many: Many) -> None:
    """Raise what `check_reports` raises if a report cannot be written where it is wanted."""
    inputs = [options.inputs for options in task.pipeline.commands if options.inputs is not None]
    others = [Path(task.model), *map(Path, inputs)]
    with suppress(WrongUsage):  # the report is about that
        others.append(task.expected())
    check_reports((delivery.json, many.html), others)


def _batch(
    models: Sequence[str], command: Command, options: Options, delivery: Delivery, many: Many
) -> Batch:
    """Many models by one command.

    Raises:
        WrongUsage: an option is for one model.
    """
    from passes.builds.batch import Batch
    from passes.builds.pool import Limits
    from passes.builds.sources import common_folder, output_of

    if delivery.output is not None and len(models) > 1:
        raise WrongUsage("--output is for one model; --out-dir is for many")
    if delivery.json is not None:
        raise WrongUsage("--json is for one model; --results is for many")
    tasks = [_task(model, command, options, delivery, many.html) for model in models]
    if many.out_dir is not None:
        template = os.path.join(os.fspath(many.out_dir), "{folder}", "{name}")
        folder = common_folder(models)
        tasks = [replace(task, output=output_of(template, task.model, folder)) for task in tasks]
    limits = Limits(**many.limits())
    batch = Batch([(task, limits) for task in tasks], many.workers(many.jobs or 1))
    return many.placed(batch)


@dataclass(frozen=True)
class _Files:
    """A task whose streams are files for as long as it takes."""

    task: Task
    to_stdout: bool = False
    names: tuple[tuple[str, str], ...] = ()

    def named(self, text: str) -> str:
        """A text with `stdin` and `stdout` for the names of these files."""
        for path, name in self.names:
            text = text.replace(path, name)
        return text

    def deliver(self, done: Done) -> None:
        """Write the outcome to stdout, if that is its destination."""
        if not (self.to_stdout and done.output):
            return
        try:
            sys.stdout.buffer.write(Path(done.output).read_bytes())
            sys.stdout.buffer.flush()
        except OSError as error:
            fail(f"stdout: cannot be written ({error.strerror})", FAILED)


@contextmanager
def _as_files(task: Task) -> Iterator[_Files]:
    """A task with files in place of stdin and stdout: a model from stdin is written to stdout
    unless an output is named."""
    from_stdin = task.model == DASH
    to_stdout = task.output == DASH or (from_stdin and task.output is None)
    if not from_stdin and not to_stdout:
        yield _Files(task)
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
        yield _Files(task, to_stdout, tuple(names))


def _output(files: _Files, done: Done, delivery: Delivery, many: Many) -> Output:
    """What is shown of a task that was performed."""
    from passes.reports.report_file import ReportFile

    task, text = files.task, ""
    if done.report is not None and not many.quiet:
        last = _written(task, done) if done.output and not files.to_stdout else ""
        text = files.named(done.report.to_text(verbose=delivery.verbose, written=last))
    reports = {
        "json": lambda: files.named(ReportFile.of(task, done).to_json()),
        "html": lambda: files.named(ReportFile.of(task, done).to_html()),
    }
    told = done.remarks if not many.quiet or done.exit_code == MISMATCH else ()
    sentence = files.named(done.sentence)
    return Output(text, reports, [*map(files.named, told)], sentence, done.exit_code)


def _written(task: Task, done: Done) -> str:
    """Where the outcome is; after `optimize` and `cast`, what it cost, too."""
    if done.report is None or not done.report.command.startswith(("optimize", "cast")):
        return f"wrote {done.output}"
    from passes.reports.measured import megabytes

    sizes = [megabytes(os.path.getsize(path)) for path in (task.model, done.output)]
    size = " -> ".join(dict.fromkeys(sizes))
    return f"wrote {done.output}: {size}, {done.seconds:.1f} s of work"
