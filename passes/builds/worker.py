"""A process of a build, `python -m passes.builds.worker`: looks tasks up, or performs them."""

from __future__ import annotations

import os

if __name__ == "__main__":
    # Before numpy: what verification multiplies is small, so threads would wait for each other.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from passes.builds.cache import Cache
from passes.builds.pool import Ended, Limits, serve
from passes.commands.task import Task, perform
from passes.reports.summary import Row

#: What `python -m` runs in a process.
MODULE = "passes.builds.worker"


@dataclass(frozen=True)
class Work:
    """A task, its limits, and the folder of the cache, if there is one."""

    task: Task
    limits: Limits
    cache: str | None = None

    def known(self) -> Row | None:
        """The row of an earlier run, without a warning if there is none that can be used."""
        return None if self.cache is None else Cache(Path(self.cache)).get(self.task)[0]

    def done(self) -> Row:
        """The row of the task, from the cache or by doing it."""
        if self.cache is None:
            return Row.of(self.task, perform(self.task))
        cache = Cache(Path(self.cache))
        row, warning = cache.get(self.task)
        if row is not None:
            return row
        key = cache.key(self.task)
        row = Row.of(self.task, perform(self.task))
        cache.put(self.task, key, row)
        return replace(row, remarks=(*row.remarks, warning)) if warning else row


#: Takes work, and yields each with its row, or how it was ended.
Engine = Callable[[Iterable[Work]], Iterator[tuple[Work, Row | Ended]]]


if __name__ == "__main__":
    from passes.verify.installed import kept_running

    with kept_running():
        serve(lambda work: work.done())
