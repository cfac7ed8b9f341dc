"""Reshape, and arrays of as many elements in other axes."""

from __future__ import annotations

from collections.abc import Sequence

from passes.proving.symbolic_evaluator import Application, operator
from passes.proving.terms.arrays import Array
from passes.proving.terms.term import Term


@operator("Reshape")
def reshape(call: Application) -> list[Array]:
    """The elements in their order, in other axes; a 0 copies a size, -1 is what is left."""
    x, algebra = call.array(0), call.algebra
    target = call.evaluator.indices(call.array(1)).items()
    copies = not call.attributes.get("allowzero")
    shape = [
        None if algebra.number(size) == -1 else _size(call, size, axis, x, copies=copies)
        for axis, size in enumerate(target)
    ]
    given = [size for size in shape if size is not None]
    others, whole, rest = algebra.product(given), algebra.product(x.shape), algebra.one
    if len(given) < len(shape):
        positive = algebra.at_least(others, algebra.one)
        if len(given) != len(shape) - 1 or not call.evaluator.decide(
            positive, "the sizes besides -1 are positive"
        ):
            raise call.cannot("shape", "-1 of the target is ambiguous beside 0 or -1")
        rest = algebra.idiv(whole, others)
    call.evaluator.same("the number of elements stays the same", whole, algebra.mul(rest, others))
    return [reshaped(call, x, [rest if size is None else size for size in shape])]


def _size(call: Application, size: Term, axis: int, x: Array, *, copies: bool) -> Term:
    """A size of a target in which -1 is what is left, and 0 is copied or not."""
    algebra, decide = call.algebra, call.evaluator.decide
    if not copies:
        call.evaluator.given(algebra.ge0(size), "a size is not negative")
        return size
    if decide(algebra.at_least(size, algebra.one), "a size is not 0"):
        return size
    if not decide(algebra.eq0(size), "a size is 0"):
        raise call.cannot("shape", "a size of the target may be negative")
    if axis >= x.rank:
        raise call.cannot("shape", "a 0 of the target has no axis to copy")
    return x.shape[axis]


def reshaped(call: Application, x: Array, shape: Sequence[Term]) -> Array:
    """As many elements in other axes; sizes are matched from the left to the right, and what is
    split or joined is divided."""
    algebra = call.algebra
    one = algebra.one
    old = [axis for axis, size in enumerate(x.shape) if size is not one]
    new = [axis for axis, size in enumerate(shape) if size is not one]
    groups: list[tuple[list[int], list[int]]] = []
    while old or new:
        ins, outs = old[:1], new[:1]
        del old[:1], new[:1]
        while True:
            have = algebra.product(x.shape[axis] for axis in ins)
            want = algebra.product(shape[axis] for axis in outs)
            if have is want and ins and outs:
                break
            if new and (not old or (ins and (not outs or algebra.exact(have, want) is not None))):
                outs.append(new.pop(0))
            elif old:
                ins.append(old.pop(0))
            else:
                break
        groups.append((ins, outs))

    def places(indices: Sequence[Term]) -> list[Term]:
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
        return at

    return x.read(shape, places)
