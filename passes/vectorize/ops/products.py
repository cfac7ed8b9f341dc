"""MatMul and Gemm in all combinations of ranks and of operands that carry the axis."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from onnx import NodeProto, helper

from passes.vectorize.axes import attribute
from passes.vectorize.vectorizer import Vectorizer, batched
from passes.writing import spelling

#: Writes the product of two operands; the name of the result.
Times = Callable[[str, str], str]


@batched("MatMul")
def matmul(node: NodeProto, at: Vectorizer) -> None:
    """Vectors become matrices where the new axis would be taken for a matrix axis."""
    at.name_as(product(at, node.input[0], node.input[1]), node.output[0])


def product(at: Vectorizer, a: str, b: str, times: Times | None = None) -> str:
    """The product of two values, at least one of which carries the axis.

    `times` writes the op where it is not MatMul, whose operands may not change places then.
    """
    rank_a, rank_b = at.rank(a), at.rank(b)
    if rank_b == 1:
        if times is None and not at.carries(a) and rank_a == 2:
            return _matmul(at, b, _turned(at, a))  # one product for all rows
        return spelling.squeeze(at.author, product(at, a, _matrix(at, b, -1), times), -1)
    if rank_a == 1 and (at.carries(b) or rank_b > 2):
        return spelling.squeeze(at.author, product(at, _matrix(at, a, -2), b, times), -2)
    return _of_matrices(at, a, b, times)


def _of_matrices(at: Vectorizer, a: str, b: str, times: Times | None) -> str:
    """[..., M, K] x [..., K, N], or vectors that carry the axis, [B, K], x [K, N].

    onnxruntime does not broadcast over an axis of size 0, unless the second operand is a plain
    matrix: where the axis may be empty the other operand gets it, too.
    """
    write = times or (lambda left, right: _matmul(at, left, right))
    if not at.axis.nonempty and (at.rank(b) > 2 or at.carries(b)):
        a, b = at.spread(a), at.spread(b)
    rank = max(at.rank(a), at.rank(b))
    if at.rank(a) == 1:
        return write(a, b)
    return write(at.raised(a, rank), at.raised(b, rank))


def _matmul(at: Vectorizer, a: str, b: str) -> str:
    return at.op("MatMul", a, b)


def _matrix(at: Vectorizer, vector: str, axis: int) -> str:
    """A vector as a matrix with a new axis of size 1."""
    made = spelling.unsqueeze(at.author, vector, axis)
    (size,) = at.dims(vector)
    dims = (size, 1) if axis == -1 else (1, size)
    return at.note(made, at.elem_type(vector), dims, carries=at.carries(vector))


def _turned(at: Vectorizer, name: str) -> str:
    """A value with its last two axes swapped."""
    count = at.rank(name) + at.carries(name)
    made = at.op("Transpose", name, perm=[*range(count - 2), count - 1, count - 2])
    dims = at.dims(name)
    turned = (*dims[:-2], dims[-1], dims[-2])
    return at.note(made, at.elem_type(name), turned, carries=at.carries(name))


@batched("Gemm")
def gemm(node: NodeProto, at: Vectorizer) -> None:
    """alpha * A' x B' + beta * C, where A', B' may be transposed and C broadcasts."""
    if _one_line_each(node, at):
        return
    a, b = node.input[:2]
    each = at.carries(a) or at.carries(b)
    if each and attribute(node, "transA", 0) and not at.axis.nonempty:
        b = at.spread(b)  # onnxruntime fuses the Transpose, and then broadcasts over no empty axis
    a = _turned(at, a) if attribute(node, "transA", 0) else a
    b = _turned(at, b) if attribute(node, "transB", 0) else b
    made = product(at, a, b) if each else _matmul(at, a, b)
    value = _scaled(at, made, node, "alpha", node.input[0])
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


def _scaled(at: Vectorizer, value: str, node: NodeProto, attribute_name: str, like: str) -> str:
    """`value` times a float attribute; integers take it as an integer."""
    factor = next((one.f for one in node.attribute if one.name == attribute_name), 1.0)
    if factor == 1.0:
        return value
    dtype = helper.tensor_dtype_to_np_dtype(at.elem_type(like))
    if dtype.kind in "iu" and factor != int(factor):
        sentence = f"Gemm of integers with {attribute_name} {factor} has no vectorisation rule"
        at.refuse("no-batching-rule", sentence, *node.output)
    return at.op("Mul", value, at.author.constant(np.array(factor).astype(dtype), "factor"))
