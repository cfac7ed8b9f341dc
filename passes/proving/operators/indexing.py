"""Operators that read or write elements at indices that are computed."""

from __future__ import annotations

from collections.abc import Sequence

from passes.operators.contract import Item, Place, Size, indices
from passes.proving.operators.layout import reshaped
from passes.proving.operators.stated_sizes import computed
from passes.proving.symbolic_evaluator import Application, operator
from passes.proving.terms.algebra import INT64
from passes.proving.terms.arrays import Array
from passes.proving.terms.term import Term


@operator("ScatterND")
def scatter_nd(call: Application) -> list[Array]:
    """Other elements at tuples of indices, each of which occurs once: every axis of the updates is
    a part of the tuple, moved by a number."""
    x, chosen, updates = (call.array(number) for number in range(3))
    algebra = call.algebra
    call.alike(x, updates)
    if (call.attributes.get("reduction") or b"none") != b"none":
        raise call.cannot("operator", "a ScatterND that reduces is not modelled")
    count = algebra.number(chosen.shape[-1]) if chosen.rank else None
    if not count or count > x.rank:
        raise call.cannot("operator", "the tuples of indices have an unknown size")
    own_axes = indices(chosen.shape[:-1])
    places = [
        computed(call, Place([Item(1, [*own_axes, part]), Size(0, part)])) for part in range(count)
    ]
    sizes = [*chosen.shape[:-1], *x.shape[count:]]
    if updates.rank != len(sizes):
        raise call.cannot("operator", "the updates have another rank")
    for one, other in zip(updates.shape, sizes, strict=True):
        call.evaluator.given(algebra.equal(one, other), "the updates fit the indices")
    variables = [algebra.variable(size) for size in chosen.shape[:-1]]
    bound = {one.uid for one in variables}
    at = [algebra.lift(one) for one in variables]
    parts = [one(tuple(at)) for one in places]
    moves: dict[int, tuple[int, Term]] = {}
    for axis, size in enumerate(chosen.shape[:-1]):
        offsets = ((number, algebra.sub(part, at[axis])) for number, part in enumerate(parts))
        fits = [one for one in offsets if not one[1].free & bound]
        if size is not algebra.one and not fits:
            raise call.cannot("operator", "an element may be written twice")
        if size is not algebra.one:
            moves[axis] = fits[0]
    fixed = [n for n in range(len(parts)) if all(n != number for number, _ in moves.values())]
    if any(parts[number].free & bound for number in fixed):
        raise call.cannot("operator", "which elements are written is not modelled")

    def get(own: Sequence[Term]) -> Term:
        read = [algebra.zero] * len(at)
        here = [algebra.equal(own[number], parts[number]) for number in fixed]
        for axis, (number, by) in moves.items():
            read[axis] = algebra.sub(own[number], by)
            size = chosen.shape[axis]
            here += [algebra.ge0(read[axis]), algebra.below(read[axis], size)]
        new = updates.at([*read, *own[len(parts) :]])
        return algebra.ite(algebra.all(here), new, x.at(own))

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
    """The elements of an axis, or all, where a condition holds: which holds of all."""
    x, chosen, algebra = call.array(0), call.array(1), call.algebra
    axis = call.attributes["axis"]
    if axis is None:
        x = reshaped(call, x, [algebra.product(x.shape)])
    if chosen.rank != 1:
        raise call.cannot("shape", f"the condition has {chosen.rank} axes")
    axis = call.axis(axis or 0, x.rank)
    size = x.shape[axis]
    fits = algebra.equal(size, chosen.shape[0])
    call.evaluator.given(fits, "there is a condition for each element")
    (index,), condition = chosen.generic()
    every = algebra.for_each([size], [index], condition)
    if not call.evaluator.decide(every, "the condition holds for all elements"):
        raise call.cannot("operator", "Compress may leave elements out")
    return [x]
