"""Operators that move elements: each output index is read at indices of the input."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain

import numpy as np

from passes.proving.operators.elementwise import broadcast
from passes.proving.symbolic_evaluator import Application, operator
from passes.proving.terms.algebra import BOOL
from passes.proving.terms.arrays import Array, Indices
from passes.proving.terms.term import Term


def moved(x: Array, shape: Sequence[Term], get: Callable[[Indices], Term]) -> list[Array]:
    return [Array(x.algebra, x.dtype, tuple(shape), get)]


@operator("Transpose")
def transpose(call: Application) -> list[Array]:
    """The axes in another order."""
    x = call.array(0)
    perm = list(call.attributes["perm"] or reversed(range(x.rank)))
    if sorted(perm) != list(range(x.rank)):
        raise call.cannot("axis", "the permutation names other axes")

    def get(indices: Sequence[Term]) -> Term:
        at = [x.algebra.zero] * x.rank
        for axis, index in zip(perm, indices, strict=True):
            at[axis] = index
        return x.at(at)

    return moved(x, [x.shape[axis] for axis in perm], get)


@operator("Squeeze")
def squeeze(call: Application) -> list[Array]:
    """Without axes, which must be of size 1."""
    x = call.array(0)
    given = call.numbers(1, "axes")
    if given is None:
        if any(x.algebra.number(size) is None for size in x.shape):
            raise call.cannot("shape", "the squeezed axes depend on sizes")
        given = [axis for axis, size in enumerate(x.shape) if size is x.algebra.one]
    elif not given:
        raise call.cannot("axis", "the list of axes is empty")
    axes = call.axes(given, x.rank)
    for axis in axes:
        call.evaluator.same(x.shape[axis], x.algebra.one, "a squeezed axis has size 1")

    def get(indices: Sequence[Term]) -> Term:
        at = list(indices)
        for axis in sorted(axes):
            at.insert(axis, x.algebra.zero)
        return x.at(at)

    return moved(x, [size for axis, size in enumerate(x.shape) if axis not in axes], get)


@operator("Unsqueeze")
def unsqueeze(call: Application) -> list[Array]:
    """With axes of size 1."""
    x = call.array(0)
    given = call.numbers(1, "axes") or []
    rank = x.rank + len(given)
    axes = sorted(call.axes(given, rank))
    shape = list(x.shape)
    for axis in axes:
        shape.insert(axis, x.algebra.one)
    kept = [axis for axis in range(rank) if axis not in axes]
    return moved(x, shape, lambda indices: x.at([indices[axis] for axis in kept]))


@operator("Flatten")
def flatten(call: Application) -> list[Array]:
    """A matrix of the axes before one and those from it on."""
    x = call.array(0)
    axis = call.attributes["axis"]
    if not -x.rank <= axis <= x.rank:
        raise call.cannot("axis", f"there is no axis {axis} of {x.rank}")
    axis = axis + x.rank if axis < 0 else axis
    shape = [x.algebra.product(x.shape[:axis]), x.algebra.product(x.shape[axis:])]
    return [reshaped(call, x, shape)]


@operator("Reshape")
def reshape(call: Application) -> list[Array]:
    """The elements in their order, in other axes; a 0 copies a size, -1 is what is left."""
    x, algebra = call.array(0), call.algebra
    target = call.evaluator.indices(call.array(1)).items()
    copies = not call.attributes.get("allowzero")
    shape: list[Term | None] = []
    for axis, size in enumerate(target):
        known = algebra.number(size)
        if known == -1:
            shape.append(None)
        elif known == 0 and copies:
            if axis >= x.rank:
                raise call.cannot("shape", "a 0 of the target has no axis to copy")
            shape.append(x.shape[axis])
        elif known is not None and known < 0:
            raise call.cannot("shape", f"the target has the size {known}")
        else:
            if known is None and copies:
                shape.append(_size(call, size, axis, x))
                continue
            call.evaluator.given(algebra.ge0(size), "a size is not negative")
            shape.append(size)
    given = [size for size in shape if size is not None]
    others, whole = algebra.product(given), algebra.product(x.shape)
    if len(given) < len(shape):
        positive = algebra.ge0(algebra.sub(others, algebra.one))
        if len(given) != len(shape) - 1 or not call.evaluator.decide(
            positive, "the sizes besides -1 are positive"
        ):
            raise call.cannot("shape", "-1 of the target is ambiguous beside 0 or -1")
        rest = algebra.exact(whole, others)
        if rest is None:
            rest = algebra.idiv(whole, others)
            call.evaluator.same(
                whole, algebra.mul(rest, others), "the number of elements stays the same"
            )
        return [reshaped(call, x, [rest if size is None else size for size in shape])]
    call.evaluator.same(whole, others, "the number of elements stays the same")
    return [reshaped(call, x, given)]


def _size(call: Application, size: Term, axis: int, x: Array) -> Term:
    """A computed size of a target in which 0 copies and -1 is what is left."""
    algebra = call.algebra
    if call.evaluator.decide(algebra.ge0(algebra.sub(size, algebra.one)), "a size is not 0"):
        return size
    zero = algebra.eq0(size)
    if call.evaluator.decide(zero, "a size is 0") and axis < x.rank:
        return x.shape[axis]
    raise call.cannot("shape", "a computed size may be -1")


def reshaped(call: Application, x: Array, shape: Sequence[Term]) -> Array:
    """As many elements in other axes; sizes are matched from the left to the right, and what is
    split or joined is divided."""
    algebra = call.algebra
    one = algebra.one
    old = [axis for axis, size in enumerate(x.shape) if size is not one]
    new = [axis for axis, size in enumerate(shape) if size is not one]
    groups: list[tuple[list[int], list[int]]] = []
    left, right = 0, 0
    while left < len(old) or right < len(new):
        ins, outs = old[left : left + 1], new[right : right + 1]
        while True:
            have = algebra.product(x.shape[axis] for axis in ins)
            want = algebra.product(shape[axis] for axis in outs)
            if have is want and ins and outs:
                break
            more_out = ins and (not outs or algebra.exact(have, want) is not None)
            if more_out and right + len(outs) < len(new):
                outs.append(new[right + len(outs)])
            elif left + len(ins) < len(old):
                ins.append(old[left + len(ins)])
            elif right + len(outs) < len(new):
                outs.append(new[right + len(outs)])
            else:
                break
        groups.append((ins, outs))
        left, right = left + len(ins), right + len(outs)

    def get(indices: Sequence[Term]) -> Term:
        at = [algebra.zero] * x.rank
        for ins, outs in groups:
            if len(ins) == len(outs) == 1:
                at[ins[0]] = indices[outs[0]]
                continue
            place = algebra.zero
            for axis in outs:
                place = algebra.add(algebra.mul(place, shape[axis]), indices[axis])
            for number, axis in enumerate(ins):
                stride = algebra.product(x.shape[inner] for inner in ins[number + 1 :])
                at[axis] = algebra.idiv(place, stride)
                place = algebra.sub(place, algebra.mul(at[axis], stride))
        return x.at(at)

    return Array(algebra, x.dtype, tuple(shape), get)


@operator("Expand")
def expand(call: Application) -> list[Array]:
    """Broadcast with a shape."""
    x = call.array(0)
    sizes = call.evaluator.indices(call.array(1)).items()
    for size in sizes:
        call.evaluator.require(call.algebra.ge0(size), "a size is not negative")
    target = Array(call.algebra, x.dtype, tuple(sizes), x.get)
    return broadcast(call, x, target)[:1]


@operator("Concat")
def concat(call: Application) -> list[Array]:
    """One array after the other."""
    arrays = [call.array(number) for number in range(len(call.inputs))]
    first, algebra = arrays[0], call.algebra
    call.alike(*arrays)
    axis = call.axis(call.attributes["axis"], first.rank)
    for one in arrays[1:]:
        if one.rank != first.rank:
            raise call.cannot("shape", "ranks differ")
        for number, sizes in enumerate(zip(first.shape, one.shape, strict=True)):
            if number != axis:
                call.evaluator.same(*sizes, "the other sizes agree")
    ends = [algebra.zero]
    for one in arrays:
        ends.append(algebra.add(ends[-1], one.shape[axis]))

    def get(indices: Sequence[Term]) -> Term:
        index = indices[axis]

        def read(number: int) -> Term:
            own = algebra.sub(index, ends[number])
            return arrays[number].at([*indices[:axis], own, *indices[axis + 1 :]])

        made: Term | None = None
        for number in reversed(range(len(arrays))):
            if arrays[number].shape[axis] is algebra.zero:
                continue
            if made is None:
                made = read(number)
                continue
            end = algebra.sub(ends[number + 1], algebra.one)
            here = algebra.ge0(algebra.sub(end, index))
            made = made if here is algebra.false else algebra.ite(here, read(number), made)
        return first.at(indices) if made is None else made

    shape = list(first.shape)
    shape[axis] = ends[-1]
    return moved(first, shape, get)


@operator("Split")
def split(call: Application) -> list[Array]:
    """Parts of given sizes, or equal ones."""
    x, algebra = call.array(0), call.algebra
    axis = call.axis(call.attributes["axis"], x.rank)
    count = len(call.node.output)
    given = call.optional(1)
    listed = call.attributes.get("split")
    if listed is not None:
        sizes = [algebra.whole(one) for one in listed]
    elif given is not None:
        sizes = call.evaluator.indices(given).items()
    else:
        part = algebra.exact(x.shape[axis], algebra.whole(count))
        if part is None:
            raise call.cannot("shape", "parts may be of unequal size")
        sizes = [part] * count
    if len(sizes) != count or call.attributes.get("num_outputs") not in (None, count):
        raise call.cannot("shape", f"{count} outputs have {len(sizes)} sizes")
    for size in sizes:
        call.evaluator.given(algebra.ge0(size), "a size is not negative")
    total = algebra.zero
    parts = []
    for size in sizes:
        parts += _cut(x, axis, total, 1, size)
        total = algebra.add(total, size)
    call.evaluator.same(total, x.shape[axis], "the parts add up to the axis")
    return parts


def _cut(x: Array, axis: int, start: Term, step: int, size: Term) -> list[Array]:
    """A part of an axis."""
    algebra = x.algebra

    def get(indices: Sequence[Term]) -> Term:
        at = list(indices)
        at[axis] = algebra.add(start, algebra.scaled(at[axis], step))
        return x.at(at)

    shape = list(x.shape)
    shape[axis] = size
    return moved(x, shape, get)


@operator("Slice")
def sliced(call: Application) -> list[Array]:
    """Parts of axes; bounds beyond an axis are its ends."""
    x, algebra = call.array(0), call.algebra
    if call.attributes.get("starts") is not None:
        starts = [algebra.whole(one) for one in call.attributes["starts"]]
        ends = [algebra.whole(one) for one in call.attributes["ends"]]
        axes = call.attributes.get("axes")
        steps = [1] * len(starts)
    else:
        starts = call.evaluator.indices(call.array(1)).items()
        ends = call.evaluator.indices(call.array(2)).items()
        axes = call.numbers(3, "axes")
        given = call.optional(4)
        steps = [1] * len(starts) if given is None else given.numbers()
    axes = call.axes(range(len(starts)) if axes is None else axes, x.rank)
    if 0 in steps or not len(axes) == len(starts) == len(ends) == len(steps):
        raise call.cannot("axis", "starts, ends, axes and steps do not agree, or a step is 0")
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        size = x.shape[axis]
        low, high = (algebra.zero, size) if step > 0 else (
            algebra.whole(-1), algebra.sub(size, algebra.one)
        )  # fmt: skip
        if step < 0 and not _is_within(call, start, size):
            raise call.cannot("shape", "a reversed Slice may start before the first element")
        first = _clamped(call, start, size, low, high)
        last = _clamped(call, end, size, low, high)
        length = algebra.sub(last, first) if step > 0 else algebra.sub(first, last)
        by = abs(step)
        count = algebra.idiv(algebra.add(length, algebra.whole(by - 1)), algebra.whole(by))
        (x,) = _cut(x, axis, first, step, algebra.most(count, algebra.zero))
    return [x]


def _is_within(call: Application, start: Term, size: Term) -> bool:
    """Return whether a start is not before the first element, where there is one."""
    algebra = call.algebra
    if algebra.is_not_negative(algebra.scaled(size, -1)):
        return True
    low = algebra.ge0(algebra.add(start, size))
    return algebra.proves_if([algebra.sub(size, algebra.one)], low)


def _clamped(call: Application, bound: Term, size: Term, low: Term, high: Term) -> Term:
    """A bound that may count from the end, kept within the axis."""
    algebra = call.algebra
    if not bound.free and algebra.number(bound) is None:
        negative = not call.evaluator.decide(algebra.ge0(bound), "a bound counts from the end")
        bound = algebra.add(bound, size) if negative else bound
    else:
        at_least = algebra.ge0(bound)
        bound = algebra.ite(at_least, bound, algebra.add(bound, size))
    return algebra.most(algebra.least(bound, high), low)


@operator("Tile")
def tile(call: Application) -> list[Array]:
    """Repeat each axis."""
    x, algebra = call.array(0), call.algebra
    repeats = call.evaluator.indices(call.array(1)).items()
    if len(repeats) != x.rank:
        raise call.cannot("shape", "there are more repeats than axes, or fewer")
    for one in repeats:
        call.evaluator.given(algebra.ge0(one), "a repeat is not negative")

    def get(indices: Sequence[Term]) -> Term:
        pairs = zip(indices, x.shape, strict=True)
        return x.at([algebra.imod(index, size) for index, size in pairs])

    return moved(x, [algebra.mul(s, r) for s, r in zip(x.shape, repeats, strict=True)], get)


@operator("Pad")
def pad(call: Application) -> list[Array]:
    """A constant around the elements; a negative width cuts."""
    x, algebra = call.array(0), call.algebra
    if (call.attributes["mode"] or b"constant") != b"constant":
        raise call.cannot("operator", "the mode of Pad is not modelled")
    if call.attributes.get("pads") is not None:
        fill = algebra.literal(x.dtype, np.dtype(x.dtype).type(call.attributes["value"]))
    else:
        given = call.optional(2)
        zero = False if x.dtype == BOOL else 0
        fill = (
            algebra.literal(x.dtype, np.dtype(x.dtype).type(zero))
            if given is None
            else given.scalar()
        )
    widths, shape = padded(call)
    for width in chain(*widths.values()):
        call.evaluator.given(algebra.ge0(width), "a width is not negative")

    def get(indices: Sequence[Term]) -> Term:
        at, inside = list(indices), []
        for axis, (before, _) in widths.items():
            at[axis] = algebra.sub(at[axis], before)
            low = algebra.ge0(at[axis])
            high = algebra.ge0(algebra.sub(algebra.sub(x.shape[axis], algebra.one), at[axis]))
            inside += [low, high]
        return algebra.ite(algebra.all(inside), x.at(at), fill)

    return moved(x, shape, get)


def padded(call: Application) -> tuple[dict[int, tuple[Term, Term]], list[Term]]:
    """The widths before and after each axis that a Pad names, and the sizes with them."""
    x, listed = call.array(0), call.attributes.get("pads")
    pads = (
        call.evaluator.indices(call.array(1)).items()
        if listed is None
        else [call.algebra.whole(one) for one in listed]
    )
    chosen = call.numbers(3, "axes")
    axes = call.axes(range(x.rank) if chosen is None else chosen, x.rank)
    if len(pads) != 2 * len(axes):
        raise call.cannot("axis", "there are not two widths for each axis")
    widths = dict(zip(axes, zip(pads, pads[len(axes) :], strict=False), strict=True))
    shape = list(x.shape)
    for axis, both in widths.items():
        shape[axis] = call.algebra.add(shape[axis], call.algebra.add(*both))
    return widths, shape
