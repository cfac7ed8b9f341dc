"""How far rounding may move what terms compute, for inputs within ranges: forward error analysis.

Every term gets an interval of its value over the reals, and a bound on the error of what is
computed. An operation adds its own rounding to what the errors of its operands become. Sums are
bounded in any order, by the gamma of Higham (Accuracy and Stability of Numerical Algorithms,
sections 3.1 and 4.2); functions are taken to be right to `_UNITS` roundings. Where there is no
finite bound, the reason takes the place of the interval.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

import ml_dtypes

from passes.proving.drawn.reals import FLOATS, Reals
from passes.proving.terms.algebra import Algebra
from passes.proving.terms.arrays import NotProvable
from passes.proving.terms.field import operator, parts_first
from passes.proving.terms.term import Term, formula

#: Roundings of a function; executors were measured to have fewer than 6 of float32.
_UNITS = 8
#: Allows for the roundings of this analysis, in doubles.
_SLACK = 2.0**-40
#: The range of floats that have no other one.
USUAL = (-1.0, 1.0)

Ranges = Mapping[str, tuple[float, float]]


class _Unbounded(Exception):
    """There is no finite bound."""


@dataclass(frozen=True)
class Span:
    """An interval of real values, and how far what is computed may be off."""

    lo: float
    hi: float
    err: float = 0.0

    @property
    def most(self) -> float:
        """The largest magnitude that is computed."""
        return max(-self.lo, self.hi) + self.err

    def plus(self, err: float) -> Span:
        """The same values with a larger error."""
        return Span(self.lo, self.hi, self.err + err)


class Rounding:
    """The spans of terms; what is not computed anew in the other model, an atom, has no error."""

    def __init__(
        self, algebra: Algebra, reals: Reals, ranges: Ranges, atoms: frozenset[Term]
    ) -> None:
        self._algebra, self._reals, self._ranges, self._atoms = algebra, reals, ranges, atoms
        self._spans: dict[Term, Span | str] = {}
        #: The interval of each value over the reals, from all terms that have it.
        self._known: dict[int, tuple[float, float]] = {}

    def error(self, pairs: Sequence[tuple[Term, Term]]) -> float:
        """A bound on the difference of all pairs of terms, which are equal over the reals.

        Raises:
            NotProvable: there is none.
        """
        below = parts_first(*chain(*pairs))
        for _ in range(2):  # a term may get from a later one what is known of its value
            for one in below:
                self._spans[one] = self._span(one)
        try:
            errors = [self._arg(one).err + self._arg(other).err for one, other in pairs]
        except _Unbounded as error:
            raise NotProvable("rounding", str(error)) from error
        return max(errors) * (1 + _SLACK)

    def _span(self, term: Term) -> Span | str:
        """The span of a term, as far as its value is known; why there is none."""
        try:
            found = self._found(term)
            if term in self._atoms:
                found = Span(found.lo - found.err, found.hi + found.err)
            value, dtype = self._reals.value(term), operator(term)[2]
            lo, hi = found.lo - abs(found.lo) * _SLACK, found.hi + abs(found.hi) * _SLACK
            least, most = self._known.get(value, (lo, hi))
            self._known[value] = max(lo, least), min(hi, most)
            found = Span(*self._known[value], found.err * (1 + _SLACK))
            if not found.most < (_Format(dtype).largest if "float" in dtype else math.inf):
                raise OverflowError
        except OverflowError:
            return f"{formula(term)} may overflow"
        except _Unbounded as error:
            is_first = str(error) not in map(self._spans.get, term.args)
            return f"{formula(term)}: {error}" if is_first else str(error)
        return found

    def _found(self, term: Term) -> Span:
        op, data, dtype = operator(term)
        is_float, value = "float" in dtype, self._algebra.value(term)
        if value is not None:
            exact = 0.0 if isinstance(value, str) or value.dtype.kind == "c" else float(value)
            if not math.isfinite(exact):
                raise _Unbounded("a constant is not finite")
            return Span(exact, exact)
        if op == "elem":
            return Span(*self._ranges.get(data[1], USUAL if is_float else _limits(dtype)))
        if not is_float:
            if term not in self._atoms and any(self._arg(one).err for one in term.args):
                raise _Unbounded(f"{op} decides by rounded floats")
            return Span(*_limits(dtype))
        made = _Format(dtype)
        if op in _FUNCTIONS and not data:
            return _FUNCTIONS[op].of(self._arg(term.args[0]), made)
        if op not in _RULES:
            raise _Unbounded(f"{op} of floats is not bounded")
        return _RULES[op](self, term, list(map(self._arg, term.args)), made)

    def _arg(self, term: Term) -> Span:
        found = self._spans[term]
        if isinstance(found, str):
            raise _Unbounded(found)
        return found

    def product(self, factors: Sequence[Term]) -> tuple[Span, bool]:
        """The product of two terms before it is rounded, and whether it is: not if one of them is
        0 or a power of 2."""
        one, other = map(self._arg, factors)
        lo, hi = _corners(lambda x, y: x * y, one, other)
        if self._reals.value(factors[0]) == self._reals.value(factors[1]):
            lo = max(lo, 0.0)
        err = one.most * other.err + other.most * one.err
        values = filter(lambda value: value is not None, map(self._algebra.value, factors))
        rounds = not any(math.frexp(float(value))[0] in (0.0, 0.5, -0.5) for value in values)
        return Span(lo, hi, err), rounds

    def dot(self, factors: Sequence[Term], made: _Format) -> Span:
        """The sum of products, of two terms each."""
        pairs = zip(factors[::2], factors[1::2], strict=True)
        found = [part for pair in pairs if (part := self.product(pair))[0].most]
        rounds = any(rounds for _, rounds in found)
        return made.sum([one for one, _ in found], rounds).plus(2 * len(found) * made.tiny)

    def difference(self, term: Term, args: Sequence[Span], made: _Format) -> Span:
        """A difference, which is not above 0 if the largest of some is subtracted from one."""
        one, largest = term.args
        found = made.sum([args[0], _negative(args[1])])
        is_below = operator(largest)[0] in ("Max", "ReduceMax") and one in largest.args
        return Span(found.lo, min(found.hi, 0.0), found.err) if is_below else found

    def cast(self, term: Term, args: Sequence[Span], made: _Format) -> Span:
        """A float, a whole number or a bool in another format."""
        (one,), (kind, _) = args, term.parts[1]
        if not kind.startswith(("int", "uint", "bool", *FLOATS)):
            raise _Unbounded(f"a Cast from {kind} is not bounded")
        wide = _Format(kind) if kind in FLOATS else None
        exact = one.most * made.unit <= 1 if wide is None else made.unit <= wide.unit
        return made.rounded(one, 0 if exact else 1)

    def power(self, term: Term, args: Sequence[Span], made: _Format) -> Span:
        """A power whose exponent is a constant, a small whole number."""
        base, exponent = args[0], self._algebra.value(term.args[1])
        times = 0.0 if exponent is None else float(exponent)
        if times not in range(1, 17):
            raise _Unbounded("the power is not bounded")
        ends = [base.lo**times, base.hi**times]
        lo = 0.0 if not times % 2 and base.lo <= 0 <= base.hi else min(ends)
        moved = times * base.most ** (times - 1) * base.err
        return made.rounded(Span(lo, max(ends), moved), _UNITS)


class _Format:
    """A format of floats: its unit roundoff, what underflow may lose, and its largest number."""

    def __init__(self, dtype: str) -> None:
        if dtype not in FLOATS:
            raise _Unbounded(f"{dtype} is not bounded")
        info = ml_dtypes.finfo(dtype)
        self.unit, self.largest = float(info.eps) / 2, float(info.max)
        small = info.smallest_subnormal if dtype == "float16" else info.smallest_normal
        self.tiny = float(small)

    def rounded(self, one: Span, times: int = 1, least: float = 0.0) -> Span:
        """A result that is rounded, a function some times, and to no less than `least`."""
        return one.plus(times * self.unit * max(one.most, least) + self.tiny)

    def gamma(self, roundings: int) -> float:
        """The relative error of so many roundings."""
        if roundings * self.unit >= 0.5:
            raise _Unbounded(f"{roundings} roundings are too many")
        return roundings * self.unit / (1 - roundings * self.unit)

    def sum(self, parts: Sequence[Span], more: int = 0) -> Span:
        """The sum of parts in any order, and so many roundings of each part."""
        parts = [one for one in parts if one.most]  # zeros are no roundings
        roundings = max(len(parts) - 1, 0) + more
        lo, hi, err, most = (
            math.fsum(getattr(one, name) for one in parts) for name in ("lo", "hi", "err", "most")
        )
        if most >= self.largest:
            raise OverflowError
        made = Span(lo, hi, err)
        return made.plus(self.gamma(roundings) * (made.most if roundings == 1 else most))

    def mean(self, args: Sequence[Span]) -> Span:
        """The mean of operands: their sum by their number, or times one over it."""
        if not args:
            raise _Unbounded("a mean of nothing")
        one, count = self.sum(args, 2), len(args)
        return Span(one.lo / count, one.hi / count, one.err / count + self.tiny)

    def quotient(self, args: Sequence[Span]) -> Span:
        """The quotient of two operands, or one over a single one."""
        one, other = args if len(args) == 2 else (Span(1.0, 1.0), args[0])
        least = max(other.lo, -other.hi) - other.err
        if least <= 0:
            raise _Unbounded("the divisor may be 0")
        found = Span(*_corners(lambda x, y: x / y, one, other))
        return self.rounded(found.plus((one.err + found.most * other.err) / least))

    def softmax(self, place: int, args: Sequence[Span]) -> Span:
        """One place of a row, of which the largest element is subtracted before."""
        own, others = args[place], [*args[:place], *args[place + 1 :]]
        found = Span(
            1 / (1 + math.fsum(math.exp(min(one.hi - own.lo, 700.0)) for one in others)),
            1 / (1 + math.fsum(math.exp(min(one.lo - own.hi, 700.0)) for one in others)),
        )
        width = max(one.hi + one.err for one in args) - min(one.lo - one.err for one in args)
        # what is below the largest element by more adds next to nothing
        deepest = min(width, 1 - math.log(self.tiny))
        each = self.unit * (deepest + _UNITS)  # of a difference, and what Exp makes of it
        relative = math.expm1(1.01 * (2 * each + self.gamma(len(args) + 1)))
        lost = 4 * len(args) * (self.tiny + (math.exp(-deepest) if width > deepest else 0.0))
        moved = max(one.err for one in args)
        err = min(moved / 2, found.hi * math.expm1(min(2 * moved, 1.0)) if moved < 0.5 else 1.0)
        return found.plus(err + (found.hi + err) * relative + lost)


def _corners(op: Callable[[float, float], float], one: Span, other: Span) -> tuple[float, float]:
    ends = [op(x, y) for x in (one.lo, one.hi) for y in (other.lo, other.hi)]
    return min(ends), max(ends)


def _extreme(pick: Callable[..., float], args: Sequence[Span]) -> Span:
    if not args:
        raise _Unbounded("an extreme of nothing")
    return Span(pick(x.lo for x in args), pick(x.hi for x in args), max(x.err for x in args))


def _clipped(args: Sequence[Span], which: Sequence[bool]) -> Span:
    found, bounds = args[0], iter(args[1:])
    for pick, given in zip((max, min), which, strict=True):
        found = _extreme(pick, [found, next(bounds)]) if given else found
    return found


def _negative(one: Span) -> Span:
    return Span(-one.hi, -one.lo, one.err)


def _limits(dtype: str) -> tuple[float, float]:
    """The range of the whole numbers, or bools, of a dtype."""
    if not dtype.startswith(("int", "uint")):
        return 0.0, 1.0
    limits = ml_dtypes.iinfo(dtype)
    return float(limits.min), float(limits.max)


@dataclass(frozen=True)
class _Function:
    """An increasing function: its value, the largest slope between two ends, `above` what it is
    defined, and the least magnitude to which executors are right."""

    value: Callable[[float], float]
    slope: Callable[[float, float], float]
    above: float = -math.inf
    least: float = 1.0

    def of(self, one: Span, made: _Format) -> Span:
        """The span of the function of what has a span."""
        lo, hi = one.lo - one.err, one.hi + one.err
        if lo <= self.above and not (lo == 0 and self.value is math.sqrt and not one.err):
            raise _Unbounded("it may be undefined")
        ends = self.value(lo), self.value(hi)
        moved = ends[1] - ends[0] + 2.0**-48 * max(map(abs, ends))
        err = min(self.slope(lo, hi) * one.err, moved) if one.err else 0.0
        return made.rounded(Span(self.value(one.lo), self.value(one.hi), err), _UNITS, self.least)


def _sigmoid(x: float) -> float:
    small = math.exp(-abs(x))
    return (1.0 if x > 0 else small) / (1 + small)


#: Functions that increase, by their operators.
_FUNCTIONS = {
    "Erf": _Function(math.erf, lambda lo, hi: 1.1284),
    "Exp": _Function(math.exp, lambda lo, hi: math.exp(hi), least=0.0),
    "Log": _Function(math.log, lambda lo, hi: 1 / lo, above=0.0),
    "Relu": _Function(lambda x: max(x, 0.0), lambda lo, hi: 1.0),
    "Sigmoid": _Function(_sigmoid, lambda lo, hi: 0.25),
    "Softplus": _Function(lambda x: max(x, 0.0) + math.log1p(math.exp(-abs(x))), lambda a, b: 1.0),
    "Sqrt": _Function(math.sqrt, lambda lo, hi: 0.5 / math.sqrt(lo), above=0.0, least=0.0),
    "Tanh": _Function(math.tanh, lambda lo, hi: 1.0),
}
_Rule = Callable[[Rounding, Term, Sequence[Span], _Format], Span]
#: The span of what an operator makes of floats.
_RULES: Mapping[str, _Rule] = {
    "Abs": lambda self, term, args, made: Span(
        max(args[0].lo, -args[0].hi, 0.0), max(-args[0].lo, args[0].hi), args[0].err
    ),
    "Cast": Rounding.cast,
    "Clip": lambda self, term, args, made: _clipped(args, term.parts[1]),
    "Dot": lambda self, term, args, made: self.dot(term.args, made),
    "Mul": lambda self, term, args, made: made.rounded(*self.product(term.args)),
    "Neg": lambda self, term, args, made: _negative(args[0]),
    "Pow": Rounding.power,
    "ReduceSumSquare": lambda self, term, args, made: self.dot(
        [one for part in term.args for one in (part, part)], made
    ),
    "Softmax": lambda self, term, args, made: made.softmax(term.parts[1], args),
    "Sub": Rounding.difference,
    "ite": lambda self, term, args, made: Span(
        min(one.lo for one in args[1:]),
        max(one.hi for one in args[1:]),
        max(one.err for one in args[1:]),
    ),
    **dict.fromkeys(("Add", "ReduceSum", "Sum"), lambda self, term, args, made: made.sum(args)),
    **dict.fromkeys(("Mean", "ReduceMean"), lambda self, term, args, made: made.mean(args)),
    **dict.fromkeys(
        ("Cos", "Sin"),
        lambda self, term, args, made: made.rounded(Span(-1.0, 1.0, args[0].err), _UNITS, 1.0),
    ),
    **dict.fromkeys(("Div", "Reciprocal"), lambda self, term, args, made: made.quotient(args)),
    **dict.fromkeys(("Max", "ReduceMax"), lambda self, term, args, made: _extreme(max, args)),
    **dict.fromkeys(("Min", "ReduceMin"), lambda self, term, args, made: _extreme(min, args)),
}
