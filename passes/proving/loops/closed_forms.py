"""States in closed form: that never change, that each iteration makes anew, counts, lists, and
buffers that each iteration writes one place of."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from passes.proving.terms.algebra import INT64, Algebra
from passes.proving.terms.arrays import Array, Indices
from passes.proving.terms.numbers import SMALL
from passes.proving.terms.term import Term, atom_of, polynomial, subterms


@dataclass(frozen=True)
class Step:
    """What an iteration makes of a state: the element at `variables` is `body`, of the iteration
    `index`, in which `placeholder` is the state before it and `others` are states; `initial` is the
    state before the first iteration, with the sizes that it has before this one, and `growth` is by
    how much they grow."""

    algebra: Algebra
    index: Term
    placeholder: Term
    others: frozenset[int]
    variables: Sequence[Term]
    body: Term
    initial: Array
    growth: Sequence[Term]

    @property
    def own(self) -> Term:
        """The element before the iteration, read at 0 along axes of size 1."""
        at = self.initial.key(tuple(map(self.algebra.lift, self.variables)))
        return self.algebra.applied_to(self.placeholder)(at)

    def named(self, term: Term, iteration: Term, indices: Indices) -> Term:
        """A term of the step for another iteration and other indices."""
        names = dict(zip(self.variables, indices, strict=True))
        return self.algebra.subst(term, {**names, self.index: iteration})

    def made(self, new: Term, written: Callable[[Term, Indices], tuple[Term, Term]]) -> State:
        """The state of which an element is `new` on a condition, of one iteration before this one:
        `written` tells both; else it is the initial one."""

        def state(iteration: Term, indices: Indices) -> Term:
            condition, last = written(iteration, indices)
            made = self.named(new, last, indices)
            return self.algebra.ite(condition, made, self.initial.at(indices))

        return state


#: What a state is before an iteration, at indices.
State = Callable[[Term, Indices], Term]


def closed_form(step: Step) -> State | None:
    """A state in the first closed form that it has."""
    return next(filter(None, _forms(step)), None)


def _forms(step: Step) -> Iterator[State | None]:
    axes = range(step.initial.rank)
    yield (lambda _, at: step.initial.at(at)) if step.body is step.own else None
    yield _delayed(step)
    if atom_of(step.body).op == "ite":
        yield from (_appended(step, axis) for axis in axes)
        yield from (_filled(step, axis) for axis in axes)
    yield _counted(step)


def unless_kept(algebra: Algebra, element: Term, kept: Term) -> tuple[Term, Term]:
    """The condition without which an element is `kept`, and what it is where that holds."""
    body = atom_of(element)
    if body.op == "ite" and body.args[1] is kept:
        return algebra.negation(body.args[0]), body.args[2]
    is_kept = body.op == "ite" and body.args[2] is kept
    return (body.args[0], body.args[1]) if is_kept else (algebra.true, element)


def _appended(step: Step, axis: int) -> State | None:
    """A state to which every iteration appends rows that it makes of no state."""
    algebra, end, by = step.algebra, step.initial.shape[axis], step.growth[axis]
    old = algebra.sub(end, algebra.mul(by, algebra.lift(step.index)))
    place = algebra.lift(step.variables[axis])
    is_old = algebra.below(place, end)
    condition, new = unless_kept(algebra, step.body, step.own)
    if not by.args or condition is not algebra.negation(is_old) or new.free & step.others:
        return None

    def written(_: Term, at: Indices) -> tuple[Term, Term]:
        ahead = algebra.sub(at[axis], old)
        return algebra.ge0(ahead), algebra.idiv(ahead, by)

    return step.made(new, written)


def _delayed(step: Step) -> State | None:
    """A state that each iteration makes anew, of no state."""
    algebra = step.algebra

    def written(iteration: Term, _: Indices) -> tuple[Term, Term]:
        last = algebra.sub(iteration, algebra.one)
        return algebra.ge0(last), last

    return None if step.body.free & step.others else step.made(step.body, written)


def _filled(step: Step, axis: int) -> State | None:
    """A buffer: the iteration i writes the elements of which the index along an axis is i + c, and
    reads of it no element that was written before."""
    algebra, variable = step.algebra, step.variables[axis]
    condition, new = unless_kept(algebra, step.body, step.own)
    inner = {step.index.uid, *(one.uid for one in step.variables)} | step.others
    for one in condition.args if condition.op == "and" else (condition,):
        parts = dict(polynomial(one.args[0])) if one.op == "eq0" else {}
        slope = parts.pop((step.index,), 0)
        offset = algebra.scaled(algebra.sum(parts), slope)
        offset = algebra.add(offset, algebra.lift(variable))  # the axis is read at i + offset
        if abs(slope) == 1 and not offset.free & inner:
            break
    else:
        return None
    here = algebra.lift(variable), algebra.add(algebra.lift(step.index), offset)
    for one in subterms(new):
        if one.op == "app" and one.args[0] is step.placeholder and one.args[1 + axis] not in here:
            return None
    new = algebra.subst(new, {step.placeholder: step.initial.at})

    def written(iteration: Term, at: Indices) -> tuple[Term, Term]:
        made_by = algebra.sub(at[axis], offset)
        last = algebra.sub(algebra.sub(iteration, algebra.one), made_by)
        needed = [algebra.ge0(made_by), algebra.ge0(last), step.named(condition, made_by, at)]
        return algebra.all(needed), made_by

    return None if (new.free | condition.free) & step.others else step.made(new, written)


def _counted(step: Step) -> State | None:
    """A count: a number that each iteration adds the same to, also one of a small type."""
    algebra, body, dtype = step.algebra, step.body, step.initial.dtype
    if dtype == INT64:
        by = algebra.sub(body, step.own)
    elif dtype in SMALL and body.data == ("Add", (), dtype) and step.own in body.args:
        by = body.args[body.args[0] is step.own]
    else:
        return None
    if by.free & (step.others | {step.index.uid}):
        return None

    def state(iteration: Term, indices: Indices) -> Term:
        begin, added = step.initial.at(indices), step.named(by, iteration, indices)
        if dtype == INT64:
            return algebra.add(begin, algebra.mul(added, iteration))
        first, each = algebra.wide(dtype, begin), algebra.wide(dtype, added)
        assert first is not None
        assert each is not None
        total = algebra.add(first, algebra.mul(each, iteration))
        return algebra.elementwise("Cast", (INT64, ()), dtype, [total])  # which wraps

    return state
