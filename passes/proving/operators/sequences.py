"""Sequences of tensors of one size, as the tensor that stacks them."""

from __future__ import annotations

from functools import partial, reduce

from passes.operators.contract import Item, Place
from passes.proving.nodes import dtype_name
from passes.proving.operators.layout import reshaped
from passes.proving.operators.stated_sizes import term
from passes.proving.symbolic_evaluator import Application, operator
from passes.proving.terms.algebra import INT64
from passes.proving.terms.arrays import Array, Indices, Stacked
from passes.proving.terms.term import Term


def _stacked(call: Application, *, some: bool = False) -> Stacked:
    """The sequence that an operator reads, which has to have elements if it needs `some`. Raises
    NotProvable for one of unlike elements."""
    found, algebra = call.array(0), call.algebra
    if not isinstance(found, Stacked):
        raise call.cannot("operator", f"{call.op} of such a sequence is not modelled")
    if some:
        least = algebra.at_least(found.shape[0], algebra.one)
        call.evaluator.require(least, "the sequence has elements")
    if some and found.shape[0] is algebra.zero:
        raise call.cannot("shape", f"{call.op} reads an empty sequence")
    return found


@operator("SequenceEmpty")
def empty(call: Application) -> list[Array]:
    """No elements, of any sizes."""
    dtype = call.attributes["dtype"]
    return [Stacked.of_none(call.algebra, dtype_name(1 if dtype is None else dtype))]


def _inserted(call: Application, sequence: Stacked, element: Array) -> Stacked:
    """A sequence with another element at its end."""
    algebra, (count, *sizes) = call.algebra, sequence.shape
    call.alike(sequence, element)
    if isinstance(element, Stacked):
        raise call.cannot("type", "an element of a sequence is no tensor")
    if count is algebra.zero:
        shape = (algebra.one, *element.shape)
        return Stacked(algebra, element.dtype, shape, lambda at: element.at(at[1:]))
    if len(sizes) != element.rank:
        raise call.cannot("shape", "the elements of a sequence have other ranks")
    for left, right in zip(sizes, element.shape, strict=True):
        call.evaluator.given(algebra.equal(left, right), "elements have equal sizes")

    def get(at: Indices) -> Term:
        return algebra.ite(algebra.below(at[0], count), sequence.at(at), element.at(at[1:]))

    return Stacked(algebra, element.dtype, (algebra.add(count, algebra.one), *sizes), get)


@operator("SequenceInsert")
def insert(call: Application) -> list[Array]:
    """An element more, at the end."""
    if call.optional(2) is not None:
        raise call.cannot("operator", "an element that is inserted elsewhere is not modelled")
    return [_inserted(call, _stacked(call), call.array(1))]


@operator("SequenceConstruct")
def construct(call: Application) -> list[Array]:
    """The operands one after the other."""
    none = Stacked.of_none(call.algebra, call.array(0).dtype)
    arrays = (call.array(place) for place in range(len(call.inputs)))
    return [reduce(partial(_inserted, call), arrays, none)]


@operator("SequenceLength")
def length(call: Application) -> list[Array]:
    """The number of elements."""
    count = _stacked(call).shape[0]
    return [Array(call.algebra, INT64, (), lambda _: count)]


@operator("SequenceAt")
def at_place(call: Application) -> list[Array]:
    """One element; a negative place counts from the end."""
    sequence = _stacked(call, some=True)
    if call.array(1).rank:
        raise call.cannot("shape", "a place in a sequence is no scalar")
    return [sequence.slice(0, term(call, Place([Item(1), sequence.shape[0]])))]


@operator("SplitToSequence")
def split(call: Application) -> list[Array]:
    """The slices of an axis, each of size 1 there or without it."""
    x, algebra = call.array(0), call.algebra
    if call.optional(1) is not None:
        raise call.cannot("operator", "parts of other sizes are not modelled")
    axis, keeps = call.axis(call.attributes["axis"], x.rank), bool(call.attributes["keepdims"])
    moved = x.moved(axis, 0)
    shape = (*moved.shape[: axis + 1], *[algebra.one] * keeps, *moved.shape[axis + 1 :])

    def get(at: Indices) -> Term:
        return moved.at([*at[: axis + 1], *at[axis + 1 + keeps :]])

    return [Stacked(algebra, x.dtype, shape, get)]


@operator("ConcatFromSequence")
def concatenated(call: Application) -> list[Array]:
    """All elements, one after the other along an axis or along a new one."""
    sequence, algebra = _stacked(call, some=True), call.algebra
    count, *sizes = sequence.shape
    new = bool(call.attributes["new_axis"])
    axis = call.axis(call.attributes["axis"], len(sizes) + new)
    made = sequence.moved(0, axis)
    if new:
        return [made]
    joined = (*sizes[:axis], algebra.mul(count, sizes[axis]), *sizes[axis + 1 :])
    return [reshaped(call, made, joined)]
