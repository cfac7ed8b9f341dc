"""What each operator requires of the sizes of its operands, and the sizes of its outputs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence

from onnx import NodeProto

from passes.ir.attributes import attribute, attributes, text
from passes.ir.operators import Registry, op_of
from passes.ir.versions import NEGATIVE_AXES
from passes.operators.contract import (
    Contract,
    Joint,
    Need,
    Number,
    Operands,
    Size,
    Sum,
    Unstated,
    alike,
    axes_in,
    joined,
    spread,
)
from passes.operators.table import traits_of
from passes.operators.traits import Shape

_CONTRACTS: Registry[Callable[[Operands], Contract]] = Registry()


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
    return _OF_SHAPES.get(traits_of(node).shape) or _CONTRACTS.get(op_of(node))


def _broadcast(given: Operands) -> Contract:
    shapes = [given.sizes(place) for place in range(len(given.node.input))]
    return Contract(*joined(*shapes), complete=True)


@_CONTRACTS.enter("Concat")
def _concat(given: Operands) -> Contract:
    first = given.sizes(0)
    axis = given.axis(len(first), 1)
    shapes = [given.sizes(place, len(first)) for place in range(len(given.node.input))]
    needs = [
        Need(size, "equal", first[size.axis])
        for shape in shapes[1:]
        for size in shape
        if size.axis != axis
    ]
    along = Sum([shape[axis] for shape in shapes])
    return Contract([*first[:axis], along, *first[axis + 1 :]], needs, complete=True)


@_CONTRACTS.enter("Einsum")
def _einsum(given: Operands) -> Contract:
    equation = text(given.node, "equation", "").replace(" ", "")
    terms, arrow, result = equation.partition("->")
    named = defaultdict[str, list[Number]](list)
    for place, term in enumerate(terms.split(",")):
        before, dots, after = term.partition("...")
        x = given.sizes(place, None if dots else len(term))
        pairs = [*zip(before, x, strict=False), *zip(after[::-1], x[::-1], strict=False)]
        for letter, size in pairs:
            named[letter].append(size)
    needs = alike(*named.values())
    if not arrow or "." in equation or any(len({*term}) < len(term) for term in terms.split(",")):
        return Contract(None, needs)
    return Contract([Joint(named[one]) if one in named else None for one in result], needs)


@_CONTRACTS.enter("Expand")
def _expand(given: Operands) -> Contract:
    shape = given.list(1)
    sizes, needs = joined(given.sizes(0), shape)
    return Contract(sizes, [*needs, *(Need(size, "least", 0) for size in shape)], complete=True)


@_CONTRACTS.enter("Gather")
def _gather(given: Operands) -> Contract:
    x, index = given.sizes(0), given.sizes(1)
    axis, chosen = given.axis(len(x), 0), given.constant(given.node.input[1])
    least = 0
    if chosen is not None and chosen.size and chosen.dtype.kind in "iu":
        if chosen.min() < 0 and given.opset < NEGATIVE_AXES:
            raise Unstated
        least = max(int(chosen.max()) + 1, -int(chosen.min()))
    needs, sizes = [Need(x[axis], "least", least)], [*x[:axis], *index, *x[axis + 1 :]]
    return Contract(sizes, needs, complete=chosen is not None)


@_CONTRACTS.enter("GatherElements")
def _gather_elements(given: Operands) -> Contract:
    return Contract(given.sizes(1))


@_CONTRACTS.enter("Gemm")
def _gemm(given: Operands) -> Contract:
    rows, inner = _matrix(given, 0, "transA")
    other, columns = _matrix(given, 1, "transB")
    added = given.sizes(2) if given.has(2) else []
    needs = [Need(inner, "equal", other), *spread(added, (rows, columns))]
    return Contract((rows, columns), needs, complete=True)


def _matrix(given: Operands, place: int, transposed: str) -> Sequence[Size]:
    return given.sizes(place, 2)[:: -1 if attribute(given.node, transposed, 0) else 1]


@_CONTRACTS.enter("MatMul", "MatMulInteger")
def _matmul(given: Operands) -> Contract:
    left, right = given.sizes(0), given.sizes(1)
    if not left or not right:
        raise Unstated
    batch, needs = joined(left[:-2], right[:-2])
    inner = Need(left[-1], "equal", right[-2:][0])
    sizes = [*batch, *left[-2:-1], *right[-1:][: len(right) - 1]]
    return Contract(sizes, [inner, *needs], complete=op_of(given.node) == "MatMul")


@_CONTRACTS.enter("Pad")
def _pad(given: Operands) -> Contract:
    x, pads, chosen = given.sizes(0), given.numbers(1, "pads"), given.numbers(3, "axes")
    if chosen is None and given.has(3):
        raise Unstated
    axes = axes_in(range(len(x)) if chosen is None else chosen, len(x))
    if pads is None or len(pads) != 2 * len(axes):
        raise Unstated
    sizes: list[Number] = [*x]
    needs = []
    for axis, *ends in zip(axes, pads, pads[len(axes) :], strict=False):
        sizes[axis] = Sum([x[axis], *ends])
        reflects = text(given.node, "mode", "constant") == "reflect"
        least = max(ends) + 1 if reflects else -sum(end for end in ends if end < 0)
        needs.append(Need(x[axis], "least", least))
    return Contract(sizes, needs)


def _reduced(given: Operands) -> Contract:
    x, axes = given.sizes(0), given.numbers(1, "axes")
    if axes is None and given.has(1):
        raise Unstated
    every = [] if attribute(given.node, "noop_with_empty_axes", 0) else range(len(x))
    return _without(given, axes_in(axes or every, len(x)))


@_CONTRACTS.enter("ArgMax", "ArgMin")
def _extreme(given: Operands) -> Contract:
    return _without(given, [given.axis(len(given.sizes(0)), 0)])


def _without(given: Operands, axes: Sequence[int]) -> Contract:
    """A row along these axes becomes one element."""
    x, keep = given.sizes(0), attribute(given.node, "keepdims", 1)
    kept = [size for size in x if keep or size.axis not in axes]
    return Contract([1 if size.axis in axes else size for size in kept], complete=True)


@_CONTRACTS.enter("Split")
def _split(given: Operands) -> Contract:
    """Parts of given sizes, or equal ones; of unequal ones that are not given, executors differ."""
    x, parts, count = given.sizes(0), given.numbers(1, "split"), len(given.node.output)
    axis = given.axis(len(x), 0)
    if parts:
        needs = [Need(x[axis], "equal", sum(parts)), *(Need(part, "least", 0) for part in parts)]
    else:
        needs = [Need(x[axis], "least", count), Need(x[axis], "multiple", count)]
    complete = len(parts) == count if parts else not given.has(1)
    return Contract([*x[:axis], None, *x[axis + 1 :]], needs, complete)


@_CONTRACTS.enter("Squeeze")
def _squeeze(given: Operands) -> Contract:
    x, axes = given.sizes(0), given.numbers(1, "axes")
    if not axes:  # executors differ
        raise Unstated
    gone = axes_in(axes, len(x))
    needs = [Need(x[axis], "equal", 1) for axis in gone]
    return Contract([size for size in x if size.axis not in gone], needs, complete=True)


@_CONTRACTS.enter("TopK")
def _top(given: Operands) -> Contract:
    x = given.sizes(0)
    axis = given.axis(len(x), -1)
    count = [*given.list(1)] if given.has(1) else [attribute(given.node, "k", 1)]
    if len(count) != 1:
        raise Unstated
    return Contract([*x[:axis], *count, *x[axis + 1 :]], [Need(x[axis], "least", count[0])])


@_CONTRACTS.enter("Transpose")
def _transpose(given: Operands) -> Contract:
    x = given.sizes(0)
    order = attributes(given.node, "perm")
    if order is not None and sorted(order) != [*range(len(x))]:
        raise Unstated
    return Contract(x[::-1] if order is None else [x[axis] for axis in order], complete=True)


@_CONTRACTS.enter("Unsqueeze")
def _unsqueeze(given: Operands) -> Contract:
    x, axes = given.sizes(0), given.numbers(1, "axes")
    if not axes:  # executors differ
        raise Unstated
    new, rest = axes_in(axes, len(x) + len(axes)), iter(x)
    sizes = [1 if axis in new else next(rest) for axis in range(len(x) + len(axes))]
    return Contract(sizes, complete=True)


_OF_SHAPES = {Shape.BROADCAST: _broadcast, Shape.REDUCED: _reduced}
