"""Operators that read or write elements at indices that are computed."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from passes.proving.operators.layout import moved, reshaped
from passes.proving.symbolic_evaluator import Application, operator
from passes.proving.terms.algebra import INT64
from passes.proving.terms.arrays import Array
from passes.proving.terms.term import Term, polynomial


@operator("Gather")
def gather(call: Application) -> list[Array]:
    """Read at indices of an axis, which may count from the end."""
    x, chosen = call.array(0), call.evaluator.indices(call.array(1))
    axis = call.axis(call.attributes["axis"], x.rank)
    size = x.shape[axis]
    places = _places(call, chosen, size)
    rank = chosen.rank

    def get(indices: Sequence[Term]) -> Term:
        place = places(indices[axis : axis + rank])
        return x.at([*indices[:axis], place, *indices[axis + rank :]])

    return moved(x, [*x.shape[:axis], *chosen.shape, *x.shape[axis + 1 :]], get)


def _places(call: Application, chosen: Array, size: Term) -> Callable[[Sequence[Term]], Term]:
    """Where each of these indices is located in an axis, a function of the indices' own ones; each
    is required to be in range, and may count from the end."""
    algebra = call.algebra

    def inside(index: Term) -> Term:
        low = algebra.ge0(algebra.add(index, size))
        return algebra.all((low, algebra.ge0(algebra.sub(algebra.sub(size, algebra.one), index))))

    call.evaluator.for_each(chosen, inside, "an index is in range")

    def place(at: Sequence[Term]) -> Term:
        index = chosen.at(at)
        return algebra.ite(algebra.ge0(index), index, algebra.add(index, size))

    return place


@operator("GatherElements")
def gather_elements(call: Application) -> list[Array]:
    """Read at an index of an axis for each element, and at its own ones of the others."""
    x, chosen, algebra = call.array(0), call.evaluator.indices(call.array(1)), call.algebra
    axis = call.axis(call.attributes["axis"], x.rank)
    if chosen.dtype != INT64 or chosen.rank != x.rank:
        raise call.cannot("operator", f"indices are {chosen.dtype} of rank {chosen.rank}")
    for place, sizes in enumerate(zip(x.shape, chosen.shape, strict=True)):
        if place != axis:
            call.evaluator.given(algebra.ge0(algebra.sub(*sizes)), "the other axes are as long")
    places = _places(call, call.evaluator.whole_numbers(chosen), x.shape[axis])
    return moved(x, chosen.shape, lambda at: x.at([*at[:axis], places(at), *at[axis + 1 :]]))


Places = list[Callable[[Sequence[Term]], Term]]


def _tuples(call: Application, x: Array, chosen: Array, batch: int) -> Places:
    """Where the parts of each tuple of indices are located in the axes of `x` from `batch` on.

    Raises:
        NotProvable: it is unknown how many parts a tuple has, or `x` has fewer axes.
    """
    algebra = call.algebra
    count = algebra.number(chosen.shape[-1]) if chosen.rank > batch else None
    if chosen.dtype != INT64 or not count or batch + count > x.rank:
        raise call.cannot("operator", "the tuples of indices have an unknown size")
    call.evaluator.whole_numbers(chosen)
    parts = [_part(chosen, number) for number in range(count)]
    return [_places(call, one, x.shape[batch + axis]) for axis, one in enumerate(parts)]


def _part(chosen: Array, number: int) -> Array:
    """One part of each tuple of indices."""
    whole = chosen.algebra.whole(number)
    return Array(chosen.algebra, INT64, chosen.shape[:-1], lambda at: chosen.at([*at, whole]))


@operator("GatherND")
def gather_nd(call: Application) -> list[Array]:
    """Read at tuples of indices of the axes after the batch."""
    x, chosen, algebra = call.array(0), call.array(1), call.algebra
    batch = call.attributes.get("batch_dims") or 0
    places = _tuples(call, x, chosen, batch)
    for sizes in zip(x.shape[:batch], chosen.shape[:batch], strict=True):
        call.evaluator.given(algebra.eq0(algebra.sub(*sizes)), "the batch sizes agree")
    rank, rest = chosen.rank - 1, x.shape[batch + len(places) :]

    def get(indices: Sequence[Term]) -> Term:
        at = indices[:rank]
        return x.at([*at[:batch], *(place(at) for place in places), *indices[rank:]])

    return moved(x, [*chosen.shape[:-1], *rest], get)


@operator("ScatterND")
def scatter_nd(call: Application) -> list[Array]:
    """Other elements at tuples of indices, each of which occurs once: every axis of the updates is
    a part of the tuple, moved by a number."""
    x, chosen, updates = (call.array(number) for number in range(3))
    algebra = call.algebra
    call.alike(x, updates)
    if (call.attributes.get("reduction") or b"none") != b"none":
        raise call.cannot("operator", "a ScatterND that reduces is not modelled")
    places = _tuples(call, x, chosen, 0)
    sizes = [*chosen.shape[:-1], *x.shape[len(places) :]]
    if updates.rank != len(sizes):
        raise call.cannot("operator", "the updates have another rank")
    for one, other in zip(updates.shape, sizes, strict=True):
        call.evaluator.given(algebra.eq0(algebra.sub(one, other)), "the updates fit the indices")
    variables = [algebra.variable(size) for size in chosen.shape[:-1]]
    own = {one.uid for one in variables}
    at = [algebra.lift(one) for one in variables]
    parts = [one(at) for one in places]
    moves: dict[int, tuple[int, Term]] = {}
    for axis, size in enumerate(chosen.shape[:-1]):
        offsets = ((number, algebra.sub(part, at[axis])) for number, part in enumerate(parts))
        fits = [one for one in offsets if not one[1].free & own]
        if size is not algebra.one and not fits:
            raise call.cannot("operator", "an element may be written twice")
        if size is not algebra.one:
            moves[axis] = fits[0]
    fixed = [n for n in range(len(parts)) if all(n != number for number, _ in moves.values())]
    if any(parts[number].free & own for number in fixed):
        raise call.cannot("operator", "which elements are written is not modelled")

    def get(indices: Sequence[Term]) -> Term:
        read = [algebra.zero] * len(at)
        here = [algebra.eq0(algebra.sub(indices[number], parts[number])) for number in fixed]
        for axis, (number, by) in moves.items():
            read[axis] = algebra.sub(indices[number], by)
            last = algebra.sub(chosen.shape[axis], algebra.one)
            here += [algebra.ge0(read[axis]), algebra.ge0(algebra.sub(last, read[axis]))]
        new = updates.at([*read, *indices[len(parts) :]])
        return algebra.ite(algebra.all(here), new, x.at(indices))

    return [x.like(get)]


@operator("ReverseSequence")
def reverse_sequence(call: Application) -> list[Array]:
    """The first elements of the time backwards, as many as each row has."""
    x, lengths, algebra = call.array(0), call.array(1), call.algebra
    time, batch = call.attributes["time_axis"], call.attributes["batch_axis"]
    if x.rank < 2 or lengths.rank != 1 or lengths.dtype != INT64 or sorted((time, batch)) != [0, 1]:
        raise call.cannot("operator", "its axes are not modelled")
    call.evaluator.given(
        algebra.eq0(algebra.sub(x.shape[batch], lengths.shape[0])), "there is a length for each row"
    )
    (row,), length = call.evaluator.whole_numbers(lengths).generic()
    inside = algebra.all((algebra.ge0(length), algebra.ge0(algebra.sub(x.shape[time], length))))
    every = algebra.for_all(x.shape[batch], algebra.close([row], inside))
    call.evaluator.given(every, "the lengths are within the time")

    def get(indices: Sequence[Term]) -> Term:
        at, last = list(indices), algebra.sub(lengths.at([indices[batch]]), algebra.one)
        at[time] = algebra.sub(last, at[time])
        return algebra.ite(algebra.ge0(at[time]), x.at(at), x.at(indices))

    return [x.like(get)]


@operator("NonZero")
def nonzero(call: Application) -> list[Array]:
    """The indices of a vector of which no element is 0: all of them."""
    x, algebra = call.evaluator.whole_numbers(call.array(0)), call.algebra
    variables, value = x.generic()
    if x.rank != 1 or x.dtype != INT64 or algebra.number(value) in (None, 0):
        raise call.cannot("operator", "an operand of NonZero may be 0")
    assert variables
    return [Array(algebra, INT64, (algebra.one, x.shape[0]), lambda at: at[1])]


@operator("Compress")
def compress(call: Application) -> list[Array]:
    """The elements of an axis, or all, where a condition holds: which holds of all, or of one."""
    x, chosen, algebra = call.array(0), call.array(1), call.algebra
    axis = call.attributes["axis"]
    if axis is None:
        x = reshaped(call, x, [algebra.product(x.shape)])
    if chosen.rank != 1:
        raise call.cannot("shape", f"the condition has {chosen.rank} axes")
    axis = call.axis(axis or 0, x.rank)
    size = x.shape[axis]
    call.evaluator.given(
        algebra.eq0(algebra.sub(size, chosen.shape[0])), "there is a condition for each element"
    )
    (index,), condition = chosen.generic()
    alone = _alone(call, condition, index, size)
    if alone is not None:
        at = [*x.shape[:axis], algebra.one, *x.shape[axis + 1 :]]
        return moved(x, at, lambda at: x.at([*at[:axis], alone, *at[axis + 1 :]]))
    every = algebra.for_all(size, algebra.close([index], condition))
    if not call.evaluator.decide(every, "the condition holds for all elements"):
        raise call.cannot("operator", "Compress may leave elements out")
    return [x]


def _alone(call: Application, condition: Term, index: Term, size: Term) -> Term | None:
    """The only index below `size` at which a condition holds, if that is known."""
    algebra = call.algebra
    parts = dict(polynomial(condition.args[0])) if condition.op == "eq0" else {}
    slope = parts.pop((index,), 0)
    if abs(slope) != 1:
        return None
    found = algebra.scaled(algebra.sum(parts), -slope)
    last = algebra.sub(algebra.sub(size, algebra.one), found)
    inside = algebra.is_not_negative(found) and algebra.is_not_negative(last)
    return found if inside and index.uid not in found.free else None
