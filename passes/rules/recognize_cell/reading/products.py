"""The two factors of a product in the body of a cell, however it is written."""

from __future__ import annotations

from dataclasses import dataclass

from onnx import NodeProto

from passes.ir.attributes import attribute, number, text
from passes.ir.operators import op_of
from passes.rules.recognize_cell.reading.columns import Reader

#: The operators that multiply by a weight.
PRODUCTS = ("MatMul", "Gemm", "Einsum")


@dataclass(frozen=True)
class Factor:
    """A factor of a product, transposed where `turned`."""

    name: str
    turned: bool


@dataclass(frozen=True)
class Factors:
    """A product [rows, columns] or [columns] of an operand and a weight, plus an addend."""

    operand: Factor
    weight: Factor
    addend: str = ""


def factors(read: Reader, node: NodeProto, *, turned: bool) -> Factors | None:
    """The factors of the product that a node computes; None where it scales it, or is no product
    of two matrices. `turned`: its result is [columns, rows]."""
    if op_of(node) == "Einsum":
        return _of_einsum(read, node, turned)
    flips = [False, False]
    addend = ""
    if op_of(node) == "Gemm":
        flips = [bool(attribute(node, name, 0)) for name in ("transA", "transB")]
        addend = node.input[2] if len(node.input) > 2 else ""
        scale = number(node, "beta", 1.0) if addend else 1.0
        if number(node, "alpha", 1.0) != 1.0 or scale not in (0.0, 1.0):
            return None
        addend = addend if scale else ""
    first, second = map(Factor, node.input[:2], flips)
    ranks = [len(read.dims(one.name) or ()) for one in (first, second)]
    if ranks[0] == 3 and (read.dims(first.name) or ())[0] == 1:
        ranks[0] = 2
    if ranks == [2, 1] or (ranks == [2, 2] and turned):
        return Factors(_flipped(second, ranks[1] == 2), _flipped(first, True), addend)
    fits = ranks in ([1, 2], [2, 2]) and not turned
    return Factors(first, second, addend) if fits else None


def _flipped(factor: Factor, flip: bool) -> Factor:
    return Factor(factor.name, factor.turned != flip)


def _of_einsum(read: Reader, node: NodeProto, turned: bool) -> Factors | None:
    """The factors of an Einsum of a weight and a vector or matrix, such as `ab,b->a`."""
    left, _, result = text(node, "equation", "").replace(" ", "").partition("->")
    named = list(zip(left.split(","), node.input, strict=False))
    if len(named) != 2 or len(result) not in (1, 2):
        return None
    if not read.is_leaf(read.upright(node.input[1])[0]):
        named.reverse()
    (operand, first), (weight, second) = named
    columns = result[0] if turned else result[-1]
    summed, rows = weight.replace(columns, ""), result.replace(columns, "")
    shaped = weight in (columns + summed, summed + columns)
    shaped &= operand in (summed + rows, rows + summed) and summed.isalpha()
    if not shaped or len({*columns, *summed, *rows}) != 1 + len(result):
        return None
    turned_weight = Factor(second, weight == columns + summed)
    return Factors(Factor(first, operand != rows + summed), turned_weight)
