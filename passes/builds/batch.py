"""Many models: look up what is known, do the rest on some engine, write a row each."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from passes.builds.cache import Cache
from passes.builds.pool import Ended, Limits, Pool
from passes.builds.sources import refuse_equal
from passes.builds.worker import MODULE, Engine, Work
from passes.commands.places import InTheWay, is_same
from passes.commands.task import Task
from passes.errors import FAILED, CannotWrite, End, writing
from passes.reports.summary import Row, Summary

if TYPE_CHECKING:
    from passes.reports.pages.batch import BatchPages

#: Is called with each row, with the number of rows so far and of all.
Listener = Callable[[Row, int, int], None]


def local(jobs: int) -> Engine:
    """An engine of so many processes on this machine."""

    def run(works: Iterable[Work]) -> Iterator[tuple[Work, Row | Ended]]:
        with Pool[Work](MODULE, jobs) as pool:
            yield from pool.run((work, work.limits) for work in works)

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
        """Do all tasks, and return the summary of their rows. Raises what `rows` raises."""
        summary = Summary(self.failing)
        for row in self.rows(summary):
            listener(row, summary.total, len(self.tasks))
        return summary

    def rows(self, summary: Summary) -> Iterator[Row]:
        """Do all tasks, in the order in which they are given out, and yield the row of each, which
        is counted in the summary.

        Raises:
            SameOutput: two models have one output.
            InTheWay: an output is one of the models, or two files are one.
            BadCache: the folder of the cache cannot be written.
            CannotWrite: the folder of an output cannot be made, or the file of results be written.
        """
        self._check_places()
        if self.cache is not None:
            Cache(self.cache).prepare()
        pages = self._pages(summary)
        self._tell("w", "")
        for row in self._rows():
            summary.add(row)
            self._tell("a", row.to_json() + "\n")
            if pages is not None:
                pages.add(row)
            yield row
        if pages is not None:
            pages.finish()

    def _tell(self, mode: str, line: str) -> None:
        """Write to the results at once: what was done is known if this process is killed."""
        if self.results is not None:
            with writing(self.results), open(self.results, mode, encoding="utf-8") as file:
                file.write(line)

    def _pages(self, summary: Summary) -> BatchPages | None:
        """The writer of the pages, or None if none are wanted."""
        if self.html is None:
            return None
        from passes.reports.pages.batch import BatchPages

        return BatchPages(self.html, summary)

    def _rows(self) -> Iterator[Row]:
        """The rows: those that are known at once, then the others as they are done."""
        cache = None if self.cache is None else str(self.cache)
        waiting = []
        for task, limits in self.tasks:
            work = Work(task, limits, cache)
            if (row := work.known()) is not None:
                yield row
            else:
                waiting.append(work)
        for work, answer in self.engine(waiting) if waiting else ():
            yield _ended(work.task.model, answer) if isinstance(answer, Ended) else answer

    def _check_places(self) -> None:
        """See that no outcome is written over a model or another outcome, and make the folders.
        Raises what `rows` raises."""
        tasks = [task for task, _ in self.tasks]
        outputs = [(task.model, task.output) for task in tasks if task.output is not None]
        refuse_equal(outputs)
        models = {os.path.realpath(task.model): task.model for task in tasks}
        for model, output in outputs:
            if os.path.realpath(output) in models:
                raise InTheWay(f"{output}: the outcome of {model} would be written over a model")
            _make(Path(output).parent)
        places = [Path(place) for place in (*models, *(output for _, output in outputs))]
        for results in filter(None, (self.results, self.html)):
            if any(is_same(results, place) for place in places):
                raise InTheWay(f"{results}: is a model or an outcome, not a place for results")
            _make(results.parent)


def _ended(model: str, how: Ended) -> Row:
    """The row of a task that was ended, or whose process died."""
    sentence = f"{model}: {how.sentence}"
    return Row(model, "", how.end, FAILED, sentence, seconds=round(how.seconds, 3))


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CannotWrite(f"{folder}: the folder cannot be made ({error.strerror})") from error
