"""Operators that compute each element of elements, with broadcasting."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial, reduce
from itertools import zip_longest

import numpy as np

from passes.operators import traits
from passes.operators.comparisons import COMPARISONS, LOGIC, SWAPPED
from passes.operators.table import TRAITS
from passes.proving.families import (
    ARITHMETIC,
    UNARY,
    cast_attributes,
)
from passes.proving.symbolic_evaluator import Application, Fails, dtype_name, operator
from passes.proving.terms.algebra import BOOL, INT64, Algebra
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
    if call.evaluator.decide(algebra.eq0(algebra.sub(left, right)), why):
        return right if numbers[1] is not None else left
    for one, other in ((left, right), (right, left)):
        if call.evaluator.decide(algebra.eq0(algebra.sub(one, algebra.one)), why):
            return other
    return _unlike(call, left, right)


def _unlike(call: Application, left: Term, right: Term) -> Term:
    """Fail, but in a body that never runs, whose rows have no size of their own."""
    if call.evaluator.is_vacuous:
        return left
    raise Fails(f"{call.evaluator.place()}: sizes {left} and {right} do not broadcast")


def _spread(call: Application, array: Array, shape: tuple[Term, ...]) -> Array:
    """An array that is read at the indices of a shape to which it broadcasts."""
    algebra = call.algebra
    skipped = len(shape) - array.rank
    if array.shape == shape:
        return array
    alone = [
        size is not whole
        and call.evaluator.decide(
            algebra.eq0(algebra.sub(size, algebra.one)), "a size that broadcasts is 1"
        )
        for size, whole in zip(array.shape, shape[skipped:], strict=True)
    ]

    def get(indices: Sequence[Term]) -> Term:
        own = indices[skipped:]
        return array.at([algebra.zero if a else i for a, i in zip(alone, own, strict=True)])

    return Array(algebra, array.dtype, shape, get)


def elementwise(
    call: Application, arrays: Sequence[Array], dtype: str, element: Callable[[list[Term]], Term]
) -> list[Array]:
    """The array that `element` makes of the elements of arrays that broadcast."""
    spread = broadcast(call, *arrays)
    shape = spread[0].shape
    return [Array(call.algebra, dtype, shape, lambda at: element([one.at(at) for one in spread]))]


def meant(call: Application) -> tuple[tuple[str, object], ...]:
    """The attributes that are part of what an element is."""
    found = sorted((n, v) for n, v in call.attributes.items() if n not in _NOT_MEANT)
    return tuple((n, exact(v)) for n, v in found if v is not None)


def exact(value: object) -> object:
    """An attribute as part of a term: a float by its bits, since 0.0 and -0.0 are equal keys."""
    if isinstance(value, tuple):
        return tuple(map(exact, value))
    return value.hex() if isinstance(value, float) else value


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
    if dtype == INT64 and op in ("Max", "Min", "Div", "Mod") and len(arrays) == 2:
        return _ordered(call, op, [call.evaluator.whole_numbers(one) for one in arrays])
    may_fail = TRAITS[op].fails is traits.Fails.INTEGERS and all(
        "int" in one.dtype for one in arrays
    )
    may_fail |= op == "Mod" and "int" not in dtype and not call.attributes.get("fmod")
    if may_fail:
        raise call.cannot("operator", f"{op} of {dtype} is not modelled")
    if op == "Mean" or (op in ("Max", "Min", "Sum") and len(arrays) > 2):
        attributes = (*attributes, ("operands", len(arrays)))
    return elementwise(
        call, arrays, dtype, lambda at: algebra.elementwise(op, attributes, dtype, at)
    )


def _ordered(call: Application, op: str, arrays: list[Array]) -> list[Array]:
    algebra = call.algebra
    if op in ("Max", "Min"):
        extreme = algebra.most if op == "Max" else algebra.least
        return elementwise(call, arrays, INT64, lambda at: extreme(at[0], at[1]))
    positive = {}
    for name, array, lowest in (("value", arrays[0], 0), ("by", arrays[1], 1)):
        _variables, value = array.generic()
        low = algebra.sub(value, algebra.whole(lowest))
        positive[name] = algebra.is_not_negative(low)
    if not positive["by"] or (op == "Div" and not positive["value"]) or call.attributes.get("fmod"):
        raise call.cannot("operator", f"{op} of numbers of unknown sign is not modelled")
    quotient = algebra.idiv if op == "Div" else algebra.imod
    return elementwise(call, arrays, INT64, lambda at: quotient(at[0], at[1]))


@operator(*COMPARISONS)
def comparison(call: Application) -> list[Array]:
    """Comparisons; of int64, the sign of a difference."""
    left, right = (call.evaluator.whole_numbers(call.array(number)) for number in (0, 1))
    call.alike(left, right)
    algebra, op = call.algebra, call.op
    if ">" in COMPARISONS[op]:
        left, right, op = right, left, SWAPPED[op]

    def element(at: list[Term]) -> Term:
        whole = algebra.compared(op, left.dtype, at)
        if whole is not None:
            return whole
        if left.dtype == BOOL:
            return _alike(algebra, at)
        return algebra.elementwise(op, left.dtype, BOOL, at)

    return elementwise(call, [left, right], BOOL, element)


def _alike(algebra: Algebra, at: list[Term]) -> Term:
    """The condition that bools are equal."""
    return algebra.any((algebra.all(at), algebra.all(map(algebra.negation, at))))


@operator(*LOGIC)
def logic(call: Application) -> list[Array]:
    """Bools are formulas."""
    algebra, op, arrays = call.algebra, call.op, _given(call)
    if any(array.dtype != BOOL for array in arrays):
        raise call.cannot("type", f"an operand of {op} is no bool")

    def element(at: list[Term]) -> Term:
        if op in ("And", "Or"):
            return algebra.all(at) if op == "And" else algebra.any(at)
        return algebra.negation(at[0] if op == "Not" else _alike(algebra, at))

    return elementwise(call, arrays, BOOL, element)


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

    def element(value: Term) -> Term:
        if dtype == x.dtype:
            return value
        if x.dtype == BOOL and dtype == INT64:
            return algebra.ite(value, algebra.one, algebra.zero)
        if x.dtype == INT64 and dtype == BOOL:
            return algebra.negation(algebra.eq0(value))
        return algebra.elementwise("Cast", (x.dtype, how), dtype, [value])

    if x.dtype == INT64 and dtype == BOOL:
        call.evaluator.whole_numbers(x)
    return [x.like(lambda at: element(x.at(at)), dtype)]


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
        x, *_ = (call.evaluator.whole_numbers(one) for one in (x, *given))
        low, high = bounds

        def clipped(at: Indices) -> Term:
            value = x.at(at)
            value = value if low is None else algebra.most(value, low.at(()))
            return value if high is None else algebra.least(value, high.at(()))

        return [x.like(clipped)]
    return [
        x.like(
            lambda at: algebra.elementwise(
                "Clip", which, x.dtype, [x.at(at), *(bound.at(()) for bound in given)]
            )
        )
    ]
