"""Operators of rows: reductions, products of matrices, Softmax."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from itertools import product
from math import prod

import numpy as np

from passes.operators.table import traits_of, where
from passes.proving.assumptions import ROWS
from passes.proving.families import REDUCTIONS
from passes.proving.operators.elementwise import broadcast, exact
from passes.proving.symbolic_evaluator import Application, operator
from passes.proving.terms.algebra import INT64, Algebra
from passes.proving.terms.arrays import Array
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
    body: Callable[[list[Term]], Term],
) -> Term:
    """A reduction over axes of these sizes."""
    algebra = call.algebra
    variables = [algebra.variable(size) for size in sizes]
    inner = body([algebra.lift(one) for one in variables])
    return algebra.reduced(data, tuple(sizes), algebra.close(variables, inner))


@operator(*REDUCTIONS)
def reduction(call: Application) -> list[Array]:
    """Over the given axes, or all."""
    x, op = call.array(0), call.op
    given = call.numbers(1, "axes")
    if not given and call.attributes.get("noop_with_empty_axes"):
        raise call.cannot("operator", f"{op} over no axes is not modelled")
    axes = sorted(call.axes(given or range(x.rank), x.rank))
    keep = bool(call.attributes["keepdims"])
    algebra = call.algebra
    shape = [
        algebra.one if axis in axes else size
        for axis, size in enumerate(x.shape)
        if keep or axis not in axes
    ]
    if op in ("ReduceMax", "ReduceMin", "ReduceMean"):
        for axis in axes:
            if not algebra.is_positive(x.shape[axis]):
                raise call.cannot("empty", f"{op} may have nothing to reduce")
    call.evaluator.assumed.add(ROWS)
    counts = [algebra.number(x.shape[axis]) for axis in axes]
    few = None
    if op in _EXACT and 0 < prod(count or 0 for count in counts) <= _FEW:
        call.evaluator.whole_numbers(x)
        few = list(product(*(range(int(count or 0)) for count in counts)))

    def get(indices: Sequence[Term]) -> Term:
        outer = list(indices)
        if not keep:
            for axis in axes:
                outer.insert(axis, algebra.zero)

        def body(inner: list[Term]) -> Term:
            at = list(outer)
            for axis, index in zip(axes, inner, strict=True):
                at[axis] = index
            return x.at(at)

        if few is not None and x.dtype == INT64:
            items = (body([algebra.whole(n) for n in at]) for at in few)
            return reduce(lambda one, other: _EXACT[op](algebra, one, other), items)
        return _reduced(call, (op, x.dtype), [x.shape[axis] for axis in axes], body)

    return [Array(algebra, x.dtype, tuple(shape), get)]


@operator("ArgMax", "ArgMin")
def arg(call: Application) -> list[Array]:
    """The index of the extreme of a row."""
    x, op = call.array(0), call.op
    algebra = call.algebra
    axis = call.axis(call.attributes["axis"], x.rank)
    keep = bool(call.attributes["keepdims"])
    if not algebra.is_positive(x.shape[axis]):
        raise call.cannot("empty", f"{op} may have nothing to reduce")
    last = bool(call.attributes.get("select_last_index"))

    def get(indices: Sequence[Term]) -> Term:
        at = list(indices) if keep else [*indices[:axis], algebra.zero, *indices[axis:]]
        return _reduced(
            call,
            (op, last, x.dtype, INT64),
            [x.shape[axis]],
            lambda inner: x.at([*at[:axis], inner[0], *at[axis + 1 :]]),
        )

    shape = list(x.shape)
    shape[axis : axis + 1] = [algebra.one] if keep else []
    return [Array(algebra, INT64, tuple(shape), get)]


def dot(
    call: Application, dtype: str, size: Term, pair: Callable[[Term], tuple[Term, Term]]
) -> Term:
    """The sum of products along an axis of this size."""
    made = call.algebra.terms.make
    return _reduced(call, ("dot", dtype), [size], lambda inner: made("pair", None, pair(inner[0])))


@operator("MatMul")
def matmul(call: Application) -> list[Array]:
    """As numpy does it: the last two axes, the others broadcast."""
    left, right = call.array(0), call.array(1)
    call.alike(left, right)
    algebra = call.algebra
    if not left.rank or not right.rank:
        raise call.cannot("shape", "an operand of MatMul is a scalar")
    call.evaluator.assumed.add(ROWS)
    size = left.shape[-1]
    call.evaluator.same(size, right.shape[max(right.rank - 2, 0)], "the inner sizes agree")
    batches = []
    for one in (left, right):
        shape = one.shape[:-2]
        batches.append(Array(algebra, one.dtype, shape, _unread))
    batch = broadcast(call, *batches)[0].shape
    rows = left.shape[-2:-1]
    columns = right.shape[-1:] if right.rank > 1 else ()

    def own(array: Array, indices: Sequence[Term]) -> list[Term]:
        """The indices of the batch that belong to one side, 0 where it broadcasts."""
        outer = array.shape[:-2]
        mine = list(indices[len(batch) - len(outer) : len(batch)])
        whole = batch[len(batch) - len(outer) :]
        zero = algebra.zero
        return [i if s is w else zero for i, s, w in zip(mine, outer, whole, strict=True)]

    for one in (left, right):
        outer = one.shape[:-2]
        for size_, whole in zip(outer, batch[len(batch) - len(outer) :], strict=True):
            if size_ is not whole and size_ is not algebra.one:
                raise call.cannot("shape", "it is unknown which batch size broadcasts")

    def get(indices: Sequence[Term]) -> Term:
        row = list(indices[len(batch) : len(batch) + len(rows)])
        column = list(indices[len(batch) + len(rows) :])

        def pair(k: Term) -> tuple[Term, Term]:
            return (
                left.at([*own(left, indices), *row, k]),
                right.at([*own(right, indices), k, *column]),
            )

        return dot(call, left.dtype, size, pair)

    return [Array(algebra, left.dtype, (*batch, *rows, *columns), get)]


@operator("Einsum")
def einsum(call: Application) -> list[Array]:
    """A product of two operands, summed over one index that both have: over two elements at
    least, since executors give zeros of other signs of one product."""
    equation = call.attributes["equation"].decode().replace(" ", "")
    given, _, result = equation.partition("->")
    names = given.split(",")
    arrays = [call.array(number) for number in range(len(call.inputs))]
    ranks = [array.rank for array in arrays]
    summed = {*"".join(names)} - {*result}
    is_plain = "".join((*names, result)).isalpha() and "->" in equation and len(arrays) == 2
    is_plain &= all(len({*name}) == len(name) for name in (*names, result))
    is_plain &= {*result} <= {*"".join(names)} and ranks == [len(name) for name in names]
    is_plain &= len(summed) == 1 and all(summed <= {*name} for name in names)
    if not is_plain or "float" not in arrays[0].dtype:
        raise call.cannot("operator", f"the equation {equation!r} of Einsum is not modelled")
    call.alike(*arrays)
    algebra, sizes = call.algebra, dict[str, Term]()
    for one, name in zip(arrays, names, strict=True):
        for letter, size in zip(name, one.shape, strict=True):
            equal = algebra.eq0(algebra.sub(sizes.setdefault(letter, size), size))
            call.evaluator.given(equal, f"the sizes of {letter!r} agree")
    (letter,) = summed
    some = algebra.ge0(algebra.sub(sizes[letter], algebra.whole(2)))
    call.evaluator.given(some, "two products are summed at least")
    call.evaluator.assumed.add(ROWS)

    def get(indices: Sequence[Term]) -> Term:
        def pair(k: Term) -> tuple[Term, Term]:
            at = {**dict(zip(result, indices, strict=True)), letter: k}
            one, other = (
                array.at([at[one] for one in name])
                for array, name in zip(arrays, names, strict=True)
            )
            return one, other

        return dot(call, arrays[0].dtype, sizes[letter], pair)

    shape = tuple(sizes[one] for one in result)
    return [Array(algebra, arrays[0].dtype, shape, get)]


def _unread(indices: Sequence[Term]) -> Term:
    """The element of an array that stands for its sizes: `broadcast` reads no other part of it."""
    raise AssertionError("only its sizes are read")


@operator("Gemm")
def gemm(call: Application) -> list[Array]:
    """Its product, with alpha, beta and what is added as one operator by element."""
    a, b, c = call.array(0), call.array(1), call.optional(2)
    algebra, across, down = call.algebra, call.attributes["transA"], call.attributes["transB"]
    call.evaluator.assumed.add(ROWS)
    if a.rank != 2 or b.rank != 2:
        raise call.cannot("shape", "an operand of Gemm is no matrix")
    rows, size = reversed(a.shape) if across else a.shape
    inner, columns = reversed(b.shape) if down else b.shape
    call.evaluator.same(size, inner, "the inner sizes agree")
    factors = exact((call.attributes["alpha"], call.attributes["beta"] if c else None))
    added = None
    if c is not None:
        target = Array(algebra, a.dtype, (rows, columns), _unread)
        spread = broadcast(call, target, c)
        for made, wanted in zip(spread[0].shape, (rows, columns), strict=True):
            equal = algebra.eq0(algebra.sub(made, wanted))
            call.evaluator.given(equal, "the addend broadcasts to the product")
        added = spread[1]

    def get(indices: Sequence[Term]) -> Term:
        row, column = indices

        def pair(k: Term) -> tuple[Term, Term]:
            return (
                a.at([k, row] if across else [row, k]),
                b.at([column, k] if down else [k, column]),
            )

        args = [dot(call, a.dtype, size, pair)]
        if added is not None:
            args.append(added.at(indices))
        plain = call.attributes["alpha"] == 1 and (added is None or call.attributes["beta"] == 1)
        if plain and added is None:
            return args[0]
        if plain and algebra.manner.regrouped:
            return algebra.elementwise("Add", (), a.dtype, args)
        return algebra.elementwise("Gemm", factors, a.dtype, args)

    return [Array(algebra, a.dtype, (rows, columns), get)]


@operator("CumSum")
def running_sum(call: Application) -> list[Array]:
    """The sums of whole numbers up to each of them, as a loop adds them up."""
    x, chosen, algebra = call.array(0), call.array(1), call.algebra
    place = algebra.wide(chosen.dtype, chosen.scalar())
    number = None if place is None else algebra.number(place)
    if number is None or "int" not in x.dtype:
        raise call.cannot("operator", f"a CumSum of {x.dtype}, or along a computed axis")
    axis = call.axis(number, x.rank)
    last = algebra.sub(x.shape[axis], algebra.one)
    backwards, exclusive = call.attributes["reverse"], call.attributes["exclusive"]
    zero = algebra.literal(x.dtype, np.dtype(x.dtype).type(0))

    def get(indices: Sequence[Term]) -> Term:
        index, state = algebra.variable(), algebra.placeholder(x.dtype, "sum")
        at, own = algebra.lift(index), algebra.applied_to(state)(())
        read = algebra.sub(last, at) if backwards else at
        item = x.at([*indices[:axis], read, *indices[axis + 1 :]])
        added = (
            algebra.add(own, item)
            if x.dtype == INT64
            else algebra.elementwise("Add", (), x.dtype, [own, item])
        )
        sums = algebra.recurrence(0, [state], [([], zero)], [([index], added)])
        before = algebra.sub(last, indices[axis]) if backwards else indices[axis]
        count = before if exclusive else algebra.add(before, algebra.one)
        return algebra.state(sums, count, ())

    return [x.like(get)]


@operator(*where(lambda row: row.along_axis))
def rows(call: Application) -> list[Array]:
    """An operator of a row and a place in it."""
    x, op = call.array(0), call.op
    algebra = call.algebra
    axis = call.axis(call.attributes["axis"], x.rank)
    block = call.opset < traits_of(call.node).along_axis
    if block and any(size is not algebra.one for size in x.shape[axis + 1 :]):
        raise call.cannot("operator", f"{op} of several axes at once is not modelled")
    call.evaluator.assumed.add(ROWS)
    data = (op, call.attributes.get("p"), x.dtype)

    def get(indices: Sequence[Term]) -> Term:
        row = _reduced(
            call,
            data,
            [x.shape[axis]],
            lambda inner: x.at([*indices[:axis], inner[0], *indices[axis + 1 :]]),
        )
        return algebra.terms.make("row", x.dtype, (row, indices[axis]))

    return [x.like(get)]
