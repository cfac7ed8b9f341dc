"""Performs a task in a process: look it up, or run it and store the outcome."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from passes.builds.cache import Cache
from passes.builds.rows import Row, row_of
from passes.commands.task import Task, perform


@dataclass(frozen=True)
class Work:
    """A task, and the folder of the cache, if there is one."""

    task: Task
    cache: str | None = None

    def known(self) -> Row | None:
        """The row of an earlier run, without a warning if there is none that can be used."""
        return None if self.cache is None else Cache(Path(self.cache)).get(self.task)[0]

    def done(self) -> Row:
        """The row of the task, from the cache or by doing it."""
        if self.cache is None:
            return row_of(self.task, perform(self.task))
        cache = Cache(Path(self.cache))
        row, warning = cache.get(self.task)
        if row is not None:
            return row
        key = cache.key(self.task)
        row = row_of(self.task, perform(self.task))
        cache.put(self.task, key, row)
        return replace(row, remarks=(*row.remarks, warning)) if warning else row
