"""The parts of a loop: carried, scanned and collected values, and the condition to continue."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Kind(StrEnum):
    """The spelling."""

    SCAN_8 = "Scan-8"
    SCAN = "Scan"
    LOOP = "Loop"


@dataclass(frozen=True)
class Carried:
    """A value that one iteration hands to the next."""

    initial: str
    body_input: str
    body_output: str
    final: str  # empty where the node omits the output


@dataclass(frozen=True)
class Scanned:
    """A tensor that is read one slice an iteration, along `axis`, backwards where `reversed`."""

    tensor: str
    body_input: str
    axis: int = 0
    reversed: bool = False


@dataclass(frozen=True)
class Collected:
    """A value of every iteration, stacked along `axis`, in reverse where `reversed`."""

    body_output: str
    tensor: str  # empty where the node omits the output
    axis: int = 0
    reversed: bool = False


@dataclass(frozen=True)
class Condition:
    """The condition of a Loop; `initial` is empty where the node omits it, which means true: what
    the body returns counts in either case."""

    initial: str
    body_input: str
    body_output: str
