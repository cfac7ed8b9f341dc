"""The sizes of results of operators whose elements are not modelled, where these are told by the
operator's document and by every executor."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, reduce
from typing import Any

from passes.ir.operators import Registry
from passes.operators.contract import Joint, Operands, Size
from passes.operators.contracts import contract_of
from passes.operators.table import traits_of
from passes.operators.traits import Shape
from passes.proving.operators.elementwise import broadcast, joint
from passes.proving.operators.layout import padded
from passes.proving.symbolic_evaluator import Application
from passes.proving.terms.arrays import Array
from passes.proving.terms.term import Term

#: Operators that spread an operand along an axis that is not its last one.
_ALONG_AXIS = frozenset({"DequantizeLinear", "InstanceNormalization", "QuantizeLinear"})
#: The sizes of an output, None where one is unknown.
Sizes = tuple[Term | None, ...]
_STATED: Registry[Callable[[Application], Sizes | None]] = Registry()


def stated_sizes(call: Application, place: int) -> Sizes | None:
    """The sizes of the output at a place; None if nothing is stated, not even the rank."""
    given = [one for one in call.inputs if one is not None]
    traits = traits_of(call.node)
    if call.op == "TopK":
        return _by_contract(call)
    if place or not given:
        return None
    if call.op in _STATED:
        return _STATED[call.op](call)
    if traits.shape is Shape.BROADCAST:
        return broadcast(call, *given)[0].shape
    if traits.shape in (Shape.ELEMENTWISE, Shape.KEPT):
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


@_STATED.enter("Einsum")
def _by_contract(call: Application) -> Sizes | None:
    arrays = {name: one for name, one in zip(call.node.input, call.inputs, strict=True) if one}
    contract = contract_of(
        Operands(
            call.node,
            lambda name: arrays[name].shape,
            lambda name: None,
            lambda name: call.evaluator.whole_numbers(arrays[name]).items(),
        )
    )
    if contract is None or contract.sizes is None:
        return None
    return tuple(None if one is None else _term(call, one) for one in contract.sizes)


def _term(call: Application, number: Any) -> Term:
    if isinstance(number, Size):
        return call.array(number.operand).shape[number.axis]
    if isinstance(number, Joint):
        return reduce(partial(joint, call), [_term(call, one) for one in number.sizes])
    return call.algebra.whole(number) if isinstance(number, int) else number


@_STATED.enter("Pad")
def _pad(call: Application) -> Sizes:
    return tuple(padded(call)[1])


@_STATED.enter("Conv")
def _conv(call: Application) -> Sizes | None:
    x, w, algebra = call.array(0), call.array(1), call.algebra
    if x.rank != w.rank or x.rank < 3:
        return None
    rank, given = x.rank - 2, call.attributes
    made: list[Term | None] = [x.shape[0], w.shape[0]]
    pads, ones = given["pads"] or (0,) * 2 * rank, (1,) * rank
    strides, dilations = given["strides"] or ones, given["dilations"] or ones
    for axis in range(rank):
        pad, by = pads[axis] + pads[axis + rank], algebra.whole(strides[axis])
        reach = algebra.scaled(algebra.sub(w.shape[axis + 2], algebra.one), dilations[axis])
        last = algebra.sub(algebra.add(x.shape[axis + 2], algebra.whole(pad - 1)), reach)
        known = given["auto_pad"] == b"NOTSET" and algebra.is_not_negative(last)
        made.append(algebra.add(algebra.idiv(last, by), algebra.one) if known else None)
    return tuple(made)
