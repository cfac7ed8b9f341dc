"""Terms as functions over the reals: equal but for rounding, but for a known probability.

As in `field`, every term gets a residue modulo a prime that is drawn for each run, but one alone:
the sizes of what cancels do not count here, since `rounding` bounds them. Quotients are inverses.
What Exp makes of a sum is a product, and Sigmoid, Tanh and Softmax are quotients of what it makes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import reduce

from passes.proving.drawn.field import Field, Residue
from passes.proving.drawn.symbols import NotShown, NumberedTerm, TermTable

_ONE = Residue(1, 1, 0)
#: The largest factor, or exponent, that becomes a product, and the depth of sums that Exp divides.
_MOST_FACTORS, _MOST_DEPTH = 16, 32


class Reals(Field):
    """The residues of terms over the reals; `atoms` are those that are free, whatever they are."""

    def __init__(self, terms: TermTable, atoms: frozenset[int]) -> None:
        super().__init__(terms)
        self._atoms = atoms
        self._made_by_exp: dict[int, Residue] = {}

    def value(self, number: int) -> int:
        """What terms that are equal over the reals have in common."""
        return self._known[number].value

    def _residue(self, number: int) -> Residue:
        term = self._terms.all[number]
        is_constant = self._terms.is_constant(number)
        if number in self._atoms and not is_constant:
            found = self._token(("atom", number), [])
        elif is_constant and term.dtype == "bool":
            found = _ONE if self._terms.value(number) else Residue(0, 0, 0)
        elif term.op in _FUNCTIONS and not is_constant:
            args = [self._known[one] for one in term.args]
            found = _FUNCTIONS[term.op](self, term, args)
        else:
            found = super()._residue(number)
        return replace(found, size=found.value, summands=1, has_zero=False)

    def _token(self, what: object, args: Sequence[Residue]) -> Residue:
        """Random residues; a function of floats is the same one in every precision."""
        if isinstance(what, tuple):
            what = tuple("float" if one in FLOATS else one for one in what)
        return super()._token(what, args)

    def function(self, op: str, arg: Residue) -> Residue:
        """A function of one operand without attributes."""
        return self._token((op, (), "float"), [replace(arg, size=arg.value, has_zero=False)])

    def inverse(self, one: Residue) -> Residue:
        """One over a residue."""
        if not one.value:
            raise NotShown("rounding", "a divisor is 0")
        value = pow(one.value, -1, self._prime)
        return Residue(value, value, one.degree)

    def minus(self, one: Residue, other: Residue) -> Residue:
        """The difference."""
        return self.total([one, other], (1, -1))

    def total(self, args: Sequence[Residue], signs: Sequence[int] = ()) -> Residue:
        """The sum of residues; its degree is that of quotients with different divisors."""
        return replace(super().total(args, signs), degree=sum(one.degree for one in args))

    def _quotient(self, term: NumberedTerm, args: Sequence[Residue]) -> Residue:
        inverse = self.inverse(args[-1])
        return inverse if term.op == "Reciprocal" else self.product([args[0], inverse])

    def power(self, number: int, depth: int = _MOST_DEPTH) -> Residue:
        """What Exp makes of a term."""
        if number not in self._made_by_exp:
            self._made_by_exp[number] = self._power(number, depth)
        return self._made_by_exp[number]

    def _power(self, number: int, depth: int) -> Residue:
        term = self._terms.all[number]
        if depth and number not in self._atoms and not self._terms.is_constant(number):
            if term.op in ("Add", "Sub", "Neg") or self._is_kept(term):
                parts = [self.power(one, depth - 1) for one in term.args]
                if term.op in ("Sub", "Neg"):
                    parts[-1] = self.inverse(parts[-1])
                return self.product(parts)
            for one, other in (term.args, term.args[::-1]) if term.op == "Mul" else ():
                times = self._whole(one)
                if times:
                    return self._times(self.power(other, depth - 1), times)
        known = self._known[number]
        return self.function("Exp", known) if known.value else _ONE

    def _is_kept(self, term: NumberedTerm) -> bool:
        """Return whether a Cast changes a number by rounding alone."""
        kinds = [self._terms.all[one].dtype for one in term.args]
        return term.op == "Cast" and term.dtype in FLOATS and kinds[0] in (*FLOATS, "bool")

    def _whole(self, number: int) -> int:
        """A constant as a small number of factors; 0 if it is none."""
        if not self._terms.is_constant(number):
            return 0
        value = self._terms.value(number)
        is_small = not isinstance(value, str) and abs(value) <= _MOST_FACTORS
        return int(value) if is_small and value == int(value) else 0

    def _times(self, one: Residue, times: int) -> Residue:
        made = self.product([one] * abs(times))
        return made if times > 0 else self.inverse(made)

    def _cast(self, term: NumberedTerm, args: Sequence[Residue]) -> Residue:
        return args[0] if self._is_kept(term) else self._token(("Cast", term.data, term.dtype), args)

    def _pow(self, term: NumberedTerm, args: Sequence[Residue]) -> Residue:
        times = self._whole(term.args[1]) if term.dtype in FLOATS else 0
        if times:
            return self._times(args[0], times)
        return self._token((term.op, term.data, term.dtype), args)

    def _sigmoid(self, power: Residue) -> Residue:
        return self.product([power, self.inverse(self.total([_ONE, power]))])

    def _tanh(self, power: Residue) -> Residue:
        twice = self._sigmoid(self.product([power, power]))
        return self.minus(self.total([twice, twice]), _ONE)

    def _powers(self, term: NumberedTerm) -> Residue:
        return self.total([self.power(one) for one in term.args])

    def _softmax(self, term: NumberedTerm) -> Residue:
        assert isinstance(term.data, int)
        mine = self.power(term.args[term.data])
        return self.product([mine, self.inverse(self._powers(term))])

    def _where(self, args: Sequence[Residue]) -> Residue:
        return self.total([args[2], self.product([args[0], self.minus(args[1], args[2])])])


#: The dtypes of floats that are reals.
FLOATS = ("float16", "bfloat16", "float32", "float64")
#: Functions over the reals by the residues of their operands.
_FUNCTIONS: dict[str, Callable[[Reals, NumberedTerm, Sequence[Residue]], Residue]] = {
    "Cast": Reals._cast,
    "Pow": Reals._pow,
    "Not": lambda reals, term, args: reals.minus(_ONE, args[0]),
    "Where": lambda reals, term, args: reals._where(args),
    "Exp": lambda reals, term, args: reals.power(term.args[0]),
    "Sigmoid": lambda reals, term, args: reals._sigmoid(reals.power(term.args[0])),
    "Tanh": lambda reals, term, args: reals._tanh(reals.power(term.args[0])),
    "Softplus": lambda reals, term, args: reals.function(
        "Log", reals.total([_ONE, reals.power(term.args[0])])
    ),
    "Softmax": lambda reals, term, args: reals._softmax(term),
}
