"""Terms by number, equal ones once, and arrays of such numbers in place of elements."""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from passes.operators.comparisons import COMPARISONS, LOGIC, SWAPPED
from passes.proving.families import COMMUTE, LOSSLESS
from passes.verify.executor import Array, Ended, Value
from passes.verify.reference.value_types import blank, element_dtype

#: The number that kernels fill arrays with: the zero of the dtype.
FILL = 0
#: Terms of a pair of models, and elements of an array.
_MOST, _MOST_ELEMENTS = 400_000, 1 << 20


class Fork(Ended):
    """A run needs to know whether a term, a bool, holds."""

    def __init__(self, term: int) -> None:
        super().__init__("a condition is open")
        self.term = term


class Wanted(Ended):
    """A run needs the elements of inputs that are free so far."""

    def __init__(self, names: frozenset[str]) -> None:
        super().__init__("elements of inputs are needed")
        self.names = names


class NotShown(Ended):
    """The models are not shown equal: a code and a sentence."""

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(detail)
        self.code = code


@dataclass(frozen=True)
class NumberedTerm:
    """An operator applied to terms, by their numbers; `dtype` is the name of its dtype, `within`
    the operator whose kernel computes it."""

    op: str
    data: Hashable
    args: tuple[int, ...]
    dtype: str
    within: str = ""


class TermTable:
    """The terms of both models. `decided` are those that hold, or do not, in this run."""

    def __init__(self) -> None:
        self.all: list[NumberedTerm] = [NumberedTerm("fill", (), (), "")]
        self._ids: dict[tuple[Hashable, ...], int] = {}
        self._values: dict[int, Any] = {}
        self.decided: dict[int, bool] = {}
        #: Whether the new model runs, and what operators of the original that may fail read in
        #: this run without failing.
        self.is_new = False
        self.answered: set[tuple[str, int]] = set()
        #: By the ids of arrays, which are kept, so that no others get these.
        self._lifted: dict[int, tuple[Array, Array]] = {}

    def make(
        self, op: str, data: Hashable, args: Sequence[int], dtype: str, within: str = ""
    ) -> int:
        """The number of a term, in its simplest form."""
        if ">" in COMPARISONS.get(op, ""):
            op, args = SWAPPED[op], args[::-1]
        # of floats, Max and Min take the first or the second zero
        if op in COMMUTE or (op in ("Max", "Min") and "float" not in dtype):
            args = sorted(args)
        known = self._simpler(op, args, dtype)
        if known is None:
            known = self._number((op, data, tuple(args), dtype, within))
        return self._decision(known)

    def _decision(self, term: int) -> int:
        found = self.decided.get(term)
        return term if found is None else self.constant(np.bool_(found))

    def _number(self, term: tuple[Any, ...]) -> int:
        known = self._ids.get(term)
        if known is None:
            known = len(self.all)
            if known > _MOST:
                raise NotShown("budget", f"more than {_MOST} terms")
            self._ids[term] = known
            self.all.append(NumberedTerm(*term))
        return known

    def constant(self, value: Any) -> int:
        """The number of a constant: an element of an array, a string included."""
        if isinstance(value, str):
            number = self._number(("constant", value, (), "object", ""))
        else:
            number = self._number(("constant", value.tobytes(), (), name_of(value.dtype), ""))
        self._values.setdefault(number, value)
        return number

    def is_constant(self, number: int) -> bool:
        """Return whether a term is a constant."""
        return number in self._values

    def value(self, number: int) -> Any:
        """The value of a constant."""
        return self._values[number]

    def _simpler(self, op: str, args: Sequence[int], dtype: str) -> int | None:
        """A term of the same bits that is there already."""
        if op == "Where":
            if args[1] == args[2]:
                return args[1]
            return args[1 if self.value(args[0]) else 2] if self.is_constant(args[0]) else None
        if op == "Cast":
            (one,) = args
            inner = self.all[one]
            if inner.dtype == dtype:
                return one
            if inner.op == "Cast" and self.all[inner.args[0]].dtype == dtype:
                whole = dtype == "bool" and inner.dtype != "object"
                exact = whole or (dtype, inner.dtype) in LOSSLESS
                return inner.args[0] if exact else None
        if op == "Not" and self.all[args[0]].op == "Not":
            return self.all[args[0]].args[0]
        if op in ("And", "Or"):
            for one, other in (args, args[::-1]):
                if self.is_constant(one):
                    return other if bool(self.value(one)) == (op == "And") else one
            return args[0] if args[0] == args[1] else None
        if op in ("Max", "Min"):
            for one, other in (args, args[::-1]):
                if self.is_constant(one) and _bounds_nothing(op, self.value(one)):
                    return other
        return None

    def lift(self, value: Value) -> Any:
        """A value with the numbers of terms in place of elements; the kernels' fill resolved."""
        if isinstance(value, list):
            return [self.lift(one) for one in value]
        if value is None:
            return None
        if value.size > _MOST_ELEMENTS:
            raise NotShown("budget", f"an array of {value.size} elements is too large")
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
        flat = [self._values.get(one, otherwise) for one in numbers(array).reshape(-1).tolist()]
        if otherwise is None and any(one is None for one in flat):
            return None
        result = np.empty(len(flat), element_dtype(array.dtype))
        for place, one in enumerate(flat):
            result[place] = one
        return result.reshape(array.shape)

    def concrete(self, value: Value) -> Any:
        """The elements of an array; None for none.

        Raises:
            Fork: one is a condition on floats.
            Wanted: one depends on integers that are free.
            NotShown: one is a number that floats decide, or it is a sequence.
        """
        if value is None:
            return None
        array = self.lift(value)
        if isinstance(array, list):
            raise NotShown("operator", "a sequence in place of an array is not modelled")
        known = self.known(array)
        if known is not None:
            return known
        open_ = [one for one in numbers(array).reshape(-1).tolist() if not self.is_constant(one)]
        wanted = frozenset(self._free(open_))
        if wanted:
            raise Wanted(wanted)
        if array.dtype.names != ("bool",):
            raise NotShown("decision", f"floats decide {self.written(open_[0])}")
        raise Fork(self._atom(open_[0]))

    def _atom(self, term: int) -> int:
        """The term that decides a condition first."""
        while self.all[term].op in LOGIC:
            term = next(one for one in self.all[term].args if not self.is_constant(one))
        return term

    def _free(self, terms: Sequence[int]) -> Iterator[str]:
        """The inputs of whole numbers, bools and strings that terms depend on."""
        for one in self.below(terms):
            term = self.all[one]
            if term.op == "input" and not is_number(element_dtype(_symbolic(term.dtype))):
                assert isinstance(term.data, tuple)
                yield term.data[0]

    def below(self, terms: Sequence[int]) -> list[int]:
        """The terms and their parts, parts first."""
        seen: set[int] = set()
        pending = list(terms)
        while pending:
            one = pending.pop()
            if one not in seen:
                seen.add(one)
                pending += self.all[one].args
        return sorted(seen)

    def written(self, number: int, depth: int = 3) -> str:
        """A term in short."""
        term = self.all[number]
        if number in self._values:
            return str(self._values[number])
        if term.op == "input" and isinstance(term.data, tuple):
            return f"{term.data[0]}[{','.join(map(str, term.data[1]))}]"
        inner = ", ".join(self.written(one, depth - 1) for one in term.args[:4]) if depth else "..."
        return f"{term.op}({inner}{', ...' if len(term.args) > 4 and depth else ''})"


def is_number(dtype: np.dtype[Any]) -> bool:
    """Return whether elements are floats, which are free in every proof."""
    return dtype.kind in "fc" or (dtype.kind == "V" and "float" in name_of(dtype))


def _bounds_nothing(op: str, value: Any) -> bool:
    """Return whether a constant is the least element for Max, or the largest one for Min."""
    if value.dtype.kind in "iu":
        limits = np.iinfo(value.dtype)
        return bool(value == (limits.min if op == "Max" else limits.max))
    return bool(value == (-np.inf if op == "Max" else np.inf))


@functools.cache
def name_of(dtype: np.dtype[Any]) -> str:
    """The name of a dtype."""
    return dtype.name


def _symbolic(name: str) -> np.dtype[Any]:
    """The dtype of numbers of terms of the dtype of this name: its field has the name."""
    return np.dtype([(name, np.int64)])


def wrap(ids: Array, dtype: np.dtype[Any]) -> Array:
    """An array of term numbers as one of elements of a dtype."""
    return np.array(ids, np.int64, order="C").view(_symbolic(name_of(dtype)))


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
