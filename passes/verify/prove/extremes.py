"""What is known of counts, extremes and the places of extremes: bounds of a reduction of whole
numbers, from what is known of its elements."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence

import numpy as np

from passes.verify.prove.constants import Constants
from passes.verify.prove.integers import Sum, polynomial
from passes.verify.prove.numbers import INT64, LONGEST
from passes.verify.prove.terms import Term


class Extremes(Constants):
    """Reductions of whole numbers along one axis."""

    @abstractmethod
    def apply(self, function: Term, values: Sequence[Term]) -> Term:
        """The result of a function at these values."""

    def _about_reduction(self, atom: Term) -> list[Sum]:
        """Polynomials of a reduction that are not negative; there is something to reduce."""
        if atom not in self._reduced and not self._is_reducing:
            self._is_reducing = True  # what is asked for within knows nothing of reductions
            try:
                self._reduced[atom] = self._bounds_of(atom)
            finally:
                self._is_reducing = False
            self._proven.clear()
        return self._reduced.get(atom, [])

    def _bounds_of(self, atom: Term) -> list[Sum]:
        *sizes, function = atom.args
        own, (op, *rest) = self.sum({(atom,): 1}), atom.parts
        found: list[Sum] = []
        if len(sizes) != 1 or rest[-1] != INT64:
            return found
        (size,) = sizes
        last = self.sub(size, self.one)
        some = self.is_not_negative(last)
        if op in ("ArgMax", "ArgMin"):
            found += [polynomial(own), polynomial(self.sub(last, own))]
            if self.is_not_negative(self.sub(last, self.one)) and self._is_before_last(atom, last):
                found.append(polynomial(self.sub(self.sub(last, self.one), own)))
        elif op == "ReduceSum":
            low, high = self._range(function.args[0])
            if low >= 0 and high <= LONGEST:
                found += [polynomial(self.sub(own, self.scaled(size, low)))]
                found += [polynomial(self.sub(self.scaled(size, high), own))]
        elif op in ("ReduceMax", "ReduceMin") and some and self.fits(function.args[0]) is None:
            sign = 1 if op == "ReduceMax" else -1
            ends = [self.apply(function, [place]) for place in (self.zero, last)]
            found += [polynomial(self.scaled(self.sub(own, end), sign)) for end in ends]
            for limit in self._limits(sign):
                for bound in (limit, self.add(limit, self.whole(sign))):
                    (index,), element = self.opened(function, sizes)
                    inside = self.ge0(self.scaled(self.sub(bound, element), sign))
                    if self.for_all(size, self.close([index], inside)) is self.true:
                        found.append(polynomial(self.scaled(self.sub(bound, own), sign)))
                        break
        return found

    def _limits(self, sign: int) -> Iterator[Term]:
        """What elements of something are known not to exceed, or not to be less than."""
        for condition in self._alike:
            (body,) = condition.args[1].args
            parts = dict(polynomial(body.args[0])) if body.op == "ge0" else {}
            read = [mono for mono in parts if len(mono) == 1 and mono[0].op == "elem"]
            if len(read) == 1 and parts.pop(read[0]) == -sign:
                limit = self.scaled(self.sum(parts), sign)
                if not limit.free:
                    yield limit

    def _is_before_last(self, atom: Term, last: Term) -> bool:
        """Return whether the first element is as good as the last one, so that the place of the
        first best one is not the last."""
        op, selects_last, *_ = atom.parts
        ends = [self._wide(self.apply(atom.args[-1], [place])) for place in (self.zero, last)]
        first, final = ends
        if selects_last or first is None or final is None:
            return False
        ahead = self.sub(first, final)
        return self.is_not_negative(ahead if op == "ArgMax" else self.scaled(ahead, -1))

    def _wide(self, element: Term) -> Term | None:
        """A whole number of any type as one of int64, where it is the same number."""
        if element.op == "poly":
            return element if self.fits(element) is None else None
        dtype = str(element.parts[0]) if element.op == "const" else str(element.parts[-1])
        if not dtype.startswith(("int", "uint")):
            return None
        if element.op == "const":
            return self.whole(int(np.frombuffer(bytes.fromhex(element.parts[1]), dtype)[0]))
        if element.op != "ew" or element.parts[0] != "Cast" or element.args[0].op != "poly":
            return None
        (value,), limits = element.args, np.iinfo(dtype)
        fits = self.is_not_negative(self.sub(value, self.whole(int(limits.min))))
        fits = fits and self.is_not_negative(self.sub(self.whole(int(limits.max)), value))
        return value if fits else None

    def _each_extreme(self, data: object, sizes: Sequence[Term], function: Term, own: Term) -> None:
        """Know from here on that an extreme is not less, or not more, than each element."""
        signs = {("ReduceMax", INT64): 1, ("ReduceMin", INT64): -1}
        if data not in signs or len(sizes) != 1:
            return
        (index,), element = self.opened(function, sizes)
        if self.fits(element) is not None:
            return
        ahead = self.scaled(self.sub(own, element), signs[data])
        body = self.close([index], self.terms.make("ge0", None, (ahead,)))
        condition = self.terms.make("forall", None, (sizes[0], body))
        if condition not in self._extremes:
            self._extremes.append(condition)
            self._instances.clear()
            self._reduced.clear()
            self._proven.clear()
