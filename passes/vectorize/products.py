"""MatMul and Gemm in all combinations of ranks and of operands that carry the axis."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from onnx import NodeProto, helper

from passes import spelling
from passes.vectorize.axes import attribute
from passes.vectorize.table import batched
from passes.vectorize.vectorizer import Vectorizer

#: Writes the product of two operands; the name of the result.
Times = Callable[[str, str], str]


@batched("MatMul")
def matmul(node: NodeProto, at: Vectorizer) -> None:
    """Vectors become matrices where the new axis would be taken for a matrix axis."""
    at.name_as(product(at, *node.input), node.output[0])


def product(at: Vectorizer, a: str, b: str, times: Times | None = None) -> str:
    """The product of two values, at least one of which carries the axis.

    `times` writes the op where it is not MatMul, whose operands may not change places then.
    """
    rank_a, rank_b = at.rank(a), at.rank(b)
    write: Times = times or (lambda left, right: at.op("MatMul", left, right))
    if rank_b == 1:
        swapped = None if times else _swapped(at, a, b, rank_a)
        return swapped or _times_vector(at, a, b, rank_a, write)
    if rank_a == 1:
        return _vector_times(at, a, b, rank_b, write)
    rank = max(rank_a, rank_b)
    return write(at.raised(a, rank), at.raised(b, rank))


def _swapped(at: Vectorizer, a: str, b: str, rank_a: int) -> str | None:
    """A shared [K] or [M, K] times a vector: one product for all rows, instead of one per row."""
    if at.carries(a) or rank_a > 2:
        return None
    return at.op("MatMul", b, a if rank_a == 1 else at.op("Transpose", a, perm=[1, 0]))


def _times_vector(at: Vectorizer, a: str, b: str, rank_a: int, times: Times) -> str:
    """[..., M, K] x [K] or [K] x [K]."""
    if not at.carries(b):
        return times(a, b)  # [B, ..., M, K] x [K]
    column = spelling.unsqueeze(at.author, b, -1)  # [B, K, 1]
    if rank_a == 1:  # [B, 1, K] or [K] x [B, K, 1]
        line = spelling.unsqueeze(at.author, a, 1) if at.carries(a) else a
        dot = times(line, column)
        if not at.carries(a):
            return spelling.squeeze(at.author, dot, -1)
        return spelling.squeeze(at.author, spelling.squeeze(at.author, dot, -1), -1)
    if rank_a > 2:
        column = spelling.unsqueeze_axes(at.author, column, range(1, rank_a - 1))
    return spelling.squeeze(at.author, times(a, column), -1)


def _vector_times(at: Vectorizer, a: str, b: str, rank_b: int, times: Times) -> str:
    """[K] x [..., K, N]."""
    if not at.carries(a):
        return times(a, b)  # [K] x [B, ..., K, N]
    if rank_b == 2 and not at.carries(b):
        return times(a, b)  # [B, K] x [K, N]: one product for all rows
    line = spelling.unsqueeze_axes(at.author, a, range(1, rank_b))  # [B, 1, ..., 1, K]
    return spelling.squeeze(at.author, times(line, b), -2)


@batched("Gemm")
def gemm(node: NodeProto, at: Vectorizer) -> None:
    """alpha * A' x B' + beta * C, where A', B' may be transposed and C broadcasts."""
    if _one_line_each(node, at):
        return
    a = _transposed(at, node.input[0], attribute(node, "transA", 0))
    b = _transposed(at, node.input[1], attribute(node, "transB", 0))
    value = _scaled(at, at.op("MatMul", a, b), node, "alpha", node.input[0])
    c = node.input[2] if len(node.input) > 2 else ""
    if c:
        scaled = _scaled(at, at.raised(c, 2), node, "beta", c)
        value = at.op("Add", value, scaled)
    at.name_as(value, node.output[0])


def _one_line_each(node: NodeProto, at: Vectorizer) -> bool:
    """Rows that are a single line [1, K] and share B and C: the lines make one matrix [B, K]."""
    a, b, c = [*node.input, ""][:3]
    fits = not (at.carries(b) or at.carries(c) or attribute(node, "transA", 0))
    if not fits or at.dims(a)[0] != 1 or (c and at.rank(c) == 2 and at.dims(c)[0] != 1):
        return False
    lines = spelling.squeeze(at.author, a, 1)
    made = at.author.fresh("gemm")
    at.again(
        node,
        [lines, *node.input[1:]],
        [made],
    )
    at.name_as(spelling.unsqueeze(at.author, made, 1), node.output[0])
    return True


def _transposed(at: Vectorizer, name: str, flag: int) -> str:
    if not flag:
        return name
    return at.op("Transpose", name, perm=[0, 2, 1] if at.carries(name) else [1, 0])


def _scaled(at: Vectorizer, value: str, node: NodeProto, attribute_name: str, like: str) -> str:
    """`value` times a float attribute; integers take it as an integer."""
    factor = next((one.f for one in node.attribute if one.name == attribute_name), 1.0)
    if factor == 1.0:
        return value
    dtype = helper.tensor_dtype_to_np_dtype(at.elem_type(like))
    return at.op("Mul", value, at.author.constant(np.array(factor).astype(dtype), "factor"))
