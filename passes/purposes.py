"""What the nodes of an Edit are for that a shorter one would do without, and what removes them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Purpose:
    """Why nodes are written: `what` completes "12 nodes ...". `option` is what of the command line
    leaves them out; empty where nothing does."""

    what: str
    option: str = ""


@dataclass(frozen=True)
class Extra:
    """How many nodes of an Edit, those of its bodies included, serve a purpose."""

    nodes: int
    purpose: str
    option: str = ""

    def __str__(self) -> str:
        one = self.nodes == 1
        verb, _, rest = self.purpose.partition(" ")
        said = f"{self.nodes} node{'' if one else 's'} {verb}{'s' if one else ''} {rest}"
        removes = f"; {self.option} leaves {'it' if one else 'them'} out"
        return said + (removes if self.option else "")


_VALID, _NON_EMPTY = "--assume valid-inputs", "--assume non-empty"

#: The verb comes first, in the plural.
GUARD_LENGTHS = Purpose("guard the lengths", _VALID)
GUARD_SIZES = Purpose("guard the sizes of the inputs", _VALID)
HANDLE_NOTHING = Purpose("handle an empty batch or time", _NON_EMPTY)
END_ROWS = Purpose("end each row at its length")
HANDLE_LENGTH_0 = Purpose("handle rows of length 0", _NON_EMPTY)
