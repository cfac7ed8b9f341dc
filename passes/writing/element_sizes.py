"""The sizes of what a loop would collect, for when it runs no iteration."""

from __future__ import annotations

from collections.abc import Iterator

from onnx import TypeProto

from passes.analysis.integers.affine import Affine
from passes.analysis.integers.integers import Integers
from passes.loops.form import Collected, Kind, LoopForm
from passes.rule import Site
from passes.types.value_types import INFERRED, Dim, Dims, dims_of, elem_type_of, tensor_type
from passes.writing import spelling
from passes.writing.author import Author


def element_type(site: Site, collected: Collected) -> TypeProto | None:
    """The type of what an iteration appends; sizes that the body does not say, or by a symbol
    only, are those of the loop's output, where that says more."""
    known = site.body_type_of("body", collected.body_output)
    inside, rows = dims_of(known), dims_of(site.type_of(collected.tensor))
    if inside is None or rows is None or len(rows) != len(inside) + 1:
        return known
    axis = collected.axis % len(rows)
    outside = rows[:axis] + rows[axis + 1 :]
    sizes = [
        b if a is None or isinstance(b, int) else a for a, b in zip(inside, outside, strict=True)
    ]
    return tensor_type(elem_type_of(known), tuple(sizes))


def sizes_of(author: Author, site: Site, form: LoopForm, result: str, dims: Dims) -> list[str]:
    """The size of each axis of what a body returns as `result`, int64 [1], or "" where it is
    unknown: static, the size that it is made from, or that of an axis of the same symbol.

    `dims` is what is known of the shape.
    """
    integers = Integers(site)
    axes = integers.axes(filter(None, (*form.inputs, *form.captured)))

    def made_from(axis: int) -> str:
        size = integers.size_inside("body", result, axis)
        if size is None or size.number is not None:
            return "" if size is None else author.ints(size.number or 0)
        tensor, along = next((axes[atom] for atom in axes if size == Affine.of(atom)), ("", 0))
        return tensor and spelling.size_of_axis(author, tensor, along)

    return [
        author.ints(dim)
        if isinstance(dim, int)
        else made_from(axis) or known_size(author, site, form, dim)
        for axis, dim in enumerate(dims)
    ]


def known_size(author: Author, site: Site, form: LoopForm, dim: Dim) -> str:
    """A dim of an element, int64 [1]: static, or the size of an axis of the same symbol; "" where
    it does not follow from what the loop reads or is fed."""
    if isinstance(dim, int):
        return author.ints(dim)
    if dim is not None and not dim.startswith(INFERRED):
        for name, dims in _seen(site, form):
            if dim in dims:
                return spelling.size_of_axis(author, name, dims.index(dim))
    return ""


def _seen(site: Site, form: LoopForm) -> Iterator[tuple[str, Dims]]:
    """Values that are visible at a loop, with the sizes that the graph declares; then those that it
    is fed, with the sizes that its body declares."""
    for name in filter(None, [*form.inputs, *form.captured]):
        yield name, dims_of(site.type_of(name)) or ()
    if form.kind is Kind.SCAN_8:  # its body does not declare the batch
        return
    for carried in form.carried:
        yield carried.initial, dims_of(site.body_type_of("body", carried.body_input)) or ()
    for scanned in form.scanned:
        dims = dims_of(site.body_type_of("body", scanned.body_input)) or ()
        along = scanned.axis % (len(dims) + 1)
        yield scanned.tensor, (*dims[:along], None, *dims[along:])


def shape_of_none(author: Author, sizes: list[str], axis: int, nothing: str = "") -> str:
    """The shape of an empty collected output, of elements of these sizes: an int64 vector.

    `nothing` is a computed 0 (int64 [1]), where inference should not see it.
    """
    sizes.insert(axis % (len(sizes) + 1), nothing or author.ints(0))
    return author.op("Concat", *sizes, axis=0) if len(sizes) > 1 else sizes[0]
