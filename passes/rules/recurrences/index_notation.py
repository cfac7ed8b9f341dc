"""Reads an element of a value as a sum of products of elements of other values.

`y[h, v] = sum over k of q[h, k] * S[h, k, v]` is one `Summand`: two factors, each a name with an
index for each of its axes, and the indices that are summed over. So a MatMul, an Einsum, and a Mul
followed by a ReduceSum read alike.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any

import numpy.typing as npt
from onnx import NodeProto

from passes.ir.attributes import attribute, attributes, numbers, text
from passes.ir.graph_index import GraphIndex
from passes.ir.operators import Registry, op_of
from passes.operators.functions import is_plain_gemm
from passes.operators.table import traits_of, where
from passes.operators.traits import Work
from passes.types.value_types import Dim, Dims

#: The index of an axis of size 1.
ONE = 0
#: A sum with more terms is not read.
_MOST_TERMS = 24

#: An index for each axis of a value.
At = tuple[int, ...]

#: The terms of an element of each operator's output.
_READERS: Registry[Callable[[Notation, NodeProto, At], list[Summand]]] = Registry()


class NotLinear(Exception):
    """A value is no sum of products of the values that it was to be read in."""


@dataclass(frozen=True)
class Factor:
    """An element of a value; `inverse`: its reciprocal."""

    name: str
    at: At
    inverse: bool = False


@dataclass(frozen=True)
class Summand:
    """A product of elements, summed over the indices in `sums`; subtracted where `negative`."""

    factors: tuple[Factor, ...] = ()
    sums: frozenset[int] = frozenset()
    negative: bool = False

    @property
    def indices(self) -> frozenset[int]:
        """All indices of its factors."""
        return frozenset(index for factor in self.factors for index in factor.at if index)

    def times(self, other: Summand) -> Summand:
        """The product of two terms."""
        return Summand(
            (*self.factors, *other.factors),
            self.sums | other.sums,
            self.negative != other.negative,
        )

    def without(self, factor: Factor) -> Summand:
        """The term without one of its factors."""
        left = list(self.factors)
        left.remove(factor)
        return replace(self, factors=tuple(left))


@dataclass(frozen=True)
class Notation:
    """Reads the values of a body.

    `dims` are those of a value in one iteration, None where the rank is unknown; `constant`
    returns small constants; `fed` are the values that depend on a state.
    """

    index: GraphIndex
    dims: Callable[[str], Dims | None]
    constant: Callable[[str], npt.NDArray[Any] | None]
    fed: frozenset[str] = frozenset()
    sizes: dict[int, Dim] = field(default_factory=dict)
    _numbers: count[int] = field(default_factory=lambda: count(1))

    def fresh(self, size: Dim) -> int:
        """A new index that runs up to a size; `ONE` for size 1."""
        if size == 1:
            return ONE
        number = next(self._numbers)
        self.sizes[number] = size
        return number

    def everywhere(self, name: str) -> At:
        """An index of its own for each axis of a value."""
        return tuple(self.fresh(size) for size in self._dims(name))

    def read(self, factor: Factor, goes_on: Callable[[Factor], bool]) -> list[Summand]:
        """Return a factor as a sum of terms; factors are read further as long as `goes_on` is true.

        Raises:
            NotLinear: one of these is computed otherwise.
        """
        return self.read_term(Summand((factor,)), goes_on)

    def read_term(self, term: Summand, goes_on: Callable[[Factor], bool]) -> list[Summand]:
        """The same of a product."""
        done, pending = list[Summand](), [term]
        while pending:
            if len(done) + len(pending) > _MOST_TERMS:
                raise NotLinear
            term = pending.pop(0)
            further = next(filter(goes_on, term.factors), None)
            if further is None:
                factors = (
                    one if one.name in self.fed else self.source(one) for one in term.factors
                )
                done.append(replace(term, factors=tuple(factors)))
                continue
            rest = term.without(further)
            pending[:0] = [rest.times(one) for one in self.step(further)]
        return done

    def source(self, factor: Factor) -> Factor:
        """The same element of the value of which nodes that only move elements make this one."""
        node = self.index.producers.get(factor.name)
        if node is None or not (traits_of(node).hands_on or op_of(node) == "Transpose"):
            return factor
        try:
            ((plain,),) = (term.factors for term in self.step(replace(factor, inverse=False)))
        except NotLinear:
            return factor
        return self.source(replace(plain, inverse=factor.inverse))

    def step(self, factor: Factor) -> list[Summand]:
        """Return the terms from which the node of a factor computes it.

        Raises:
            NotLinear: it is no sum of products.
        """
        node = self.index.producers.get(factor.name)
        known = None if node is None else _READERS.get(op_of(node))
        if known is None or factor.inverse:
            raise NotLinear
        assert node is not None
        return known(self, node, factor.at)

    # --- the operators ---

    def _dims(self, name: str) -> Dims:
        dims = self.dims(name)
        if dims is None:
            raise NotLinear
        return dims

    def operand(self, name: str, out: Dims, at: At) -> Factor:
        """An operand that is broadcast to the dims `out`, whose indices are `at`."""
        dims = self._dims(name)
        if len(dims) > len(out):
            raise NotLinear
        inner = []
        start = len(out) - len(dims)
        for size, whole, index in zip(dims, out[start:], at[start:], strict=True):
            if size != 1 and (size is None or size != whole):
                raise NotLinear  # it may be 1 at run time
            inner.append(ONE if size == 1 else index)
        return Factor(name, tuple(inner))

    @_READERS.enter("Add", "Sum")
    def _sum(self, node: NodeProto, at: At) -> list[Summand]:
        out = self._dims(node.output[0])
        return [Summand((self.operand(name, out, at),)) for name in node.input]

    @_READERS.enter("Sub")
    def _difference(self, node: NodeProto, at: At) -> list[Summand]:
        left, right = self._sum(node, at)
        return [left, replace(right, negative=True)]

    @_READERS.enter("Neg")
    def _negated(self, node: NodeProto, at: At) -> list[Summand]:
        return [Summand((Factor(node.input[0], at),), negative=True)]

    @_READERS.enter("Mul", "Div")
    def _product(self, node: NodeProto, at: At) -> list[Summand]:
        out = self._dims(node.output[0])
        left, right = (self.operand(name, out, at) for name in node.input)
        return [Summand((left, replace(right, inverse=op_of(node) == "Div")))]

    @_READERS.enter("Identity")
    def _same(self, node: NodeProto, at: At) -> list[Summand]:
        return [Summand((Factor(node.input[0], at),))]

    @_READERS.enter("Expand")
    def _expanded(self, node: NodeProto, at: At) -> list[Summand]:
        return [Summand((self.operand(node.input[0], self._dims(node.output[0]), at),))]

    @_READERS.enter("MatMul")
    def _matmul(self, node: NodeProto, at: At) -> list[Summand]:
        left, right = node.input
        rows, columns = self._dims(left), self._dims(right)
        out = self._dims(node.output[0])
        if not rows or not columns or None in (rows[-1], columns[-2:][0]):
            raise NotLinear
        if rows[-1] != columns[-2:][0]:
            raise NotLinear
        summed = self.fresh(rows[-1])
        batch = len(out) - (len(rows) > 1) - (len(columns) > 1)
        around, inner = (out[:batch], at[:batch]), list(at[batch:])
        row = [inner.pop(0)] if len(rows) > 1 else []
        first = self._matrix(left, around, [*row, summed])
        second = self._matrix(right, around, [summed, *inner])
        return [Summand((first, second), frozenset({summed} - {ONE}))]

    def _matrix(self, name: str, around: tuple[Dims, At], own: Sequence[int]) -> Factor:
        """An operand of a MatMul, whose last axes have the indices `own`."""
        dims, at = around
        known = self._dims(name)
        last = known[len(known) - len(own) :]
        return self.operand(name, (*dims, *last), (*at, *own))

    @_READERS.enter("Gemm")
    def _gemm(self, node: NodeProto, at: At) -> list[Summand]:
        if not is_plain_gemm(node) or attribute(node, "transA", 0):
            raise NotLinear
        left, right, *added = node.input
        summed = self.fresh(self._dims(left)[1])
        second = (at[1], summed) if attribute(node, "transB", 0) else (summed, at[1])
        terms = [
            Summand(
                (Factor(left, (at[0], summed)), Factor(right, second)), frozenset({summed} - {ONE})
            )
        ]
        out = self._dims(node.output[0])
        return terms + [Summand((self.operand(name, out, at),)) for name in added if name]

    @_READERS.enter("Einsum")
    def _einsum(self, node: NodeProto, at: At) -> list[Summand]:
        equation = text(node, "equation", "").replace(" ", "")
        inputs, arrow, output = equation.partition("->")
        operands = inputs.split(",")
        if not arrow or "." in equation or len(operands) != len(node.input):
            raise NotLinear
        where = dict(zip(output, at, strict=True))
        factors = []
        for name, letters in zip(node.input, operands, strict=True):
            dims = self._dims(name)
            if len(dims) != len(letters) or len({*letters}) < len(letters):
                raise NotLinear
            for letter, size in zip(letters, dims, strict=True):
                if letter not in where:
                    where[letter] = self.fresh(size)
            factors.append(Factor(name, tuple(where[letter] for letter in letters)))
        sums = {where[letter] for letter in where if letter not in output} - {ONE}
        return [Summand(tuple(factors), frozenset(sums))]

    @_READERS.enter("ReduceSum")
    def _reduced(self, node: NodeProto, at: At) -> list[Summand]:
        dims = self._dims(node.input[0])
        axes = numbers(node, 1, "axes", self.constant)
        if not axes:
            raise NotLinear
        gone = {axis % len(dims) for axis in axes}
        left = iter(at)
        inner = []
        for axis, size in enumerate(dims):
            kept = axis not in gone or attribute(node, "keepdims", 1)
            index = next(left) if kept else ONE
            inner.append(self.fresh(size) if axis in gone else index)
        sums = frozenset(inner[axis] for axis in gone) - {ONE}
        return [Summand((Factor(node.input[0], tuple(inner)),), sums)]

    @_READERS.enter("Transpose")
    def _turned(self, node: NodeProto, at: At) -> list[Summand]:
        perm = attributes(node, "perm") or range(len(at) - 1, -1, -1)
        inner = dict(zip(perm, at, strict=True))
        return [Summand((Factor(node.input[0], tuple(inner[axis] for axis in range(len(at)))),))]

    @_READERS.enter(*where(lambda row: row.work is Work.VIEW))
    def _reshaped(self, node: NodeProto, at: At) -> list[Summand]:
        """Axes of size 1 come or are removed; others stay."""
        old, new = self._dims(node.input[0]), self._dims(node.output[0])
        long = [index for index, size in zip(at, new, strict=True) if size != 1]
        if [size for size in old if size != 1] != [size for size in new if size != 1]:
            raise NotLinear
        if None in old:
            raise NotLinear
        left = iter(long)
        return [
            Summand(
                (Factor(node.input[0], tuple(ONE if size == 1 else next(left) for size in old)),)
            )
        ]
