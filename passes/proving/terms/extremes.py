"""What is known of counts, extremes and the places of extremes: bounds of a reduction of whole
numbers, from what is known of its elements."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import ceil, floor

from passes.proving.terms.constants import Constants
from passes.proving.terms.numbers import INT64, LONGEST, SMALL
from passes.proving.terms.term import Sum, Term, atom_of, polynomial

#: Up to which magnitude all whole numbers are floats of a type.
EXACT_UP_TO = {"float32": 1 << 24, "float64": 1 << 53}


class Extremes(Constants):
    """Reductions of whole numbers along one axis."""

    def _about_reduction(self, atom: Term) -> list[Sum]:
        """Polynomials of a reduction that are not negative; there is something to reduce."""
        if atom not in self._here.reduced and not self._is_reducing:
            self._is_reducing = True  # what is asked for within knows nothing of reductions
            try:
                self._here.reduced[atom] = self._bounds_of(atom)
            finally:
                self._is_reducing = False
            self._here.proven.clear()
        return self._here.reduced.get(atom, [])

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
        for condition in self._here.alike:
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
        op, selects_last, dtype, _ = atom.parts
        first, final = (
            self.wide(dtype, self.apply(atom.args[-1], [place])) for place in (self.zero, last)
        )
        if selects_last or first is None or final is None:
            return False
        ahead = self.sub(first, final)
        return self.is_not_negative(ahead if op == "ArgMax" else self.scaled(ahead, -1))

    def wide(self, dtype: str, element: Term) -> Term | None:
        """A whole number of a type as one of int64, the same number; None if it may be none."""
        if element.op == "poly":
            return element if self.fits(element) is None else None
        if dtype not in SMALL:
            return None
        if element.op == "const":
            return self.whole(int(self.value(element)))
        op = element.parts[0] if element.op == "ew" else ""
        value = element.args[0] if op == "Cast" and element.args[0].op == "poly" else None
        if op in ("Add", "Sub", "Mul"):
            left, right = (self.wide(dtype, one) for one in element.args)
            if left is not None and right is not None:
                value = {"Add": self.add, "Sub": self.sub, "Mul": self.mul}[op](left, right)
        if value is not None and self._is_within(value, *SMALL[dtype]):
            return value
        return self.opaque(INT64, "ew", ("Cast", (dtype, ()), INT64), [element])

    def _is_within(self, value: Term, low: int, high: int) -> bool:
        """Return whether a whole number is known to be between two."""
        above = self.is_not_negative(self.sub(value, self.whole(low)))
        return above and self.is_not_negative(self.sub(self.whole(high), value))

    def compared(self, op: str, dtype: str, args: Sequence[Term]) -> Term | None:
        """A comparison of whole numbers, those that are cast to floats included; None if it may be
        one of others."""
        left, right = (self._whole_number(dtype, one) for one in args)
        if left is None or right is None:
            return None if op == "Equal" else self._against_constant(op, dtype, args)
        return self.compared_whole(op, left, right)

    def compared_whole(self, op: str, left: Term, right: Term) -> Term:
        """A comparison of whole numbers."""
        difference = self.sub(right, left)
        if op == "Equal":
            return self.eq0(difference)
        return self.ge0(difference if op == "LessOrEqual" else self.sub(difference, self.one))

    def _whole_number(self, dtype: str, element: Term) -> Term | None:
        """The whole number that an element is for certain."""
        if dtype not in EXACT_UP_TO:
            return element if element.op == "poly" else self.wide(dtype, element)
        found = self._before_cast(dtype, element)
        most = EXACT_UP_TO[dtype]
        return found if found is not None and self._is_within(found, -most, most) else None

    def _before_cast(self, dtype: str, element: Term) -> Term | None:
        """The whole number of which an element is the float, maybe a rounded one."""
        value = self.value(element)
        if value is None:
            return self._cast_from(element)
        return self.whole(int(value)) if value.is_integer() else None

    def _extreme_float(self, op: str, dtype: str, args: Sequence[Term]) -> Term | None:
        """The one of two whole numbers, cast to floats, that is their Max or Min: to round keeps
        the order; None if it is unknown, or is a 0 of unknown sign."""
        left, right = (self._before_cast(dtype, one) for one in args)
        is_zero = any(one.op == "const" and one.parts[-1] == "-0.0" for one in args)
        if left is None or right is None or is_zero:
            return None
        ahead = self.sub(left, right) if op == "Max" else self.sub(right, left)
        if self.is_not_negative(ahead):
            return args[0]
        return args[1] if self.is_not_negative(self.scaled(ahead, -1)) else None

    def _cast_from(self, element: Term) -> Term | None:
        """The whole number that is cast to an element."""
        source = element.parts[1][0] if element.op == "ew" and element.parts[0] == "Cast" else ""
        return self.wide(source, element.args[0]) if source in (INT64, *SMALL) else None

    def _against_constant(self, op: str, dtype: str, args: Sequence[Term]) -> Term | None:
        """A comparison of a constant and a whole number that is cast to floats: a Cast keeps the
        order, and numbers of few bits."""
        for place, one in enumerate(args):
            bound = self.value(one) if dtype in EXACT_UP_TO else None
            number = None if bound is None else self._cast_from(args[1 - place])
            if number is None or bound is None or not abs(bound) < EXACT_UP_TO[dtype] / 2:
                continue
            # either bound < number, or not number <= bound
            least = floor(bound) + 1 if (op == "Less") == (place == 0) else ceil(bound)
            above = self.ge0(self.sub(number, self.whole(least)))
            return self.negation(above) if place else above
        return None

    def _narrow(self, dtype: str, value: Term) -> Term | None:
        """An int64 as an element of a smaller type: a known number, or what was of that type."""
        known, (low, high), atom = self.number(value), SMALL[dtype], atom_of(value)
        if known is not None and low <= known <= high:
            return self.literal(dtype, known)
        was = atom.op == "ew" and atom.parts[:2] == ("Cast", (dtype, ()))
        return atom.args[0] if was else None

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
        self._here.holds_for_each(condition)
