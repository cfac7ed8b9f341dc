"""The trip count of a Scan: the length that all its scanned inputs must have."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from onnx import NodeProto

from passes.analysis.bodies.context import context_of
from passes.analysis.integers.affine import Affine
from passes.analysis.integers.integers import Integers
from passes.ir.purposes import GUARD_SIZES
from passes.ir.site import Site
from passes.loops.form import Scanned
from passes.types.value_types import dims_of
from passes.writing import guards, spelling
from passes.writing.author import Author


@dataclass(frozen=True)
class Length:
    """`size` (int64 [1]) names the length; `agree` a condition that must hold, where not proven.

    `guarded`: reading `size` fails where the condition does not hold. `context` are the outer
    nodes from which it follows that no guard is needed.
    """

    size: str
    agree: str = ""
    guarded: bool = False
    context: tuple[NodeProto, ...] = ()


def length_of(site: Site, author: Author, scanned: Sequence[Scanned]) -> Length:
    """The length of scanned inputs, guarded where they may differ."""
    known = known_length(site, author, scanned)
    if not known.agree:
        return known
    with author.serving(GUARD_SIZES):
        guarded = guards.must_count(author, known.size, known.agree)
    return replace(known, size=guarded, guarded=True)


def known_length(site: Site, author: Author, scanned: Sequence[Scanned]) -> Length:
    """The length of the first of the scanned axes, and the condition that the others agree."""
    integers = Integers(site)
    sizes = [integers.size(read.tensor, read.axis) for read in scanned]
    numbers = [size.number for size in sizes if size is not None and size.number is not None]
    settled = Affine(numbers[0]) if numbers else sizes[0]
    size = author.ints(numbers[0]) if numbers else _size(author, scanned[0])
    known = list(zip(scanned, sizes, strict=True))
    odd = [
        read
        for read, length in (known if numbers else known[1:])
        if length is None or length != settled
    ]
    same = None if numbers else scanned[0]
    rests = any(read not in odd and not _is_declared(site, read, same) for read in scanned)
    context = context_of(site) if rests else ()
    if not odd or site.assumes("valid-inputs"):
        return Length(size, context=context)
    with author.serving(GUARD_SIZES):
        others = dict.fromkeys(_size(author, read) for read in odd)
        first = spelling.squeeze(author, size, 0)
        checks = [author.op("Equal", first, spelling.squeeze(author, other, 0)) for other in others]
        return Length(size, spelling.both(author, checks), context=context)


def _is_declared(site: Site, scanned: Scanned, same: Scanned | None) -> bool:
    """Return whether the length of an input is fixed by its type, or that of the very same axis."""
    dims = dims_of(site.type_of(scanned.tensor)) or ()
    fixed = -len(dims) <= scanned.axis < len(dims) and isinstance(dims[scanned.axis], int)
    return fixed or (
        same is not None and (scanned.tensor, scanned.axis) == (same.tensor, same.axis)
    )


def _size(author: Author, scanned: Scanned) -> str:
    return spelling.size_of_axis(author, scanned.tensor, scanned.axis)
