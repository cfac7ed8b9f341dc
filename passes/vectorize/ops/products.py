"""MatMul, Gemm and Einsum in all combinations of ranks and of operands that carry the axis;
attention and recurrent operators, into whose batch the new axis is merged."""

from __future__ import annotations

from collections.abc import Callable
from string import ascii_letters

import numpy as np
from onnx import NodeProto, helper

from passes.ir.attributes import attribute, number, text
from passes.ir.operators import op_of
from passes.operators.cells import BATCH_AXES, RECURRENT
from passes.vectorize.merging import Merging, over_batch
from passes.vectorize.vectorizer import Vectorizer, batched
from passes.writing import spelling

#: Writes the product of two operands; the name of the result.
Times = Callable[[str, str], str]


@batched("MatMul")
def matmul(node: NodeProto, ctx: Vectorizer) -> None:
    """Vectors become matrices where the new axis would be taken for a matrix axis."""
    ctx.name_as(product(ctx, node.input[0], node.input[1]), node.output[0])


def product(ctx: Vectorizer, a: str, b: str, times: Times | None = None) -> str:
    """The product of two values, at least one of which carries the axis.

    `times` writes the op where it is not MatMul, whose operands may not change places then.
    """
    rank_a, rank_b = ctx.rank(a), ctx.rank(b)
    if rank_b == 1:
        if times is None and not ctx.carries(a) and rank_a == 2:
            return _matmul(ctx, b, _turned(ctx, a))  # one product for all rows
        return spelling.squeeze(ctx, product(ctx, a, _matrix(ctx, b, -1), times), -1)
    if rank_a == 1 and (ctx.carries(b) or rank_b > 2):
        return spelling.squeeze(ctx, product(ctx, _matrix(ctx, a, -2), b, times), -2)
    return _of_matrices(ctx, a, b, times)


def _of_matrices(ctx: Vectorizer, a: str, b: str, times: Times | None) -> str:
    """[..., M, K] x [..., K, N], or vectors that carry the axis, [B, K], x [K, N].

    onnxruntime does not broadcast over an axis of size 0, unless the second operand is a plain
    matrix: where the axis may be empty the other operand gets it, too.
    """
    write = times or (lambda left, right: _matmul(ctx, left, right))
    if not ctx.axis.nonempty and (ctx.rank(b) > 2 or ctx.carries(b)):
        a, b = ctx.spread(a), ctx.spread(b)
    rank = max(ctx.rank(a), ctx.rank(b))
    if ctx.rank(a) == 1:
        return write(a, b)
    return write(ctx.raised(a, rank), ctx.raised(b, rank))


def _matmul(ctx: Vectorizer, a: str, b: str) -> str:
    return ctx.op("MatMul", a, b)


def _matrix(ctx: Vectorizer, vector: str, axis: int) -> str:
    """A vector as a matrix with a new axis of size 1."""
    matrix = spelling.unsqueeze(ctx, vector, axis)
    (size,) = ctx.dims(vector)
    dims = (size, 1) if axis == -1 else (1, size)
    return ctx.note(matrix, ctx.elem_type(vector), dims, carries=ctx.carries(vector))


def _turned(ctx: Vectorizer, name: str) -> str:
    """A value with its last two axes swapped."""
    count = ctx.rank(name) + ctx.carries(name)
    transposed = ctx.op("Transpose", name, perm=[*range(count - 2), count - 1, count - 2])
    dims = ctx.dims(name)
    turned = (*dims[:-2], dims[-1], dims[-2])
    return ctx.note(transposed, ctx.elem_type(name), turned, carries=ctx.carries(name))


@batched("Gemm")
def gemm(node: NodeProto, ctx: Vectorizer) -> None:
    """alpha * A' x B' + beta * C, where A', B' may be transposed and C broadcasts."""
    if _one_line_each(node, ctx):
        return
    a, b = node.input[:2]
    each = ctx.carries(a) or ctx.carries(b)
    if each and attribute(node, "transA", 0) and not ctx.axis.nonempty:
        b = ctx.spread(b)  # onnxruntime fuses the Transpose, and then broadcasts over no empty axis
    a = _turned(ctx, a) if attribute(node, "transA", 0) else a
    b = _turned(ctx, b) if attribute(node, "transB", 0) else b
    result = product(ctx, a, b) if each else _matmul(ctx, a, b)
    value = _scaled(ctx, result, node, "alpha", node.input[0])
    c = node.input[2] if len(node.input) > 2 else ""
    if c:
        scaled = _scaled(ctx, ctx.raised(c, 2), node, "beta", c)
        value = ctx.op("Add", value, scaled)
    ctx.name_as(value, node.output[0])


def _one_line_each(node: NodeProto, ctx: Vectorizer) -> bool:
    """Rows that are a single line [1, K] and share B and C: the lines make one matrix [B, K]."""
    a, b, c = [*node.input, ""][:3]
    fits = not (ctx.carries(b) or ctx.carries(c) or attribute(node, "transA", 0))
    if not fits or ctx.dims(a)[0] != 1 or (c and ctx.rank(c) == 2 and ctx.dims(c)[0] != 1):
        return False
    lines = spelling.squeeze(ctx, a, 1)
    rows = ctx.fresh("gemm")
    ctx.again(
        node,
        [lines, *node.input[1:]],
        [rows],
    )
    ctx.name_as(spelling.unsqueeze(ctx, rows, 1), node.output[0])
    return True


def _scaled(ctx: Vectorizer, value: str, node: NodeProto, attribute_name: str, like: str) -> str:
    """`value` times a float attribute; integers take it as an integer."""
    factor = number(node, attribute_name, 1.0)
    if factor == 1.0:
        return value
    dtype = helper.tensor_dtype_to_np_dtype(ctx.elem_type(like))
    if dtype.kind in "iu" and factor != int(factor):
        sentence = f"Gemm of integers with {attribute_name} {factor} has no vectorisation rule"
        ctx.refuse("no-batching-rule", sentence, *node.output)
    return ctx.op("Mul", value, ctx.value(np.array(factor).astype(dtype), "factor"))


@batched("Einsum")
def einsum(node: NodeProto, ctx: Vectorizer) -> None:
    """A letter that is not used yet leads the operands that carry the axis, and the result."""
    equation = text(node, "equation", "").replace(" ", "")
    left, arrow, right = equation.partition("->")
    if not arrow:
        right = _implied(left)
    free = [letter for letter in ascii_letters if letter not in equation]
    if not free:
        ctx.refuse("no-batching-rule", "an Einsum that uses every letter", *node.output)
    terms = [
        free[0] + term if ctx.carries(name) else term
        for term, name in zip(left.split(","), node.input, strict=True)
    ]
    ctx.again(node, equation=f"{','.join(terms)}->{free[0]}{right}")


def _implied(left: str) -> str:
    """Return the result if the equation names none: the ellipsis, and the letters that occur
    once."""
    letters = left.replace(",", "").replace(".", "")
    once = sorted(letter for letter in letters if letters.count(letter) == 1)
    return ("..." if "..." in left else "") + "".join(once)


_MASK = 3
_MASK_RANK = 4  # batch, heads, queries, keys


@batched("Attention")
def attention(node: NodeProto, ctx: Vectorizer) -> None:
    """Each element of the batch attends by itself; a mask may be shared, by heads or by all."""
    merging = Merging.like(ctx, node.input[0])
    inputs = [
        _mask(node, merging, name) if place == _MASK and name else merging.merged(name)
        for place, name in enumerate(node.input)
    ]
    merging.write(node, inputs, "attention")


def _mask(node: NodeProto, merging: Merging, name: str) -> str:
    """A mask that is not one for all has the merged axis in front."""
    ctx = merging.ctx
    dims = ctx.dims(name)
    by_batch = len(dims) == _MASK_RANK and dims[0] != 1
    known = dims[0] is not None and dims[0] == ctx.dims(node.input[0])[0]
    if by_batch and known:
        return merging.merged(name)
    if by_batch or (ctx.carries(name) and merging.rows != 1):
        ctx.refuse("batched-operand", f"the mask {name!r} may not be one for each element", name)
    if not ctx.carries(name):
        return name
    if len(dims) == _MASK_RANK:
        return merging.merged(name)
    missing = _MASK_RANK - 1 - len(dims)
    return spelling.unsqueeze_axes(ctx, name, range(1, 1 + missing))


@batched("RotaryEmbedding")
def rotary_embedding(node: NodeProto, ctx: Vectorizer) -> None:
    """The caches are looked up by position, or have a batch axis where there are no positions."""
    by_position = len(node.input) > _MASK and bool(node.input[_MASK])
    over_batch(node, ctx, {0, _MASK} if by_position else {0, 1, 2})


#: The batch axis of the outputs Y, Y_h and Y_c, by layout.
_BATCHED_OUTPUTS = ((2, 1, 1), (0, 0, 0))


@batched(*RECURRENT)
def recurrent(node: NodeProto, ctx: Vectorizer) -> None:
    """One sequence an element of the batch; the weights are shared.

    X is [time, batch, ...] or, with layout 1, [batch, time, ...]; states are [directions,
    batch, ...] or [batch, directions, ...].
    """
    layout = attribute(node, "layout", 0)
    axes = dict.fromkeys(BATCH_AXES, 0) if layout else BATCH_AXES
    ctx.only_rows(node, *(place for place in range(len(node.input)) if place not in axes))
    merging = Merging.like(ctx, node.input[0], axes[0])
    inputs = [
        merging.merged(name, axes[place]) if place in axes else name
        for place, name in enumerate(node.input)
    ]
    merging.write(node, inputs, op_of(node).lower(), _BATCHED_OUTPUTS[layout])
