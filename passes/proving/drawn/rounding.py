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
from dataclasses import dataclass, replace

import ml_dtypes
import numpy as np

from passes.proving.drawn.reals import FLOATS, Reals
from passes.proving.drawn.symbols import NotShown, NumberedTerm, TermTable

#: Roundings of a function; executors were measured to have fewer than 6 of float32.
_UNITS = 8
#: Allows for the roundings of this analysis, in doubles.
_SLACK = 2.0**-40
#: The range of inputs that have no other one.
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
    def real(self) -> float:
        """The largest magnitude over the reals."""
        return max(abs(self.lo), abs(self.hi))

    @property
    def most(self) -> float:
        """The largest magnitude that is computed."""
        return self.real + self.err


_ZERO = Span(0.0, 0.0)


@dataclass(frozen=True)
class _Format:
    """A format of floats: its unit roundoff, what underflow may lose, and its largest number."""

    unit: float
    tiny: float
    largest: float

    @staticmethod
    def of(dtype: str) -> _Format:
        if dtype not in FLOATS:
            raise _Unbounded(f"{dtype} is not bounded")
        info = ml_dtypes.finfo(dtype)
        tiny = info.smallest_subnormal if dtype == "float16" else info.smallest_normal
        return _Format(float(info.eps) / 2, float(tiny), float(info.max))

    def rounded(self, one: Span, times: int = 1, least: float = 0.0) -> Span:
        """A result that is rounded, a function some times, and to no less than `least`."""
        return replace(one, err=one.err + times * self.unit * max(one.most, least) + self.tiny)

    def gamma(self, roundings: int) -> float:
        """The relative error of so many roundings."""
        if roundings * self.unit >= 0.5:
            raise _Unbounded(f"{roundings} roundings are too many")
        return roundings * self.unit / (1 - roundings * self.unit)

    def sum(self, parts: Sequence[Span], roundings: int) -> Span:
        """The sum of parts in any order, each of them rounded at most so often."""
        lo, hi = math.fsum(one.lo for one in parts), math.fsum(one.hi for one in parts)
        made = Span(lo, hi, math.fsum(one.err for one in parts))
        most = math.fsum(one.most for one in parts)
        if most >= self.largest:
            raise _Unbounded("a sum may overflow")
        gamma = self.gamma(roundings)
        return replace(made, err=made.err + gamma * (made.most if roundings == 1 else most))


class Rounding:
    """The spans of terms; what is not computed anew in the other model, an atom, has no error."""

    def __init__(
        self, terms: TermTable, reals: Reals, ranges: Ranges, atoms: frozenset[int]
    ) -> None:
        self._terms, self._reals, self._ranges, self._atoms = terms, reals, ranges, atoms
        self._spans: dict[int, Span | str] = {}
        #: What is known of each value over the reals, from all terms that have it.
        self._known: dict[int, tuple[float, float]] = {}

    def error(self, pairs: Sequence[tuple[int, int]]) -> float:
        """A bound on the difference of all pairs of terms, which are equal over the reals.

        Raises:
            NotShown: there is none.
        """
        below = self._terms.below([one for pair in pairs for one in pair])
        for _ in range(2):  # a term may get from a later one what is known of its value
            for one in below:
                self._spans[one] = self._span(one)
        try:
            errors = [self._arg(one).err + self._arg(other).err for one, other in pairs]
        except _Unbounded as error:
            raise NotShown("rounding", str(error)) from error
        return max(errors) * (1 + _SLACK)

    def _span(self, number: int) -> Span | str:
        term, is_constant = self._terms.all[number], self._terms.is_constant(number)
        try:
            found = self._constant(number) if is_constant else self._made(number, term)
            if number in self._atoms:
                found = Span(found.lo - found.err, found.hi + found.err)
            return self._checked(number, found)
        except (_Unbounded, OverflowError) as error:
            reason = str(error) if isinstance(error, _Unbounded) else "a value may overflow"
            return reason if ": " in reason else f"{self._terms.written(number)}: {reason}"

    def _checked(self, number: int, one: Span) -> Span:
        """The span as far as its value is known, with an allowance for our own roundings."""
        value = self._reals.value(number)
        lo, hi = one.lo - abs(one.lo) * _SLACK, one.hi + abs(one.hi) * _SLACK
        least, most = self._known.get(value, (lo, hi))
        lo, hi = self._known[value] = max(lo, least), min(hi, most)
        dtype = self._terms.all[number].dtype
        largest = _Format.of(dtype).largest if "float" in dtype else math.inf
        made = Span(lo, hi, one.err * (1 + _SLACK))
        if not made.most < largest or lo > hi:
            raise _Unbounded("a value may overflow")
        return made

    def _constant(self, number: int) -> Span:
        value = self._terms.value(number)
        if isinstance(value, str) or value.dtype.kind == "c":
            return _ZERO
        if not math.isfinite(float(value)):
            raise _Unbounded("a constant is not finite")
        return Span(float(value), float(value))

    def _made(self, number: int, term: NumberedTerm) -> Span:
        is_float = "float" in term.dtype
        if term.op == "input" and isinstance(term.data, tuple):
            usual = USUAL if is_float else _limits(term.dtype)
            return Span(*self._ranges.get(term.data[0], usual))
        if not is_float:
            if number not in self._atoms:
                self._refuse_rounded(term)
            return Span(*_limits(term.dtype))
        args = [self._arg(one) for one in term.args]
        made = _Format.of(term.dtype)
        if term.op in _STEPS and not any(one.err for one in args):
            return Span(*(float(_STEPS[term.op](end)) for end in (args[0].lo, args[0].hi)))
        if term.op in _FUNCTIONS and not term.data:
            return _FUNCTIONS[term.op].of(args[0], made)
        if term.op not in _RULES:
            raise _Unbounded(f"{term.op} of floats is not bounded")
        return _RULES[term.op](self, term, args, made)

    def _arg(self, number: int) -> Span:
        found = self._spans[number]
        if isinstance(found, str):
            raise _Unbounded(found)
        return found

    def _refuse_rounded(self, term: NumberedTerm) -> None:
        """Raise for what makes a whole number or a bool of rounded floats."""
        if any([self._arg(one).err for one in term.args]):
            raise _Unbounded(f"{term.op} decides by rounded floats")

    def _is_same(self, one: int, other: int) -> bool:
        return self._reals.value(one) == self._reals.value(other)

    def _product(self, numbers: Sequence[int]) -> tuple[Span, bool]:
        """The product of two terms before it is rounded, and whether it is."""
        one, other = map(self._arg, numbers)
        ends = [x * y for x in (one.lo, one.hi) for y in (other.lo, other.hi)]
        lo, hi = min(ends), max(ends)
        if self._is_same(*numbers):
            lo = 0.0 if one.lo <= 0 <= one.hi else min(one.lo**2, one.hi**2)
        err = one.real * other.err + other.real * one.err + one.err * other.err
        return Span(lo, hi, err), not any(self._scales(number) for number in numbers)

    def _scales(self, number: int) -> bool:
        """Return whether a term is a constant, 0 or a power of 2: its products are not rounded."""
        if not self._terms.is_constant(number):
            return False
        return math.frexp(float(self._terms.value(number)))[0] in (0.0, 0.5, -0.5)

    def _multiplied(self, term: NumberedTerm, args: Sequence[Span], made: _Format) -> Span:
        found, rounds = self._product(term.args)
        return made.rounded(found, int(rounds))

    def _dot(self, numbers: Sequence[int], made: _Format) -> Span:
        """The sum of products, of two terms each."""
        pairs = zip(numbers[::2], numbers[1::2], strict=True)
        found = [part for pair in pairs if (part := self._product(pair))[0].most]
        roundings = max(len(found) - 1, 0) + any(rounds for _, rounds in found)
        result = made.sum([one for one, _ in found], roundings)
        return replace(result, err=result.err + 2 * len(found) * made.tiny)

    def _summed(
        self, term: NumberedTerm, args: Sequence[Span], made: _Format, mean: bool = False
    ) -> Span:
        parts = [one for one in args if one.most]
        if not mean:
            return made.sum(parts, max(len(parts) - 1, 0))
        if not args:
            raise _Unbounded("a mean of nothing")
        result = made.sum(parts, len(args) + 1)
        count = len(args)
        return Span(result.lo / count, result.hi / count, result.err / count + made.tiny)

    def _divided(self, term: NumberedTerm, args: Sequence[Span], made: _Format) -> Span:
        one, other = (Span(1.0, 1.0), args[0]) if len(args) == 1 else args
        least = max(other.lo - other.err, -other.hi - other.err)
        if least <= 0:
            raise _Unbounded("the divisor may be 0")
        ends = [x / y for x in (one.lo, one.hi) for y in (other.lo, other.hi)]
        found = Span(min(ends), max(ends))
        return made.rounded(replace(found, err=(one.err + found.real * other.err) / least))

    def _power(self, term: NumberedTerm, args: Sequence[Span], made: _Format) -> Span:
        """A power whose exponent is constant: a small whole number, or a half."""
        base, exponent = args
        times = exponent.lo if self._terms.is_constant(term.args[1]) else math.nan
        if times == 0.5:
            return _FUNCTIONS["Sqrt"].of(base, made)
        if times not in range(1, 17):
            raise _Unbounded("the power is not bounded")
        ends = [base.lo**times, base.hi**times]
        lo = 0.0 if not times % 2 and base.lo <= 0 <= base.hi else min(ends)
        err = times * base.most ** (times - 1) * base.err
        return made.rounded(Span(lo, max(ends), err), _UNITS)

    def _chosen(self, term: NumberedTerm, args: Sequence[Span], made: _Format) -> Span:
        """One of two operands; the condition has no error."""
        low, high = (end(args[1:], key=key) for end, key in _ENDS)
        return Span(low.lo, high.hi, max(one.err for one in args[1:]))

    def _extreme(self, term: NumberedTerm, args: Sequence[Span], made: _Format) -> Span:
        if not args:
            raise _Unbounded("an extreme of nothing")
        pick = max if "Max" in term.op else min
        lo, hi = pick(one.lo for one in args), pick(one.hi for one in args)
        return Span(lo, hi, max(one.err for one in args))

    def _cast(self, term: NumberedTerm, args: Sequence[Span], made: _Format) -> Span:
        kind = self._terms.all[term.args[0]].dtype
        if kind not in FLOATS:
            if not kind.startswith(("int", "uint", "bool")):
                raise _Unbounded(f"a Cast from {kind} is not bounded")
            return args[0] if args[0].most * made.unit <= 1 else made.rounded(args[0])
        wide = _Format.of(kind)
        rounds = made.unit > wide.unit or made.tiny > wide.tiny
        return made.rounded(args[0], int(made.unit > wide.unit)) if rounds else args[0]

    def _softmax(self, term: NumberedTerm, args: Sequence[Span], made: _Format) -> Span:
        """One place of a row, of which the largest element is subtracted before."""
        assert isinstance(term.data, int)
        own, others = args[term.data], [*args[: term.data], *args[term.data + 1 :]]
        deepest = 1 - math.log(made.tiny)
        found = Span(
            1 / (1 + math.fsum(math.exp(min(one.hi - own.lo, 700.0)) for one in others)),
            1 / (1 + math.fsum(math.exp(min(one.lo - own.hi, 700.0)) for one in others)),
        )
        moved = max(one.err for one in args)
        width = max(one.hi + one.err for one in args) - min(one.lo - one.err for one in args)
        each = made.unit * (min(width, deepest) + _UNITS)  # of a difference, and what Exp makes of it
        relative = math.expm1(1.01 * (2 * each + made.gamma(len(args) + 1)))
        below = 4 * len(args) * (made.tiny + math.exp(-min(width, deepest)) * (width > deepest))
        err = min(moved / 2, found.hi * math.expm1(min(2 * moved, 1.0)) if moved < 0.5 else 1.0)
        return replace(found, err=err + min(found.hi + err, 1.0) * relative + below)


_ENDS: tuple[tuple[Callable[..., Span], Callable[[Span], float]], ...] = (
    (min, lambda one: one.lo),
    (max, lambda one: one.hi),
)


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
        if lo <= self.above and (lo < self.above or self.value is not math.sqrt or one.err):
            raise _Unbounded("it may be undefined")
        ends = self.value(lo), self.value(hi)
        found = Span(self.value(one.lo), self.value(one.hi))
        moved = ends[1] - ends[0] + 2.0**-48 * max(map(abs, ends))
        err = min(self.slope(lo, hi) * one.err, moved) if one.err else 0.0
        return made.rounded(replace(found, err=err), _UNITS, self.least)


def _sigmoid(x: float) -> float:
    small = math.exp(-abs(x))
    return (1.0 if x > 0 else small) / (1 + small)


def _limits(dtype: str) -> tuple[float, float]:
    """The range of the whole numbers, or bools, of a dtype."""
    if not dtype.startswith(("int", "uint")):
        return 0.0, 1.0
    limits = ml_dtypes.iinfo(dtype)
    return float(limits.min), float(limits.max)


#: Functions that increase, by their operators.
_FUNCTIONS = {
    "Atan": _Function(math.atan, lambda lo, hi: 1.0),
    "Erf": _Function(math.erf, lambda lo, hi: 1.1284),
    "Exp": _Function(math.exp, lambda lo, hi: math.exp(hi), least=0.0),
    "Log": _Function(math.log, lambda lo, hi: 1 / lo, above=0.0),
    "Relu": _Function(lambda x: max(x, 0.0), lambda lo, hi: 1.0),
    "Sigmoid": _Function(_sigmoid, lambda lo, hi: 0.25),
    "Softplus": _Function(lambda x: max(x, 0.0) + math.log1p(math.exp(-abs(x))), lambda lo, hi: 1.0),
    "Sqrt": _Function(math.sqrt, lambda lo, hi: 0.5 / math.sqrt(lo), above=0.0, least=0.0),
    "Tanh": _Function(math.tanh, lambda lo, hi: 1.0),
}
#: What jumps: bounded of what has no error alone.
_STEPS: Mapping[str, Callable[[float], float]] = {
    "Ceil": math.ceil,
    "Floor": math.floor,
    "Round": round,
    "Sign": np.sign,
}
_Rule = Callable[[Rounding, NumberedTerm, Sequence[Span], _Format], Span]
_RULES: Mapping[str, _Rule] = {
    "Abs": lambda rounding, term, args, made: Span(
        max(args[0].lo, -args[0].hi, 0.0), args[0].real, args[0].err
    ),
    "Add": Rounding._summed,
    "Cast": Rounding._cast,
    "Cos": lambda rounding, term, args, made: made.rounded(Span(-1, 1, args[0].err), _UNITS, 1.0),
    "Div": Rounding._divided,
    "Dot": lambda rounding, term, args, made: rounding._dot(term.args, made),
    "Max": Rounding._extreme,
    "Mean": lambda rounding, term, args, made: rounding._summed(term, args, made, mean=True),
    "Min": Rounding._extreme,
    "Mul": Rounding._multiplied,
    "Neg": lambda rounding, term, args, made: _negative(args[0]),
    "Pow": Rounding._power,
    "Reciprocal": Rounding._divided,
    "ReduceMax": Rounding._extreme,
    "ReduceMean": lambda rounding, term, args, made: rounding._summed(term, args, made, mean=True),
    "ReduceMin": Rounding._extreme,
    "ReduceSum": Rounding._summed,
    "ReduceSumSquare": lambda rounding, term, args, made: rounding._dot(
        [one for number in term.args for one in (number, number)], made
    ),
    "Sin": lambda rounding, term, args, made: made.rounded(Span(-1, 1, args[0].err), _UNITS, 1.0),
    "Softmax": Rounding._softmax,
    "Sub": lambda rounding, term, args, made: rounding._summed(
        term, [args[0], _negative(args[1])], made
    ),
    "Sum": Rounding._summed,
    "Where": Rounding._chosen,
}


def _negative(one: Span) -> Span:
    return Span(-one.hi, -one.lo, one.err)
