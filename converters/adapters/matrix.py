"""Steps of matrix products."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
from onnx import NodeProto

from passes.converters.steps import adapter_down, identical, refusal_down
from passes.converters.writing.conversion import OLD_FLOATS, Conversion
from passes.types.value_types import Dim, Dims
from passes.writing import spelling

identical("Gemm", 9, 13)
identical("Gemm", 11, because="C may now be missing")
identical("MatMul", 9, 13)
identical("Einsum", 28)
identical("Det", 22)
refusal_down("Det", 11, "no-equivalent", "no op before Det-11 computes a determinant")


@adapter_down("Gemm", 11)
def gemm_10(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """A C that is left out becomes a 0."""
    if len(node.input) > 2 and node.input[2]:
        return [node]
    zero = ctx.number(0, ctx.known_elem_type(node.input[0]))
    return [ctx.changed(node, inputs=[*node.input[:2], zero])]


@adapter_down("MatMul", 9)
def mat_mul_8(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """Of integers, the products of (..., m, k, 1) and (..., 1, k, n) are added up along k."""
    if ctx.known_elem_type(node.input[0]) in OLD_FLOATS:
        return [node]
    a, b = node.input
    a_rank, b_rank = ctx.known_rank(a), ctx.known_rank(b)
    if b_rank == 1:
        axis = a_rank - 1
        return ctx.last(node, "ReduceSum", ctx.op("Mul", a, b), axes=[axis], keepdims=0)
    wide = spelling.unsqueeze(ctx, a, a_rank)
    if a_rank > 1:
        b = spelling.unsqueeze(ctx, b, b_rank - 2)
    axis = max(a_rank - 1, b_rank - 1 if a_rank > 1 else b_rank - 2)
    return ctx.last(node, "ReduceSum", ctx.op("Mul", wide, b), axes=[axis], keepdims=0)


@adapter_down("Einsum", 12, exact=False)
def einsum_11(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """Two operands at a time become a MatMul, or a product that is added up; others transposed.

    Labels that only one operand has are added up first.
    """
    terms, output = _equation(node, ctx)
    operands = [
        _Operand(name, term, ctx.dims_of(name) or (None,) * len(term))
        for name, term in zip(node.input, terms, strict=True)
    ]
    result = _summed(ctx, operands[0], {*output}.union(*terms[1:]))
    for place, other in enumerate(operands[1:], start=1):
        later = {*output}.union(*terms[place + 1 :])
        other = _summed(ctx, other, later | {*result.labels})
        result = _product(ctx, result, other, later)
    perm = [result.labels.index(label) for label in output]
    if not perm:
        return ctx.last(node, "Identity", result.name)
    return ctx.last(node, "Transpose", result.name, perm=perm)


@dataclass(frozen=True)
class _Operand:
    """A tensor whose axes have labels, one character each."""

    name: str
    labels: str
    sizes: Dims

    def size(self, label: str) -> Dim:
        """The size of an axis, as far as it is known; 1 where there is none."""
        return self.sizes[self.labels.index(label)] if label in self.labels else 1


def _equation(node: NodeProto, ctx: Conversion) -> tuple[list[str], str]:
    """The labels of the operands and of the result; each axis of an ellipsis has a digit."""
    equation = ctx.attribute(node, "equation").replace(" ", "")
    left, arrow, output = equation.partition("->")
    terms = left.split(",")
    plain = [term.replace("...", "") for term in terms]
    widths = {
        ctx.known_rank(name) - len(rest)
        for name, term, rest in zip(node.input, terms, plain, strict=True)
        if term != rest
    }
    width = max(widths, default=0)
    if width > len(_DIGITS) or min(widths, default=0) < 0:
        raise ctx.refused("invalid-node", f"the ranks do not fit {equation!r}")
    repeated = [term for term in plain if len({*term}) < len(term)]
    if repeated:
        raise ctx.refused("no-equivalent", f"{repeated[0]!r} in {equation!r} takes a diagonal")
    labels = []
    for name, term, rest in zip(node.input, terms, plain, strict=True):
        own = ctx.known_rank(name) - len(rest) if term != rest else 0
        labels.append(term.replace("...", _DIGITS[width - own : width]))
    every = _DIGITS[:width]
    if not arrow:
        counts = Counter("".join(plain))
        output = "..." + "".join(sorted(label for label in counts if counts[label] == 1))
    return labels, output.replace("...", every)


_DIGITS = "0123456789"


def _summed(ctx: Conversion, one: _Operand, kept: set[str]) -> _Operand:
    """An operand without the axes that nothing else needs."""
    gone = [place for place, label in enumerate(one.labels) if label not in kept]
    if not gone:
        return one
    left = [place for place in range(len(one.labels)) if place not in gone]
    return _Operand(
        spelling.along(ctx, "ReduceSum", one.name, gone, keepdims=0),
        "".join(one.labels[place] for place in left),
        tuple(one.sizes[place] for place in left),
    )


def _product(ctx: Conversion, a: _Operand, b: _Operand, later: set[str]) -> _Operand:
    """The product of two operands, without the axes of both that nothing later needs."""
    for one, other in ((a, b), (b, a)):
        found = _mat_mul(ctx, one, other, _groups(one, other, later))
        if found is not None:
            return found
    batch, rows, columns, shared = _groups(a, b, later)
    labels = batch + rows + columns + shared
    name = ctx.op("Mul", _spread(ctx, a, labels), _spread(ctx, b, labels))
    if shared:
        axes = list(range(len(labels) - len(shared), len(labels)))
        name = spelling.along(ctx, "ReduceSum", name, axes, keepdims=0)
    return _result(name, a, b, batch + rows + columns)


def _groups(a: _Operand, b: _Operand, later: set[str]) -> tuple[str, str, str, str]:
    """The labels of the batch, the rows, the columns, and those that are added up."""
    both = [label for label in a.labels if label in b.labels]
    return (
        "".join(label for label in both if label in later),
        "".join(label for label in a.labels if label not in both),
        "".join(label for label in b.labels if label not in both),
        "".join(label for label in both if label not in later),
    )


def _result(name: str, a: _Operand, b: _Operand, labels: str) -> _Operand:
    sizes = {label: _joint(a.size(label), b.size(label)) for label in labels}
    return _Operand(name, labels, tuple(sizes.values()))


def _joint(a: Dim, b: Dim) -> Dim:
    """The size of an axis of two tensors, one of which may be 1, or unknown."""
    if a is None or a == 1:
        return b if a == 1 or b != 1 else None
    return b if isinstance(b, int) and b != 1 else a


def _spread(ctx: Conversion, one: _Operand, labels: str) -> str:
    """An operand with an axis for each of the labels, of size 1 where it has none."""
    name = _transposed(ctx, one, "".join(label for label in labels if label in one.labels))
    axes = [place for place, label in enumerate(labels) if label not in one.labels]
    return spelling.unsqueeze_axes(ctx, name, axes)


def _transposed(ctx: Conversion, one: _Operand, labels: str) -> str:
    perm = [one.labels.index(label) for label in labels]
    in_order = perm == list(range(len(perm)))
    return one.name if in_order else ctx.op("Transpose", one.name, perm=perm)


def _mat_mul(
    ctx: Conversion, a: _Operand, b: _Operand, groups: tuple[str, str, str, str]
) -> _Operand | None:
    """The product as a MatMul, in which columns and what is added up are one axis each, and rows,
    too, where there is a batch. None where sizes that this takes are not known."""
    batch, rows, columns, shared = groups
    merged = (rows if batch and len(rows) > 1 else "") + (columns if len(columns) > 1 else "")
    if merged:
        merged = (rows if batch and len(rows) > 1 else "") + columns + shared
    elif len(shared) > 1:
        merged = shared
    sizes = {
        label: _joint(a.size(label), b.size(label)) for label in batch + rows + columns + shared
    }
    one_sided = [label for label in shared if 1 in (a.size(label), b.size(label))]
    if not shared or any(a.size(label) != b.size(label) for label in one_sided):
        return None
    if not all(isinstance(sizes[label], int) and sizes[label] for label in merged):
        return None

    def count(labels: str) -> int:
        return prod(size for label in labels if isinstance(size := sizes[label], int))

    def reshaped(name: str, *shape: Dim) -> str:
        return ctx.op("Reshape", name, ctx.value(np.array(shape, np.int64), "shape"))

    kept = [0] * len(batch)  # which copies a size
    left = _transposed(ctx, a, batch + rows + shared)
    together = bool(batch) and len(rows) > 1
    if together:
        left = reshaped(left, *kept, count(rows), count(shared))
    elif len(shared) > 1:
        left = reshaped(left, *kept, *[0] * len(rows), count(shared))
    if not rows:
        left = spelling.unsqueeze(ctx, left, len(batch))
    if len(columns) > 1:
        right = _transposed(ctx, b, batch + shared + columns)
        right = reshaped(right, *kept, count(shared), count(columns))
    elif len(shared) > 1:
        right = _transposed(ctx, b, batch + columns + shared)
        right = reshaped(right, *kept, *[0] * len(columns), count(shared))
        if columns:
            swapped = [*range(len(batch)), len(batch) + 1, len(batch)]
            right = ctx.op("Transpose", right, perm=swapped)
    else:
        right = _transposed(ctx, b, batch + shared + columns)
    if not columns:
        right = spelling.unsqueeze(ctx, right, len(batch) + 1)
    name = ctx.op("MatMul", left, right)
    last = len(batch) + (1 if together else max(len(rows), 1))
    alone = [place for place, labels in ((len(batch), rows), (last, columns)) if not labels]
    if alone:
        name = spelling.along(ctx, "Squeeze", name, alone)
    if together:
        name = reshaped(name, *kept, *(sizes[label] for label in rows + columns))
    elif len(columns) > 1:
        name = reshaped(name, *kept, *[0] * len(rows), *(sizes[label] for label in columns))
    return _result(name, a, b, batch + rows + columns)
