"""Elements of arrays on which numpy computes: arithmetic in a kernel makes terms.

A kernel that only adds, multiplies and applies functions runs on arrays of these, in the order in
which it always computes. The terms have its name in them: what one kernel computes is equal to what
another one does up to the order of sums at most.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np

from passes.operators.cells import ACTIVATIONS
from passes.proving.drawn.symbols import TermTable, name_of, numbers
from passes.proving.terms.algebra import Algebra
from passes.proving.terms.term import Term
from passes.verify.executor import Array
from passes.verify.reference.ops.cells import each
from passes.verify.reference.value_types import element_dtype

_ACTIVATIONS = {name.lower(): one for name, one in ACTIVATIONS.items()}


class Element:
    """One element: its term, and where that was made."""

    def __init__(self, terms: TermTable, kernel: str, term: Term, dtype: np.dtype[Any]) -> None:
        self.terms = terms
        self.kernel = kernel
        self.term = term
        self.dtype_ = dtype

    def of(self, op: str, *operands: Any, data: Hashable = ()) -> Element:
        """An operator applied to elements and numbers."""
        args, algebra = map(self._term, operands), self.terms.algebra
        made = algebra.elementwise(op, data, name_of(self.dtype_), args, self.kernel)
        return Element(self.terms, self.kernel, made, self.dtype_)

    def _term(self, one: Any) -> Term:
        if isinstance(one, Element):
            return one.term
        return self.terms.all[self.terms.constant(self.dtype_.type(one))]

    def activated(self, name: str, alpha: float, beta: float) -> Element:
        """An activation function of a recurrent operator, by its name in lower case."""
        function = _ACTIVATIONS[name]
        op = function.name
        if op == "Affine":
            return self.of("Add", self.of("Mul", alpha, self), beta)
        if op == "ScaledTanh":
            return self.of("Mul", alpha, self.of("Tanh", self.of("Mul", beta, self)))
        given = zip(function.parameters, map(np.float32, (alpha, beta)), strict=False)
        return self.of(op, self, data=tuple((one, repr(float(value))) for one, value in given))

    def clipped(self, bound: float) -> Element:
        """The element between two bounds."""
        return self.of("Clip", self, -bound, bound, data=(True, True))

    def product(self, left: Array, right: Array) -> Array:
        """The product of arrays of elements and numbers, of which this one is one."""
        a, b = (each(one, self._term) for one in (left, right))
        made = product(self.terms.algebra, a, b, name_of(self.dtype_), self.kernel)
        return each(made, lambda one: Element(self.terms, self.kernel, one, self.dtype_))

    def __bool__(self) -> bool:
        raise TypeError("an element is no condition")

    def __eq__(self, other: object) -> bool:
        raise TypeError("elements are not compared")


def product(algebra: Algebra, left: Array, right: Array, dtype: str, within: str = "") -> Array:
    """The product of matrices of terms: a term for each row and column, their elements in turn.
    Axes of vectors stay, with size 1."""

    def dot(row: Array, column: Array) -> Term:
        return algebra.elementwise("Dot", (), dtype, np.stack([row, column], 1).flat, within)

    rows, columns = np.atleast_2d(left), right if right.ndim > 1 else right[:, np.newaxis]
    every = np.vectorize(dot, otypes=[object], signature="(k),(k)->()")
    made: Array = every(
        rows[..., np.newaxis, :], np.swapaxes(columns, -1, -2)[..., np.newaxis, :, :]
    )
    return made


def _method(op: str, *, swapped: bool = False) -> Callable[..., Element]:
    if swapped:
        return lambda self, other: self.of(op, other, self)
    return lambda self, *others: self.of(op, self, *others)


for _name, _op in {"add": "Add", "sub": "Sub", "mul": "Mul", "truediv": "Div"}.items():
    setattr(Element, f"__{_name}__", _method(_op))
    setattr(Element, f"__r{_name}__", _method(_op, swapped=True))
for _op in ("Neg", "Abs"):
    setattr(Element, f"__{_op.lower()}__", _method(_op))
for _op in ("Exp", "Log", "Tanh", "Sqrt", "Sin", "Cos"):
    setattr(Element, _op.lower(), _method(_op))


def elements(terms: TermTable, kernel: str, array: Array) -> Array:
    """An array of elements; the numbers of constants stay numbers where all are constants."""
    dtype = element_dtype(array.dtype)
    return each(numbers(array), lambda one: Element(terms, kernel, terms.all[one], dtype))


def from_elements(terms: TermTable, array: Any, dtype: np.dtype[Any]) -> Array:
    """The term numbers of what a kernel made of elements.

    Raises:
        TypeError: an element is of another kind.
    """
    flat: Sequence[Any] = np.asarray(array).reshape(-1).tolist()
    ids = [
        one.term.uid if isinstance(one, Element) else terms.constant(dtype.type(one))
        for one in flat
    ]
    return np.array(ids, np.int64).reshape(np.shape(array))
