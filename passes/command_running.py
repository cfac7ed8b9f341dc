"""What the commands share: run, report, save, and leave with the right exit code."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import typer

if TYPE_CHECKING:
    from onnx import ModelProto

    from passes.report import Report
    from passes.session import Progress, Result
    from passes.verify.verdicts import Failure

DONE, FAILED, USAGE, NOT_PRODUCED, MISMATCH = range(5)


def rewrite(
    model: Path,
    target: Path,
    run: Callable[[Progress | None], Result],
    *,
    write_unchanged: bool,
    strict: bool,
    force: bool,
    json: Path | None,
) -> None:
    """Run a rewriting command on `model`, write `target` and leave with its exit code.

    A model that was left as it is gets written only if `write_unchanged`.
    """
    from passes import session
    from passes.errors import PassesError
    from passes.save import check_target, save

    try:
        check_target(target, force=force)
        with progress() as say:
            result = run(say)
            refused = strict and bool(result.report.refusals)
            idle = result.report.unchanged and not write_unchanged
            if not idle and not refused:
                save(result.model, target, base_dir=result.base_dir, force=force, progress=say)
        show(result.report, json)
        if refused:
            fail("an optional rule refused, and --strict was given", NOT_PRODUCED)
        if not idle:
            typer.echo(f"wrote {target}")
    except session.Mismatch as error:
        show(error.report, json)
        folder = target.with_name(f"{target.name}.reproducer")
        reproduce(folder, error.sides, error.failure, (model.parent, model.parent))
        fail(f"{error}", MISMATCH)
    except session.NotProduced as error:
        show(error.report, json)
        fail(f"{error}", NOT_PRODUCED)
    except PassesError as error:
        fail(f"{error}", FAILED)


def show(report: Report, json: Path | None) -> None:
    typer.echo(report.to_text())
    if json is not None:
        write(json, report.to_json())


def write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        fail(f"{path}: cannot be written ({error.strerror})", FAILED)


def reproduce(
    folder: Path,
    sides: tuple[ModelProto, ModelProto],
    failure: Failure | None,
    base_dirs: tuple[Path, Path],
) -> None:
    """Save both sides and, where the outputs differ, the inputs that show it."""
    from passes.verify.reproducer import save

    written = save(
        folder,
        *sides,
        {} if failure is None else failure.case.feeds,
        sentence="the signatures differ" if failure is None else failure.sentence,
        expected=None if failure is None else failure.expected,
        base_dir=base_dirs[0],
        base_dir_after=base_dirs[1],
    )
    typer.echo(f"reproducer in {written}", err=True)


def fail(sentence: str, code: int) -> NoReturn:
    typer.echo(sentence, err=True)
    raise typer.Exit(code)


@contextmanager
def progress() -> Iterator[Callable[[str], None] | None]:
    """A line on stderr that says what goes on, where stderr is a terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console

    with Console(stderr=True).status("") as status:
        yield status.update
