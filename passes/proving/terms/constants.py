"""Elements of constants: the same wherever the part that is read holds the same numbers, whatever
the tensor it is cut out of and the order of its axes."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from hashlib import sha256
from itertools import permutations
from math import prod
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

from passes.proving.terms.conditions import Conditions
from passes.proving.terms.numbers import BOOL, INT64
from passes.proving.terms.term import Term, polynomial

#: Of how many elements a part is cut out, and of how many axes the order is chosen.
_MOST_CUT = 1 << 14
_MOST_AXES = 3


class Constants(Conditions):
    """Constants, and elements that nothing is known about."""

    def __init__(self) -> None:
        super().__init__()
        self.constants: dict[str, npt.NDArray[Any]] = {}
        self._read: dict[tuple[object, ...], Term] = {}

    def opaque(self, dtype: str, op: str, data: Hashable, args: Iterable[Term]) -> Term:
        """An element that nothing is known about but what it is made of."""
        made = self.terms.make(op, data, args)
        if dtype == INT64:
            return self.lift(made)
        return self.boolean(made) if dtype == BOOL else made

    def literal(self, dtype: str, item: Any) -> Term:
        """The term of a value; a number of Python is one of the type."""
        if dtype == INT64:
            return self.whole(int(item))
        if dtype == BOOL:
            return self.truth(bool(item))
        if isinstance(item, int | float):
            item = np.dtype(dtype).type(item)
        bits = repr(item) if isinstance(item, str) else np.asarray(item).tobytes().hex()
        return self.terms.make("const", (dtype, bits, str(item)))

    def value(self, term: Term) -> Any:
        """The value of a constant, None of another term; an int64 is one modulo 2^64."""
        if term.op == "const":
            dtype, bits, text = term.parts
            if dtype in ("object", "string"):
                return text
            return np.frombuffer(bytes.fromhex(bits), dtype)[0]
        if term.op in ("true", "false"):
            return np.bool_(term is self.true)
        known = self.number(term)
        return None if known is None else np.array(known % (1 << 64), np.uint64).view(INT64)[()]

    def null(self, dtype: str) -> Term:
        """The zero of an element type, or the empty string."""
        kind = getattr(ml_dtypes, dtype, dtype)
        return self.literal(dtype, "" if dtype == "string" else np.zeros((), kind)[()])

    def constant(self, value: npt.NDArray[Any]) -> str:
        """A name for a constant, to read it by."""
        name = digest(value)
        self.constants[name] = value
        return name

    def element(self, name: str, dtype: str, indices: Sequence[Term]) -> Term:
        """The element of a constant at these indices."""
        key = (name, *(index.uid for index in indices))
        if key not in self._read:
            self._read[key] = self._part(self.constants[name], dtype, indices)
        made = self._read[key]
        if dtype == INT64 and made.op == "elem":
            own, value = self.sum({(made,): 1}), self.constants[made.data[1]]
            step = _step(value)
            if step is not None:  # other indices are never read: that is an obligation
                return self.add(self.whole(int(value[0])), self.scaled(made.args[0], step))
            low, high = (int(value.min()), int(value.max())) if value.size else (0, 0)
            self.bound(made, self.sub(own, self.whole(low)), self.sub(self.whole(high), own))
        return self.lift(made) if dtype == INT64 else self.boolean(made) if dtype == BOOL else made

    def _part(self, value: npt.NDArray[Any], dtype: str, indices: Sequence[Term]) -> Term:
        """The element as a term of the part of the constant that is read."""
        if value.size <= _MOST_CUT and value.size:
            value, indices = self._cut(value, list(indices))
        if value.size and _is_alike(value):
            return self.literal(dtype, value.ravel()[0])
        if value.size <= _MOST_CUT and 1 < value.ndim <= _MOST_AXES:
            value, indices = _in_order(value, indices)
        return self.terms.make("elem", ("constant", self.constant(value), dtype), indices)

    def _cut(
        self, value: npt.NDArray[Any], indices: list[Term]
    ) -> tuple[npt.NDArray[Any], list[Term]]:
        """The part that indices read which are numbers, or sums of variables of known ranges, and
        the variables."""
        variables: dict[Term, int] = {}
        located: dict[int, Term] = {}
        for axis, index in enumerate(indices):
            atoms = {atom for mono in polynomial(index) for atom in mono}
            ranges = {atom: self._range_of_variable(atom) for atom in atoms}
            if all(ranges.values()):
                located[axis] = index
                variables |= {atom: count for atom, count in ranges.items() if count}
        if not located or prod(variables.values()) * value.size > _MOST_CUT * 4:
            return value, indices
        order = list(variables)
        grid = np.indices([variables[one] for one in order])
        places: list[Any] = []
        for axis, index in located.items():
            place = np.zeros(grid.shape[1:], int)
            for mono, factor in polynomial(index).items():
                read = (grid[order.index(atom)] for atom in mono)
                place = place + factor * prod(read, start=np.ones((), int))
            if (place < 0).any() or (place >= value.shape[axis]).any():
                return value, indices
            places.append(place)
        moved = np.moveaxis(value, list(located), range(len(located)))
        part = moved[tuple(places)]
        left = [index for axis, index in enumerate(indices) if axis not in located]
        kept = [one for one in order if variables[one] != 1]
        part = part.reshape(
            [n for n in part.shape[: len(order)] if n != 1] + [*part.shape[len(order) :]]
        )
        # as they are on every path, not as an equation of this one makes them
        return part, [*(self.sum({(one,): 1}) for one in kept), *left]

    def _range_of_variable(self, atom: Term) -> int | None:
        """Below which number a variable is, where that is known."""
        if atom.op != "var":
            return None
        for fact in self._bounds.get(atom, []):
            if fact.get((atom,)) == -1 and set(fact) <= {(atom,), ()}:
                return fact.get((), 0) + 1
        return None


def _is_alike(value: npt.NDArray[Any]) -> bool:
    if value.dtype == object:
        return value.size == 1
    flat = value.reshape(-1)
    items = np.frombuffer(np.ascontiguousarray(flat).tobytes(), f"V{value.itemsize}")
    return bool((items == items[0]).all())


def _step(value: npt.NDArray[Any]) -> int | None:
    """By how much each number of a vector is more than the one before it, if that is the same."""
    if value.ndim != 1 or value.size < 2:
        return None
    first, second, last = (int(value[place]) for place in (0, 1, -1))
    steps = np.diff(value)  # modulo 2^64; between the first and the last number nothing overflows
    step = second - first
    even = last == first + step * (value.size - 1) and (steps == steps[0]).all()
    return step if even else None


def _in_order(
    value: npt.NDArray[Any], indices: Sequence[Term]
) -> tuple[npt.NDArray[Any], list[Term]]:
    """The axes in an order that the numbers alone decide."""
    found = []
    for order in permutations(range(value.ndim)):
        moved = np.ascontiguousarray(value.transpose(order))
        at = [indices[axis] for axis in order]
        key = (moved.shape, moved.tobytes(), [(one.order, one.uid) for one in at])
        found.append((key, moved, at))
    _, moved, at = min(found, key=lambda one: one[0])
    return moved, at


def digest(value: npt.NDArray[Any]) -> str:
    """A key that no constant of other numbers has."""
    description = f"{value.dtype} {value.shape} ".encode()
    items = repr(value.tolist()).encode() if value.dtype == object else value.tobytes()
    return sha256(description + items).hexdigest()[:24]
