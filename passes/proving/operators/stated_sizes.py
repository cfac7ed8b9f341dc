"""What the table of operators states of sizes, over terms: requirements become obligations, sizes
and indices become terms."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial, reduce
from typing import Any

import numpy as np

from passes.operators.contract import (
    TRACED,
    Computed,
    Contract,
    Index,
    Item,
    Joint,
    Least,
    Most,
    Need,
    Number,
    Operands,
    Place,
    Product,
    Quotient,
    Rest,
    Size,
    Spread,
    Sum,
)
from passes.operators.contracts import contract_of
from passes.operators.table import traits_of
from passes.operators.traits import Shape
from passes.proving.operators.elementwise import is_spread, joint
from passes.proving.symbolic_evaluator import Application
from passes.proving.terms.algebra import INT64, Algebra
from passes.proving.terms.arrays import Array, Indices
from passes.proving.terms.numbers import SMALL
from passes.proving.terms.term import Term

#: The sizes of an output, None where one is unknown.
Sizes = tuple[Term | None, ...]
#: A term, by the indices of the output.
Element = Callable[[Indices], Term]
#: How many elements of a list are looked at.
_MOST_LISTED = 1 << 10


def known_contract(call: Application) -> Contract | None:
    """The contract of a node; None if nothing is stated of these operands."""
    names, vectors = [*call.node.input], traits_of(call.node).vectors
    arrays = {name: one for name, one in zip(names, call.inputs, strict=True) if one}

    def known(items: Iterable[Term]) -> list[Any]:
        found = ((item, call.algebra.number(item)) for item in items)
        return [item if number is None else number for item, number in found]

    def constant(name: str) -> Any:
        array = arrays[name]
        count = call.algebra.number(call.algebra.product(array.shape))
        if array.dtype not in (INT64, *SMALL) or array.rank > 1 or (count or 0) > _MOST_LISTED:
            return None
        scalar = not array.rank and any(names[place : place + 1] == [name] for place in vectors)
        if scalar or count is None:
            return None
        array = call.evaluator.indices(array)
        numbers = known(array.items() if array.rank else [array.scalar()])
        return np.array(numbers, np.int64) if all(isinstance(n, int) for n in numbers) else None

    return contract_of(
        Operands(
            call.node,
            lambda name: known(arrays[name].shape),
            constant,
            lambda name: known(call.evaluator.indices(arrays[name]).items()),
            call.opset,
        )
    )


def met_contract(call: Application) -> Contract:
    """The contract of a node, as far as its requirements are met.

    Raises:
        NotProvable: nothing is stated of these operands.
    """
    contract = known_contract(call)
    if contract is None or (call.op in TRACED and not contract.elements):
        raise call.cannot("operator", f"{call.op} of these operands is not modelled")
    for need in (*contract.needs, *contract.agreed):
        require(call, need)
    return contract


#: Operators that spread an operand along an axis that is not its last one.
_ALONG_AXIS = frozenset({"DequantizeLinear", "InstanceNormalization", "QuantizeLinear"})


def stated_sizes(call: Application, place: int) -> Sizes | None:
    """The sizes of the output at a place; None if nothing is stated, not even the rank."""
    given, traits = [one for one in call.inputs if one is not None], traits_of(call.node)
    contract = known_contract(call)
    if contract is not None and contract.sizes is not None:
        sizes = contract.each[place] if contract.each else contract.sizes
        for need in contract.needs:
            if not need.sure and not call.algebra.proves(_condition(call, need)):
                open_ = _leaves(Sum([need.size, need.target]))
                sizes = [None if not open_ or _leaves(one) & open_ else one for one in sizes]
        return tuple(None if one is None else term(call, one) for one in sizes)
    if not place and given and traits.shape in (Shape.ELEMENTWISE, Shape.KEPT):
        # executors broadcast some operands either way, but none of those of a move
        alone = call.op in _ALONG_AXIS
        kept = traits.only_moves or all(_fits(one, given[0], alone=alone) for one in given[1:])
        return given[0].shape if kept else None
    return None


def _fits(one: Array, whole: Array, *, alone: bool) -> bool:
    """Return whether an array broadcasts to the sizes of another one for certain; `alone`: wherever
    its axes are."""
    pairs = zip(reversed(one.shape), reversed(whole.shape), strict=False)
    return one.rank <= whole.rank and all(
        size is one.algebra.one or (size is own and not alone) for size, own in pairs
    )


_COMPUTE: dict[type[Computed], Callable[[Algebra, Term, Term], Term]] = {
    Sum: Algebra.add,
    Product: Algebra.mul,
    Quotient: Algebra.idiv,
    Rest: Algebra.imod,
    Least: Algebra.least,
    Most: Algebra.most,
}


def term(call: Application, number: Number) -> Term:
    """A number that is no function of indices."""
    return computed(call, number)(())


def computed(call: Application, number: Number) -> Element:
    """A number as a term, by the indices of the output."""
    made = _computed(call, number)
    if any(isinstance(one, Index | Item) for one in _parts(number)):
        return made
    fixed = made(())
    return lambda at: fixed


def _parts(number: Number) -> Iterator[Number]:
    yield number
    inner = number.parts if isinstance(number, Computed) else ()
    for one in (number.at or ()) if isinstance(number, Item) else inner:
        yield from _parts(one)


def _leaves(number: Number) -> set[object]:
    """The sizes and the items of lists of which a number is made."""
    return {one for one in _parts(number) if isinstance(one, Size | Term)}


def _computed(call: Application, number: Number) -> Element:
    algebra = call.algebra
    match number:
        case Index(axis):
            return lambda at: at[axis]
        case Item(operand, at):
            return read_at(call, _indices(call, operand), at)
        case Size(operand, axis):
            size = call.array(operand).shape[axis]
            return lambda at: size
        case Joint(parts):
            size = reduce(partial(joint, call), (term(call, one) for one in parts))
            return lambda at: size
        case Spread((index, own, whole)):
            own, whole = term(call, own), term(call, whole)
            return computed(call, 0 if is_spread(call, own, whole) else index)
        case Place((index, size)):
            return _place(call, index, term(call, size))
        case Computed(parts):
            compute = partial(_COMPUTE[type(number)], algebra)
            made = [computed(call, one) for one in parts]
            empty = algebra.one if isinstance(number, Product) else algebra.zero
            return lambda at: reduce(compute, (one(at) for one in made)) if made else empty
    known = algebra.whole(number) if isinstance(number, int) else number
    return lambda at: known


def _indices(call: Application, operand: int) -> Array:
    """An operand of whole numbers, as int64."""
    array = call.evaluator.indices(call.array(operand))
    if array.dtype != INT64:
        raise call.cannot("operator", f"indices are {array.dtype}")
    return array


def read_at(call: Application, array: Array, at: Sequence[Number] | None) -> Element:
    """The element of an array at these indices; None: its only one."""
    if at is None:
        only = array.scalar()
        return lambda at: only
    read = [computed(call, one) for one in at]
    return lambda at: array.at([one(at) for one in read])


def _place(call: Application, index: Number, size: Term) -> Element:
    """An index from the front of an axis: of an item, which has to be in range, by whether it is
    negative; that of a bound is decided if that is possible."""
    algebra, read = call.algebra, computed(call, index)

    def counted(at: Indices) -> Term:
        found = read(at)
        return algebra.ite(algebra.ge0(found), found, algebra.add(found, size))

    if not isinstance(index, Item):
        bound = read(())
        if bound.free or algebra.number(bound) is not None:
            return counted
        front = call.evaluator.decide(algebra.ge0(bound), "a bound counts from the front")
        return lambda at: bound if front else algebra.add(bound, size)

    def inside(found: Term) -> Term:
        return algebra.all((algebra.ge0(algebra.add(found, size)), algebra.below(found, size)))

    call.evaluator.for_each(_part(call, index), inside, "an index is in range")
    return counted


def _part(call: Application, item: Item) -> Array:
    """The numbers that an item reads: those of an operand, or the part of each tuple."""
    array, at = _indices(call, item.operand), item.at or ()
    last = [call.algebra.whole(one) for one in at if isinstance(one, int)]
    sizes = array.shape[: array.rank - len(last)]
    return Array(call.algebra, INT64, sizes, lambda at: array.at([*at, *last]))


def require(call: Application, need: Need) -> None:
    """Require what a contract does, or see that it holds if executors may answer without it."""
    if len(need.unless_one) > 1:
        term(call, Joint(need.unless_one))
    elif need.sure:
        call.evaluator.require(_condition(call, need), need.why)
    else:
        call.evaluator.given(_condition(call, need), need.why)


def _condition(call: Application, need: Need) -> Term:
    """That a need is met, for all elements of an operand if it is one of them."""
    algebra, ends = call.algebra, (need.size, need.target)
    items = [one for end in ends for one in _parts(end) if isinstance(one, Item) and one.at]
    sides = [computed(call, one) for one in ends]

    def holds(at: Indices) -> Term:
        size, target = (one(at) for one in sides)
        if need.what == "multiple":
            return algebra.eq0(algebra.imod(size, target))
        difference = algebra.sub(size, target)
        if need.what == "least":
            return algebra.ge0(difference)
        ones = (algebra.sub(term(call, one), algebra.one) for one in need.unless_one)
        return algebra.any(map(algebra.eq0, (difference, *ones)))

    return _of_each(call, items[0], holds) if items else holds(())


def _of_each(call: Application, item: Item, holds: Element) -> Term:
    """That a condition on an item holds for all elements of its operand."""
    algebra, sizes = call.algebra, call.array(item.operand).shape
    variables = [algebra.variable(size) for size in sizes]
    axes = [one.axis for one in item.at or () if isinstance(one, Index)]
    at = [algebra.zero] * (1 + max(axes, default=0))
    for axis, one in zip(axes, variables, strict=True):
        at[axis] = algebra.lift(one)
    return algebra.for_each(sizes, variables, holds(tuple(at)))
