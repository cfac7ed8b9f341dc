"""Binders of variables, recurrences, and terms with values in the place of variables."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence

from passes.proving.terms.by_element import ByElement
from passes.proving.terms.conditions import MOST_WRITTEN_OUT
from passes.proving.terms.numbers import (
    BOOL,
    INT64,
    MOST_ITERATIONS,
    Contradiction,
    Value,
    Values,
)
from passes.proving.terms.term import Term, polynomial, subterms

__all__ = ["BOOL", "INT64", "Algebra", "Contradiction"]


class Algebra(ByElement):
    """The terms of a proof, and what is known on the path that is studied; `written_out`: those of
    recurrences of a few iterations are."""

    def __init__(self, *, written_out: bool = True) -> None:
        super().__init__()
        self._writes_out = written_out
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

    def opened(self, function: Term, sizes: Sequence[Term | None] = ()) -> tuple[list[Term], Term]:
        """New variables for those that a function binds, and its body over them."""
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
        if term.op in _AGAIN:
            return _AGAIN[term.op](self, *args)
        match term.op:
            case "and" | "or":
                return self.all(args) if term.op == "and" else self.any(args)
            case "st":
                return self.state(args[0], args[1], args[2:])
            case "red":
                return self.reduced(term.data, args[:-1], args[-1])
            case "ew":
                op, attributes, dtype, *within = term.data
                return self.elementwise(op, attributes, dtype, args, *within)
            case "elem" if term.data[0] == "constant":
                return self.element(term.data[1], term.data[-1], args)
            case "elem" | "output" | "answers" | "size":
                return self.opaque(term.data[-1], term.op, term.data, args)
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
        dtypes = recurrence.data
        known = self.number(iteration)
        most = _MOST_COUPLED if indices else MOST_WRITTEN_OUT
        if known is not None and 0 <= known <= (most if self._writes_out else 0):
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
        count = len(recurrence.data)

        def before(number: int) -> Callable[[tuple[Term, ...]], Term]:
            own = self.focused(recurrence, number)
            return lambda at: self.state(own, iteration, at)

        states = [before(number) for number in range(count)]
        return self.apply(recurrence.args[count], [iteration, *indices, *states])

    def focused(self, recurrence: Term, first: int) -> Term:
        """The recurrence of another of its states, without those that it does not depend on."""
        if not first:
            return recurrence
        states = self.states_of(recurrence)
        inits = map(self.opened, recurrence.args[: len(states)])
        steps = [self.step_on(states, recurrence, number) for number in range(len(states))]
        return self.recurrence(first, states, [*inits], steps)

    def states_of(self, recurrence: Term) -> list[Term]:
        """New placeholders for the states of a recurrence."""
        return list(map(self.placeholder, recurrence.data, recurrence.shown))

    def step_on(
        self, states: Sequence[Term], recurrence: Term, number: int
    ) -> tuple[list[Term], Term]:
        """New variables for the iteration and the indices, and the step of a state there."""
        step = recurrence.args[len(states) + number]
        variables = [self.variable() for _ in step.data[: -len(states)]]
        values: list[Value] = [*map(self.lift, variables), *map(self.applied_to, states)]
        return variables, self.apply(step, values)

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


#: Operators of terms that are made of terms alone, in normal form.
_AGAIN: Mapping[str, Callable[..., Term]] = {
    "idiv": Algebra.idiv,
    "min": Algebra.least,
    "max": Algebra.most,
    "ge0": Algebra.ge0,
    "eq0": Algebra.eq0,
    "not": Algebra.negation,
    "ite": Algebra.ite,
    "forall": Algebra.for_all,
    "trips": Algebra.trips,
}
#: How many iterations are written out where elements read other ones: each of them nests its sums
#: in those of the next one.
_MOST_COUPLED = 4
#: How many iterations that follow for certain are counted apart from the others.
_MOST_SURE = 8
#: Reductions that give the element where there is one; a sum makes 0 of -0.
_OF_ONE_IS_ITSELF = {"ReduceMax", "ReduceMin", "ReduceProd"}


def _kind(leaf: Term) -> tuple[str, ...]:
    """The element type of a placeholder, nothing of a variable."""
    return () if leaf.op == "var" else (str(leaf.parts[-1]),)
