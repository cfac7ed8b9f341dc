"""Commands that are no steps of a pipeline: what they take and return, and what is shown."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from passes.commands.declaring import Argument, Declared, Source, options_of
from passes.errors import DONE

#: Is told what a command is doing.
Say = Callable[[str], None]


TheModel = Annotated[Source, Argument("The model: binary, or .onnxtxt, .json, ...")]


def silent(what: str) -> None:
    """Tell nobody."""


@dataclass(frozen=True)
class Output:
    """What the command line shows of a result: the `text`; the `files` that are written where the
    options of these names are set; on stderr the `remarks`, then the `failure`; the exit code."""

    text: str = ""
    files: Mapping[str, Callable[[], str]] = field(default_factory=dict)
    remarks: Sequence[str] = ()
    failure: str = ""
    exit_code: int = DONE


class Standalone(Declared, ABC):
    """Base of commands that are no steps of a pipeline. A command is a subclass: its arguments and
    options are fields, its docstring is the help, and `run` returns the result as frozen data."""

    @abstractmethod
    def run(self, say: Say = silent) -> Any:
        """Return the result; `say` is told of progress."""

    def outputs(self, say: Say = silent) -> Iterator[Output]:
        """What the command line shows of the result: a text, or what has `to_text` and may have
        `to_json`."""
        found = self.run(say)
        files = {"json": found.to_json} if hasattr(found, "to_json") else {}
        yield Output(found if isinstance(found, str) else found.to_text(), files)

    def files(self) -> Sequence[Path]:
        """The files that no report may be written over: by default those that are read."""
        options = options_of(type(self))
        read = [
            getattr(self, name)
            for name, one in options.items()
            if name == "inputs" or (one.is_argument and one.annotation is not str)
        ]
        every = [file for one in read for file in (one if isinstance(one, tuple) else (one,))]
        return [Path(os.fspath(one)) for one in every if one is not None]


def path_of(source: Source) -> Path:
    """The path of a model that was named on the command line."""
    assert isinstance(source, str | os.PathLike)
    return Path(source)
