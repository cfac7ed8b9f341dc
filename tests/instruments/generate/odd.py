"""What few models have: kinds of things that a model may be made to have, or to go without."""

from __future__ import annotations

from collections.abc import Callable, Collection

from tests.instruments.generate.templates import Template, place

#: A kind, and of how many models one has it.
KINDS = {
    "counters": 6,  # counters of every type, near the limits of it
    "deep": 40,  # loops and branches nested to what a file can hold
    "equal": 8,  # constants that are equal
    "foreign": 8,  # functions of other domains, named as operators
    "hints": 8,  # bodies that declare wrong symbols, or nothing
    "moved": 6,  # Transposes and the like around loops
    "negative": 8,  # axes of Scan-9 from the back
    "no-cond": 6,  # a Loop without a condition, whose body computes one
    "ones": 8,  # iteration numbers and conditions of shape [1]
    "rare": 8,  # bfloat16, float8, int4 and the like
    "unknown": 8,  # states of a size that inference cannot know
}
#: The opsets in which something of a kind can be written; mostly one of these is taken.
OPSETS = {
    "counters": range(10, 27),
    "deep": range(9, 27),
    "foreign": range(13, 27),
    "negative": (9, 10),
    "rare": range(19, 27),
    "unknown": range(10, 27),
}
#: Ways of writing something with a body, or a call, of such a kind.
ODD: dict[str, list[Template]] = {}


def odd(kind: str) -> Callable[[Template], Template]:
    """Enter a way of writing something that belongs to a kind."""

    def enter(write: Template) -> Template:
        ODD.setdefault(kind, []).append(write)
        ODD[kind].sort(key=place)  # whichever file was imported first
        return write

    return enter


def templates(kinds: Collection[str]) -> list[Template]:
    """Those of some kinds."""
    return [write for kind in sorted(kinds) for write in ODD.get(kind, [])]
