"""Many models: a progress line, a line for each that fails, a summary at the end."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import typer

from passes.cli.running import complain, fail, tell
from passes.commands.delivery import Many, Working
from passes.errors import FAILED, INTERRUPTED, PassesError, WrongUsage

if TYPE_CHECKING:
    from passes.builds.batch import Batch
    from passes.builds.pool import Limits
    from passes.builds.worker import Engine
    from passes.reports.summary import Row, Summary

_DASK = "dask://"


def models_of(given: Sequence[Path], working: Working) -> Sequence[str]:
    """The models that are named on the command line, without those of other shards.

    Raises:
        WrongUsage: a path names nothing, or there is none.
    """
    from passes.builds.sources import found, listed, shard

    named = [*map(str, given)]
    if working.from_file is not None:
        named += listed(Path(working.from_file))
    if not named:
        raise typer.BadParameter("name one, or a list of them by --from-file", param_hint="MODEL")
    if isinstance(working, Many) and working.out_dir is None:
        for name in named:
            if os.path.isdir(name):
                raise WrongUsage(f"{name}: is a folder; with --out-dir, its models are taken")
    models = found(named)
    return shard(models, working.shard) if working.shard is not None else models


def limits_of(working: Working, known: Limits | None = None) -> Limits:
    """The limits of a model, those of the command line before those that are known."""
    from passes.builds.pool import Limits

    seconds = None if known is None else known.seconds
    memory = None if known is None else known.memory
    if working.time_limit is not None:
        seconds = working.time_limit
    if working.memory_limit is not None:
        memory = working.memory_limit << 20
    return Limits(seconds, memory)


def engine_of(working: Working, jobs: int) -> Engine:
    """The engine that works on models.

    Raises:
        WrongUsage: there is no such engine, or what it needs is not installed.
    """
    from passes.builds.batch import local

    if working.engine is None:
        return local(jobs)
    if not working.engine.startswith(_DASK):
        raise WrongUsage(f"--engine is {working.engine!r}, not of the form dask://host:port")
    from passes.builds.cluster import connected

    return connected(f"tcp://{working.engine.removeprefix(_DASK)}")


def run(batch: Batch, working: Working, *, verbose: bool) -> NoReturn:
    """Run a batch, print its result, and exit with its exit code."""
    number = 0
    try:
        with _line() as line:

            def listener(row: Row, done: int, total: int) -> None:
                nonlocal number
                number = done
                line(f"{done} of {total} models")
                if row.end in batch.failing:
                    line(None)
                    complain(f"{row.end}: {row.error or row.model}")
                elif verbose:
                    line(None)
                    tell(f"{row.end}: {row.model}" + (" (from the cache)" if row.cached else ""))
                for remark in () if working.quiet else row.remarks:
                    line(None)
                    complain(remark)

            summary = batch.run(listener)
    except KeyboardInterrupt:
        fail(f"interrupted after {number} of {len(batch.tasks)} models", INTERRUPTED)
    except PassesError as error:
        fail(f"{error}", error.exit_code)
    _report(summary, working)
    raise typer.Exit(summary.exit_code)


def _report(summary: Summary, working: Working) -> None:
    if not working.quiet:
        tell(summary.to_text())
    if working.markdown is not None:
        try:
            with open(working.markdown, "a", encoding="utf-8") as file:
                file.write(summary.to_markdown())
        except OSError as error:
            fail(f"{working.markdown}: cannot be written ({error.strerror})", FAILED)
    if working.github:
        tell("\n".join(summary.annotations()))


@contextmanager
def _line() -> Iterator[Callable[[str | None], None]]:
    """A line on stderr that is written over, where stderr is a terminal; None clears it."""
    if sys.stderr is None or not sys.stderr.isatty():
        yield lambda text: None
        return

    def show(text: str | None) -> None:
        sys.stderr.write("\r\x1b[K" + (text or ""))
        sys.stderr.flush()

    try:
        yield show
    finally:
        show(None)
