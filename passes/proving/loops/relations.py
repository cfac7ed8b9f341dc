"""Loops of another step: a recurrence that before its iteration i is what another one is before
`a*i + b`, found from the values and shown by induction."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache

from passes.proving.families import commutes
from passes.proving.loops.closed_forms import unless_kept
from passes.proving.terms.algebra import Algebra
from passes.proving.terms.conditions import MOST_WRITTEN_OUT
from passes.proving.terms.field import AtAllSizes
from passes.proving.terms.term import Term, atom_of, polynomial, subterms

#: After how many iterations of another loop a loop may begin, where that is written out.
_MOST_AHEAD = 4
_STEPS = 400


@dataclass
class Comparison:
    """The comparison of terms: as they are, and up to the order of sums if there is a `field`;
    `regrouped`: a proof needs that."""

    algebra: Algebra
    field: AtAllSizes | None = None
    regrouped: bool = False

    def same(self, left: Term, right: Term) -> bool:
        """Return whether two terms are equal as they are."""
        algebra, both = self.algebra, left.op == right.op == "poly"
        return left is right or (both and algebra.equal(left, right) is algebra.true)


class Relations:
    """The relations between the recurrences in some terms, by the facts known now."""

    def __init__(self, compared: Comparison, terms: Iterable[Term]) -> None:
        self.algebra = compared.algebra
        self._compared = compared
        sides = [[one for one in subterms(term) if one.op == "rec"] for term in terms]
        self._written_out = not all(sides)
        self._whole = [one for side in sides for one in side]
        self._others: dict[Term, list[int]] = {}
        self._found: dict[tuple[Term, ...], tuple[Term, Term] | None] = {}
        self._assumed: tuple[Term, ...] = ()
        self._reads: dict[Term, Term] = {}
        self._alike: dict[tuple[Term, Term], bool] = {}
        self._open: list[Term] = []  # what is being read from another one
        self._steps = _STEPS

    def normal(self, *terms: Term) -> tuple[Term, ...]:
        """Terms that read the loop of the smallest steps wherever they can."""
        focused = self.algebra.focused
        each = (focused(one, n) for one in self._whole for n in range(len(one.parts)))
        plain = (one for one in dict.fromkeys(each) if self._unmasked(one) is None)
        self._others = {one: self._orders(one) for one in plain}
        self.algebra.related = self._read_from
        try:
            return tuple(self.algebra.subst(one, {}, whole=True) for one in terms)
        finally:
            self.algebra.related = None

    # what is read from another recurrence

    def _read_from(self, own: Term, iteration: Term) -> tuple[Term, Term] | None:
        """Another recurrence and its iteration that give the state of this one before an
        iteration, which is not negative."""
        algebra = self.algebra
        if not algebra.is_not_negative(iteration) or own in self._open:
            return None
        key = (own, iteration, *self._assumed)
        if key not in self._found:
            self._found[key] = None
            self._open.append(own)
            try:
                self._found[key] = self._masked(own, iteration) or self._relation(own, iteration)
            finally:
                self._open.pop()
        return self._found[key]

    def _relation(self, own: Term, iteration: Term) -> tuple[Term, Term] | None:
        """Another recurrence and its iteration, as is shown by induction."""
        algebra = self.algebra
        variables, initial = algebra.opened(own.args[0])
        at = tuple(map(algebra.lift, variables))
        for other, begin in self._begins(own, at, initial):
            if other in self._open or self._leads(other, own):
                continue
            if not algebra.is_not_negative(begin):
                continue
            starts = self._starts(own, other, begin)
            with self._running(iteration):
                first = algebra.step_of(own, algebra.zero, at)
                for stride in self._strides(other, begin, at, first):
                    keeps = self._keeps(own, starts, stride, begin, iteration)
                    if keeps and not self._leads(other, own):
                        self._reads[own] = other
                        return other, algebra.add(algebra.mul(stride, iteration), begin)
        return None

    def _masked(self, own: Term, iteration: Term) -> tuple[Term, Term] | None:
        """The recurrence without the condition that all its states wait for, and its
        iteration; None if the other side has few iterations written out, with that condition."""
        algebra = self.algebra
        few = algebra.sub(algebra.whole(MOST_WRITTEN_OUT), iteration)
        if self._written_out and algebra.is_not_negative(few):
            return None
        found = self._unmasked(own)
        if found is None or self._leads(found[0], own):
            return None
        plain, last = found
        self._reads[own] = plain
        count = algebra.least(iteration, algebra.add(last, algebra.one))
        return plain, algebra.most(count, algebra.zero)

    def _unmasked(self, own: Term) -> tuple[Term, Term] | None:
        """A recurrence without the condition `i <= c` that all its states are kept without, and
        c."""
        algebra = self.algebra
        states = algebra.states_of(own)
        inits, steps = [], []
        lasts: set[Term] = set()
        for number, state in enumerate(states):
            names, body = algebra.step_on(states, own, number)
            index, *at = names
            kept = algebra.applied_to(state)(tuple(map(algebra.lift, at)))
            condition, plain = unless_kept(algebra, body, kept)
            parts = dict(polynomial(condition.args[0])) if condition.op == "ge0" else {}
            if parts.pop((index,), 0) != -1:
                return None
            lasts.add(algebra.sum(parts))
            known = {condition: algebra.true, algebra.negation(condition): algebra.false}
            steps.append((names, algebra.subst(plain, known, whole=True)))
            inits.append(algebra.opened(own.args[number]))
        (last, *others) = lasts
        inner = {one.uid for some in (states, *(names for names, _ in steps)) for one in some}
        if others or last.free & inner:
            return None
        return algebra.recurrence(0, states, inits, steps), last

    @contextmanager
    def _running(self, iteration: Term) -> Iterator[None]:
        """Assume within that there is an iteration before this one."""
        some = self.algebra.at_least(iteration, self.algebra.one)
        self._assumed = (*self._assumed, some)
        with self.algebra.assuming(some):
            yield
        self._assumed = self._assumed[:-1]

    def _leads(self, other: Term, own: Term) -> bool:
        """Return whether what is read from a recurrence is read from this one in the end."""
        seen: set[Term] = set()
        while other is not own and other in self._reads and other not in seen:
            seen.add(other)
            other = self._reads[other]
        return other is own or other in seen

    def _begins(
        self, own: Term, at: tuple[Term, ...], initial: Term
    ) -> Iterator[tuple[Term, Term]]:
        """Other recurrences, and where this one begins in them."""
        algebra = self.algebra
        read = _read(initial)
        if read is not None and read.args[2:] == at:
            yield read.args[0], read.args[1]
        for other, orders in self._over(own):
            for number, order in enumerate(orders):
                begin = algebra.whole(number)
                may_be = other is not own and (initial.op == "poly" or order in (0, initial.order))
                if may_be and self._compared.same(algebra.state(other, begin, at), initial):
                    yield other, begin

    def _over(self, own: Term) -> Iterator[tuple[Term, list[int]]]:
        """Other recurrences over the variables of this one, and how their first states are
        sorted."""
        algebra = self.algebra
        for other, orders in self._others.items():
            if not _like(own, other) or other.height > own.height:
                continue
            names, values = _free(other), _free(own)
            if not set(names) <= set(values):  # the same over the variables of this one
                if len(names) != len(values) or any(one.op not in ("var", "bv") for one in names):
                    continue
                lifted = map(algebra.lift, values)
                other = algebra.subst(other, dict(zip(names, lifted, strict=True)))
                orders = [0] * len(orders)
            yield other, orders

    def _orders(self, recurrence: Term) -> list[int]:
        """The orders of the states before the first iterations; equal ones have one order."""
        algebra = self.algebra
        at = self._indices(recurrence.args[0], 0, 0)
        orders: list[int] = []
        for number in range(_MOST_AHEAD + 1):
            state = algebra.state(recurrence, algebra.whole(number), at)
            orders.append(state.order)
            if number and any(one.op == "lam" for one in subterms(state)):
                break  # each iteration more multiplies the reductions that are written out
        return orders

    def _strides(
        self, other: Term, begin: Term, at: tuple[Term, ...], first: Term
    ) -> Iterator[Term]:
        """The numbers of iterations of the other one that one may be, by the state after it."""
        algebra = self.algebra
        read = _read(first)
        if read is not None and read.args[0] is other and read.args[2:] == at:
            yield algebra.sub(read.args[1], begin)
        large = sum(1 for _ in subterms(first)) + 20
        for number in range(1, MOST_WRITTEN_OUT + 1):
            after = self._after(other, begin, number, at)
            if self._compared.same(after, first):
                yield algebra.whole(number)
            elif sum(1 for _ in subterms(after)) <= large:
                continue
            return

    def _starts(self, own: Term, other: Term, begin: Term) -> list[list[Term]]:
        """For each state the states of the other recurrence that begin with its initial value,
        each as a recurrence of its own."""
        algebra = self.algebra
        found: list[list[Term]] = []
        for number in range(len(own.parts)):
            focused = algebra.focused(own, number)
            variables, initial = algebra.opened(focused.args[0])
            at = tuple(map(algebra.lift, variables))
            places = range(len(other.parts) if number else 1)
            states = (algebra.focused(other, place) for place in places)
            found.append(
                [
                    one
                    for one in states
                    if _like(focused, one)
                    and self._compared.same(algebra.state(one, begin, at), initial)
                ]
            )
        return found

    def _keeps(
        self,
        own: Term,
        starts: Sequence[Sequence[Term]],
        stride: Term,
        begin: Term,
        iteration: Term,
    ) -> bool:
        """Return whether the states are states of the other recurrence, `stride` iterations of it
        at a time, in every iteration before this one."""
        algebra = self.algebra
        if not algebra.is_not_negative(stride):
            return False
        matched: list[Term] = []
        for number, states in enumerate(starts):
            focused = algebra.focused(own, number)
            at = self._indices(focused.args[0], 0, 0)
            first = algebra.step_of(focused, algebra.zero, at)
            kept = (one for one in states if self._reached(one, begin, stride, at, first))
            state = next(kept, None)
            if state is None:
                return False
            matched.append(state)
        index = algebra.lift(algebra.variable(iteration))
        here = algebra.add(algebra.mul(stride, index), begin)
        before = [self._written(state, here, 0) for state in matched]
        count = len(matched)
        for number, state in enumerate(matched):
            at = self._indices(own.args[count + number], 1, count)
            got = algebra.apply(own.args[count + number], [index, *at, *before])
            if not self._reached(state, here, stride, at, got):
                return False
        return True

    def _reached(
        self, state: Term, here: Term, stride: Term, at: tuple[Term, ...], got: Term
    ) -> bool:
        """Return whether an element is that of a state `stride` iterations later."""
        algebra = self.algebra
        if self._compared.same(algebra.state(state, algebra.add(here, stride), at), got):
            return True
        many = algebra.number(stride)
        if many is None or not 0 < many <= MOST_WRITTEN_OUT:
            return False
        return self._compared.same(self._after(state, here, many, at), got)

    def _after(self, state: Term, here: Term, many: int, at: tuple[Term, ...]) -> Term:
        """A state some iterations after `here`, written out down to the states before `here`."""
        algebra = self.algebra
        if not many:
            return algebra.state(state, here, at)
        count = len(state.parts)
        before = [
            self._written(algebra.focused(state, number), here, many - 1) for number in range(count)
        ]
        last = algebra.add(here, algebra.whole(many - 1))
        return algebra.apply(state.args[count], [last, *at, *before])

    def _written(self, state: Term, here: Term, many: int) -> Callable[[tuple[Term, ...]], Term]:
        return cache(lambda at: self._after(state, here, many, at))

    def _indices(self, function: Term, skipped: int, states: int) -> tuple[Term, ...]:
        """New variables for the indices that a step binds."""
        count = len(function.data) - skipped - states
        return tuple(self.algebra.lift(self.algebra.variable()) for _ in range(count))

    # terms that are alike

    def regrouped(self, left: Term, right: Term) -> bool:
        """Return whether two terms are equal up to the order of sums, where that is allowed; a
        proof needs it unless they are alike."""
        field = self._compared.field
        equal = field is not None and field.alike(left, right)
        self._compared.regrouped |= equal and not self.alike(left, right)
        return equal

    def alike(self, left: Term, right: Term) -> bool:
        """Return whether two terms are shown equal part by part, also where one of them is a
        state, and the other one what its last iteration makes."""
        if self._compared.same(left, right):
            return True
        if (left, right) not in self._alike:
            self._steps -= 1
            self._alike[left, right] = self._steps >= 0 and self._compare(left, right)
        return self._alike[left, right]

    def _compare(self, left: Term, right: Term) -> bool:
        algebra = self.algebra
        old, new = _read(left), _read(right)
        if old is None and new is None:
            left, right = atom_of(left), atom_of(right)
            return left.op == right.op and self._parts(left, right)
        if old is not None and new is not None and self._parts(old, new):
            return True
        side = new or old
        assert side is not None
        recurrence, iteration, *at = side.args
        last = algebra.sub(iteration, algebra.one)
        if algebra.is_not_negative(algebra.scaled(iteration, -1)):
            made = algebra.state(recurrence, algebra.zero, tuple(at))
        elif algebra.is_not_negative(last):
            made = algebra.step_of(recurrence, last, tuple(at))
        else:
            return False
        return self.alike(left, made) if new else self.alike(made, right)

    def _parts(self, left: Term, right: Term) -> bool:
        """Return whether two terms of one operator have parts that are alike."""
        if left.op == "lam":
            kinds = [[(one.op, one.data[2:]) for one in names] for names in (left.data, right.data)]
            if kinds[0] != kinds[1]:
                return False
            variables, body = self.algebra.opened(left)
            values = [
                self.algebra.lift(one) if one.op == "var" else self.algebra.applied_to(one)
                for one in variables
            ]
            return self.alike(body, self.algebra.apply(right, values))
        if left.data != right.data or len(left.args) != len(right.args) or not left.args:
            return False
        pairs = list(zip(left.args, right.args, strict=True))
        if all(self.alike(*pair) for pair in pairs):
            return True
        in_any_order = left.op == "ew" and commutes(left.parts[0], left.parts[2])
        if not in_any_order and left.op != "pair":  # the factors of a sum of products
            return False
        return all(map(self.alike, left.args, reversed(right.args)))


def _read(term: Term) -> Term | None:
    """The `st` that a term is, also as a whole number."""
    atom = atom_of(term)
    return atom if atom.op == "st" else None


def _like(left: Term, right: Term) -> bool:
    """Return whether the first states of two recurrences have one element type and rank."""
    ranks = [len(one.args[0].parts) for one in (left, right)]
    return left.parts[0] == right.parts[0] and ranks[0] == ranks[1]


def _free(term: Term) -> list[Term]:
    """The variables of a term that nothing binds, in the order in which it reads them."""
    return [one for one in subterms(term) if not one.args and one.uid in term.free]
