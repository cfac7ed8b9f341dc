"""Terms by number, and arrays of such numbers in place of elements."""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from passes.proving.families import is_number
from passes.proving.terms.algebra import Algebra
from passes.proving.terms.arrays import NotProvable
from passes.proving.terms.term import Term, formula, subterms
from passes.verify.executor import Array, Ended, Value
from passes.verify.reference.value_types import blank, element_dtype

#: The number that kernels fill arrays with: the zero of the dtype.
FILL = 0
#: Terms of a pair of models, and elements of an array.
_MOST, _MOST_ELEMENTS = 600_000, 1 << 20


class Fork(Ended):
    """A run needs to know whether a term, a bool, holds."""

    def __init__(self, term: Term) -> None:
        super().__init__("a condition is open")
        self.term = term


class Wanted(Ended):
    """A run needs the elements of inputs that are free so far."""

    def __init__(self, names: frozenset[str]) -> None:
        super().__init__("elements of inputs are needed")
        self.names = names


class TermTable:
    """The terms of both models, by their `uid`. Whole numbers of inputs and those that operators
    compute of them are atoms: arithmetic wraps, so that no sum is a polynomial."""

    def __init__(self) -> None:
        self.algebra = Algebra()
        self.algebra.terms.most = _MOST
        self.all = self.algebra.terms.all
        assert self.algebra.terms.make("fill").uid == FILL
        #: The value of the constant of a number, None of another term.
        self.value: Callable[[int], Any] = functools.cache(
            lambda number: self.algebra.value(self.all[number])
        )
        self._constants: dict[object, int] = {}
        #: Whether the new model runs, and what operators of the original that may fail read in
        #: this run without failing.
        self.is_new = False
        self.answered: set[tuple[str, int]] = set()
        #: By the ids of arrays, which are kept, so that no others get these.
        self._lifted: dict[int, tuple[Array, Array]] = {}

    def decide(self, decided: Mapping[Term, bool]) -> None:
        """Know from here on which conditions hold, and which do not. Raises Contradiction."""
        self.algebra.forget()
        for condition, holds in decided.items():
            self.algebra.assume(condition if holds else self.algebra.negation(condition))

    def make(
        self, op: str, data: Hashable, args: Sequence[int], dtype: str, source: str = ""
    ) -> int:
        """The number of an operator on elements of the dtype `source`."""
        parts = [self.all[one] for one in args]
        return self.algebra.by_element(op, data, dtype, parts, source).uid

    def input(self, name: str, dtype: str, place: Sequence[int]) -> int:
        """The number of an element of an input."""
        at = map(self.algebra.whole, place)
        return self.algebra.opaque(dtype, "elem", ("input", name, dtype), at).uid

    def constant(self, value: Any) -> int:
        """The number of a constant: an element of an array, a string included."""
        key = value if isinstance(value, str) else (value.dtype, value.tobytes())
        found = self._constants.get(key)
        if found is None:
            dtype = "object" if isinstance(value, str) else name_of(value.dtype)
            found = self._constants[key] = self.algebra.literal(dtype, value).uid
        return found

    def is_constant(self, number: int) -> bool:
        """Return whether a term is a constant."""
        return self.value(number) is not None

    def lift(self, value: Value) -> Any:
        """A value with the numbers of terms in place of elements; the kernels' fill resolved."""
        if isinstance(value, list):
            return [self.lift(one) for one in value]
        if value is None:
            return None
        if value.size > _MOST_ELEMENTS:
            raise NotProvable("budget", f"an array of {value.size} elements is too large")
        if value.dtype.names is not None:
            return self.filled(numbers(value), element_dtype(value.dtype))
        known = self._lifted.get(id(value))
        if known is None or known[0] is not value:
            flat = (value.astype(object) if value.dtype.kind in "US" else value).reshape(-1)
            ids = [self.constant(flat[place]) for place in range(flat.size)]
            known = value, wrap(np.reshape(ids, value.shape), flat.dtype)
            self._lifted[id(value)] = known
        return known[1]

    def filled(self, ids: Array, dtype: np.dtype[Any]) -> Array:
        """An array of term numbers, with the zero of the dtype where a kernel filled it up."""
        if (ids == FILL).any():
            ids = np.where(ids == FILL, self.constant(blank((1,), dtype)[0]), ids)
        return wrap(ids, dtype)

    def known(self, array: Array, otherwise: Any = None) -> Array | None:
        """The elements of an array, `otherwise` in place of those that are no constants; None if
        there are such ones and nothing is given for them."""
        found = map(self.value, numbers(array).reshape(-1).tolist())
        flat = [otherwise if one is None else one for one in found]
        if any(one is None for one in flat):
            return None
        return np.array(flat, element_dtype(array.dtype)).reshape(array.shape)

    def concrete(self, value: Value) -> Any:
        """The elements of an array; None for none.

        Raises:
            Fork: one is a condition on floats.
            Wanted: one depends on integers that are free.
            NotProvable: one is a number that floats decide, or it is a sequence.
        """
        if value is None:
            return None
        array = self.lift(value)
        if isinstance(array, list):
            raise NotProvable("operator", "a sequence in place of an array is not modelled")
        known = self.known(array)
        if known is not None:
            return known
        ids = numbers(array).reshape(-1).tolist()
        terms = [self.all[one] for one in ids if not self.is_constant(one)]
        inputs = {one.parts[1:] for one in subterms(*terms) if one.op == "elem"}
        wanted = frozenset(name for name, dtype in inputs if not is_number(dtype))
        if wanted:
            raise Wanted(wanted)
        if array.dtype.names != ("bool",):
            raise NotProvable("decision", f"floats decide {formula(terms[0])}")
        condition = terms[0]
        while condition.op in ("and", "or", "not", "ite"):
            condition = condition.args[0]
        raise Fork(condition)


@functools.cache
def name_of(dtype: np.dtype[Any]) -> str:
    """The name of a dtype."""
    return dtype.name


def wrap(ids: Array, dtype: np.dtype[Any]) -> Array:
    """An array of term numbers as one of elements of a dtype, whose name its field has."""
    return np.array(ids, np.int64, order="C").view([(name_of(dtype), np.int64)])


def numbers(array: Array) -> Array:
    """The term numbers of an array."""
    assert array.dtype.names is not None
    return array[array.dtype.names[0]]


def over(function: Callable[..., int], arrays: Sequence[Array]) -> Array:
    """A function of term numbers applied element by element to arrays that broadcast."""
    spread = np.broadcast_arrays(*arrays)
    flat = [one.reshape(-1).tolist() for one in spread]
    made = [function(*row) for row in zip(*flat, strict=True)]
    return np.array(made, np.int64).reshape(spread[0].shape)
