"""Operators of which the table tells the origin of each element of their outputs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from passes.operators.contract import (
    TRACED,
    Choice,
    Dot,
    InOrder,
    Read,
    Source,
    Value,
    Weighted,
)
from passes.proving.assumptions import ROWS
from passes.proving.nodes import dtype_name, exact
from passes.proving.operators.layout import reshaped
from passes.proving.operators.reductions import dot
from passes.proving.operators.stated_sizes import (
    Element,
    computed,
    met_contract,
    read_at,
    term,
)
from passes.proving.symbolic_evaluator import Application, operator
from passes.proving.terms.algebra import INT64
from passes.proving.terms.arrays import Array, Indices
from passes.proving.terms.term import Term


@operator(*TRACED)
def traced(call: Application) -> list[Array]:
    """The outputs, of sizes and elements that the table tells."""
    contract = met_contract(call)
    made = []
    for place, source in enumerate(contract.elements):
        sizes = contract.each[place] if contract.each else contract.sizes or []
        shape, dtype = tuple(term(call, one) for one in sizes), _element_type(call, source)
        made.append(Array(call.algebra, dtype, shape, _element(call, source, dtype, shape)))
    return made


def _sources(source: Source) -> list[Source]:
    inner: Sequence[Source] = ()
    match source:
        case Choice(_, left, right) | Dot(_, left, right):
            inner = left, right
        case Weighted(parts, _):
            inner = parts
    return [source, *(one for part in inner for one in _sources(part))]


def _element_type(call: Application, source: Source) -> str:
    """The element type of the elements of a source."""
    found = _sources(source)
    read = [call.array(one.operand) for one in found if isinstance(one, Read | InOrder)]
    call.alike(*read)
    kinds = [one.kind for one in found if isinstance(one, Value) and one.kind]
    if read or not kinds:
        return (read or [call.array(0)])[0].dtype
    return dtype_name(kinds[0])


def _element(call: Application, source: Source, dtype: str, shape: Indices) -> Element:
    """An element of an output of these sizes, by its indices."""
    algebra = call.algebra
    match source:
        case Read(operand, at):
            return read_at(call, call.array(operand), at)
        case InOrder(operand):
            return reshaped(call, call.array(operand), shape).at
        case Value(number, _):
            known = isinstance(number, int | float | np.generic | str | bytes)
            is_text, text = isinstance(number, str | bytes), dtype == "string"
            if is_text != text if known else dtype != INT64:
                raise call.cannot("operator", f"{call.op} of {dtype} is not modelled")
            if not known:
                return computed(call, number)
            literal = algebra.literal(dtype, number if text else np.dtype(dtype).type(number))
            return lambda at: literal
        case Choice(numbers, then, other):
            if _is_empty(call, then):
                return _element(call, other, dtype, shape)
            one = _element(call, then, dtype, shape)
            if _is_empty(call, other):
                return one
            another = _element(call, other, dtype, shape)
            signs = [computed(call, number) for number in numbers]

            def chosen(at: Indices) -> Term:
                found = [sign(at) for sign in signs]
                here = algebra.all(map(algebra.ge0, found))
                if len(found) > 1 and algebra.add(found[0], found[1]) is algebra.zero:
                    here = algebra.eq0(found[0])
                if here in (algebra.true, algebra.false):  # the other one may not exist
                    return (one if here is algebra.true else another)(at)
                return algebra.ite(here, one(at), another(at))

            return chosen
        case Dot():
            return _dot(call, source, dtype, shape)
    return _weighted(call, source, dtype, shape)


def _is_empty(call: Application, source: Source) -> bool:
    """Return whether a source has no element for certain."""
    return isinstance(source, Read) and call.algebra.zero in call.array(source.operand).shape


def _dot(call: Application, source: Dot, dtype: str, shape: Indices) -> Element:
    if call.op == "Einsum" and "float" not in dtype:
        raise call.cannot("operator", f"an Einsum of {dtype} is not modelled")
    call.evaluator.assumed.add(ROWS)
    algebra, size = call.algebra, term(call, source.size)
    # zeros of an Einsum that sums one product have other signs than those of that product
    several = algebra.at_least(size, algebra.whole(2))
    alone = call.op == "Einsum" and (
        not algebra.proves(several)
        if several.free
        else not call.evaluator.decide(several, "two products are summed at least")
    )
    name = "Einsum" if alone else "dot"
    left, right = (_element(call, one, dtype, shape) for one in (source.left, source.right))
    return lambda at: dot(call, dtype, size, lambda k: (left((*at, k)), right((*at, k))), name)


def _weighted(call: Application, source: Weighted, dtype: str, shape: Indices) -> Element:
    algebra = call.algebra
    parts = [_element(call, one, dtype, shape) for one in source.parts]
    factors = source.factors[: len(parts)]
    plain, data = set(factors) == {1}, exact((*factors, None)[:2])

    def summed(at: Indices) -> Term:
        args = [one(at) for one in parts]
        if plain and len(args) == 1:
            return args[0]
        if plain:
            return algebra.elementwise("Add", (), dtype, args, within=call.op)
        return algebra.elementwise(call.op, data, dtype, args)

    return summed
