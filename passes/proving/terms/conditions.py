"""Conditions in normal form, and the choice of one of two elements."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from math import gcd

from passes.proving.terms.numbers import HIGHEST, LOWEST, Contradiction, Numbers, Value
from passes.proving.terms.term import Sum, Term, atom_of, polynomial, subterms

#: Up to how many elements, or iterations, of a known number are written out.
MOST_WRITTEN_OUT = 24
#: Up to how many numbers in a sum that are one of two are told apart.
_MOST_BRANCHES = 4
#: An index is studied by its rest of a division by a number that is not larger.
MOST_PARTS = 8


class Conditions(Numbers):
    """Formulas over whole numbers and opaque bools, and what a path assumes."""

    @abstractmethod
    def close(self, variables: Sequence[Term], body: Term) -> Term:
        """The function of these variables and placeholders that the term is."""

    @abstractmethod
    def opened(self, function: Term, sizes: Sequence[Term | None] = ()) -> tuple[list[Term], Term]:
        """New variables for those that a function binds, and its body over them."""

    def apply(self, function: Term, values: Sequence[Value]) -> Term:
        """The result of a function at these values."""
        return self.subst(function.args[0], dict(zip(function.data, values, strict=True)))

    def start(self, decisions: Iterable[tuple[Term, bool]]) -> None:
        """Forget what was known, and assume these.

        Raises:
            Contradiction: they cannot hold together.
        """
        self.forget()
        for condition, holds in decisions:
            again = self.subst(condition, {}, whole=True)
            self.assume(again if holds else self.negation(again))

    def assume(self, condition: Term) -> None:
        """Let a condition hold from here on. Raises Contradiction."""
        self._here.proven.clear()
        if condition is self.false:
            raise Contradiction
        if condition.op == "and":
            for part in condition.args:
                self.assume(self.subst(part, {}, whole=True))
        elif condition.op == "ge0":
            opposite = self.negation(condition)
            if opposite.op == "ge0" and self._proves_by_branch(opposite):
                raise Contradiction
            self._fact(condition.args[0])
        elif condition.op == "eq0":
            self._here.known[condition] = True
            (value,) = condition.args
            self._fact(value)
            self._fact(self.scaled(value, -1))
            self._solve(value)
        elif condition.op == "not":
            (inner,) = condition.args
            self._here.known[inner] = False
            if inner.op == "forall":
                self._witness(*inner.args)
            if inner.op == "eq0":
                (value,) = inner.args
                for side in (value, self.scaled(value, -1)):
                    if self.is_not_negative(side):
                        self._fact(self.sub(side, self.one))
        elif condition is not self.true:
            self._here.known[condition] = True
            if condition.op == "or":
                self._here.known[self.negation(condition)] = False
            if condition.op == "forall":
                self._here.holds_for_each(condition)

    def _witness(self, size: Term, condition: Term) -> None:
        """Let there be an index below `size` of which a condition does not hold."""
        _, body = self.opened(condition, [size])
        self._here.facts.append(polynomial(self.sub(size, self.one)))
        self.assume(self.negation(body))
        for atom in subterms(body):
            if atom.op in ("elem", "ew"):
                self._here.facts += self._known_of(atom)
        self._here.proven.clear()

    def know_of_each(self, size: Term, index: Term, condition: Term) -> None:
        """Let a condition hold of every index below `size`, which is shown of each."""
        for part in condition.args if condition.op == "and" else (condition,):
            if part.op == "ge0" and index.uid in part.free:
                made = self.terms.make("forall", None, (size, self.close([index], part)))
                self._here.holds_for_each(made)

    def proves(self, condition: Term) -> bool:
        """Return whether a condition holds for certain."""
        if condition.op == "and":
            return all(map(self.proves, condition.args))
        if condition.op == "ge0":
            return self.is_not_negative(condition.args[0]) or self._proves_by_branch(condition)
        return condition is self.true or self._here.known.get(condition, False)

    def _proves_by_branch(self, condition: Term) -> bool:
        """Return whether a number of an index that is one of two is not negative either way; where
        it is one of inputs and sizes alone, the path is divided."""
        parts = polynomial(condition.args[0])
        chosen = [mono for mono in parts if len(mono) == 1 and mono[0].op in ("ite", "min", "max")]
        if not chosen or not condition.free or self._branches >= _MOST_BRANCHES:
            return False
        (atom,) = chosen[0]
        rest = self.sum({one: many for one, many in parts.items() if one != chosen[0]})
        *holds, left, right = atom.args
        cases = [one for case in holds for one in (case, self.negation(case))]
        self._branches += 1
        try:
            for case, value in zip(cases or (self.true, self.true), (left, right), strict=True):
                side = self.add(rest, self.scaled(value, parts[chosen[0]]))
                with self.assuming(case) as possible:
                    if possible and not self.proves(self.subst(self.ge0(side), {}, whole=True)):
                        return False
        finally:
            self._branches -= 1
        return True

    def proves_if(self, assumed: Sequence[Term], condition: Term) -> bool:
        """Return whether a condition holds wherever the whole numbers `assumed` are not
        negative."""
        with self._apart():
            self._here.facts += map(polynomial, assumed)
            return self.proves(self.subst(condition, {}, whole=True))

    @contextmanager
    def _apart(self) -> Iterator[None]:
        """Forget afterwards what is learned within."""
        kept, self._here = self._here, self._here.copied()
        try:
            yield
        finally:
            self._here = kept

    @contextmanager
    def assuming(self, condition: Term) -> Iterator[bool]:
        """Assume a condition within; False where it cannot hold."""
        with self._apart():
            try:
                self.assume(condition)
                possible = True
            except Contradiction:
                possible = False
            yield possible

    def ge0(self, value: Term) -> Term:
        """The condition that a whole number is not negative."""
        known = self.number(value)
        if known is not None:
            return self.truth(known >= 0)
        split = self._by_branch(self.ge0, value)
        if split is not None:
            return split
        parts = polynomial(value)
        is_some = parts.get((), 0) == -1
        counted = self._counts_none({mono: many for mono, many in parts.items() if mono})
        if counted is not None and is_some and max(parts.values()) == 1:
            return self.negation(counted)
        if counted is not None and not is_some and [*parts.values()] == [-1]:
            return counted
        common = gcd(*(many for mono, many in parts.items() if mono))
        value = self.sum({m: many // common for m, many in parts.items()})
        if self.is_not_negative(value):
            return self.true
        if self.is_not_negative(self.sub(self.whole(-1), value)):
            return self.false
        return self.terms.make("ge0", None, (value,))

    def at_least(self, value: Term, least: Term) -> Term:
        """The condition that a whole number is not less than another one."""
        return self.ge0(self.sub(value, least))

    def within(self, value: Term, low: Term, high: Term) -> Term:
        """The condition that a whole number is one of those between two."""
        return self.all((self.at_least(value, low), self.at_least(high, value)))

    def below(self, index: Term, size: Term) -> Term:
        """The condition that an index is below a size."""
        return self.ge0(self.sub(self.sub(size, self.one), index))

    def equal(self, left: Term, right: Term) -> Term:
        """The condition that two whole numbers are equal."""
        return self.eq0(self.sub(left, right))

    def eq0(self, value: Term) -> Term:
        """The condition that a whole number is 0."""
        known = self.number(value)
        if known is not None:
            return self.truth(known == 0)
        split = self._by_branch(self.eq0, value)
        if split is not None:
            return split
        parts = polynomial(value)
        common = gcd(*(many for mono, many in parts.items() if mono))
        if parts.get((), 0) % common:
            return self.false
        counted = self._counts_none(parts)
        if counted is not None:
            return counted
        value = self.scaled(value, 1 if value.data[0] > 0 else -1)
        value = self.sum({m: many // common for m, many in polynomial(value).items()})
        signs = [self.is_not_negative(value), self.is_not_negative(self.scaled(value, -1))]
        if all(signs):
            return self.true
        strict = [value, self.scaled(value, -1)]
        if any(map(self.is_positive, strict)):
            return self.false
        return self.boolean(self.terms.make("eq0", None, (value,)))

    def _counts_none(self, parts: Sum) -> Term | None:
        """The condition that the number of those along an axis that meet a condition is 0."""
        (mono, *others) = parts
        if others or len(mono) != 1 or mono[0].data != ("ReduceSum", "int64"):
            return None
        *sizes, function = mono[0].args
        (body,) = polynomial(function.args[0]) if function.args[0].data == (1,) else ((),)
        if len(sizes) != 1 or len(body) != 1 or body[0].op != "ite":
            return None
        if any(self.number(one) not in (0, 1) for one in body[0].args[1:]):
            return None
        (index,), inner = self.opened(function, sizes)
        return self.for_each(sizes, [index], self.eq0(inner))

    def _by_branch(self, asks: Callable[[Term], Term], value: Term) -> Term | None:
        """The answer about a number that is one of two, where each of them has one."""
        parts = polynomial(value)
        chosen = [mono for mono in parts if len(mono) == 1 and mono[0].op == "ite"]
        if len(chosen) <= _MOST_BRANCHES:
            for mono in chosen:
                rest = self.sum({one: many for one, many in parts.items() if one != mono})
                condition, *branches = mono[0].args
                sides = [
                    asks(self.add(rest, self.scaled(branch, parts[mono]))) for branch in branches
                ]
                if all(side is self.true or side is self.false for side in sides):
                    return self.ite(condition, *sides)
        return None

    def truth(self, value: bool) -> Term:
        """A bool."""
        return self.true if value else self.false

    def boolean(self, term: Term) -> Term:
        """A bool that nothing simplifies, but that may be known."""
        known = self._here.known.get(term)
        return term if known is None else self.truth(known)

    def negation(self, condition: Term) -> Term:
        """The opposite of a condition."""
        match condition.op:
            case "true" | "false":
                return self.truth(condition is self.false)
            case "not":
                return condition.args[0]
            case "ge0":
                return self.ge0(self.sub(self.whole(-1), condition.args[0]))
            case "and" | "or":
                parts = tuple(map(self.negation, condition.args))
                return self.any(parts) if condition.op == "and" else self.all(parts)
        return self.terms.make("not", None, (condition,))

    def implied(self, condition: Term, needed: Term) -> Term:
        """The condition that another one holds if the first does."""
        if condition.op == "ge0" and self.proves_if([condition.args[0]], needed):
            return self.true
        return self.any((self.negation(condition), needed))

    def fits(self, value: Term) -> Term | None:
        """The condition that a whole number is an int64; None if it is one."""
        known = self.number(value)
        if known is not None:
            return None if LOWEST <= known <= HIGHEST else self.false
        parts = polynomial(value)
        chosen = [one for mono in parts for one in mono if one.op == "ite"]
        needed = [need for one in chosen for need in self._branches_fit(*one.args)]
        (mono, factor), *others = parts.items()
        is_chosen = not others and factor == 1 and len(mono) == 1 and mono[0].op == "ite"
        low, high = self._range(value)
        if not is_chosen and not LOWEST <= low <= high <= HIGHEST:
            needed.append(self.within(value, self.whole(LOWEST), self.whole(HIGHEST)))
        both = self.all(needed)
        return None if both is self.true else both

    def _branches_fit(self, condition: Term, left: Term, right: Term) -> Iterator[Term]:
        """The condition that the chosen one of two numbers is an int64."""
        for branch, chosen in ((left, condition), (right, self.negation(condition))):
            needed = self.fits(branch)
            if needed is not None:
                yield self.implied(chosen, needed)

    def all(self, conditions: Iterable[Term]) -> Term:
        """The condition that all hold."""
        return self._joined("and", conditions, self.true, self.false)

    def any(self, conditions: Iterable[Term]) -> Term:
        """The condition that one holds."""
        return self._joined("or", conditions, self.false, self.true)

    def _joined(self, op: str, conditions: Iterable[Term], unit: Term, end: Term) -> Term:
        parts: dict[Term, None] = {}  # in an order that is the same in every process
        for one in conditions:
            parts |= dict.fromkeys(one.args if one.op == op else [one])
        parts.pop(unit, None)
        if end in parts or any(self.negation(one) in parts for one in parts):
            return end
        if len(parts) < 2:
            return next(iter(parts), unit)
        ordered = sorted(parts, key=lambda one: (one.order, one.uid))
        return self.boolean(self.terms.make(op, None, ordered))

    def ite(self, condition: Term, left: Term, right: Term) -> Term:
        """One of two elements."""
        if condition is self.true or left is right:
            return left
        if condition is self.false:
            return right
        if condition.op == "not":
            return self.ite(condition.args[0], right, left)
        if right is self.false or right is condition:
            return self.all((condition, left))
        if left is self.true or left is condition:
            return self.any((condition, right))
        if left is self.false:
            return self.all((self.negation(condition), right))
        if right is self.true:
            return self.any((self.negation(condition), left))
        if condition.op == "ge0":  # one of the two signs
            other = self.negation(condition)
            if (other.order, other.uid) < (condition.order, condition.uid):
                condition, left, right = other, right, left
        left, right = self._under(condition, left, 1), self._under(condition, right, 2)
        if left is right:
            return left
        made = self.terms.make("ite", None, (condition, left, right))
        return self.lift(made) if left.op == "poly" else self.boolean(made)

    def _under(self, condition: Term, value: Term, branch: int) -> Term:
        """A branch that asks for the same condition at once."""
        inner = atom_of(value)
        return inner.args[branch] if inner.op == "ite" and inner.args[0] is condition else value

    def choice(self, *terms: Term) -> Term | None:
        """A condition of inputs and sizes alone on which one of these terms depends."""
        for term in terms:
            for one in subterms(term):
                if one.op == "ite" and not one.args[0].free:
                    condition = one.args[0]
                elif one.op in ("min", "max") and not one.free:
                    condition = self.at_least(*one.args)
                else:
                    continue
                if condition is self.true or condition is self.false:
                    continue  # it is known by now
                while condition.op in ("and", "or", "not"):
                    condition = condition.args[0]
                return self.choice(condition) or condition
        return None

    def for_all(self, size: Term, condition: Term) -> Term:
        """The condition that a function of an index holds for all below `size`."""
        (index,), body = self.opened(condition, [size])
        some = self.sub(size, self.one)
        if body is self.true or self.ge0(self.scaled(size, -1)) is self.true:
            return self.true
        if self.proves_if([some], body):
            return self.true
        parts = body.args if body.op == "and" else (body,)
        if len(parts) > 1:
            return self.all(self.for_each([size], [index], one) for one in parts)
        count = self.number(size)
        if count is not None and count <= MOST_WRITTEN_OUT:
            every = range(count)
            return self.all(self.subst(body, {index: self.whole(one)}) for one in every)
        if index.uid not in body.free:
            return self.any((self.ge0(self.scaled(size, -1)), body))
        last = self._worst(body, index, size)
        if last is not None:
            return self.any((self.ge0(self.scaled(size, -1)), last))
        for one in subterms(body):  # a case for each rest of a quotient by a small number
            by = self.number(one.args[1]) if one.op == "idiv" else None
            if by and by <= MOST_PARTS and one.args[0] is self.lift(index):
                return self._for_all_rests(size, index, body, by)
        return self.boolean(self.terms.make("forall", None, (size, self.close([index], body))))

    def for_each(self, sizes: Sequence[Term], indices: Sequence[Term], condition: Term) -> Term:
        """The condition that another one holds for all indices below these sizes."""
        for size, index in reversed([*zip(sizes, indices, strict=True)]):
            condition = self.for_all(size, self.close([index], condition))
        return condition

    def _for_all_rests(self, size: Term, index: Term, body: Term, by: int) -> Term:
        """The same of indices that are `by` times another one and a rest, for each rest."""
        found = []
        for rest in range(by):
            count = self.idiv(self.add(size, self.whole(by - 1 - rest)), self.whole(by))
            part = self.variable(count)
            own = self.add(self.scaled(self.lift(part), by), self.whole(rest))
            found.append(self.for_each([count], [part], self.subst(body, {index: own})))
        return self.all(found)

    def _worst(self, body: Term, index: Term, size: Term) -> Term | None:
        """A condition at the index below `size` that is the last one to meet it, where the
        condition is a sum that is linear in the index."""
        if body.op != "ge0":
            return None
        parts = dict(polynomial(body.args[0]))
        slope = parts.pop((index,), 0)
        if not slope or self.sum(parts).free & {index.uid}:
            return None
        return self.subst(body, {index: self.zero if slope > 0 else self.sub(size, self.one)})
