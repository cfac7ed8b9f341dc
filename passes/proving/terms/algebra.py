"""Binders of variables, recurrences, and terms with values in the place of variables."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from passes.proving.families import COMMUTE, EXACT_OPERATORS, LOSSLESS
from passes.proving.terms.conditions import MOST_WRITTEN_OUT
from passes.proving.terms.extremes import Extremes
from passes.proving.terms.numbers import (
    BOOL,
    INT64,
    MOST_ITERATIONS,
    SMALL,
    Contradiction,
    Value,
    Values,
)
from passes.proving.terms.term import Term, polynomial, subterms

__all__ = ["BOOL", "INT64", "Algebra", "Contradiction"]


@dataclass(frozen=True)
class Manner:
    """A manner in which a proof reads terms: whether recurrences of a few iterations are
    `written_out`, whether sums are `regrouped`, as if numbers added up to the same in any order,
    whether products are `distributed` over differences, and whether floats that both models make
    alike are `symbols`, as if they were inputs."""

    written_out: bool = True
    regrouped: bool = False
    distributed: bool = False
    symbols: bool = False


class Algebra(Extremes):
    """The terms of a proof, and what is known on the path that is studied."""

    def __init__(self, manner: Manner | None = None) -> None:
        super().__init__()
        self.manner = manner or Manner()
        #: Which other recurrence, before which iteration, a state is read from.
        self.related: Callable[[Term, Term], tuple[Term, Term] | None] | None = None

    def close(self, variables: Sequence[Term], body: Term) -> Term:
        """The function of these variables and placeholders that the term is."""
        height = 1 + body.height
        bound = [
            self.terms.make(f"b{one.op[0]}", (height, number, *_kind(one)))
            for number, one in enumerate(variables)
        ]
        values: dict[Term, Value] = {}
        for old, new in zip(variables, bound, strict=True):
            values[old] = self.lift(new) if old.op == "var" else self.applied_to(new)
        return self.terms.lam(height, bound, self.subst(body, values))

    def apply(self, function: Term, values: Sequence[Value]) -> Term:
        """The result of a function at these values."""
        assert isinstance(function.data, tuple)
        return self.subst(function.args[0], dict(zip(function.data, values, strict=True)))

    def opened(self, function: Term, sizes: Sequence[Term | None] = ()) -> tuple[list[Term], Term]:
        """New variables for those that a function binds, and its body over them."""
        assert isinstance(function.data, tuple)
        variables: list[Term] = []
        values: list[Value] = []
        for number, one in enumerate(function.data):
            if one.op == "bp":
                made = self.terms.make("ph", (self.terms.serial(), *one.data[2:]))
                values.append(self.applied_to(made))
            else:
                made = self.variable(sizes[number] if number < len(sizes) else None)
                values.append(self.lift(made))
            variables.append(made)
        return variables, self.apply(function, values)

    def placeholder(self, dtype: str, name: str) -> Term:
        """A new placeholder of an array of this element type, shown by a name."""
        return self.terms.make("ph", (self.terms.serial(), dtype), shown=(name,))

    def applied_to(self, placeholder: Term) -> Callable[[tuple[Term, ...]], Term]:
        """The elements of a placeholder, a function of indices."""
        assert isinstance(placeholder.data, tuple)
        dtype = placeholder.data[-1]

        def element(indices: tuple[Term, ...]) -> Term:
            return self.opaque(dtype, "app", dtype, (placeholder, *indices))

        return element

    def subst(self, term: Term, values: Values, *, whole: bool = False) -> Term:
        """A term with values for variables, simplified; `whole`: anew in every part."""
        uids = {one.uid for one in values}
        memo: dict[Term, Term] = {}

        def again(one: Term) -> Term:
            if not whole and not one.free & uids:
                return one
            if one not in memo:
                memo[one] = made(one)
            return memo[one]

        def made(one: Term) -> Term:
            value = values.get(one)
            if value is not None:
                assert isinstance(value, Term)
                return value
            match one.op:
                case "poly":
                    total = self.zero
                    for mono, factor in polynomial(one).items():
                        parts = self.product(self.lift(again(atom)) for atom in mono)
                        total = self.add(total, self.scaled(parts, factor))
                    return total
                case "lam":
                    variables, body = self.opened(one)
                    return self.close(variables, again(body))
                case "app":
                    function = values.get(one.args[0])
                    indices = tuple(map(again, one.args[1:]))
                    if function is None:
                        return self.applied_to(one.args[0])(indices)
                    assert not isinstance(function, Term)
                    return function(indices)
            return self.rebuilt(one, tuple(map(again, one.args)))

        return again(term)

    def rebuilt(self, term: Term, args: tuple[Term, ...]) -> Term:
        """The operator of a term on other terms, in normal form."""
        match term.op:
            case "idiv":
                return self.idiv(*args)
            case "min":
                return self.least(*args)
            case "max":
                return self.most(*args)
            case "ge0":
                return self.ge0(*args)
            case "eq0":
                return self.eq0(*args)
            case "not":
                return self.negation(*args)
            case "and":
                return self.all(args)
            case "or":
                return self.any(args)
            case "ite":
                return self.ite(*args)
            case "st":
                return self.state(args[0], args[1], args[2:])
            case "red":
                return self.reduced(term.data, args[:-1], args[-1])
            case "forall":
                return self.for_all(*args)
            case "ew" | "elem":
                assert isinstance(term.data, tuple)
                if term.op == "ew":
                    return self.elementwise(term.data[0], term.data[1], term.data[2], args)
                if term.data[0] == "constant":
                    return self.element(term.data[1], term.data[-1], args)
                return self.opaque(term.data[-1], "elem", term.data, args)
            case "output" | "answers" | "size":
                assert isinstance(term.data, tuple)
                return self.opaque(term.data[-1], term.op, term.data, args)
            case "trips":
                return self.trips(*args)
        return self.terms.make(term.op, term.data, args, term.shown) if args else term

    def trips(self, limit: Term, condition: Term) -> Term:
        """The number of iterations of a loop that has to meet a condition, a function of the number
        of the iteration before, for another iteration; at most `limit` times, if that is a number.

        Iterations that follow for certain are counted apart.
        """
        (index,), again = self.opened(condition)
        sure = self.zero
        for _ in range(_MOST_SURE):
            bounded = limit.op == "poly"
            if bounded and not self.is_positive(limit):
                break
            follows = self.subst(again, {index: self.zero})
            if follows is self.false:
                return self.add(sure, self.one)
            if follows is not self.true:
                break
            again = self.subst(again, {index: self.add(self.lift(index), self.one)})
            limit = self.sub(limit, self.one) if bounded else limit
            sure = self.add(sure, self.one)
        atom = self.terms.make("trips", None, (limit, self.close([index], again)))
        own = self.sum({(atom,): 1})
        most = [self.sub(limit, own)] if limit.op == "poly" else []
        self.bound(atom, own, self.sub(self.whole(MOST_ITERATIONS), own), *most)
        some = polynomial(self.sub(own, self.one))
        runs = limit.op != "poly" or self.is_positive(limit)
        if runs and not atom.free and some not in self._here.facts:
            self._here.facts.append(some)
            self._here.proven.clear()
        return self.add(sure, self.lift(atom))

    def elementwise(self, op: str, attributes: Hashable, dtype: str, args: Iterable[Term]) -> Term:
        """An operator by element."""
        args = tuple(args)
        if op == "Add" and self.manner.regrouped:
            args = self._addends(dtype, args)
            if len(args) == 1:
                return args[0]
        if self.manner.distributed and op in ("Sub", "Mul", "Neg"):
            distributed = self._distributed(op, dtype, args)
            if distributed is not None:
                return distributed
        folded = self._folded(op, attributes, dtype, args)
        if folded is None and dtype == BOOL and op in ("Less", "LessOrEqual", "Equal"):
            folded = self.compared(op, str(attributes), args)
        if folded is None and op in ("Max", "Min") and dtype in _EXACT and len(args) == 2:
            folded = self._extreme_float(op, dtype, args)
        if folded is not None:
            return folded
        if op in COMMUTE:
            args = tuple(sorted(args, key=lambda one: (one.order, one.uid)))
        return self.opaque(dtype, "ew", (op, attributes, dtype), args)

    def _distributed(self, op: str, dtype: str, args: tuple[Term, ...]) -> Term | None:
        """A difference as a sum, and its product as one of products."""

        def made(op: str, *args: Term) -> Term:
            return self.elementwise(op, (), dtype, args)

        if op == "Sub":
            return made("Add", args[0], made("Neg", args[1]))
        sums = [
            n for n, one in enumerate(args) if one.op == "ew" and one.data == ("Add", (), dtype)
        ]
        if op == "Neg":
            (inner,) = args
            if sums:
                return made("Add", *(made("Neg", one) for one in inner.args))
            return inner.args[0] if inner.data == ("Neg", (), dtype) else None
        for place, one in enumerate(args):
            other = args[1 - place]
            if one.data == ("Neg", (), dtype):
                return made("Neg", made("Mul", one.args[0], other))
            if one.op == "const" and one.parts[-1] == "1.0":
                return other
            if place in sums and any(part.data == ("Neg", (), dtype) for part in one.args):
                return made("Add", *(made("Mul", part, other) for part in one.args))
        return None

    def _addends(self, dtype: str, args: tuple[Term, ...]) -> tuple[Term, ...]:
        """The numbers that a sum of sums adds up, but for zeros."""
        found: list[Term] = []
        for one in args:
            found += one.args if one.op == "ew" and one.data == ("Add", (), dtype) else (one,)
        some = [one for one in found if one.op != "const" or not _is_zero(one)]
        return tuple(some or found[:1])

    def _folded(
        self, op: str, attributes: Hashable, dtype: str, args: tuple[Term, ...]
    ) -> Term | None:
        """The result by IEEE 754 for constants, and for a Cast there and back."""
        (first, *_) = args
        if op == "Cast":
            assert isinstance(attributes, tuple)
            source = attributes[0]
            known = self.number(first) if first.op == "poly" else None
            if known is not None and dtype in _EXACT and abs(known) <= 1 << 24:
                return self.literal(dtype, np.dtype(dtype).type(known))
            if first in (self.true, self.false) and dtype in _EXACT:
                return self.literal(dtype, np.dtype(dtype).type(first is self.true))
            if first.op == "const" and source in _EXACT and dtype in (INT64, *SMALL):
                value = float(np.frombuffer(bytes.fromhex(first.parts[1]), source)[0])
                low, high = SMALL.get(dtype, (-1 << 53, 1 << 53))
                if low <= value <= high:
                    return self.literal(dtype, np.dtype(dtype).type(value))
            if dtype == INT64 and source in SMALL:
                return self.wide(source, first)
            if source == INT64 and dtype in SMALL:
                return self._narrow(dtype, first)
            inner = first.data
            if first.op == "ew" and isinstance(inner, tuple) and inner[0] == "Cast":
                unsaturated = dtype == "float8_e5m2" and attributes[1] == (("saturate", 0),)
                lossless = (dtype, source) in LOSSLESS or (unsaturated and source == "float32")
                if inner[1][0] == dtype and lossless:
                    return first.args[0]
            floats = {dtype, source} <= _EXACT
            exact: Callable[..., Any] | None = partial(np.asarray, dtype=dtype) if floats else None
        else:
            exact = EXACT_OPERATORS.get(op)
        if exact is None or len(args) > 2:
            return None
        values, read = [], set()
        for one in args:
            known = self._known_value(one)
            if known is None:
                return None
            values.append(known)
            read |= {one.args} if one.args else set()
        if len(read) > 1:
            return None
        with np.errstate(all="ignore"):
            made = np.asarray(exact(*values))
        if made.size > MOST_FOLDED or made.dtype.name != dtype:
            return None
        return self.element(self.constant(made), dtype, next(iter(read), ()))

    def _known_value(self, term: Term) -> Any:
        """The numbers of a constant of floats that every machine computes alike, else None."""
        if term.op == "const" and term.parts[0] in _EXACT:
            return np.frombuffer(bytes.fromhex(term.parts[1]), term.parts[0])[0]
        if term.op == "elem" and term.parts[0] == "constant" and term.parts[-1] in _EXACT:
            return self.constants[term.parts[1]]
        return None

    def reduced(self, data: Hashable, sizes: Sequence[Term], body: Term) -> Term:
        """A reduction over axes of these sizes of a function of their indices; axes of size 1 are
        none."""
        assert isinstance(data, tuple)
        if data == ("ReduceSum", INT64) and body.args[0] is self.zero:
            return self.zero
        if any(size is self.zero for size in sizes):  # what it is of nothing
            body = self.close([self.variable() for _ in sizes], self.zero)
        if any(self.number(size) == 1 for size in sizes):
            variables, inner = self.opened(body, sizes)
            alone = {
                one: self.zero
                for one, size in zip(variables, sizes, strict=True)
                if self.number(size) == 1
            }
            kept = [one for one in variables if one not in alone]
            left = [size for size in sizes if self.number(size) != 1]
            inner = self.subst(inner, alone)
            if not kept and (data[0] in _OF_ONE_IS_ITSELF or data == ("ReduceSum", INT64)):
                return inner
            sizes, body = left, self.close(kept, inner)
        made = self.opaque(data[-1], "red", data, (*sizes, body))
        self._each_extreme(data, sizes, body, made)
        return made

    def state(self, recurrence: Term, iteration: Term, indices: tuple[Term, ...]) -> Term:
        """The first state of a recurrence before an iteration."""
        assert isinstance(recurrence.data, tuple)
        dtypes = recurrence.data
        known = self.number(iteration)
        most = _MOST_COUPLED if indices else MOST_WRITTEN_OUT
        if known is not None and 0 <= known <= (most if self.manner.written_out else 0):
            made = self.apply(self._written_out(recurrence, known, len(indices)), indices)
            # conditions on the state are of the number that a machine holds
            if dtypes[0] != INT64 or self.proves(self.fits(made) or self.true):
                return made
        other = self.related(recurrence, iteration) if self.related is not None else None
        if other is not None:
            return self.state(*other, indices)
        return self.opaque(dtypes[0], "st", None, (recurrence, iteration, *indices))

    def _written_out(self, recurrence: Term, iteration: int, rank: int) -> Term:
        """The state before an iteration, a function of its indices, made once on a path."""
        if not iteration:
            return recurrence.args[0]
        key = recurrence, iteration
        if key not in self._here.states:
            variables = [self.variable() for _ in range(rank)]
            at = tuple(map(self.lift, variables))
            made = self.step_of(recurrence, self.whole(iteration - 1), at)
            self._here.states[key] = self.close(variables, made)
        return self._here.states[key]

    def step_of(self, recurrence: Term, iteration: Term, indices: tuple[Term, ...]) -> Term:
        """The first state of a recurrence after an iteration."""
        assert isinstance(recurrence.data, tuple)
        count = len(recurrence.data)

        def before(number: int) -> Callable[[tuple[Term, ...]], Term]:
            own = self.focused(recurrence, number)
            return lambda at: self.state(own, iteration, at)

        states = [before(number) for number in range(count)]
        return self.apply(recurrence.args[count], [iteration, *indices, *states])

    def focused(self, recurrence: Term, first: int) -> Term:
        """The recurrence of another of its states, without those that it does not depend on."""
        assert isinstance(recurrence.data, tuple)
        if not first:
            return recurrence
        count = len(recurrence.data)
        shown = zip(recurrence.data, recurrence.shown, strict=True)
        states = [self.placeholder(dtype, name) for dtype, name in shown]
        inits, steps = [], []
        for init, step in zip(recurrence.args[:count], recurrence.args[count:], strict=True):
            inits.append(self.opened(init))
            assert isinstance(step.data, tuple)
            rank = len(step.data) - 1 - count
            variables = [self.variable() for _ in range(1 + rank)]
            values: list[Value] = [*map(self.lift, variables), *map(self.applied_to, states)]
            steps.append((variables, self.apply(step, values)))
        return self.recurrence(first, states, inits, steps)

    def recurrence(
        self,
        first: int,
        states: Sequence[Term],
        inits: Sequence[tuple[Sequence[Term], Term]],
        steps: Sequence[tuple[Sequence[Term], Term]],
    ) -> Term:
        """A recurrence of what the state `first` depends on, in the order in which it does.

        An initial value is a function of indices, a step one of the iteration and indices, in
        which placeholders are the states before it.
        """
        place = {one: number for number, one in enumerate(states)}
        order = [first]
        for number in order:
            for one in subterms(steps[number][1]):
                if one in place and place[one] not in order:
                    order.append(place[one])
        kept = [states[number] for number in order]
        return self.terms.make(
            "rec",
            tuple(str(one.parts[-1]) for one in kept),
            [self.close(*inits[number]) for number in order]
            + [self.close([*steps[number][0], *kept], steps[number][1]) for number in order],
            tuple(name for one in kept for name in one.shown),
        )


#: How many iterations are written out where elements read other ones: each of them nests its sums
#: in those of the next one.
_MOST_COUPLED = 4
#: How many iterations that follow for certain are counted apart from the others.
_MOST_SURE = 8
#: Reductions that give the element where there is one; a sum makes 0 of -0.
_OF_ONE_IS_ITSELF = {"ReduceMax", "ReduceMin", "ReduceProd"}


#: Of how many elements constants are computed.
MOST_FOLDED = 1 << 14
#: What every machine computes to the same bits.
_EXACT = {"float32", "float64"}


def _is_zero(constant: Term) -> bool:
    assert isinstance(constant.data, tuple)
    dtype, bits, _ = constant.data
    return not np.frombuffer(bytes.fromhex(bits), np.dtype(dtype))[0]


def _kind(leaf: Term) -> tuple[str, ...]:
    """The element type of a placeholder, nothing of a variable."""
    return () if leaf.op == "var" else (str(leaf.parts[-1]),)
