"""Operators of rows: reductions, products of matrices, Softmax."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial, reduce
from itertools import product
from math import prod

from passes.operators.contract import Size
from passes.operators.table import traits_of, where
from passes.operators.traits import Fails
from passes.proving.assumptions import ROWS
from passes.proving.families import REDUCTIONS
from passes.proving.operators.stated_sizes import met_contract, term
from passes.proving.symbolic_evaluator import Application, operator
from passes.proving.terms.algebra import INT64, Algebra
from passes.proving.terms.arrays import Array, Indices
from passes.proving.terms.term import Term

#: Those that are exact on whole numbers, by what joins two, and of how many they are written out.
_EXACT = {
    "ReduceSum": Algebra.add,
    "ReduceProd": Algebra.mul,
    "ReduceMax": Algebra.most,
    "ReduceMin": Algebra.least,
}
_FEW = 8


def _reduced(
    call: Application,
    data: tuple[object, ...],
    sizes: Sequence[Term],
    body: Callable[[Indices], Term],
) -> Term:
    """A reduction over axes of these sizes."""
    algebra = call.algebra
    variables = [algebra.variable(size) for size in sizes]
    inner = body(tuple(map(algebra.lift, variables)))
    return algebra.reduced(data, tuple(sizes), algebra.close(variables, inner))


def _reducing(
    call: Application,
) -> tuple[Indices, list[int], Callable[[Indices, Indices], Term]]:
    """The sizes without those of the rows, the axes of these, and the element of a row at indices
    of the output and of the row.

    Raises:
        NotProvable: a row may have no element of which it could be made.
    """
    x, algebra, contract = call.array(0), call.algebra, met_contract(call)
    sizes = contract.sizes or []
    kept = [one.axis for one in sizes if isinstance(one, Size)]
    axes = [axis for axis in range(x.rank) if axis not in kept]
    if x.rank and not axes:
        raise call.cannot("operator", f"{call.op} over no axes is not modelled")
    some = traits_of(call.node).fails is Fails.EMPTY or call.op == "ReduceMean"
    if some and not all(algebra.is_positive(x.shape[axis]) for axis in axes):
        raise call.cannot("empty", f"{call.op} may have nothing to reduce")
    places = {axis: axis if len(sizes) == x.rank else kept.index(axis) for axis in kept}

    def item(outer: Indices, inner: Indices) -> Term:
        row = dict(zip(axes, inner, strict=True))
        at = (row[axis] if axis in row else outer[places[axis]] for axis in range(x.rank))
        return x.at([*at])

    return tuple(term(call, one) for one in sizes), axes, item


@operator(*REDUCTIONS, "ArgMax", "ArgMin")
def reduction(call: Application) -> list[Array]:
    """Over the given axes, or all; or the index of an extreme."""
    x, op, algebra = call.array(0), call.op, call.algebra
    shape, axes, item = _reducing(call)
    data: tuple[object, ...] = (op, x.dtype)
    if op in REDUCTIONS:
        call.evaluator.assumed.add(ROWS)
    else:
        data = (op, bool(call.attributes.get("select_last_index")), x.dtype, INT64)
    counts = [algebra.number(x.shape[axis]) or 0 for axis in axes]
    few = op in _EXACT and x.dtype == INT64 and 0 < prod(counts) <= _FEW
    if few:
        call.evaluator.whole_numbers(x)

    def get(outer: Indices) -> Term:
        if few:
            places = product(*(map(algebra.whole, range(count)) for count in counts))
            items = (item(outer, at) for at in places)
            return reduce(lambda one, other: _EXACT[op](algebra, one, other), items)
        sizes = [x.shape[axis] for axis in axes]
        return _reduced(call, data, sizes, partial(item, outer))

    return [Array(algebra, str(data[-1]), shape, get)]


def dot(
    call: Application,
    dtype: str,
    size: Term,
    pair: Callable[[Term], tuple[Term, Term]],
    name: str = "dot",
) -> Term:
    """The sum of products along an axis of this size."""
    made = call.algebra.terms.make
    return _reduced(call, (name, dtype), [size], lambda inner: made("pair", None, pair(inner[0])))


@operator(*where(lambda row: row.along_axis))
def rows(call: Application) -> list[Array]:
    """An operator of a row and a place in it."""
    x, op = call.array(0), call.op
    algebra = call.algebra
    axis = call.axis(call.attributes["axis"], x.rank)
    block = call.opset < traits_of(call.node).along_axis
    if block and any(size is not algebra.one for size in x.shape[axis + 1 :]):
        raise call.cannot("operator", f"{op} of several axes at once is not modelled")
    row = _row(call, (op, call.attributes.get("p"), x.dtype), axis)
    return [x.like(lambda at: algebra.terms.make("row", x.dtype, (row(at), at[axis])))]


def _row(call: Application, data: tuple[object, ...], axis: int) -> Callable[[Indices], Term]:
    """A function of the row of an operand in which an element of the output is located."""
    x = call.array(0)
    call.evaluator.assumed.add(ROWS)
    return lambda at: _reduced(
        call,
        data,
        [x.shape[axis]],
        lambda inner: x.at([*at[:axis], inner[0], *at[axis + 1 :]]),
    )


@operator("TopK")
def top(call: Application) -> list[Array]:
    """The largest elements of a row and their indices, by their place among them."""
    x, algebra, sizes = call.array(0), call.algebra, met_contract(call).sizes or []
    if not call.attributes.get("sorted", 1):
        raise call.cannot("operator", "the order of a TopK is left open")
    shape = tuple(term(call, one) for one in sizes)
    axis = call.axis(call.attributes["axis"], x.rank)
    count = shape[axis]
    call.evaluator.given(algebra.ge0(count), "the number of elements is not negative")
    row = _row(call, ("TopK", bool(call.attributes.get("largest", 1)), x.dtype), axis)

    def array(output: int, dtype: str) -> Array:
        def get(at: Indices) -> Term:
            return algebra.opaque(dtype, "row", (output, dtype), (row(at), at[axis], count))

        return Array(algebra, dtype, shape, get)

    return [array(0, x.dtype), array(1, INT64)]
