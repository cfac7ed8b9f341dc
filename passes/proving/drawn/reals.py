"""Terms as functions over the reals: equal but for rounding, but for a known probability.

As in `field`, every term gets a residue modulo a prime that is drawn for each run, but one alone:
what cancels does not count here, since `rounding` bounds it. Quotients are products with inverses.
Sigmoid, Tanh and Softmax are quotients of what Exp makes, which is a keyed hash of its operand.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from passes.proving.drawn.field import Field, Residue
from passes.proving.drawn.symbols import NotShown, NumberedTerm, TermTable

#: The dtypes of floats that are reals.
FLOATS = ("float16", "bfloat16", "float32", "float64")
_ONE = Residue(1, 1, 0)
#: The largest exponent that becomes a product.
_MOST_FACTORS = 16


class Reals(Field):
    """The residues of terms over the reals; `atoms` are those that are free, whatever they are."""

    def __init__(self, terms: TermTable, atoms: frozenset[int], end: float) -> None:
        super().__init__(terms, end)
        self._atoms = atoms

    def value(self, number: int) -> int:
        """What terms that are equal over the reals have in common."""
        return self._known[number].value

    def _residue(self, number: int) -> Residue:
        term = self._terms.all[number]
        args = [self._known[one] for one in term.args]
        if self._terms.is_constant(number) and term.dtype == "bool":
            found = _ONE if self._terms.value(number) else Residue(0, 0, 0)
        elif number in self._atoms and not self._terms.is_constant(number):
            found = self._token(("atom", number), [])
        elif term.op in _FUNCTIONS:
            found = _FUNCTIONS[term.op](self, term, args)
        else:
            found = super()._residue(number)
        return Residue(found.value, found.value, found.degree)

    def _token(self, what: object, args: Sequence[Residue]) -> Residue:
        """Random residues; a function of floats is the same one in every precision."""
        if isinstance(what, tuple):
            what = tuple("float" if one in FLOATS else one for one in what)
        return super()._token(what, [Residue(one.value, one.value, one.degree) for one in args])

    def total(self, args: Sequence[Residue], signs: Sequence[int] = ()) -> Residue:
        """The sum of residues; its degree is that of quotients with different divisors."""
        given = signs or [1] * len(args)
        value = sum(sign * one.value for sign, one in zip(given, args, strict=True)) % self._prime
        return Residue(value, value, sum(one.degree for one in args))

    def minus(self, one: Residue, other: Residue) -> Residue:
        """The difference."""
        return self.total([one, other], (1, -1))

    def inverse(self, one: Residue) -> Residue:
        """One over a residue. Raises NotShown if it is 0."""
        if not one.value:
            raise NotShown("rounding", "a divisor is 0")
        value = pow(one.value, -1, self._prime)
        return Residue(value, value, one.degree)

    def _quotient(self, term: NumberedTerm, args: Sequence[Residue]) -> Residue:
        inverse = self.inverse(args[-1])
        return inverse if term.op == "Reciprocal" else self.product([args[0], inverse])

    def function(self, op: str, arg: Residue) -> Residue:
        """A function of one operand without attributes."""
        return self._token((op, (), "float"), [arg])

    def exp(self, arg: Residue) -> Residue:
        """What Exp makes of a residue, which is one over what it makes of the negative one."""
        if not arg.value:
            return _ONE
        if 2 * arg.value < self._prime:
            return self.function("Exp", arg)
        return self.inverse(self.function("Exp", self.total([arg], (-1,))))

    def power(self, number: int) -> Residue:
        """What Exp makes of a term; where a maximum is subtracted, a quotient."""
        term = self._terms.all[number]
        if term.op == "Log" and number not in self._atoms:
            return self._known[term.args[0]]
        shift = self._terms.all[term.args[1]].op if term.op == "Sub" else ""
        if shift not in ("Max", "ReduceMax") or number in self._atoms:
            return self.exp(self._known[number])
        one, other = (self.exp(self._known[part]) for part in term.args)
        return self.product([one, self.inverse(other)])

    def sigmoid(self, arg: Residue) -> Residue:
        """The quotient that Sigmoid is."""
        power = self.exp(arg)
        return self.product([power, self.inverse(self.total([_ONE, power]))])

    def tanh(self, arg: Residue) -> Residue:
        """The quotient that Tanh is."""
        half = self.sigmoid(self.total([arg, arg]))
        return self.minus(self.total([half, half]), _ONE)

    def softmax(self, term: NumberedTerm) -> Residue:
        """The quotient that a place of Softmax is."""
        powers = [self.power(one) for one in term.args]
        assert isinstance(term.data, int)
        return self.product([powers[term.data], self.inverse(self.total(powers))])

    def where(self, args: Sequence[Residue]) -> Residue:
        """One of two operands, by a condition of 0 or 1."""
        return self.total([args[2], self.product([args[0], self.minus(args[1], args[2])])])

    def cast(self, term: NumberedTerm, args: Sequence[Residue]) -> Residue:
        """The same number, if only rounding changes it."""
        kind = self._terms.all[term.args[0]].dtype
        is_kept = term.dtype in FLOATS and kind in (*FLOATS, "bool")
        return args[0] if is_kept else self._token((term.op, term.data, term.dtype), args)

    def pow(self, term: NumberedTerm, args: Sequence[Residue]) -> Residue:
        """A product, if the exponent is a small whole number."""
        exponent = term.args[1]
        if self._terms.is_constant(exponent) and term.dtype in FLOATS:
            times = float(self._terms.value(exponent))
            if times in range(1, _MOST_FACTORS + 1):
                return self.product([args[0]] * int(times))
        return self._token((term.op, term.data, term.dtype), args)


#: Functions over the reals by the residues of their operands.
_FUNCTIONS: dict[str, Callable[[Reals, NumberedTerm, Sequence[Residue]], Residue]] = {
    "Cast": Reals.cast,
    "Exp": lambda reals, term, args: reals.power(term.args[0]),
    "Not": lambda reals, term, args: reals.minus(_ONE, args[0]),
    "Pow": Reals.pow,
    "Sigmoid": lambda reals, term, args: reals.sigmoid(args[0]),
    "Softmax": lambda reals, term, args: reals.softmax(term),
    "Softplus": lambda reals, term, args: reals.function(
        "Log", reals.total([_ONE, reals.exp(args[0])])
    ),
    "Tanh": lambda reals, term, args: reals.tanh(args[0]),
    "Where": lambda reals, term, args: reals.where(args),
}
