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
from time import monotonic
from typing import Any

import numpy as np

from passes.proving.drawn.symbols import NotShown, NumberedTerm, TermTable, is_number

_BITS = 120
#: There are more than 2 to the power of this many primes of so many bits, by the theorem.
_PRIMES = 112
#: The bits of a double as a fraction, numerator and denominator.
_DOUBLE = 2200
_WITNESSES = 40
#: Operators that give the largest or the least of any number of operands, in any order, and of
#: elements, where there is such a reduction: no column tells this.
_OF_SETS = {kind + op: op for op in ("Max", "Min", "And", "Or") for kind in ("", "Reduce")}

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

    def __init__(self, terms: TermTable, end: float = math.inf) -> None:
        self._terms, self._end = terms, end
        self._random = random.SystemRandom()
        self._prime = _prime(self._random)
        self._key = self._random.randbytes(32)
        self._known: dict[int, Residue] = {}
        self._sets: dict[int, frozenset[_Key]] = {}
        self._hashed: set[bytes] = set()

    def differing(self, pairs: Sequence[tuple[int, int]]) -> tuple[int, int] | None:
        """The first pair of terms that are not equal up to the order of sums, None if all are.

        Raises:
            NotShown: the time is used up.
        """
        for one in self._terms.below([number for pair in pairs for number in pair]):
            if not one % 256 and monotonic() > self._end:
                raise NotShown("budget", "the time is used up")
            self._known[one] = self._residue(one)
        return next(
            (pair for pair in pairs if self._known[pair[0]].key != self._known[pair[1]].key), None
        )

    def bits(self, elements: int) -> int:
        """The k of a probability below 2^-k that terms are equal here that are not, for this many
        elements of outputs."""
        terms = [self._terms.all[number] for number in self._known]
        degree = 1 + max((one.degree for one in self._known.values()), default=0)
        # no coefficient has more bits: a factor meets each term, a double or a sum, once at most
        length = degree * (len(terms) * _DOUBLE + sum(len(term.args) for term in terms))
        # a root of the difference is drawn, or the prime divides all of its coefficients
        chance = Fraction(degree, 2 ** (_BITS - 1)) + Fraction(length, (_BITS - 1) * 2**_PRIMES)
        compared = elements + len(self._hashed) ** 2
        return math.floor(-math.log2(max(compared, 1) * chance))

    def _residue(self, number: int) -> Residue:
        term = self._terms.all[number]
        if self._terms.is_constant(number):
            found = self._constant(self._terms.value(number))
            return found or self._token(("constant", term.data, term.dtype), [])
        args = [self._known[one] for one in term.args]
        if term.op == "input":
            return self._token((term.op, term.data), [])
        if term.op in _OF_SETS:
            return self._of_set(number, term)
        is_exact = term.op in _POLYNOMIALS and term.dtype != "bool"
        if is_exact and (term.op not in _OF_FLOATS or "float" in term.dtype):
            found = _POLYNOMIALS[term.op](self, args)
            has_zero = found.has_zero or (term.op in _FROM_ZERO and bool(args))
            return replace(found, has_zero=has_zero and "float" in term.dtype)
        if term.op in ("Div", "Reciprocal") and "float" in term.dtype:
            return self._quotient(term, args)
        return self._token((term.op, term.data, term.dtype), args)

    def _constant(self, value: Any) -> Residue | None:
        """The residues of a number, exactly."""
        if isinstance(value, str) or value.dtype.kind in "bc":
            return None
        if not is_number(value.dtype):
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

    def _of_set(self, number: int, term: NumberedTerm) -> Residue:
        """The largest of some, the least, or whether all or any hold: no order, none twice."""
        op = _OF_SETS[term.op]
        members: set[_Key] = set()
        for one in term.args:
            inner = self._sets.get(one)
            same = inner is not None and _OF_SETS[self._terms.all[one].op] == op
            members |= inner if same and inner is not None else {self._known[one].key}
        self._sets[number] = frozenset(members)
        if len(term.args) == 1:
            return self._known[term.args[0]]
        return self._token((op, term.dtype, sorted(members)), [])

    def _quotient(self, term: NumberedTerm, args: Sequence[Residue]) -> Residue:
        """A product with what is one over the divisor: a number, or a function of it."""
        below = args[-1]
        if not below.degree and below.value:
            inverse = Residue(
                pow(below.value, -1, self._prime), pow(below.size, -1, self._prime), 0
            )
        else:
            inverse = self._token(("Reciprocal", term.dtype), [below])
        return inverse if term.op == "Reciprocal" else self.product([args[0], inverse])

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
        inverse = pow(len(args), -1, self._prime) if args else 0
        return self.product([self.total(args), Residue(inverse, inverse, 0)])


#: How residues of operands make that of a result.
_POLYNOMIALS: dict[str, Callable[[Field, Sequence[Residue]], Residue]] = {
    "Add": Field.total,
    "Sub": lambda field, args: field.total(args, (1, -1)),
    "Neg": lambda field, args: field.total(args, (-1,)),
    "Mul": Field.product,
    "Dot": lambda field, args: field.total(
        [field.product(args[place : place + 2]) for place in range(0, len(args), 2)]
    ),
    "ReduceSum": Field.total,
    "ReduceProd": Field.product,
    "ReduceSumSquare": lambda field, args: field.total([field.product([x, x]) for x in args]),
    "ReduceMean": Field.mean,
    "Mean": Field.mean,
}
#: What adds up from 0.
_FROM_ZERO = frozenset({"ReduceSum", "ReduceSumSquare", "ReduceMean"})
#: What rounds whole numbers.
_OF_FLOATS = frozenset({"ReduceMean", "Mean"})


def _prime(source: random.Random) -> int:
    """A random prime, a number that passes the test of Miller and Rabin."""
    while True:
        number = source.getrandbits(_BITS) | 1 << (_BITS - 1) | 1
        if all(number % small for small in (3, 5, 7, 11, 13, 17)) and _is_prime(number, source):
            return number


def _is_prime(number: int, source: random.Random) -> bool:
    odd, twos = number - 1, 0
    while not odd % 2:
        odd, twos = odd // 2, twos + 1
    for _ in range(_WITNESSES):
        power = pow(source.randrange(2, number - 1), odd, number)
        steps = [power := power * power % number if step else power for step in range(twos)]
        if steps[0] != 1 and number - 1 not in steps:
            return False
    return True
