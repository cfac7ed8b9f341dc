"""How many iterations a Scan runs: the length that all its scanned inputs must have."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from onnx import NodeProto

from passes.analysis.bodies.context import context_of
from passes.analysis.integers.affine import Affine
from passes.analysis.integers.integers import Integers
from passes.loops.form import Scanned
from passes.rule import Site
from passes.rules.time_axis.time_body import TimeBody
from passes.types.value_types import dims_of
from passes.writing import spelling
from passes.writing.author import Author
from passes.writing.purposes import GUARD_SIZES


@dataclass(frozen=True)
class Length:
    """`size` (int64 [1]) names the length; `agree` a condition that must hold, where not proven.

    `guarded`: what reads `size` fails where the condition does not hold. `context` are the nodes
    outside on which it rests that nothing need be guarded.
    """

    size: str
    agree: str = ""
    guarded: bool = False
    context: tuple[NodeProto, ...] = ()


def length_of(body: TimeBody, author: Author, scanned: Sequence[Scanned]) -> Length:
    """The length of scanned inputs, guarded where they need not agree on it as they must."""
    told = known_length(body.site, author, scanned)
    if not told.agree:
        return told
    with author.serving(GUARD_SIZES):
        guarded = spelling.must_count(author, told.size, told.agree)
    return replace(told, size=guarded, guarded=True)


def known_length(site: Site, author: Author, scanned: Sequence[Scanned]) -> Length:
    """The length of the first of the axes that are scanned, and whether the others agree."""
    integers = Integers(site)
    sizes = [integers.size(one.tensor, one.axis) for one in scanned]
    numbers = [size.number for size in sizes if size is not None and size.number is not None]
    settled = Affine(numbers[0]) if numbers else sizes[0]
    size = author.ints(numbers[0]) if numbers else _size(author, scanned[0])
    told = list(zip(scanned, sizes, strict=True))
    odd = [one for one, its in (told if numbers else told[1:]) if its is None or its != settled]
    same = None if numbers else scanned[0]
    rests = any(one not in odd and not _is_declared(site, one, same) for one in scanned)
    context = context_of(site) if rests else ()
    if not odd or site.assumes("valid-inputs"):
        return Length(size, context=context)
    with author.serving(GUARD_SIZES):
        others = dict.fromkeys(_size(author, one) for one in odd)
        first = spelling.squeeze(author, size, 0)
        checks = [author.op("Equal", first, spelling.squeeze(author, one, 0)) for one in others]
        return Length(size, spelling.both(author, checks), context=context)


def _is_declared(site: Site, one: Scanned, same: Scanned | None) -> bool:
    """Whether the length of an input is fixed by its type, or that of the very same axis."""
    dims = dims_of(site.type_of(one.tensor)) or ()
    fixed = -len(dims) <= one.axis < len(dims) and isinstance(dims[one.axis], int)
    return fixed or (same is not None and (one.tensor, one.axis) == (same.tensor, same.axis))


def _size(author: Author, one: Scanned) -> str:
    return spelling.size_of_axis(author, one.tensor, one.axis)
