"""Terms as functions over the reals: equal but for rounding, but for a known probability.

As in `field`, every term gets a residue modulo a prime that is drawn for each run, but one alone:
what cancels does not count here, since `rounding` bounds it. Quotients are products with inverses.
Sigmoid, Tanh and Softmax are quotients of what Exp makes, which is a keyed hash of its operand.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from passes.proving.terms.algebra import Algebra
from passes.proving.terms.arrays import NotProvable
from passes.proving.terms.field import Field, Residue, operator
from passes.proving.terms.term import Term

#: The dtypes of floats that are reals.
FLOATS = ("float16", "bfloat16", "float32", "float64")
_ONE = Residue(1, 1, 0)
#: The largest exponent that becomes a product.
_MOST_FACTORS = 16


class Reals(Field):
    """The residues of terms over the reals; `atoms` are those that are free, whatever they are."""

    def __init__(self, algebra: Algebra, atoms: frozenset[Term]) -> None:
        super().__init__(algebra)
        self._atoms = atoms

    def value(self, term: Term) -> int:
        """What terms that are equal over the reals have in common."""
        return self._known[term].value

    def _residue(self, term: Term) -> Residue:
        function = _FUNCTIONS.get(operator(term)[0])
        if term.op in ("true", "false"):
            found = _ONE if term.op == "true" else Residue(0, 0, 0)
        elif term in self._atoms:
            found = self._token(("atom", term.uid), [])
        elif function is not None:
            found = function(self, term, [self._known[one] for one in term.args])
        else:
            found = super()._residue(term)
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

    def inverse(self, one: Residue, dtype: str = "") -> Residue:
        """One over a residue. Raises NotProvable if it is 0."""
        if not one.value:
            raise NotProvable("rounding", "a divisor is 0")
        value = pow(one.value, -1, self._prime)
        return Residue(value, value, one.degree)

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

    def power(self, term: Term) -> Residue:
        """What Exp makes of a term; where a maximum is subtracted, a quotient."""
        op = operator(term)[0] if term not in self._atoms else ""
        if op == "Log":
            return self._known[term.args[0]]
        if op != "Sub" or operator(term.args[1])[0] not in ("Max", "ReduceMax"):
            return self.exp(self._known[term])
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

    def softmax(self, term: Term) -> Residue:
        """The quotient that a place of Softmax is."""
        powers = list(map(self.power, term.args))
        return self.product([powers[term.parts[1]], self.inverse(self.total(powers))])

    def where(self, args: Sequence[Residue]) -> Residue:
        """One of two operands, by a condition of 0 or 1."""
        return self.total([args[2], self.product([args[0], self.minus(args[1], args[2])])])

    def cast(self, term: Term, args: Sequence[Residue]) -> Residue:
        """The same number, if only rounding changes it."""
        _, (kind, how), dtype = operator(term)
        is_kept = dtype in FLOATS and kind in (*FLOATS, "bool")
        return args[0] if is_kept else self._token(("Cast", kind, how, dtype), args)

    def clip(self, args: Sequence[Residue], which: Sequence[bool]) -> Residue:
        """The least of the largest of some."""
        found, bounds = args[0], iter(args[1:])
        for op, given in zip(("Max", "Min"), which, strict=True):
            if given:
                members = {found.key, next(bounds).key}
                found = self._token((op, "float", sorted(members)), [])
        return found

    def pow(self, term: Term, args: Sequence[Residue]) -> Residue:
        """A product, if the exponent is a small whole number."""
        exponent = self._algebra.value(term.args[1])
        if exponent is not None and operator(term)[2] in FLOATS:
            times = float(exponent)
            if times in range(1, _MOST_FACTORS + 1):
                return self.product([args[0]] * int(times))
        return self._token(operator(term), args)


#: Functions over the reals by the residues of their operands.
_FUNCTIONS: dict[str, Callable[[Reals, Term, Sequence[Residue]], Residue]] = {
    "Cast": Reals.cast,
    "Clip": lambda reals, term, args: reals.clip(args, term.parts[1]),
    "Exp": lambda reals, term, args: reals.power(term.args[0]),
    "not": lambda reals, term, args: reals.minus(_ONE, args[0]),
    "Pow": Reals.pow,
    "Sigmoid": lambda reals, term, args: reals.sigmoid(args[0]),
    "Softmax": lambda reals, term, args: reals.softmax(term),
    "Softplus": lambda reals, term, args: reals.function(
        "Log", reals.total([_ONE, reals.exp(args[0])])
    ),
    "Tanh": lambda reals, term, args: reals.tanh(args[0]),
    "ite": lambda reals, term, args: reals.where(args),
}
