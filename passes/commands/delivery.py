"""What the command line does with an outcome: options that the library does not have."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Annotated

from passes.commands.declaring import Declared, Says

_CLI = frozenset({"cli"})
_BOTH = frozenset({"cli", "file"})


@dataclass(frozen=True, kw_only=True)
class Reporting(Declared):
    """Where a report is written."""

    json: Annotated[
        str | os.PathLike[str] | None,
        Says("Write the report as JSON, too.", metavar="FILE", shown=_CLI),
    ] = None


@dataclass(frozen=True, kw_only=True)
class Delivery(Reporting):
    """Where the outcome and its report are written, and what the exit code depends on."""

    output: Annotated[
        str | os.PathLike[str] | None,
        Says("Where to write the model; beside it by default.", metavar="OUT", shown=_CLI),
    ] = None
    strict: Annotated[
        bool,
        Says("Exit 3, too, if something stays that the command is to rewrite.", shown=_BOTH),
    ] = False
    force: Annotated[bool, Says("Overwrite OUT if it exists.", shown=_CLI)] = False
    verbose: Annotated[bool, Says("Report every rewrite, and how it was verified.", shown=_CLI)] = (
        False
    )
