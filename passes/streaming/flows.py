"""How values depend on time: frame by frame, on the last frame, or on the number of frames."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, StrEnum

from passes.errors import NOT_PRODUCED, PassesError


@dataclass(frozen=True)
class Frames:
    """A value with frames along `axis`, each of which is the same in a chunk as in the whole.

    One frame belongs to `every` frames of the inputs. In a chunk, `past` frames come before those
    of the chunk itself; in the whole, so many before the first, and `ahead` after the last, which
    no chunk has: they come from padding.
    """

    axis: int
    rank: int
    every: int = 1
    past: int = 0
    ahead: int = 0

    @property
    def from_end(self) -> int:
        """The axis, counted from the last one, which is -1."""
        return self.axis - self.rank


@dataclass(frozen=True)
class Last:
    """A value that is computed from the states after the last frame, by their inputs' names."""

    states: frozenset[str] = frozenset()


class Count(Enum):
    """Numbers that depend on how many frames there are."""

    COUNT = "count"


#: None: the same for every chunk.
Flow = Frames | Last | Count | None


class Reason(StrEnum):
    """Why a model cannot be run in chunks."""

    AHEAD = "reads-ahead"
    BACKWARDS = "backwards"
    WHOLE = "whole-sequence"
    NUMBER = "number-of-frames"
    LENGTHS = "lengths"
    INITIAL = "initial-state"
    LOOP = "loop"
    UNSUPPORTED = "unsupported"


class CannotStream(PassesError):
    """A model cannot be run in chunks; the sentence names the node and the reason."""

    exit_code = NOT_PRODUCED

    def __init__(self, reason: Reason, sentence: str, path: str = "") -> None:
        super().__init__(": ".join(filter(None, (path, f"{sentence} [{reason}]"))))
        self.reason, self.sentence, self.path = reason, sentence, path
