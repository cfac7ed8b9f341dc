"""Operators that compute each element of elements, with broadcasting."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial, reduce
from itertools import zip_longest

import numpy as np

from passes.operators import traits
from passes.operators.comparisons import COMPARISONS, LOGIC
from passes.operators.table import TRAITS
from passes.proving.families import (
    ARITHMETIC,
    UNARY,
    cast_attributes,
)
from passes.proving.nodes import Data, data_of, dtype_name
from passes.proving.symbolic_evaluator import Application, Fails, operator
from passes.proving.terms.algebra import BOOL, INT64
from passes.proving.terms.arrays import Array, Indices, constant
from passes.proving.terms.term import Term

#: Their attributes before opset 7 (legacy broadcasting) and hints without a meaning.
_NOT_MEANT = {"consumed_inputs", "axis", "broadcast"}


def broadcast(call: Application, *arrays: Array) -> list[Array]:
    """Arrays of the sizes that these have together."""
    columns = [*zip_longest(*(reversed(array.shape) for array in arrays))][::-1]
    shape = tuple(reduce(partial(joint, call), filter(None, column)) for column in columns)
    return [_spread(call, array, shape) for array in arrays]


def joint(call: Application, left: Term, right: Term) -> Term:
    """The size of two axes that broadcast."""
    algebra = call.algebra
    if left is right or right is algebra.one:
        return left
    if left is algebra.one:
        return right
    why = "sizes that broadcast"
    numbers = algebra.number(left), algebra.number(right)
    if None not in numbers:
        return _unlike(call, left, right)
    if call.evaluator.decide(algebra.equal(left, right), why):
        return right if numbers[1] is not None else left
    for one, other in ((left, right), (right, left)):
        if call.evaluator.decide(algebra.equal(one, algebra.one), why):
            return other
    return _unlike(call, left, right)


def _unlike(call: Application, left: Term, right: Term) -> Term:
    """Fail, but in a body that never runs, whose rows have no size of their own."""
    if call.evaluator.is_vacuous:
        return left
    raise Fails(f"{call.evaluator.place()}: sizes {left} and {right} do not broadcast")


def _spread(call: Application, array: Array, shape: tuple[Term, ...]) -> Array:
    """An array that is read at the indices of a shape to which it broadcasts."""
    skipped, zero = len(shape) - array.rank, call.algebra.zero
    if array.shape == shape:
        return array
    sizes = zip(array.shape, shape[skipped:], strict=True)
    alone = [is_spread(call, *pair) for pair in sizes]
    return array.read(
        shape,
        lambda at: [zero if one else i for one, i in zip(alone, at[skipped:], strict=True)],
    )


def is_spread(call: Application, size: Term, whole: Term) -> bool:
    """Return whether an axis that broadcasts to another size is read at 0 alone."""
    is_one = call.algebra.equal(size, call.algebra.one)
    return size is not whole and call.evaluator.decide(is_one, "a size that broadcasts is 1")


def elementwise(
    call: Application, arrays: Sequence[Array], dtype: str, element: Callable[[list[Term]], Term]
) -> list[Array]:
    """The array that `element` makes of the elements of arrays that broadcast."""
    spread = broadcast(call, *arrays)
    shape = spread[0].shape
    return [Array(call.algebra, dtype, shape, lambda at: element([one.at(at) for one in spread]))]


def meant(call: Application) -> Data:
    """The attributes that are part of what an element is."""
    return data_of({n: v for n, v in call.attributes.items() if n not in _NOT_MEANT})


def _given(call: Application) -> list[Array]:
    return [call.array(number) for number in range(len(call.inputs))]


@operator(*UNARY)
def unary(call: Application) -> list[Array]:
    """An operator of one input."""
    x = call.array(0)
    algebra, op, attributes = call.algebra, call.op, meant(call)
    if op == "Neg" and x.dtype == INT64:
        return [x.like(lambda at: algebra.scaled(x.at(at), -1))]
    dtype = BOOL if op in ("IsInf", "IsNaN") else x.dtype
    return [x.like(lambda at: algebra.elementwise(op, attributes, dtype, [x.at(at)]), dtype)]


@operator(*ARITHMETIC)
def arithmetic(call: Application) -> list[Array]:
    """Operators of several inputs; int64 sums and products are polynomials."""
    arrays = _given(call)
    algebra, op, attributes, dtype = call.algebra, call.op, meant(call), arrays[0].dtype
    if len(arrays) == 1 and op != "Sum":  # which makes 0 of -0
        return arrays
    if op != "Pow":
        call.alike(*arrays)
    if call.opset < TRAITS[op].since and len({one.shape for one in arrays}) > 1:
        raise call.cannot("operator", f"sizes that differ in an {op} of opset {call.opset}")
    if dtype == INT64 and op in ("Add", "Sub", "Mul"):
        exact = {"Add": algebra.add, "Sub": algebra.sub, "Mul": algebra.mul}[op]
        return elementwise(call, arrays, dtype, lambda at: exact(at[0], at[1]))
    if dtype == INT64 and op in ("Max", "Min", "Div", "Mod"):
        arrays = list(map(call.evaluator.whole_numbers, arrays))
    if dtype == INT64 and op in ("Div", "Mod"):
        return _divided(call, op, arrays)
    may_fail = TRAITS[op].fails is traits.Fails.INTEGERS and all(
        "int" in one.dtype for one in arrays
    )
    may_fail |= op == "Mod" and "int" not in dtype and not call.attributes.get("fmod")
    if may_fail:
        raise call.cannot("operator", f"{op} of {dtype} is not modelled")
    return elementwise(
        call, arrays, dtype, lambda at: algebra.by_element(op, attributes, dtype, at, dtype)
    )


def _divided(call: Application, op: str, arrays: list[Array]) -> list[Array]:
    algebra = call.algebra
    positive = {}
    for name, array, lowest in (("value", arrays[0], 0), ("by", arrays[1], 1)):
        _variables, value = array.generic()
        low = algebra.sub(value, algebra.whole(lowest))
        positive[name] = algebra.is_not_negative(low)
    if not positive["by"] or (op == "Div" and not positive["value"]) or call.attributes.get("fmod"):
        raise call.cannot("operator", f"{op} of numbers of unknown sign is not modelled")
    quotient = algebra.idiv if op == "Div" else algebra.imod
    return elementwise(call, arrays, INT64, lambda at: quotient(at[0], at[1]))


@operator(*COMPARISONS, *LOGIC)
def condition(call: Application) -> list[Array]:
    """Comparisons, of int64 the sign of a difference; operators of bools, which are formulas."""
    algebra, op, arrays = call.algebra, call.op, _given(call)
    arrays, source = list(map(call.evaluator.whole_numbers, arrays)), arrays[0].dtype
    call.alike(*arrays)
    if op in LOGIC and source != BOOL:
        raise call.cannot("type", f"an operand of {op} is no bool")
    return elementwise(call, arrays, BOOL, lambda at: algebra.by_element(op, (), BOOL, at, source))


@operator("Where")
def where(call: Application) -> list[Array]:
    """One of two elements."""
    condition, left, right = _given(call)
    call.alike(left, right)
    if condition.dtype != BOOL:
        raise call.cannot("type", f"the condition is {condition.dtype}")
    return elementwise(call, [condition, left, right], left.dtype, lambda at: call.algebra.ite(*at))


@operator("Cast", "CastLike")
def cast(call: Application) -> list[Array]:
    """Another element type."""
    x = call.array(0)
    like = call.op == "CastLike"
    dtype = call.array(1).dtype if like else dtype_name(call.attributes["to"])
    if x.dtype == "string" != dtype:
        raise call.cannot("operator", "a number that is read from a string is not modelled")
    algebra = call.algebra
    how = cast_attributes(dtype, call.attributes)
    if x.dtype == INT64 and dtype == BOOL:
        call.evaluator.whole_numbers(x)
    return [x.like(lambda at: algebra.by_element("Cast", how, dtype, [x.at(at)], x.dtype), dtype)]


@operator("Clip")
def clip(call: Application) -> list[Array]:
    """Bounds as attributes (floats, then of float32) or as inputs are the same."""
    x, algebra = call.array(0), call.algebra
    bounds = [call.optional(1), call.optional(2)]
    if "min" in call.attributes:  # until opset 10, with defaults that infinities are clipped to
        ends = (np.array(call.attributes[one], x.dtype) for one in ("min", "max"))
        bounds = [constant(algebra, one) for one in ends]
    if any(bound is not None and bound.rank for bound in bounds):
        raise call.cannot("operator", "a bound is no scalar")
    given = [bound for bound in bounds if bound is not None]
    which = tuple(bound is not None for bound in bounds)
    if x.dtype == INT64:
        call.alike(x, *given)
        x, *given = (call.evaluator.whole_numbers(one) for one in (x, *given))

    def clipped(at: Indices) -> Term:
        operands = [x.at(at), *(bound.at(()) for bound in given)]
        return algebra.by_element("Clip", which, x.dtype, operands, x.dtype)

    return [x.like(clipped)]
