"""The sizes of what a loop would collect, where it runs no iteration."""

from __future__ import annotations

from collections.abc import Iterable

from passes import spelling
from passes.author import Author
from passes.rule import Site
from passes.value_types import INFERRED, Dim, dims_of


def size_of(author: Author, site: Site, read: Iterable[str], dim: Dim) -> str:
    """A dim of an element, int64 [1]: static, or the size of an axis of the same symbol.

    `read` are values of any type that are seen at the site; 0 where none of them tells it.
    """
    return told_size(author, site, read, dim) or author.ints(0)


def told_size(author: Author, site: Site, read: Iterable[str], dim: Dim) -> str:
    """The same, but "" where none of the values tells it."""
    if isinstance(dim, int):
        return author.ints(dim)
    if dim is not None and not dim.startswith(INFERRED):
        for name in read:
            dims = dims_of(site.type_of(name)) or ()
            if dim in dims:
                return spelling.size_of_axis(author, name, dims.index(dim))
    return ""


def shape_of_none(author: Author, sizes: list[str], axis: int, nothing: str = "") -> str:
    """The shape of no elements of these sizes, collected on an axis: an int64 vector.

    `nothing` is a computed 0 (int64 [1]), where inference should not see it.
    """
    sizes.insert(axis % (len(sizes) + 1), nothing or author.ints(0))
    return author.op("Concat", *sizes, axis=0) if len(sizes) > 1 else sizes[0]
