"""Options of the command line about the delivery of an outcome, which the library does not have."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Annotated

from passes.commands.declaring import Declared, Help

CLI = frozenset({"cli"})
_BOTH = frozenset({"cli", "file"})
Force = Annotated[bool, Help("Overwrite OUT if it exists.", shown=CLI)]


@dataclass(frozen=True, kw_only=True)
class Reporting(Declared):
    """The place of a report."""

    json: Annotated[
        str | os.PathLike[str] | None,
        Help("Write the report as JSON, too; `-` is stdout.", metavar="FILE", shown=CLI),
    ] = None


@dataclass(frozen=True, kw_only=True)
class Paged(Declared):
    """The place of a report as a page."""

    html: Annotated[
        str | os.PathLike[str] | None,
        Help(
            "Write a page to look at: each loop before and after, and how it was verified. Of many "
            "models a table, and beside it a folder with a page for each.",
            metavar="FILE",
            shown=CLI,
        ),
    ] = None


@dataclass(frozen=True, kw_only=True)
class Working(Paged):
    """The number of models to work on at a time, and the files about all of them."""

    jobs: Annotated[
        int | None, Help("Models that are worked on at a time.", least=1, metavar="N", shown=CLI)
    ] = None
    from_file: Annotated[
        str | os.PathLike[str] | None,
        Help("Take the models from a file, one a line.", metavar="FILE", shown=CLI),
    ] = None
    shard: Annotated[
        str | None,
        Help("Work on the I-th of N parts of the models only.", metavar="I/N", shown=CLI),
    ] = None
    time_limit: Annotated[
        float | None,
        Help("Seconds that a model may take before it is given up.", least=0, metavar="S"),
    ] = None
    memory_limit: Annotated[
        int | None, Help("MiB that a model may take before it is given up.", least=1, metavar="N")
    ] = None
    results: Annotated[
        str | os.PathLike[str] | None,
        Help("Write a line of JSON for each model.", metavar="FILE", shown=CLI),
    ] = None
    cache_dir: Annotated[
        str | os.PathLike[str] | None,
        Help("Remember outcomes in this folder, and look them up there.", metavar="DIR"),
    ] = None
    engine: Annotated[
        str | None,
        Help("Work on a cluster, as `dask://host:port`.", metavar="URL", shown=CLI),
    ] = None
    markdown: Annotated[
        str | os.PathLike[str] | None,
        Help("Append a summary in Markdown to a file.", metavar="FILE", shown=CLI),
    ] = None
    github: Annotated[
        bool, Help("Print annotations of a GitHub workflow for what fails.", shown=CLI)
    ] = False
    quiet: Annotated[bool, Help("Print only what fails.", shown=CLI)] = False


@dataclass(frozen=True, kw_only=True)
class Many(Working):
    """Options of a command on many models."""

    out_dir: Annotated[
        str | os.PathLike[str] | None,
        Help(
            "Take many models, folders or patterns, and write the outcomes to this folder.",
            metavar="DIR",
            shown=CLI,
        ),
    ] = None


@dataclass(frozen=True, kw_only=True)
class Delivery(Reporting):
    """The places of the outcome and its report, and the conditions of the exit code."""

    output: Annotated[
        str | os.PathLike[str] | None,
        Help(
            "Where to write the model; beside it by default. `-` is stdout.",
            metavar="OUT",
            shown=CLI,
        ),
    ] = None
    strict: Annotated[
        bool,
        Help(
            "Exit 3, too, if something stays that the command is to rewrite, or is in the way at a "
            "--target.",
            shown=_BOTH,
        ),
    ] = False
    force: Force = False
    verbose: Annotated[bool, Help("Report every rewrite, and how it was verified.", shown=CLI)] = (
        False
    )
