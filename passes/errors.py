"""Errors, each with one sentence that names the file, the node path and both sides."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from enum import StrEnum

#: The exit codes of the program.
DONE, FAILED, USAGE, NOT_PRODUCED, MISMATCH = range(5)
#: Where the user interrupted it: 128 and the number of the signal, by custom.
INTERRUPTED = 130


class End(StrEnum):
    """The end of the work on a model."""

    WRITTEN = "written"
    UNCHANGED = "unchanged"
    INCOMPLETE = "incomplete"
    REFUSED = "refused"
    UNVERIFIED = "unverified"
    MISMATCH = "mismatch"
    INVALID = "invalid"
    USAGE = "usage"
    TIME = "time"
    MEMORY = "memory"
    DIED = "died"


class PassesError(Exception):
    """Base of every error that is the input's fault, not the program's; the program exits with its
    `exit_code`."""

    exit_code = FAILED


class WrongUsage(PassesError):
    """Base of the errors of what was asked for."""

    exit_code = USAGE


class DoesNotFit(WrongUsage):
    """Base of the errors of what was asked for and the model does not have, or cannot be; the
    command line adds the file to the sentence."""


class CannotWrite(PassesError):
    """A file cannot be written."""


@contextmanager
def writing(path: object) -> Iterator[None]:
    """Raise CannotWrite where a file cannot be written."""
    try:
        yield
    except OSError as error:
        raise CannotWrite(f"{path}: cannot be written ({error.strerror})") from error


class BadModel(PassesError):
    """The input is no valid model.

    `sentence` names both sides of the mismatch; `path` is the node path
    (`main/scan_3.body/if_0`), empty where the whole file is meant; `file` is added by whoever
    knows the file's name.
    """

    def __init__(self, sentence: str, *, path: str = "", file: str = "") -> None:
        super().__init__(sentence)
        self.sentence = sentence
        self.path = path
        self.file = file

    def __str__(self) -> str:
        return ": ".join(part for part in (self.file, self.path, self.sentence) if part)

    def at(self, *, path: str = "", file: str = "") -> BadModel:
        """The same error, with the place filled in where it was not known yet."""
        return BadModel(self.sentence, path=self.path or path, file=self.file or file)


class ChosenByCaller(BadModel):
    """A loop of a function whose form its callers choose: valid, but nothing that can be read."""


def count(number: int, noun: str) -> str:
    """`1 input`, `2 inputs`, `no inputs`."""
    if number == 1:
        return f"1 {noun}"
    return f"{number or 'no'} {noun}s"


def nearest(name: str, known: Iterable[str]) -> str:
    """Those of the known names that are most like one that is not known, for a sentence."""
    spelled = {one.lower(): one for one in known}
    close = [spelled[one] for one in get_close_matches(name.lower(), spelled, n=3, cutoff=0.0)]
    verb = "is" if len(close) == 1 else "are"
    return f"the nearest {verb} {', '.join(close)}" if close else "there are none"
