"""Operators that read sizes, or make arrays of sizes that are computed."""

from __future__ import annotations

import numpy as np

from passes.proving.symbolic_evaluator import Application, operator
from passes.proving.terms.algebra import INT64
from passes.proving.terms.arrays import Array
from passes.proving.terms.term import Term


def vector(call: Application, items: list[Term]) -> Array:
    """An int64 vector of these numbers."""
    algebra = call.algebra

    def get(indices: tuple[Term, ...]) -> Term:
        (index,) = indices
        known = algebra.number(index)
        if known is not None and 0 <= known < len(items):
            return items[known]
        made = items[-1] if items else algebra.zero
        for number in reversed(range(len(items) - 1)):
            here = algebra.ge0(algebra.sub(algebra.whole(number), index))
            made = algebra.ite(here, items[number], made)
        return made

    return Array(algebra, INT64, (algebra.whole(len(items)),), get)


@operator("Shape")
def shape(call: Application) -> list[Array]:
    """The sizes, or those of some axes."""
    x = call.array(0)
    start, end = call.attributes.get("start") or 0, call.attributes.get("end")
    return [vector(call, list(x.shape[slice(start, end)]))]


@operator("Size")
def size(call: Application) -> list[Array]:
    """The number of elements."""
    whole = call.algebra.product(call.array(0).shape)
    return [Array(call.algebra, INT64, (), lambda at: whole)]


@operator("Range")
def counted(call: Application) -> list[Array]:
    """Numbers in steps of a number that is known."""
    algebra = call.algebra
    parts = [call.evaluator.whole_numbers(call.array(number)) for number in range(3)]
    call.alike(*parts)
    if parts[0].dtype != INT64:
        raise call.cannot("operator", f"a Range of {parts[0].dtype} is not modelled")
    if any(one.rank for one in parts):
        raise call.cannot("shape", "a bound of a Range is no scalar")
    start, end, step = (one.scalar() for one in parts)
    by = algebra.number(step)
    if not by:
        raise call.cannot("operator", "the step of a Range is computed")
    length = algebra.sub(end, start) if by > 0 else algebra.sub(start, end)
    up = algebra.idiv(algebra.add(length, algebra.whole(abs(by) - 1)), algebra.whole(abs(by)))
    count = algebra.most(up, algebra.zero)
    return [
        Array(algebra, INT64, (count,), lambda at: algebra.add(start, algebra.scaled(at[0], by)))
    ]


@operator("ConstantOfShape")
def filled(call: Application) -> list[Array]:
    """One value, at sizes that must not be negative."""
    sizes = call.evaluator.whole_numbers(call.array(0)).items()
    value = call.attributes.get("value")
    value = np.zeros(1, np.float32) if value is None else value
    if value.size != 1:
        raise call.cannot("shape", f"the value has {value.size} elements")
    for one in sizes:
        call.evaluator.require(call.algebra.ge0(one), "a size is not negative")
    item = value.ravel()[0]
    name = "string" if value.dtype == object else value.dtype.name
    made = call.algebra.literal(name, item)
    return [Array(call.algebra, name, tuple(sizes), lambda at: made)]
