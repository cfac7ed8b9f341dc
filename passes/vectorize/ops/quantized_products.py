"""Products of quantized matrices."""

from __future__ import annotations

from onnx import NodeProto, TensorProto

from passes.vectorize.ops.products import product
from passes.vectorize.vectorizer import Vectorizer, batched
from passes.writing import spelling

_PARAMETERS = (1, 2, 4, 5, 6, 7)  # the scales and zero points of QLinearMatMul


@batched("QLinearMatMul")
def qlinear_matmul(node: NodeProto, at: Vectorizer) -> None:
    """One scale for all of an operand, the same for all rows."""
    at.only_rows(node, *_PARAMETERS)
    a, a_scale, a_zero, b, *others = node.input
    if not all(_is_one(at, node.input[place]) for place in _PARAMETERS):
        sentence = "QLinearMatMul with a scale per line or column has no vectorisation rule"
        at.refuse("no-batching-rule", sentence, *node.output)
    value = product(
        *(at, a, b),
        lambda left, right: at.op("QLinearMatMul", left, a_scale, a_zero, right, *others),
    )
    at.name_as(value, node.output[0])


@batched("MatMulInteger")
def matmul_integer(node: NodeProto, at: Vectorizer) -> None:
    """Zero points of each row leave the product: (A - z) x B is A x B - z * (sums of B)."""
    a, b, zero_a, zero_b = [*node.input, "", ""][:4]
    shared_b = not (at.carries(b) or at.carries(zero_b)) and at.rank(b) == 2
    if not (at.carries(zero_a) or at.carries(zero_b)) and _are_one(at, zero_a, zero_b):
        value = _times(at, a, b, zero_a, zero_b)
    elif shared_b and at.carries(a) and _are_one(at, zero_a):
        sums = at.op("ReduceSum", _difference(at, b, zero_b), at.author.ints(0), keepdims=0)
        points = at.op("Mul", _whole(at, zero_a, at.rank(a)), sums)
        value = at.op("Sub", _times(at, a, b, "", zero_b), points)
    else:
        value = product(at, _difference(at, a, zero_a, by_line=True), _difference(at, b, zero_b))
    at.name_as(value, node.output[0])


def _times(at: Vectorizer, a: str, b: str, zero_a: str, zero_b: str) -> str:
    points = [zero_a, zero_b] if zero_b else [zero_a] if zero_a else []
    return product(at, a, b, lambda left, right: at.op("MatMulInteger", left, right, *points))


def _are_one(at: Vectorizer, *names: str) -> bool:
    return all(not name or _is_one(at, name) for name in names)


def _is_one(at: Vectorizer, name: str) -> bool:
    """Whether there is one number in a row, not one per line or column."""
    return at.dims(name) in ((), (1,))


def _whole(at: Vectorizer, zero: str, rank: int) -> str:
    """A zero point as int32, lined up with an operand of `rank`."""
    wide = at.op("Cast", zero, to=TensorProto.INT32)
    at.note(wide, TensorProto.INT32, at.dims(zero), carries=at.carries(zero))
    return at.raised(wide, rank)


def _difference(at: Vectorizer, x: str, zero: str, *, by_line: bool = False) -> str:
    """An operand without its zero points, int32; a list of them is by column, or `by_line`."""
    wide = at.op("Cast", x, to=TensorProto.INT32)
    carries = at.carries(x)
    at.note(wide, TensorProto.INT32, at.dims(x), carries=carries)
    if not zero:
        return wide
    points = zero
    if by_line and at.rank(zero) == 1 and not _is_one(at, zero):
        points = spelling.unsqueeze(at.author, zero, -1)
        dims = [*at.dims(zero), 1]
        at.note(points, at.elem_type(zero), dims, carries=at.carries(zero))
    value = at.op("Sub", wide, _whole(at, points, at.rank(x)))
    return at.note(value, TensorProto.INT32, at.dims(x), carries=carries or at.carries(zero))
