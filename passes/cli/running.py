"""What the commands share: run, report, save, and leave with the right exit code."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, NoReturn

import typer

from passes.choices import DEFAULT_OPSET

if TYPE_CHECKING:
    from passes.commands.delivery import Delivery
    from passes.commands.options import Options
    from passes.commands.registry import Command
    from passes.errors import PassesError
    from passes.not_produced import Disagreement
    from passes.report import Report
    from passes.session import Result

Place = str | os.PathLike[str]
DONE, FAILED, USAGE, NOT_PRODUCED, MISMATCH = range(5)


@dataclass(frozen=True)
class Task:
    """A command, with its options, for a model, and where the outcome goes: without an `output`
    beside the model, unless the model was left as it is."""

    model: Path
    command: Command
    options: Options
    delivery: Delivery

    def target(self, opset: int) -> Path:
        """The path of the outcome if it is of this opset."""
        if self.delivery.output is not None:
            return Path(self.delivery.output)
        ending = self.command.ending(self.options).format(opset=opset)
        return self.model.parent / f"{self.model.stem}.{ending}{self.model.suffix}"

    @property
    def json(self) -> Path | None:
        """The path of the report."""
        return None if self.delivery.json is None else Path(self.delivery.json)


def rewrite(task: Task) -> None:
    """Do it, and exit with the code of the outcome."""
    from passes import session
    from passes.errors import PassesError
    from passes.ir.save import check_target
    from passes.onnxruntime.releases import UnknownRelease

    model, report, delivery = task.model, task.json, task.delivery
    try:
        asked, _ = task.options.asked()
    except UnknownRelease as error:
        fail(f"{error}", USAGE)
    target = task.target(asked or DEFAULT_OPSET)
    inputs = [] if task.options.inputs is None else [Path(task.options.inputs)]
    try:
        check_target(target, force=delivery.force)
        _refuse_weights(model, list(filter(None, (target, report))))
        check_report(report, (model, target, *inputs))
        _run_and_write(task)
    except session.Mismatch as error:
        with suppress(typer.Exit):  # whether the report can be written or not
            show(error.report, report, verbose=delivery.verbose)
        folder = target.with_name(f"{target.name}.reproducer")
        reproduce(folder, error.found, (model.parent, model.parent))
        fail(f"{error}", MISMATCH)
    except session.NotProduced as error:
        with suppress(typer.Exit):
            show(error.report, report, verbose=delivery.verbose)
        fail(f"{error}", NOT_PRODUCED)
    except PassesError as error:
        fail(f"{error}", exit_code_of(error))


def exit_code_of(error: PassesError) -> int:
    """The exit code of an error that leaves nothing to report."""
    from passes import session
    from passes.check_output import NameTaken
    from passes.dims import UnknownDim
    from passes.engine.plugins import UnknownRule
    from passes.engine.selection import NothingMatches
    from passes.rules.inline_function.chosen import UnknownFunction

    usage = (session.UnknownOpset, UnknownDim, UnknownRule, NameTaken, NothingMatches)
    return USAGE if isinstance(error, (*usage, UnknownFunction)) else FAILED


def _run_and_write(task: Task) -> None:
    from passes.ir.save import save
    from passes.session import session_of

    delivery = task.delivery
    with progress() as say:
        result = session_of(replace(task.options, progress=say)).run(task.model)
        target = task.target(result.report.opsets[1])
        refused = _refused(result, task.options) if delivery.strict else ""
        idle = result.report.unchanged and delivery.output is None
        if not idle and not refused:
            check_report(task.json, (target,))
            save(result.model, target, base_dir=result.base_dir, force=delivery.force, progress=say)
    if refused:
        with suppress(typer.Exit):
            show(result.report, task.json, verbose=delivery.verbose)
        fail(f"{refused}, and --strict was given", NOT_PRODUCED)
    last = "" if idle else f"wrote {target}"
    show(result.report, task.json, last, verbose=delivery.verbose)
    for warning in result.report.warnings:
        complain(f"warning: {warning}")


def _refused(result: Result, options: Options) -> str:
    """What the command set out to rewrite and is there still, or was left out since nothing vouches
    for it; empty where there is no such.

    A loop that is quicker as it is is left on purpose, by whichever rule."""
    from passes.ir.operators import op_of
    from passes.ir.scope import walk_model

    report = result.report
    unverified = [refusal for refusal in report.refusals if refusal.code == "not-verified"]
    if unverified:
        more = f" (and {len(unverified) - 1} more)" if len(unverified) > 1 else ""
        return f"{unverified[0].path}: {unverified[0].sentence}{more} [not-verified]"
    aims = options.schedule.aims_of(options.for_rules().rules)
    left = {op_of(place.node) for place in walk_model(result.model)}
    meant = {refusal.path for refusal in report.refusals if refusal.code == "few-iterations"}
    stay = [refusal for refusal in report.refusals if refusal.rule in aims and refusal.op in left]
    stay = [refusal for refusal in stay if refusal.path not in meant]
    if not stay:
        return ""
    more = f" (and {len(stay) - 1} more)" if len(stay) > 1 else ""
    return f"{stay[0].path} stays{more}"


def _refuse_weights(model: Path, written: Sequence[Path]) -> None:
    """See that no file that is written holds weights of the model, before any work is done."""
    from passes.ir.external_data import external_files
    from passes.ir.model import Model

    for path in written:
        try:
            if not path.exists() or _is_same(path, model):
                continue
            files = external_files(Model.load(model).proto, model.parent)
            if any(_is_same(path, file) for file in files):
                fail(f"{path}: holds weights of {model}, which would be lost", USAGE)
        except OSError as error:
            fail(f"{path}: cannot be written ({error.strerror})", FAILED)


def check_report(json: Place | None, others: Sequence[Path]) -> None:
    """See that the report can be written, and over no other file of the command, before any work
    is done."""
    if json is None:
        return
    json = Path(json)
    try:
        with suppress(FileNotFoundError):
            json.stat()  # a link that leads to itself
        if any(_is_same(json, other) for other in others):
            fail(f"{json}: is a file of this command, not a place for its report", USAGE)
        if json.is_dir():
            fail(f"{json}: cannot be written (it is a folder)", FAILED)
        if not json.exists() and not json.parent.is_dir():
            fail(f"{json}: cannot be written (there is no folder {json.parent})", FAILED)
        if not os.access(json if json.exists() else json.parent, os.W_OK):
            fail(f"{json}: cannot be written (permission denied)", FAILED)
    except OSError as error:
        fail(f"{json}: cannot be written ({error.strerror})", FAILED)


def _is_same(left: Path, right: Path) -> bool:
    """Whether two paths lead to one file, which need not exist yet."""
    if os.path.realpath(left) == os.path.realpath(right):
        return True
    return left.exists() and right.exists() and left.samefile(right)


def show(
    report: Report, json: str | os.PathLike[str] | None, last: str = "", *, verbose: bool = False
) -> None:
    """Print the report and a last line, and write it where it is wanted as JSON."""
    tell("\n".join(filter(None, (report.to_text(verbose=verbose), last))))
    if json is not None:
        write(json, report.to_json())


def write(path: Place, text: str) -> None:
    try:
        Path(path).write_text(text, encoding="utf-8")
    except OSError as error:
        fail(f"{path}: cannot be written ({error.strerror})", FAILED)


def reproduce(folder: Path, found: Disagreement, base_dirs: tuple[Path, Path]) -> None:
    """Save both sides and, where the outputs differ, the inputs that show it; say where, or why
    that cannot be."""
    from google.protobuf.message import EncodeError

    from passes.verify.reproducer import Circumstances, save

    command = shlex.join(["python", "-m", "passes", *sys.argv[1:]])
    try:
        written = save(
            folder,
            *found.sides,
            found.failure,
            sentence=found.sentence,
            seen=Circumstances(command, found.path, found.rules, found.exact),
            base_dir=base_dirs[0],
            base_dir_after=base_dirs[1],
        )
    except (OSError, ValueError, EncodeError) as error:
        reason = getattr(error, "strerror", None) or error
        complain(f"no reproducer: {folder} cannot be written ({reason})")
    else:
        complain(f"reproducer in {written}")


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
    complain(sentence)
    raise typer.Exit(code)


def complain(sentence: str) -> None:
    """Print on stderr, where that can be: the exit code says the rest."""
    try:
        typer.echo(sentence, err=True)
    except OSError:
        _silence(sys.stderr)


def _silence(stream: IO[str]) -> None:
    """Let what is still to be flushed at the end go nowhere: it would change the exit code."""
    with suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


@contextmanager
def progress() -> Iterator[Callable[[str], None] | None]:
    """A line on stderr that says what goes on, where stderr is a terminal."""
    if sys.stderr is None or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console

    with Console(stderr=True).status("") as status:
        yield status.update
