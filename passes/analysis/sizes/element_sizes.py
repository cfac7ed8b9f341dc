"""The sizes of what a loop would collect, where it runs no iteration."""

from __future__ import annotations

from collections.abc import Iterator

from passes.loops.form import Kind, LoopForm
from passes.rule import Site
from passes.types.value_types import INFERRED, Dim, Dims, dims_of
from passes.writing import spelling
from passes.writing.author import Author


def size_of(author: Author, site: Site, form: LoopForm, dim: Dim) -> str:
    """A dim of an element, int64 [1]: static, or the size of an axis of the same symbol; 0 where
    nothing that the loop reads or is fed tells it."""
    return known_size(author, site, form, dim) or author.ints(0)


def known_size(author: Author, site: Site, form: LoopForm, dim: Dim) -> str:
    """The same, but "" where nothing tells it."""
    if isinstance(dim, int):
        return author.ints(dim)
    if dim is not None and not dim.startswith(INFERRED):
        for name, dims in _seen(site, form):
            if dim in dims:
                return spelling.size_of_axis(author, name, dims.index(dim))
    return ""


def _seen(site: Site, form: LoopForm) -> Iterator[tuple[str, Dims]]:
    """Values that are seen at a loop, with what the graph says of their sizes; then those that it
    is fed, with what its body declares."""
    for name in filter(None, [*form.inputs, *form.captured]):
        yield name, dims_of(site.type_of(name)) or ()
    if form.kind is Kind.SCAN_8:  # its body says nothing of the batch
        return
    for carried in form.carried:
        yield carried.initial, dims_of(site.body_type_of("body", carried.body_input)) or ()
    for scanned in form.scanned:
        dims = dims_of(site.body_type_of("body", scanned.body_input)) or ()
        at = scanned.axis % (len(dims) + 1)
        yield scanned.tensor, (*dims[:at], None, *dims[at:])


def shape_of_none(author: Author, sizes: list[str], axis: int, nothing: str = "") -> str:
    """The shape of no elements of these sizes, collected on an axis: an int64 vector.

    `nothing` is a computed 0 (int64 [1]), where inference should not see it.
    """
    sizes.insert(axis % (len(sizes) + 1), nothing or author.ints(0))
    return author.op("Concat", *sizes, axis=0) if len(sizes) > 1 else sizes[0]
