"""The terms of a gate of a cell: products with weights, however they are written, and biases."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from onnx import NodeProto

from passes.ir.attributes import attribute, number, text
from passes.ir.operators import op_of
from passes.rule import Refused
from passes.rules.recognize_cell.columns import Columns, Reader, parts

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


_MOST_STEPS = 200  # a sum of sums of the same values would take forever


@dataclass(frozen=True)
class Matrix:
    """A part of a weight, as [rows, columns]: `turned` where the weight itself has them
    the other way round. `dims` are those of the whole weight; a `negative` one is subtracted."""

    name: str
    dims: tuple[int, int]
    turned: bool
    rows: tuple[int, int]
    columns: tuple[int, int]
    negative: bool = False

    @property
    def shape(self) -> tuple[int, int]:
        """The sizes of the part."""
        return self.rows[1] - self.rows[0], self.columns[1] - self.columns[0]


@dataclass(frozen=True)
class Product:
    """A value of the body times a part of a weight."""

    operand: str
    matrix: Matrix


@dataclass(frozen=True)
class Bias:
    """Columns of a loop-invariant value, float [width], [1, width] or [width, 1].

    A `negative` one is subtracted.
    """

    columns: Columns
    rank: int
    negative: bool = False


@dataclass(frozen=True)
class Scaled:
    """Columns of an elementwise product of two values of the body."""

    columns: Columns
    factors: tuple[str, str]


GateTerm = Product | Bias | Scaled

#: A sum of products: the sign and the factors of each, none of which is 1.
Expanded = list[tuple[int, tuple[Columns, ...]]]


@dataclass
class Sums:
    """Decomposes sums of one body."""

    read: Reader
    _steps: int = 0

    def terms(self, columns: Columns) -> list[GateTerm]:
        """The terms whose sum these columns are.

        Raises:
            Refused: `not-a-cell` where something else is computed, `weights` where a weight is
                not a matrix of known sizes that the body captures.
        """
        self._count(columns)
        columns = self.read.source(columns)
        node = self.read.node(columns.name)
        if node is None:
            return [self.bias(columns)]
        if op_of(node) in ("Add", "Sum"):
            return [term for name in node.input for term in self.terms(columns.of(name))]
        if op_of(node) == "Mul":
            return [Scaled(columns, (node.input[0], node.input[1]))]
        if op_of(node) in PRODUCTS:
            return self._product(node, columns)
        raise self.read.refusal(
            f"{columns.name!r} comes from {op_of(node)}, which no gate of a cell adds",
            columns.name,
        )

    def expanded(self, columns: Columns) -> Expanded:
        """The products of which these columns are the sum; no Add, Sub or Mul computes a factor."""
        self._count(columns)
        columns = self.read.source(columns)
        node = self.read.node(columns.name)
        if node is None or op_of(node) not in ("Add", "Sub", "Mul"):
            return [(1, () if self._is_one(columns) else (columns,))]
        first, second = (self.expanded(columns.of(name)) for name in node.input)
        if op_of(node) == "Mul":
            self._count(columns, len(first) * len(second))
            return [(a * b, one + two) for a, one in first for b, two in second]
        sign = -1 if op_of(node) == "Sub" else 1
        return [*first, *((sign * its, factors) for its, factors in second)]

    def _is_one(self, columns: Columns) -> bool:
        one = self.read.body.rows.constants.get(columns.name)
        fits = one is not None and one.ndim <= 2 and one.size in (1, columns.width)
        return one is not None and fits and bool(np.all(one == 1))

    def _count(self, columns: Columns, steps: int = 1) -> None:
        self._steps += steps
        if self._steps > _MOST_STEPS:
            raise self.read.refusal(f"{columns.name!r} is the sum of too many values")

    def _product(self, node: NodeProto, columns: Columns) -> list[GateTerm]:
        found = factors(self.read, node, turned=columns.turned)
        if found is None:
            what = f"{columns.name!r} comes from {op_of(node)}, which is no product with a matrix"
            raise self.read.refusal(what, columns.name)
        whole = self._weight(found.weight)
        if whole.shape[1] != columns.width:
            raise self._spread(columns)
        part = replace(whole, columns=(columns.start, columns.stop))
        terms: list[GateTerm] = [
            Product(name, replace(part, rows=rows))
            for name, rows in self._operands(found.operand, whole.shape[0])
        ]
        return terms + (self.terms(columns.of(found.addend)) if found.addend else [])

    def _operands(self, factor: Factor, rows: int) -> list[tuple[str, tuple[int, int]]]:
        """The factors of a product, with the rows of the weight for each."""
        origin, turned = self.read.upright(factor.name, factor.turned)
        node = self.read.node(origin)
        if turned:
            raise self.read.refusal(f"{origin!r} is multiplied transposed", origin)
        if node is None or op_of(node) != "Concat":
            return [(origin, (0, rows))]
        joined = parts(self.read, node)
        if joined is None or sum(width for _, width in joined) != rows:
            raise self.read.refusal(f"the widths of what {origin!r} joins are unknown", origin)
        found, first = [], 0
        for operand, width in joined:
            found.append((self.read.origin(operand), (first, first + width)))
            first += width
        return found

    def _weight(self, factor: Factor) -> Matrix:
        """The whole weight that a product reads."""
        origin, turned = self.read.upright(factor.name, factor.turned)
        dims = self.read.dims(origin) or ()
        rows, *columns = [dim for dim in dims if isinstance(dim, int)] or [0]
        if not self.read.is_leaf(origin) or len(dims) != 2 or len(columns) != 1:
            raise self.read.body.site.refused(
                "weights",
                f"{origin!r}, by which a product multiplies, is not a matrix of known sizes that "
                "is defined outside of the body",
                origin,
            )
        sizes = (columns[0], rows) if turned else (rows, columns[0])
        return Matrix(origin, (rows, columns[0]), turned, (0, sizes[0]), (0, sizes[1]))

    def bias(self, columns: Columns) -> Bias:
        """These columns, which must be loop-invariant."""
        dims = self.read.dims(columns.name)
        if not self.read.is_leaf(columns.name):
            what = f"{columns.name!r} enters a gate without a weight"
            raise self.read.refusal(what, columns.name)
        wide = (columns.width,), (1, columns.width)
        if dims not in (((columns.width, 1),) if columns.turned else wide):
            raise self._spread(columns)
        return Bias(columns, len(dims or ()))

    def _spread(self, columns: Columns) -> Refused:
        what = f"{columns.name!r} is not known to have {columns.width} columns"
        return self.read.refusal(what, columns.name)
