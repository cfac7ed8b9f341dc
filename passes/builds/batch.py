"""Many models: look up what is known, do the rest on some engine, write a row each."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING

from passes.builds.cache import Cache
from passes.builds.pool import Ended, Limits, Pool
from passes.builds.rows import Row, Summary, row_of_ended
from passes.builds.sources import refuse_equal
from passes.builds.task import CannotWrite, End, InTheWay, Task, is_same
from passes.builds.work import Work

if TYPE_CHECKING:
    from passes.reports.pages.batch import BatchPages

#: Takes work with its limits, and yields each with its row, or how it was ended.
Engine = Callable[[Iterable[tuple[Work, Limits]]], Iterator[tuple[Work, Row | Ended]]]
#: Is called with each row, with the number of rows so far and of all.
Listener = Callable[[Row, int, int], None]
_WORKER = "passes.builds.worker"


def local(jobs: int) -> Engine:
    """An engine of so many processes on this machine."""

    def run(works: Iterable[tuple[Work, Limits]]) -> Iterator[tuple[Work, Row | Ended]]:
        with Pool[Work](_WORKER, jobs) as pool:
            yield from pool.run(works)

    return run


@dataclass(frozen=True)
class Batch:
    """Tasks, each with its limits; `cache` is the folder of outcomes of earlier runs, `results` a
    file that gets a line of JSON for each model, `html` the page of all of them; `failing` are the
    ends that fail the build."""

    tasks: Sequence[tuple[Task, Limits]]
    engine: Engine
    cache: Path | None = None
    results: Path | None = None
    failing: Sequence[End] = Summary.failing
    html: Path | None = None

    def run(self, listener: Listener = lambda row, number, total: None) -> Summary:
        """Do all tasks, in the order in which they are given out.

        Raises:
            SameOutput: two models have one output.
            InTheWay: an output is one of the models, or two files are one.
            BadCache: the folder of the cache cannot be written.
            CannotWrite: the folder of an output cannot be made, or the file of results be written.
        """
        check_places([task for task, _ in self.tasks], self.results)
        check_places([task for task, _ in self.tasks], self.html)
        if self.cache is not None:
            Cache(self.cache).prepare()
        summary = Summary(self.failing)
        pages = self._pages(summary)
        with _opened(self.results) as results:
            for row in self._rows():
                summary.add(row)
                if results is not None:
                    _write(results, row)
                if pages is not None:
                    pages.add(row)
                listener(row, summary.total, len(self.tasks))
        if pages is not None:
            pages.finish()
        return summary

    def _pages(self, summary: Summary) -> BatchPages | None:
        """The writer of the pages, or None if none are wanted."""
        if self.html is None:
            return None
        from passes.reports.pages.batch import BatchPages

        return BatchPages(self.html, summary)

    def _rows(self) -> Iterator[Row]:
        """The rows: those that are known at once, then the others as they are done."""
        cache = None if self.cache is None else str(self.cache)
        waiting: list[tuple[Work, Limits]] = []
        for task, limits in self.tasks:
            work = Work(task, cache)
            if (row := work.known()) is not None:
                yield row
            else:
                waiting.append((work, limits))
        if not waiting:
            return
        for work, answer in self.engine(waiting):
            yield row_of_ended(work.task, answer) if isinstance(answer, Ended) else answer


def check_places(tasks: Sequence[Task], results: Path | None) -> None:
    """See that no outcome is written over a model or another outcome, and make the folders.

    Raises what `Batch.run` raises.
    """
    outputs = [(task.model, task.output) for task in tasks if task.output is not None]
    refuse_equal(outputs)
    models = {os.path.realpath(task.model): task.model for task in tasks}
    for model, output in outputs:
        if os.path.realpath(output) in models:
            raise InTheWay(f"{output}: the outcome of {model} would be written over a model")
        _make(Path(output).parent)
    if results is not None:
        places = [*models, *(output for _, output in outputs)]
        if any(is_same(results, Path(place)) for place in places):
            raise InTheWay(f"{results}: is a model or an outcome, not a place for results")
        _make(results.parent)


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CannotWrite(f"{folder}: the folder cannot be made ({error.strerror})") from error


@contextmanager
def _opened(results: Path | None) -> Iterator[IO[str] | None]:
    if results is None:
        yield None
        return
    try:
        file = open(results, "w", encoding="utf-8")  # noqa: SIM115 (closed below)
    except OSError as error:
        raise CannotWrite(f"{results}: cannot be written ({error.strerror})") from error
    try:
        yield file
    finally:
        with suppress(OSError):  # each line was written, or the error was reported
            file.close()


def _write(results: IO[str], row: Row) -> None:
    """A line at once: what was done is known if this process is killed."""
    try:
        results.write(row.to_json() + "\n")
        results.flush()
    except OSError as error:
        raise CannotWrite(f"{results.name}: cannot be written ({error.strerror})") from error
