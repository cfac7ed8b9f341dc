"""States in closed form: buffers that each iteration writes one place of, and windows that move by
one place in each iteration."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from passes.proving.terms.algebra import Algebra
from passes.proving.terms.arrays import Array, Indices
from passes.proving.terms.term import Term, atom_of, polynomial, subterms


@dataclass(frozen=True)
class Step:
    """What an iteration makes of a state: the element at `variables` is `body`, of the iteration
    `index`, in which `placeholder` is the state before it and `others` are states."""

    algebra: Algebra
    index: Term
    placeholder: Term
    others: frozenset[int]
    variables: list[Term]
    body: Term
    initial: Array

    @property
    def at(self) -> Indices:
        """The indices of the element, 0 along axes of size 1."""
        return self.initial.key(tuple(map(self.algebra.lift, self.variables)))

    @property
    def own(self) -> Term:
        """The element before the iteration."""
        return self.algebra.applied_to(self.placeholder)(self.at)

    def named(self, term: Term, iteration: Term, indices: Indices) -> Term:
        """A term of the step for another iteration and other indices."""
        names = dict(zip(self.variables, indices, strict=True))
        return self.algebra.subst(term, {**names, self.index: iteration})


#: What a state is before an iteration, at indices.
State = Callable[[Term, Indices], Term]


def filled(step: Step) -> State | None:
    """A buffer: the iteration i writes the elements of which the index along one axis is i + c, and
    reads of it no element that was written before."""
    algebra, body = step.algebra, atom_of(step.body)
    if body.op != "ite" or step.own not in body.args[1:]:
        return None
    condition, left, new = body.args
    if left is not step.own:
        condition, new = algebra.negation(condition), left
    condition = algebra.negation(condition)
    needed = condition.args if condition.op == "and" else (condition,)
    for one in needed:
        parts = dict(polynomial(one.args[0])) if one.op == "eq0" else {}
        slope = parts.pop((step.index,), 0)
        for axis, variable in enumerate(step.variables):
            rest = {**parts}
            if abs(slope) != 1 or rest.pop((variable,), 0) != -slope:
                continue
            offset = algebra.scaled(algebra.sum(rest), slope)  # the axis is read at i + offset
            inner = {step.index.uid, *(one.uid for one in step.variables)}
            if not offset.free & (inner | step.others):
                return _filled(step, axis, offset, condition, new)
    return None


def _filled(step: Step, axis: int, offset: Term, condition: Term, new: Term) -> State | None:
    algebra = step.algebra
    here = (
        algebra.lift(step.variables[axis]),
        algebra.add(algebra.lift(step.index), offset),
    )
    for one in subterms(new):
        if one.op == "app" and one.args[0] is step.placeholder and one.args[1 + axis] not in here:
            return None
    new = algebra.subst(new, {step.placeholder: step.initial.at})
    if (new.free | condition.free) & step.others:
        return None

    def state(iteration: Term, indices: Indices) -> Term:
        written = algebra.sub(indices[axis], offset)
        last = algebra.sub(algebra.sub(iteration, algebra.one), written)
        needed = [algebra.ge0(written), algebra.ge0(last), step.named(condition, written, indices)]
        made = step.named(new, written, indices)
        return algebra.ite(algebra.all(needed), made, step.initial.at(indices))

    return state


def moved(step: Step) -> State | None:
    """A window: each iteration moves its elements by one place along an axis, and makes a new one
    at the end, which does not move, or at the begin, of no state."""
    algebra, body = step.algebra, atom_of(step.body)
    if body.op != "ite" or body.args[0].op != "ge0":
        return None
    for axis, variable in enumerate(step.variables):
        place, last = algebra.lift(variable), algebra.sub(step.initial.shape[axis], algebra.one)
        for by in (1, -1) if not last.free & {step.index.uid} else (-1,):
            at = [*step.at]
            at[axis] = algebra.add(place, algebra.whole(by))
            read = algebra.applied_to(step.placeholder)(tuple(at))
            bound = algebra.sub(last if by > 0 else place, at[axis] if by > 0 else algebra.one)
            is_old = algebra.ge0(bound)
            new = {is_old: body.args[2], algebra.negation(is_old): body.args[1]}.get(body.args[0])
            kept = {is_old: body.args[1], algebra.negation(is_old): body.args[2]}.get(body.args[0])
            if new is None or kept is not read or new.free & step.others:
                continue
            return _moved(step, axis, by, last if by > 0 else algebra.zero, new)
    return None


def _moved(step: Step, axis: int, by: int, end: Term, new: Term) -> State:
    algebra = step.algebra

    def state(iteration: Term, indices: Indices) -> Term:
        at = [*indices]
        at[axis] = algebra.add(at[axis], algebra.scaled(iteration, by))
        ahead = algebra.scaled(algebra.sub(end, at[axis]), by)  # how far it is from the end
        made_at = algebra.scaled(algebra.add(ahead, algebra.one), -1)
        ends = [*indices]
        ends[axis] = end
        made = step.named(new, made_at, tuple(ends))
        return algebra.ite(algebra.ge0(ahead), step.initial.at(at), made)

    return state
