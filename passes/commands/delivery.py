"""Options of the command line about the delivery of an outcome, which the library does not have."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from passes.commands.declaring import Declared, Help, Place, option
from passes.commands.standalone import Output, Say
from passes.errors import INTERRUPTED, WrongUsage, writing

if TYPE_CHECKING:
    from passes.builds.batch import Batch
    from passes.builds.worker import Engine
    from passes.reports.summary import Summary

_DASK = "dask://"
CLI, API = frozenset({"cli"}), frozenset({"api"})
_BOTH = frozenset({"cli", "file"})
Force = Annotated[bool, Help("Overwrite OUT if it exists.", shown=CLI)]


@dataclass(frozen=True, kw_only=True)
class Reporting(Declared):
    """The place of a report."""

    json: Place | None = option(
        None,
        "Write the report as JSON, too; `-` is stdout.",
        metavar="FILE",
        shown=CLI,
        report=True,
    )


@dataclass(frozen=True, kw_only=True)
class Paged(Declared):
    """The place of a report as a page."""

    html: Place | None = option(
        None,
        "Write a page to look at: each loop before and after, and how it was verified. Of many "
        "models a table, and beside it a folder with a page for each.",
        metavar="FILE",
        shown=CLI,
        report=True,
    )


@dataclass(frozen=True, kw_only=True)
class Summarized(Declared):
    """The places of a summary of many models in a CI job."""

    markdown: Place | None = option(
        None, "Append a summary in Markdown to a file.", metavar="FILE", shown=CLI
    )
    github: bool = option(
        False, "Print annotations of a GitHub workflow for what fails.", shown=CLI
    )

    def told(self, summary: Summary) -> Output:
        """Append the summary to the file, if one is named, and return the annotations."""
        if self.markdown is not None:
            with writing(self.markdown), open(self.markdown, "a", encoding="utf-8") as file:
                file.write(summary.to_markdown())
        text = "\n".join(summary.annotations()) if self.github else ""
        return Output(text, exit_code=summary.exit_code)


@dataclass(frozen=True, kw_only=True)
class Working(Summarized, Paged):
    """The number of models to work on at a time, and the files about all of them."""

    jobs: int | None = option(None, "Models that are worked on at a time.", least=1, metavar="N")
    from_file: Place | None = option(
        None, "Take the models from a file, one a line.", metavar="FILE", shown=CLI
    )
    shard: str | None = option(
        None, "Work on the I-th of N parts of the models only.", metavar="I/N", shown=CLI
    )
    time_limit: float | None = option(
        None, "Seconds that a model may take before it is given up.", least=0, metavar="S"
    )
    memory_limit: int | None = option(
        None, "MiB that a model may take before it is given up.", least=1, metavar="N"
    )
    results: Place | None = option(
        None, "Write a line of JSON for each model.", metavar="FILE", shown=CLI
    )
    cache_dir: Place | None = option(
        None, "Remember outcomes in this folder, and look them up there.", metavar="DIR"
    )
    engine: str | None = option(
        None, "Work on a cluster, as `dask://host:port`.", metavar="URL", shown=CLI
    )
    quiet: bool = option(False, "Print only what fails.", shown=CLI)

    def limits(self) -> dict[str, Any]:
        """The limits of a model that are given, by the names of those of a task."""
        memory = None if self.memory_limit is None else self.memory_limit << 20
        given = {"seconds": self.time_limit, "memory": memory}
        return {name: one for name, one in given.items() if one is not None}

    def workers(self, jobs: int) -> Engine:
        """The engine that works on models.

        Raises:
            WrongUsage: there is no such engine, or what it needs is not installed.
        """
        from passes.builds.batch import local

        if self.engine is None:
            return local(jobs)
        if not self.engine.startswith(_DASK):
            raise WrongUsage(f"--engine is {self.engine!r}, not of the form dask://host:port")
        from passes.builds.cluster import connected

        return connected(f"tcp://{self.engine.removeprefix(_DASK)}")

    def shown(self, batch: Batch, say: Say, *, verbose: bool) -> Iterator[Output]:
        """Run a batch: what is shown of each model, and at the end."""
        from passes.reports.summary import Summary

        summary = Summary(batch.failing)
        try:
            for row in batch.rows(summary):
                say(f"{summary.total} of {len(batch.tasks)} models")
                fails = row.end in batch.failing
                remarks = [f"{row.end}: {row.error or row.model}"] if fails else []
                remarks += [] if self.quiet else row.remarks
                cached = " (from the cache)" if row.cached else ""
                text = f"{row.end}: {row.model}{cached}" if verbose and not fails else ""
                yield Output(text, remarks=remarks)
        except KeyboardInterrupt:
            sentence = f"interrupted after {summary.total} of {len(batch.tasks)} models"
            yield Output(failure=sentence, exit_code=INTERRUPTED)
            return
        yield Output("" if self.quiet else summary.to_text())
        yield self.told(summary)

    def placed(self, batch: Batch) -> Batch:
        """A batch with the files that are named here."""
        named = {"cache": self.cache_dir, "results": self.results, "html": self.html}
        places: dict[str, Any] = {
            name: Path(place) for name, place in named.items() if place is not None
        }
        return replace(batch, **places)


@dataclass(frozen=True, kw_only=True)
class Many(Working):
    """Options of a command on many models."""

    out_dir: Place | None = option(
        None,
        "Take many models, folders or patterns, and write the outcomes to this folder.",
        metavar="DIR",
        shown=CLI,
    )


@dataclass(frozen=True, kw_only=True)
class Delivery(Reporting):
    """The places of the outcome and its report, and the conditions of the exit code."""

    output: Place | None = option(
        None,
        "Where to write the model; beside it by default. `-` is stdout.",
        metavar="OUT",
        shown=CLI,
    )
    strict: bool = option(
        False,
        "Exit 3, too, if something stays that the command is to rewrite, or is in the way at a "
        "--target.",
        shown=_BOTH,
    )
    force: Force = False
    verbose: bool = option(False, "Report every rewrite, and how it was verified.", shown=CLI)
