"""Why an Edit has nodes that a shorter one would do without, and what removes them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Purpose:
    """Why nodes are written: `what` completes "12 nodes ...". `option` is the command-line option
    that leaves them out; empty where there is none."""

    what: str
    option: str = ""


@dataclass(frozen=True)
class Extra:
    """The number of nodes of an Edit, those of its bodies included, for a purpose."""

    nodes: int
    purpose: str
    option: str = ""

    def __str__(self) -> str:
        single = self.nodes == 1
        verb, _, rest = self.purpose.partition(" ")
        declared = f"{self.nodes} node{'' if single else 's'} {verb}{'s' if single else ''} {rest}"
        removes = f"; {self.option} leaves {'it' if single else 'them'} out"
        return declared + (removes if self.option else "")


_VALID, _NON_EMPTY = "--assume valid-inputs", "--assume non-empty"

#: The verb comes first, in the plural.
GUARD_LENGTHS = Purpose("guard the lengths", _VALID)
GUARD_SIZES = Purpose("guard the sizes of the inputs", _VALID)
GUARD_SHAPES = Purpose("guard the shapes of the states", _VALID)
GUARD_PROMISE = Purpose("guard the promised trip count", _VALID)
GUARD_COUNT = Purpose("guard that the loop ends")
GUARD_FLOATS = Purpose("guard that a counter of floats is exact", _VALID)
GUARD_READS = Purpose("guard that nothing is read past the end of a tensor")
GUARD_JOINED = Purpose("guard that there is something to join", _VALID)
COUNT_TRIPS = Purpose("compute the trip count")
HANDLE_NOTHING = Purpose("handle an empty batch or time", _NON_EMPTY)
HANDLE_EMPTY = Purpose("handle empty inputs, for which the loop does not run", _NON_EMPTY)
HANDLE_NO_TRIPS = Purpose("handle that the loop does not run")
END_ROWS = Purpose("end each row at its length")
HANDLE_LENGTH_0 = Purpose("handle rows of length 0", _NON_EMPTY)


def handles_no_trips(*, if_empty: bool) -> Purpose:
    """The purpose of nodes that handle a loop without iterations; `if_empty`: only empty inputs
    cause that."""
    return HANDLE_EMPTY if if_empty else HANDLE_NO_TRIPS
