"""Whole numbers in normal form, and what is known of them on one path."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from passes.proving.terms.integers import Search, product
from passes.proving.terms.term import Interned, Sum, Term, polynomial, subterms

#: What takes the place of a variable, or of a placeholder applied to indices.
Value = Term | Callable[[tuple[Term, ...]], Term]
Values = Mapping[Term, Value]

INT64 = "int64"
BOOL = "bool"
#: The ends of int64.
LOWEST, HIGHEST = -(1 << 63), (1 << 63) - 1
#: The ends of the types of which each number is one of int64.
SMALL = {
    f"{sign}int{bits}": (
        -(1 << bits) // 2 if not sign else 0,
        (1 << bits) // (1 if sign else 2) - 1,
    )
    for sign in ("", "u")
    for bits in (8, 16, 32)
}
#: How long an axis is taken to be at most.
LONGEST = (1 << 31) - 1
#: How often a loop is taken to iterate at most.
MOST_ITERATIONS = 1 << 47
#: Atoms that are sizes, indices or numbers of iterations: a tensor of such a size exists.
_COUNTS = {"dim", "size", "var", "bv", "trips"}
#: Atoms that an equation may give everywhere.
_SOLVED = {"dim", "elem", "idiv", "var"}


class Contradiction(Exception):
    """Nothing is like what this path assumes."""


@dataclass
class Knowledge:
    """What is known on one path, and what was concluded from it.

    `alike` are conditions on all elements along an axis; of the others, `known` tells which hold,
    and `equal` what an equation makes of an atom.
    """

    facts: list[Sum] = field(default_factory=list)
    known: dict[Term, bool] = field(default_factory=dict)
    equal: dict[Term, Term] = field(default_factory=dict)
    positive: set[Term] = field(default_factory=set)
    alike: list[Term] = field(default_factory=list)
    proven: dict[Term, bool] = field(default_factory=dict)
    instances: dict[Term, list[Sum]] = field(default_factory=dict)
    reduced: dict[Term, list[Sum]] = field(default_factory=dict)
    states: dict[tuple[Term, int], Term] = field(default_factory=dict)

    def copied(self) -> Knowledge:
        """The same, to be added to; conclusions are drawn anew."""
        known = self.known.copy(), self.equal.copy(), self.positive.copy()
        return Knowledge(self.facts.copy(), *known, self.alike.copy())

    def holds_for_each(self, condition: Term) -> None:
        """Know a condition on all elements along an axis."""
        if condition not in self.alike:
            self.alike.append(condition)
            for concluded in (self.instances, self.reduced, self.proven):
                concluded.clear()


class Numbers(ABC):
    """Polynomials over whole numbers; every function gives what its name tells for all values that
    the path allows."""

    def __init__(self) -> None:
        self.terms = Interned()
        self._bounds: dict[Term, list[Sum]] = {}
        self._relatives: dict[Term, list[Sum]] = {}
        self._ranges: dict[Term, tuple[int, int]] = {}
        self._branches = 0  # how many choices are studied within each other
        self._is_reducing = False
        self.forget()

    def forget(self) -> None:
        """Know nothing but what holds on every path."""
        self._here = Knowledge()

    @abstractmethod
    def subst(self, term: Term, values: Values, *, whole: bool = False) -> Term:
        """A term with values for variables, simplified; `whole`: anew in every part."""

    @abstractmethod
    def _about_reduction(self, atom: Term) -> list[Sum]:
        """Polynomials of a reduction that are not negative."""

    @cached_property
    def zero(self) -> Term:
        """The number 0."""
        return self.whole(0)

    @cached_property
    def one(self) -> Term:
        """The number 1."""
        return self.whole(1)

    @property
    def true(self) -> Term:
        """The condition that always holds."""
        return self.terms.make("true")

    @property
    def false(self) -> Term:
        """The condition that never holds."""
        return self.terms.make("false")

    def _fact(self, value: Term) -> None:
        if self.is_not_negative(self.sub(self.whole(-1), value)):
            raise Contradiction
        self._here.facts.append(polynomial(value))
        self._here.proven.clear()
        if self.is_not_negative(self.scaled(value, -1)):
            self._solve(value)

    def _solve(self, value: Term) -> None:
        """Read an input or size everywhere as what an equation makes of it."""
        parts = polynomial(value)
        for mono, factor in parts.items():
            if len(mono) != 1 or abs(factor) != 1 or mono[0].op not in _SOLVED:
                continue
            (atom,) = mono
            rest = self.sum({one: -factor * many for one, many in parts.items() if one != mono})
            if (atom.free and atom.op != "var") or any(atom is inner for inner in subterms(rest)):
                continue
            if atom.op == "idiv":
                self._here.facts += self._about(atom)
            here = self._here
            here.equal[atom] = rest
            here.equal = {a: self.subst(b, {}, whole=True) for a, b in here.equal.items()}
            here.facts = [polynomial(self.subst(self.sum(f), {}, whole=True)) for f in here.facts]
            return

    def is_positive(self, value: Term) -> bool:
        """Return whether a whole number is shown to be positive."""
        return self.is_not_negative(self.sub(value, self.one))

    def is_not_negative(self, value: Term) -> bool:
        """Return whether a whole number is shown not to be negative."""
        known = self.number(value)
        if known is not None:
            return known >= 0
        if value not in self._here.proven:
            search = Search(self._here.facts, self._about, self._is_positive)
            self._here.proven[value] = search.proves(polynomial(value))
        return self._here.proven[value]

    def _is_positive(self, atom: Term) -> bool:
        return atom.op in _COUNTS or atom in self._here.positive

    def _about(self, atom: Term) -> list[Sum]:
        """Polynomials of an atom that are not negative."""
        own: Sum = {(atom,): 1}
        if atom in self._bounds:
            return self._bounds[atom]
        if atom.op == "red":
            return self._about_reduction(atom)
        if atom.op in ("min", "max", "idiv"):
            if atom.op == "idiv" and not self.is_positive(atom.args[1]):
                return []
            if atom not in self._relatives:
                self._relatives[atom] = self._parts_of(atom)
            return self._relatives[atom] + ([own] if atom in self._here.positive else [])
        if atom.op in ("elem", "ew", "output"):
            low, high = self._range_of(atom)
            limits: list[Sum] = [{(atom,): 1, (): -low}, {(atom,): -1, (): high}]
            return [*self._known_of(atom), *limits]
        if atom.op in ("dim", "size"):
            return [own, {(atom,): -1, (): LONGEST}]
        return [own] if self._is_positive(atom) else []

    def _parts_of(self, atom: Term) -> list[Sum]:
        """The differences between an extreme and its parts; the rest of a quotient."""
        own = self.sum({(atom,): 1})
        if atom.op == "idiv":
            value, by = atom.args
            rest = self.sub(value, self.mul(by, own))
            return [polynomial(rest), polynomial(self.sub(self.sub(by, self.one), rest))]
        sign = 1 if atom.op == "max" else -1
        return [polynomial(self.scaled(self.sub(own, argument), sign)) for argument in atom.args]

    def _known_of(self, atom: Term) -> list[Sum]:
        """The facts about an element that are known of all."""
        if atom in self._here.instances or atom.op not in ("elem", "ew"):
            return self._here.instances.get(atom, [])
        found = self._here.instances[atom] = []
        for condition in self._here.alike:
            size, function = condition.args
            (body,) = function.args
            own = self.lift(function.data[0])
            if body.op != "ge0":
                continue
            for one in subterms(body):
                index = _matched(one, atom, own) if one.op == atom.op else None
                if index is None:
                    continue
                inside = self.is_not_negative(index) and self.is_not_negative(
                    self.sub(self.sub(size, self.one), index)
                )
                if inside and self.subst(one, {function.data[0]: index}) is self.lift(atom):
                    found.append(polynomial(self.subst(body.args[0], {function.data[0]: index})))
                break
        self._here.proven.clear()
        return found

    def bound(self, atom: Term, *values: Term) -> None:
        """Know from here on that these are not negative, wherever the atom has a meaning."""
        self._bounds[atom] = [polynomial(value) for value in values]
        if any(polynomial(value) == {(atom,): 1} for value in values):
            self._here.positive.add(atom)

    def variable(self, size: Term | None = None) -> Term:
        """A new variable, an index below `size`."""
        made = self.terms.make("var", self.terms.serial())
        own = self.sum({(made,): 1})
        bounds = [own] if size is None else [own, self.sub(self.sub(size, self.one), own)]
        self.bound(made, *bounds)
        return made

    def parts(self, variable: Term, by: int) -> list[Term]:
        """The forms of a variable, one for each rest of its division by a number: `by` times a new
        variable, and the rest."""
        made = []
        for rest in range(by):
            quotient = self.variable()
            own = self.add(self.scaled(self.sum({(quotient,): 1}), by), self.whole(rest))
            known = [
                self.subst(self.sum(one), {variable: own}) for one in self._bounds.get(variable, ())
            ]
            self.bound(quotient, *known, self.sum({(quotient,): 1}))
            made.append(own)
        return made

    def whole(self, value: int) -> Term:
        """A whole number."""
        return self.sum({(): value})

    def sum(self, parts: Sum) -> Term:
        """The term of a polynomial, as it stands."""
        used = [(self.terms.make("mono", None, mono), factor) for mono, factor in parts.items()]
        used = [one for one in used if one[1]]
        used.sort(key=lambda one: (-len(one[0].args), one[0].order, one[0].uid))
        return self.terms.make("poly", tuple(f for _, f in used), (mono for mono, _ in used))

    def lift(self, atom: Term) -> Term:
        """The whole number that an atom is."""
        if atom.op == "poly":
            return atom
        return self._here.equal[atom] if atom in self._here.equal else self.sum({(atom,): 1})

    def number(self, value: Term) -> int | None:
        """The number that a term is; None where it depends on something, or is no polynomial."""
        if value.op != "poly":
            return None
        if not value.args:
            return 0
        alone = len(value.args) == 1 and not value.args[0].args
        return int(value.data[0]) if alone else None

    def add(self, left: Term, right: Term) -> Term:
        """The sum."""
        made = polynomial(left)
        for mono, factor in polynomial(right).items():
            made[mono] = made.get(mono, 0) + factor
        return self.sum(made)

    def scaled(self, value: Term, factor: int) -> Term:
        """A multiple."""
        return self.sum({mono: factor * many for mono, many in polynomial(value).items()})

    def sub(self, left: Term, right: Term) -> Term:
        """The difference."""
        return self.add(left, self.scaled(right, -1))

    def mul(self, left: Term, right: Term) -> Term:
        """The product."""
        return self.sum(product(polynomial(left), polynomial(right)))

    def product(self, values: Iterable[Term]) -> Term:
        """The product of all."""
        made = self.one
        for value in values:
            made = self.mul(made, value)
        return made

    def idiv(self, value: Term, by: Term) -> Term:
        """The quotient, rounded down, of a divisor of at least 1."""
        known, divisor = self.number(value), self.number(by)
        if divisor == 1 or known == 0:
            return value
        if known is not None and divisor is not None and divisor > 0:
            return self.whole(known // divisor)
        whole, rest = self._divided(value, by)
        if not rest.args:
            return whole
        if self.is_not_negative(rest) and self.is_not_negative(
            self.sub(self.sub(by, self.one), rest)
        ):
            return whole
        if self.is_not_negative(self.add(rest, by)) and self.is_not_negative(
            self.sub(self.whole(-1), rest)
        ):
            return self.sub(whole, self.one)
        atom = self.terms.make("idiv", None, (rest, by))
        if self.is_not_negative(rest):
            self._here.positive.add(atom)
        return self.add(whole, self.lift(atom))

    def imod(self, value: Term, by: Term) -> Term:
        """The rest of `idiv`."""
        return self.sub(value, self.mul(by, self.idiv(value, by)))

    def _divided(self, value: Term, by: Term) -> tuple[Term, Term]:
        """A quotient and the rest, by the products of which the divisor, one product, is a
        part."""
        divisor = polynomial(by)
        if len(divisor) != 1 or min(divisor.values()) < 0:
            return (self.one, self.zero) if value is by else (self.zero, value)
        ((atoms, factor),) = divisor.items()
        whole: dict[tuple[Term, ...], int] = {}
        rest: dict[tuple[Term, ...], int] = {}
        for mono, many in polynomial(value).items():
            left: list[Term] | None = list(mono)
            for atom in atoms:
                if left is not None and atom in left:
                    left.remove(atom)
                else:
                    left = None
            if left is None or (many % factor and mono != ()):
                rest[mono] = many
                continue
            whole[tuple(left)] = many // factor
            rest[mono] = many % factor
        return self.sum(whole), self.sum(rest)

    def exact(self, value: Term, by: Term) -> Term | None:
        """The quotient where there is no rest."""
        whole, rest = self._divided(value, by)
        return None if rest.args else whole

    def least(self, left: Term, right: Term) -> Term:
        """The minimum."""
        return self._extreme("min", left, right)

    def most(self, left: Term, right: Term) -> Term:
        """The maximum."""
        return self._extreme("max", left, right)

    def _extreme(self, op: str, left: Term, right: Term) -> Term:
        low, high = (left, right) if op == "min" else (right, left)
        if self.is_not_negative(self.sub(high, low)):
            return left
        if self.is_not_negative(self.sub(low, high)):
            return right
        pair = sorted((left, right), key=lambda one: (one.order, one.uid))
        atom = self.terms.make(op, None, pair)
        signs = [self.is_not_negative(one) for one in pair]
        if all(signs) or (op == "max" and any(signs)):
            self._here.positive.add(atom)
        return self.lift(atom)

    def _range(self, value: Term) -> tuple[int, int]:
        """Numbers between which a whole number is, whatever the path."""
        low = high = 0
        for mono, factor in polynomial(value).items():
            least = most = factor
            for atom in mono:
                if atom not in self._ranges:
                    self._ranges[atom] = self._range_of(atom)
                ends = [one * end for one in (least, most) for end in self._ranges[atom]]
                least, most = min(ends), max(ends)
            low, high = low + least, high + most
        return low, high

    def _range_of(self, atom: Term) -> tuple[int, int]:
        """Numbers between which an atom is."""
        if atom.op in ("dim", "size"):
            return 0, LONGEST
        if atom.op in _COUNTS:
            return 0, MOST_ITERATIONS
        if atom.op in ("min", "max", "ite"):
            ends = [self._range(one) for one in atom.args if one.op == "poly"]
            return min(low for low, _ in ends), max(high for _, high in ends)
        if atom.op == "idiv":
            low, high = self._range(atom.args[0])
            return min(low, 0), max(high, 0)
        if atom.op == "ew" and atom.parts[0] == "Cast":
            return SMALL.get(atom.parts[1][0], (LOWEST, HIGHEST))
        return LOWEST, HIGHEST


def _matched(pattern: Term, term: Term, variable: Term) -> Term | None:
    """The number of a pattern with which the pattern is a term, if there is one."""
    if pattern is variable:
        return term if term.op == "poly" else None
    if pattern.op != term.op or pattern.data != term.data or len(pattern.args) != len(term.args):
        return None
    pairs = zip(pattern.args, term.args, strict=True)
    return next(filter(None, (_matched(*pair, variable) for pair in pairs)), None)
