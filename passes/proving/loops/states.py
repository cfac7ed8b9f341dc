"""The states of a loop before an iteration: in closed form, or as a recurrence of those
that they depend on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from passes.proving.loops.closed_forms import State, Step, filled, moved
from passes.proving.symbolic_evaluator import Reason
from passes.proving.terms.algebra import INT64, Algebra
from passes.proving.terms.arrays import Array, Indices
from passes.proving.terms.numbers import SMALL
from passes.proving.terms.term import Term, atom_of, subterms


@dataclass(frozen=True)
class Iteration:
    """The results of one iteration on placeholders: `index` is its number, `condition` whether
    another one follows, `initial` are the states before the first one, `growth` is by how much the
    sizes of each state grow."""

    index: Term
    placeholders: list[Term]
    initial: Sequence[Array]
    states: list[Array]
    collected: list[Array]
    condition: Term
    required: list[tuple[Term, Reason]]
    growth: list[tuple[Term, ...]]


def before(state: State, index: Term) -> Callable[[Indices], Term]:
    return lambda at: state(index, at)


def solved(algebra: Algebra, one: Iteration, initial: Sequence[Array]) -> list[State]:
    """Every state in closed form, or as a recurrence of those that it depends on."""
    found: dict[int, State] = {}
    generic = [array.generic() for array in one.states]
    index = algebra.lift(one.index)

    def close(generic: list[tuple[list[Term], Term]]) -> None:
        changed = True
        while changed:
            changed = False
            for number, (variables, step) in enumerate(generic):
                if number in found:
                    continue
                values = {one.placeholders[n]: before(state, index) for n, state in found.items()}
                step = algebra.subst(step, values)
                generic[number] = (variables, step)
                closed = _closed(algebra, one, number, variables, step, initial[number])
                if closed is not None:
                    found[number] = closed
                    changed = True

    close(generic)
    # what no other state reads may be made of recurrences, as rows that are appended
    open_ = [number for number in range(len(generic)) if number not in found]
    read = {other for number in open_ for other in _members(one, number, generic)[1:]}
    for number in filter(read.__contains__, open_):
        found[number] = _recurrence(algebra, one, number, generic, initial)
    close([*generic])
    for number in open_:
        if number not in found:
            found[number] = _recurrence(algebra, one, number, generic, initial)
    return [found[number] for number in range(len(generic))]


def _closed(
    algebra: Algebra,
    one: Iteration,
    number: int,
    variables: list[Term],
    step: Term,
    initial: Array,
) -> State | None:
    """A state that never changes, or grows by the same number in every iteration."""
    others = frozenset(placeholder.uid for placeholder in one.placeholders)
    whole = Step(algebra, one.index, one.placeholders[number], others, variables, step, initial)
    own = whole.own
    if step is own:
        return lambda _, indices: initial.at(indices)
    appended = _appended(algebra, one, number, variables, step, own)
    if appended is not None:
        return appended
    if not step.free & {placeholder.uid for placeholder in one.placeholders}:
        return _delayed(algebra, one.index, variables, step, initial)
    closed = filled(whole) or moved(whole)
    if closed is not None:
        return closed
    inner = {one.index.uid, *(placeholder.uid for placeholder in one.placeholders)}
    if initial.dtype in SMALL and step.op == "ew" and step.data == ("Add", (), initial.dtype):
        added = [part for part in step.args if part is not own]
        if len(added) == 1 and not added[0].free & inner:
            return _counting(algebra, variables, added[0], initial)
    if initial.dtype != INT64:
        return None
    grows = algebra.sub(step, own)
    if grows.free & inner:
        return None

    def state(iteration: Term, indices: Indices) -> Term:
        by = algebra.subst(grows, dict(zip(variables, indices, strict=True)))
        return algebra.add(initial.at(indices), algebra.mul(by, iteration))

    return state


def _counting(algebra: Algebra, variables: list[Term], by: Term, initial: Array) -> State:
    """A state of a small type that grows by the same number in every iteration."""

    def state(iteration: Term, indices: Indices) -> Term:
        added = algebra.subst(by, dict(zip(variables, indices, strict=True)))
        return algebra.counted(initial.dtype, initial.at(indices), added, iteration)

    return state


def _appended(
    algebra: Algebra,
    one: Iteration,
    number: int,
    variables: list[Term],
    step: Term,
    own: Term,
) -> State | None:
    """A state to which every iteration appends rows that it makes of no state."""
    inner, initial = {placeholder.uid for placeholder in one.placeholders}, one.initial[number]
    for axis, by in enumerate(one.growth[number]):
        old, body = initial.shape[axis], atom_of(step)
        if not by.args or body.op != "ite":
            continue
        place = algebra.lift(variables[axis])
        begin = algebra.add(old, algebra.mul(by, algebra.lift(one.index)))
        is_old = algebra.ge0(algebra.sub(algebra.sub(begin, algebra.one), place))
        condition, left, right = body.args
        new = right if condition is is_old and left is own else None
        new = left if condition is algebra.negation(is_old) and right is own else new
        if new is None or new.free & inner:
            continue

        def state(_: Term, indices: Indices, axis: int = axis, new: Term = new) -> Term:
            index, old, by = indices[axis], initial.shape[axis], one.growth[number][axis]
            made = algebra.idiv(algebra.sub(index, old), by)
            names = {one.index: made, **dict(zip(variables, indices, strict=True))}
            is_old = algebra.ge0(algebra.sub(algebra.sub(old, algebra.one), index))
            return algebra.ite(is_old, initial.at(indices), algebra.subst(new, names))

        return state
    return None


def _delayed(
    algebra: Algebra, index: Term, variables: list[Term], step: Term, initial: Array
) -> State:
    """A state that each iteration makes anew, of no state."""

    def state(iteration: Term, indices: Indices) -> Term:
        last = algebra.sub(iteration, algebra.one)
        names = {index: last, **dict(zip(variables, indices, strict=True))}
        made = algebra.subst(step, names)
        return algebra.ite(algebra.ge0(last), made, initial.at(indices))

    return state


def _recurrence(
    algebra: Algebra,
    one: Iteration,
    number: int,
    generic: list[tuple[list[Term], Term]],
    initial: Sequence[Array],
) -> State:
    """A state as a recurrence; axes along which no element reads another one are its parameters."""
    members = _members(one, number, generic)
    wide = {
        m: [axis for axis, size in enumerate(initial[m].shape) if size is not algebra.one]
        for m in members
    }
    parameters: list[tuple[Term, dict[int, int]]] = []
    for axis in wide[number]:
        taken = [axes for _, axes in parameters]
        axes = _alike(one, number, axis, generic, members, taken)
        if axes is not None:
            parameters.append((generic[number][0][axis], axes))
    inits, steps, states = [], [], []
    rest = {
        m: [a for a in wide[m] if all(axes.get(m) != a for _, axes in parameters)] for m in members
    }
    for m in members:
        (name,) = one.placeholders[m].shown
        states.append(algebra.placeholder(initial[m].dtype, name))
    for m in members:
        variables, step = generic[m]
        names: dict[Term, Term] = {}
        at = [algebra.zero] * len(variables)
        for parameter_, axes in parameters:
            if m in axes:
                names[variables[axes[m]]] = algebra.lift(parameter_)
                at[axes[m]] = algebra.lift(parameter_)
        # a step makes the elements that the state has after it
        own = [algebra.variable(one.states[m].shape[axis]) for axis in rest[m]]
        for axis, variable in zip(rest[m], own, strict=True):
            names[variables[axis]] = at[axis] = algebra.lift(variable)
        inits.append((own, initial[m].at(at)))
        index = algebra.variable()
        values: dict[Term, Term | Callable[[Indices], Term]] = {
            **names,
            one.index: algebra.lift(index),
        }
        for other, state in zip(members, states, strict=True):
            values[one.placeholders[other]] = _narrowed(algebra.applied_to(state), rest[other])
        steps.append(([index, *own], algebra.subst(step, values)))
    first = members.index(number)
    made = algebra.recurrence(first, states, inits, steps)

    def state_at(iteration: Term, indices: Indices) -> Term:
        values = {p: indices[axes[number]] for p, axes in parameters}
        own = tuple(indices[axis] for axis in rest[number])
        return algebra.state(algebra.subst(made, values), iteration, own)

    return state_at


def _narrowed(
    element_of: Callable[[Indices], Term], axes: Sequence[int]
) -> Callable[[Indices], Term]:
    return lambda at: element_of(tuple(at[axis] for axis in axes))


def _members(one: Iteration, number: int, generic: list[tuple[list[Term], Term]]) -> list[int]:
    """The states that a state depends on, itself first."""
    place = {placeholder: n for n, placeholder in enumerate(one.placeholders)}
    members = [number]
    for member in members:
        for term in subterms(generic[member][1]):
            if term in place and place[term] not in members:
                members.append(place[term])
    return members


def _alike(
    one: Iteration,
    number: int,
    axis: int,
    generic: list[tuple[list[Term], Term]],
    members: list[int],
    taken: list[dict[int, int]],
) -> dict[int, int] | None:
    """The axis of each state that an axis of this one is, if every read is at the own index;
    states without one must not read those that have one."""
    place = {placeholder: n for n, placeholder in enumerate(one.placeholders)}
    axes = {number: axis}
    pending = [number]
    reads: dict[int, list[tuple[int, tuple[Term, ...]]]] = {
        m: [
            (place[t.args[0]], t.args[1:])
            for t in subterms(generic[m][1])
            if t.op == "app" and t.args[0] in place
        ]
        for m in members
    }
    while pending:
        member = pending.pop()
        own = generic[member][0][axes[member]]
        for other, indices in reads[member]:
            if other in axes:
                continue
            fits = [a for a, index in enumerate(indices) if _is(index, own)]
            free = [a for a in fits if all(used.get(other) != a for used in taken)]
            if free:
                axes[other] = free[0]
                pending.append(other)
    for member in members:
        if member not in axes and any(other in axes for other, _ in reads[member]):
            return None
        if member not in axes:
            continue
        own = generic[member][0][axes[member]]
        for other, indices in reads[member]:
            if other in axes and not _is(indices[axes[other]], own):
                return None
            if other not in axes and any(own.uid in term.free for term in indices):
                return None
    return axes


def _is(index: Term, variable: Term) -> bool:
    return index.data == (1,) and index.args[0].args == (variable,)
