"""The sizes of what a loop would collect, for when it runs no iteration."""

from __future__ import annotations

from collections.abc import Iterator

from passes.analysis.integers.affine import Affine
from passes.analysis.integers.integers import Integers
from passes.ir.site import Site
from passes.loops.form import Collected, Kind, LoopForm
from passes.types.value_types import INFERRED, Dim, Dims, dims_of
from passes.writing import spelling
from passes.writing.author import Author


def element_dims(site: Site, collected: Collected) -> Dims | None:
    """The dims of what an iteration appends: by the body, and where it gives no number, by the
    loop's output."""
    inside = dims_of(site.body_type_of("body", collected.body_output))
    pairs = zip(inside or (), _outside(site, collected, inside), strict=True)
    dims = tuple(b if a is None or isinstance(b, int) else a for a, b in pairs)
    return None if inside is None else dims


def _outside(site: Site, collected: Collected, inside: Dims | None) -> Dims:
    """Return the same dims from the loop's output alone, None if that leaves them open."""
    rows = dims_of(site.type_of(collected.tensor))
    if inside is None or rows is None or len(rows) != len(inside) + 1:
        return (None,) * len(inside or ())
    axis = collected.axis % len(rows)
    return rows[:axis] + rows[axis + 1 :]


def sizes_of(
    author: Author, site: Site, form: LoopForm, collected: Collected, dims: Dims
) -> list[str]:
    """The size of each axis of what an iteration appends, int64 [1], or "" where it is unknown:
    static, the size that it is made from, or that of an axis of the same symbol, those of the
    loop's output before those of the body.

    `dims` are its `element_dims`.
    """
    integers = Integers(site)
    axes = integers.axes(filter(None, (*form.inputs, *form.captured)))

    def made_from(axis: int) -> str:
        size = integers.size_inside("body", collected.body_output, axis)
        if size is None or size.number is not None:
            return "" if size is None else author.ints(size.number or 0)
        tensor, along = next((axes[atom] for atom in axes if size == Affine.of(atom)), ("", 0))
        return tensor and spelling.size_of_axis(author, tensor, along)

    def size(axis: int, dim: Dim, other: Dim) -> str:
        if isinstance(dim, int):
            return author.ints(dim)
        named = (known_size(author, site, form, one) for one in (other, dim))
        return made_from(axis) or next(filter(None, named), "")

    pairs = zip(dims, _outside(site, collected, dims), strict=True)
    return [size(axis, *pair) for axis, pair in enumerate(pairs)]


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
    return spelling.joined(author, sizes)
