"""Terms as polynomials: equal up to the order of sums and products, but for a known probability.

Every term gets two residues modulo a prime that is drawn for each run. The first is its value where
inputs are random residues. The second is that of the same term with every sign positive: the sum
that bounds rounding errors. Terms that are equal in both are sums of the same products, so neither
cancels more than the other, and what verification allows for the order of summation covers their
difference. Functions that are no polynomials are keyed hashes of both residues of their operands.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from hashlib import blake2b
from itertools import chain
from time import monotonic
from typing import Any

import numpy as np

from passes.proving.families import is_number
from passes.proving.terms.algebra import BOOL, INT64, Algebra
from passes.proving.terms.arrays import NotProvable
from passes.proving.terms.term import Term, atom_of, polynomial, subterms

_BITS = 120
#: There are more than 2 to the power of this many primes of so many bits whose rest by 4 is 3, by
#: the theorem: every other prime.
_PRIMES = 111
#: The bits of a double as a fraction, numerator and denominator.
_DOUBLE = 2200
_WITNESSES = 40
#: A proof for all sizes is wrong with a probability below 2 to the negative of this power.
LEAST_BITS = 40
#: Operators that give the largest or the least of any number of operands, in any order, and of
#: elements, where there is such a reduction: no column tells this.
_OF_SETS = {"max": "Max", "min": "Min", "and": "And", "or": "Or"}
_OF_SETS |= {kind + op: op for op in _OF_SETS.values() for kind in ("", "Reduce")}

#: Whole numbers, but for what operators make.
_WHOLE = {"poly", "mono", "max", "min", "idiv"}
#: What tells a residue from others.
_Key = tuple[int, int, bool]


@dataclass(frozen=True)
class Residue:
    """The value of a term, that of its positive likeness, and their degree.

    `summands` are those that are not 0. `has_zero`: a zero is added to them, which makes 0.0 of
    -0.0; with several summands their order is what decides that.
    """

    value: int
    size: int
    degree: int
    summands: int = 1
    has_zero: bool = False

    @property
    def key(self) -> _Key:
        """A key that no other one has."""
        return self.value, self.size, self.has_zero and self.summands == 1


class Field:
    """The residues of terms, for one prime and one draw of inputs."""

    def __init__(self, algebra: Algebra) -> None:
        self._algebra = algebra
        self._random = random.SystemRandom()
        self._prime = _prime(self._random)
        self._key = self._random.randbytes(32)
        self._known: dict[Term, Residue] = {}
        self._sets: dict[Term, frozenset[_Key]] = {}
        self._hashed: set[bytes] = set()
        self._compared = 0

    def differing(self, pairs: Sequence[tuple[Term, Term]]) -> tuple[Term, Term] | None:
        """The first pair of terms that are not equal up to the order of sums, None if all are.

        Raises:
            NotProvable: the time is used up.
        """
        for number, term in enumerate(parts_first(*chain(*pairs))):
            if not number % 256 and monotonic() > self._algebra.terms.end:
                raise NotProvable("budget", "the time is used up")
            if term not in self._known:
                self._known[term] = self._residue(term)
        known = self._known
        return next(((a, b) for a, b in pairs if known[a].key != known[b].key), None)

    def bits(self, elements: int) -> int:
        """The k of a probability below 2^-k that terms are equal here that are not, for this many
        elements of outputs."""
        degree = 1 + max((one.degree for one in self._known.values()), default=0)
        # no coefficient has more bits: a factor meets each term, a double or a sum, once at most
        length = degree * (len(self._known) * _DOUBLE + sum(len(one.args) for one in self._known))
        # a root of the difference is drawn, or the prime divides all of its coefficients
        chance = Fraction(degree, 2 ** (_BITS - 1)) + Fraction(length, (_BITS - 1) * 2**_PRIMES)
        compared = elements + len(self._hashed) ** 2
        return math.floor(-math.log2(max(compared, 1) * chance))

    def _residue(self, term: Term) -> Residue:
        value = self._algebra.value(term)
        if value is not None:
            return self._constant(value) or self._token((term.op, term.data), [])
        args = [self._known[one] for one in term.args]
        if term.op == "poly":
            factors = [Residue(one % self._prime, abs(one), 0) for one in term.parts]
            return self.total([self.product(pair) for pair in zip(factors, args, strict=True)])
        if term.op in ("mono", "pair"):
            return self.product(args)
        op, data, dtype = operator(term)
        if op in _OF_SETS:
            return self._of_set(op, dtype, term)
        if op in ("ge0", "eq0"):  # of a sum that does not wrap, though its parts may have
            parts = polynomial(term.args[0]).items()
            keys = (
                (factor, sorted(self._known[one].key for one in mono)) for mono, factor in parts
            )
            return self._token((op, sorted(keys)), [])
        is_exact = op in _POLYNOMIALS and dtype != "bool"
        if is_exact and (op not in _OF_FLOATS or "float" in dtype):
            found = _POLYNOMIALS[op](self, args)
            has_zero = found.has_zero or (op in _FROM_ZERO and bool(args))
            return replace(found, has_zero=has_zero and "float" in dtype)
        if op in ("Div", "Reciprocal") and "float" in dtype:
            inverse = self.inverse(args[-1], dtype)
            return inverse if op == "Reciprocal" else self.product([args[0], inverse])
        if op == "red" and data[0] in _SUMS:
            data = "ReduceSum", *data[1:]
        return self._token((op, data, dtype), args)

    def _constant(self, value: Any) -> Residue | None:
        """The residues of a number, exactly."""
        if isinstance(value, str) or value.dtype.kind in "bc":
            return None
        if not is_number(value.dtype.name):
            whole = int(value)
            return Residue(whole % self._prime, abs(whole) % self._prime, 0)
        if not math.isfinite(float(value)):
            return None
        exact = Fraction(float(value))
        inverse = pow(exact.denominator, -1, self._prime)
        residue = exact.numerator * inverse % self._prime
        has_zero = not exact and not np.signbit(value)
        return Residue(
            residue, abs(exact.numerator) * inverse % self._prime, 0, int(exact != 0), has_zero
        )

    def _token(self, what: object, args: Sequence[Residue]) -> Residue:
        """Random residues, the same for the same function of the same residues."""
        key = repr((what, [one.key for one in args])).encode()
        digest = blake2b(key, key=self._key, digest_size=48).digest()
        self._hashed.add(digest[:16])
        value, size = (int.from_bytes(half) % self._prime for half in (digest[:24], digest[24:]))
        return Residue(value, size, 1)

    def _of_set(self, op: str, dtype: str, term: Term) -> Residue:
        """The largest of some, the least, or whether all or any hold: no order, none twice."""
        members: set[_Key] = set()
        for one in map(atom_of, term.args):
            inner = self._sets.get(one)
            same = inner is not None and _OF_SETS[operator(one)[0]] == _OF_SETS[op]
            members |= inner if same and inner is not None else {self._known[one].key}
        self._sets[term] = frozenset(members)
        if len(term.args) == 1:
            return self._known[term.args[0]]
        return self._token((_OF_SETS[op], dtype, sorted(members)), [])

    def inverse(self, one: Residue, dtype: str) -> Residue:
        """One over a residue: a number, or a function of it."""
        if one.degree or not one.value:
            return self._token(("Reciprocal", dtype), [one])
        return Residue(pow(one.value, -1, self._prime), pow(one.size, -1, self._prime), 0)

    def total(self, args: Sequence[Residue], signs: Sequence[int] = ()) -> Residue:
        """The sum of residues, with signs."""
        given = signs or [1] * len(args)
        value = sum(sign * one.value for sign, one in zip(given, args, strict=True))
        size = sum(one.size for one in args)
        degree = max((one.degree for one in args), default=0)
        # what is subtracted makes no 0.0 of -0.0 if it is a constant zero
        counted = args[:1] if signs == (1, -1) and not args[1].degree else args
        has_zero = any(one.has_zero for one in counted)
        summands = min(sum(one.summands for one in args), 2)
        return Residue(value % self._prime, size % self._prime, degree, summands, has_zero)

    def product(self, args: Sequence[Residue]) -> Residue:
        """The product of residues."""
        value = size = 1
        for one in args:
            value, size = value * one.value % self._prime, size * one.size % self._prime
        has_zero = any(one.has_zero for one in args)
        summands = min(math.prod(one.summands for one in args), 2)
        return Residue(value, size, sum(one.degree for one in args), summands, has_zero)

    def mean(self, args: Sequence[Residue]) -> Residue:
        """The mean of residues."""
        total, count = self.total(args), len(args)
        return self.product([total, self.inverse(Residue(count, count, 0), "")]) if args else total


class AtAllSizes(Field):
    """The residues of terms whose sizes nobody knows, so that no executed case contradicts them.

    Constant factors are symbols, since their products may overflow in one order alone, and 0 times
    a term is no 0, since the term may be infinite.
    """

    def alike(self, one: Term, other: Term) -> bool:
        """Return whether terms are equal up to the order of sums, which is all but certain."""
        self._compared += 1
        return self.differing([(one, other)]) is None and self.bits(self._compared) >= LEAST_BITS

    def _constant(self, value: Any) -> Residue | None:
        exact = super()._constant(value)
        if exact is None or exact.size < 2 or not is_number(value.dtype.name):
            return exact
        made = self._token(("constant", abs(float(value))), [])
        return self.total([made], (-1,)) if value < 0 else made

    def inverse(self, one: Residue, dtype: str) -> Residue:
        """One over a residue, a function of it."""
        return self._token(("Reciprocal", dtype), [one])

    def product(self, args: Sequence[Residue]) -> Residue:
        """The product of residues, one of which may be 0."""
        free = [one.key for one in args if one.degree]
        if free and not all(one.degree or one.size for one in args):
            return self._token(("zero times", sorted(free)), [])
        return super().product(args)


def operator(term: Term) -> tuple[str, Any, str]:
    """The operator of a term, wherever it is computed, its attributes and the dtype it gives."""
    if term.op == "ew":
        return term.parts[:3]
    if term.op in ("const", "elem"):
        return term.op, term.data, term.parts[0 if term.op == "const" else -1]
    if term.op == "ite":
        return term.op, term.data, operator(term.args[1])[2]
    return term.op, term.data, INT64 if term.op in _WHOLE else BOOL


def parts_first(*terms: Term) -> list[Term]:
    """Every term in terms once, each before what is made of it."""
    return sorted(subterms(*terms), key=lambda one: one.uid)


#: The residue of a result by those of its operands.
_POLYNOMIALS: dict[str, Callable[[Field, Sequence[Residue]], Residue]] = {
    **dict.fromkeys(("Add", "ReduceSum"), lambda field, args: field.total(args)),
    "Sub": lambda field, args: field.total(args, (1, -1)),
    "Neg": lambda field, args: field.total(args, (-1,)),
    **dict.fromkeys(("Mul", "ReduceProd"), lambda field, args: field.product(args)),
    "Dot": lambda field, args: field.total(
        [field.product(args[place : place + 2]) for place in range(0, len(args), 2)]
    ),
    "ReduceSumSquare": lambda field, args: field.total([field.product([x, x]) for x in args]),
    **dict.fromkeys(("Mean", "ReduceMean"), lambda field, args: field.mean(args)),
}
#: Reductions that are sums, of products or of what is reduced.
_SUMS = frozenset({"dot", "Einsum", "ReduceSum"})
#: What adds up from 0.
_FROM_ZERO = frozenset({"ReduceSum", "ReduceSumSquare", "ReduceMean"})
#: What rounds whole numbers.
_OF_FLOATS = frozenset({"ReduceMean", "Mean"})


def _prime(source: random.Random) -> int:
    """A random prime, a number that passes the test of Miller and Rabin, of which one step is left
    since its rest by 4 is 3."""
    while True:
        number = source.getrandbits(_BITS) | 1 << (_BITS - 1) | 3
        some = (source.randrange(2, number - 1) for _ in range(_WITNESSES))
        if all(pow(one, number // 2, number) in (1, number - 1) for one in some):
            return number
