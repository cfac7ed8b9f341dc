"""How many iterations a Scan runs: the length that all its scanned inputs must have."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from passes import spelling
from passes.author import Author
from passes.loop_form import Scanned
from passes.rules.time_body import TimeBody
from passes.value_types import dims_of


@dataclass(frozen=True)
class Length:
    """`size` (int64 [1]) names the length; `agree` a condition that must hold, where not proven.

    `guarded`: what reads `size` fails where the condition does not hold.
    """

    size: str
    agree: str = ""
    guarded: bool = False


def length_of(body: TimeBody, author: Author, scanned: Sequence[Scanned]) -> Length:
    """The length of scanned inputs, and whether they agree on it as they must."""
    sizes = [_known_size(body, one) for one in scanned]
    known = next((size for size in sizes if size is not None), None)
    if known is not None:
        size = author.ints(known)
        told = zip(scanned, sizes, strict=True)
        odd = [one for one, its in told if its != known]
    else:
        size = _size(author, scanned[0])
        odd = [one for one in scanned if _place(one) != _place(scanned[0])]
    others = dict.fromkeys(_size(author, one) for one in odd)
    if not others or "valid-inputs" in body.site.options.get("assume", ()):
        return Length(size)
    first = spelling.squeeze(author, size, 0)
    checks = [author.op("Equal", first, spelling.squeeze(author, one, 0)) for one in others]
    agree = spelling.both(author, checks)
    return Length(spelling.must_count(author, size, agree), agree, guarded=True)


def _place(one: Scanned) -> tuple[str, int]:
    return one.tensor, one.axis


def _known_size(body: TimeBody, one: Scanned) -> int | None:
    dims = dims_of(body.site.type_of(one.tensor))
    if dims is None or not -len(dims) <= one.axis < len(dims):
        return None
    size = dims[one.axis]
    return size if isinstance(size, int) else None


def _size(author: Author, one: Scanned) -> str:
    return spelling.size_of_axis(author, one.tensor, one.axis)
