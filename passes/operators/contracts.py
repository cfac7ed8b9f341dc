"""What each operator requires of the sizes of its operands, the sizes of its outputs, and the
origin of their elements, where it is known."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence

from onnx import NodeProto

from passes.ir.attributes import attribute, number, text
from passes.ir.operators import op_of
from passes.operators import moves, windows
from passes.operators.contract import (
    STATED,
    TRACED,
    Contract,
    Dot,
    Index,
    Joint,
    Need,
    Number,
    Operands,
    Read,
    Source,
    Unstated,
    Weighted,
    alike,
    axes_in,
    indices,
    joined,
    spread,
    spread_at,
)
from passes.operators.table import traits_of
from passes.operators.traits import Shape

__all__ = ["contract_of", "has_contract", "moves", "windows"]


def contract_of(operands: Operands) -> Contract | None:
    """The contract of a node; None if nothing is stated."""
    state = _stating(operands.node)
    try:
        return None if state is None else state(operands)
    except Unstated:
        return None


def has_contract(node: NodeProto) -> bool:
    """Return whether something may be stated of a node."""
    return _stating(node) is not None


def _stating(node: NodeProto) -> Callable[[Operands], Contract] | None:
    op = op_of(node)
    return _OF_SHAPES.get(traits_of(node).shape) or TRACED.get(op) or STATED.get(op)


def _broadcast(given: Operands) -> Contract:
    shapes = [given.sizes(place) for place in range(len(given.node.input))]
    return Contract(*joined(*shapes), complete=True)


@TRACED.enter("Einsum")
def _einsum(given: Operands) -> Contract:
    """The elements are known of products, also if they are summed along one index of both
    operands."""
    equation = text(given.node, "equation", "").replace(" ", "")
    terms, arrow, result = equation.partition("->")
    names, named = terms.split(","), defaultdict[str, list[Number]](list)
    for place, term in enumerate(names):
        before, dots, after = term.partition("...")
        x = given.sizes(place, None if dots else len(term))
        pairs = [*zip(before, x, strict=False), *zip(after[::-1], x[::-1], strict=False)]
        for letter, size in pairs:
            named[letter].append(size)
    needs = alike(*named.values())
    if not arrow or "." in equation or any(len({*term}) < len(term) for term in names):
        return Contract(None, needs)
    sizes = [Joint(named[one]) if one in named else None for one in result]
    summed = [one for one in named if one not in result]
    plain = len(names) == 2 and len(summed) <= 1 and len({*result}) == len(result)
    if not plain or None in sizes or any(len(named[one]) < 2 for one in summed):
        return Contract(sizes, needs)
    at = {one: Index(axis) for axis, one in enumerate([*result, *summed])}
    left, right = (Read(place, [at[one] for one in name]) for place, name in enumerate(names))
    along = named[summed[0]][0] if summed else 1
    equal = [
        Need(own, "equal", several[0], why="the sizes of an index agree", sure=False)
        for several in named.values()
        for own in several[1:]
    ]
    return Contract(sizes, needs, elements=[Dot(along, left, right)], agreed=equal)


@TRACED.enter("Gemm")
def _gemm(given: Operands) -> Contract:
    (rows, inner), (other, columns) = (
        given.sizes(place, 2)[:: -1 if attribute(given.node, name, 0) else 1]
        for place, name in enumerate(("transA", "transB"))
    )
    sizes, at = (rows, columns), [Index(0), Index(1), Index(2)]
    parts: list[Source] = [
        Dot(
            inner,
            Read(0, [at[0 if size == rows else 2] for size in given.sizes(0)]),
            Read(1, [at[1 if size == columns else 2] for size in given.sizes(1)]),
        )
    ]
    needs = [_inner(inner, other)]
    if given.has(2):
        needs += spread(given.sizes(2), sizes)
        parts.append(Read(2, spread_at(given.sizes(2), sizes)))
    factors = [number(given.node, name, 1) for name in ("alpha", "beta")]
    return Contract(sizes, needs, complete=True, elements=[Weighted(parts, factors)])


def _inner(left: Number, right: Number) -> Need:
    return Need(left, "equal", right, why="the inner sizes agree")


@STATED.enter("MatMulInteger")
@TRACED.enter("MatMul")
def _matmul(given: Operands) -> Contract:
    left, right = given.sizes(0), given.sizes(1)
    if not left or not right:
        raise Unstated
    batch, needs = joined(left[:-2], right[:-2])
    rows, columns = left[-2:-1], right[-1:][: len(right) - 1]
    sizes = [*batch, *rows, *columns]
    row, column = indices(rows, len(batch)), indices(columns, len(batch) + len(rows))
    dot = Dot(
        left[-1],
        Read(0, [*spread_at(left[:-2], batch), *row, Index(len(sizes))]),
        Read(1, [*spread_at(right[:-2], batch), Index(len(sizes)), *column]),
    )
    plain = op_of(given.node) == "MatMul"
    needs = [_inner(left[-1], right[-2:][0]), *needs]
    return Contract(sizes, needs, plain, elements=[dot] if plain else [])


def _reduced(given: Operands) -> Contract:
    x, axes = given.sizes(0), given.numbers(1, "axes")
    if axes is None and given.has(1):
        raise Unstated
    every = [] if attribute(given.node, "noop_with_empty_axes", 0) else range(len(x))
    return _without(given, axes_in(axes or every, len(x)))


@STATED.enter("ArgMax", "ArgMin")
def _extreme(given: Operands) -> Contract:
    return _without(given, [given.axis(len(given.sizes(0)), 0)])


def _without(given: Operands, axes: Sequence[int]) -> Contract:
    """A row along these axes becomes one element."""
    x, keep = given.sizes(0), attribute(given.node, "keepdims", 1)
    kept = [size for size in x if keep or size.axis not in axes]
    return Contract([1 if size.axis in axes else size for size in kept], complete=True)


@STATED.enter("TopK")
def _top(given: Operands) -> Contract:
    x = given.sizes(0)
    axis = given.axis(len(x), -1)
    count = [*given.list(1)] if given.has(1) else [attribute(given.node, "k", 1)]
    if len(count) != 1:
        raise Unstated
    return Contract([*x[:axis], *count, *x[axis + 1 :]], [Need(x[axis], "least", count[0])])


_OF_SHAPES = {Shape.BROADCAST: _broadcast, Shape.REDUCED: _reduced}
