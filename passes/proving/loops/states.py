"""The states of a loop before an iteration: in closed form, or as a recurrence of those
that they depend on."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType

from passes.proving.loops.closed_forms import State, Step, closed_form
from passes.proving.symbolic_evaluator import Reason
from passes.proving.terms.algebra import Algebra
from passes.proving.terms.arrays import Array, Indices
from passes.proving.terms.term import Term, subterms


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


def solved(
    algebra: Algebra,
    one: Iteration,
    initial: Sequence[Array],
    known: Mapping[int, State] = MappingProxyType({}),
) -> list[State]:
    """Every state in closed form, or as a recurrence of those that it depends on."""
    generic = [array.generic() for array in one.states]
    found = in_closed_form(algebra, one, generic, initial, known)
    # what no other state reads may be made of recurrences, as rows that are appended
    open_ = [number for number in range(len(generic)) if number not in found]
    read = {other for number in open_ for other in _members(one, number, generic)[1:]}
    for number in filter(read.__contains__, open_):
        found[number] = _recurrence(algebra, one, number, generic, initial)
    found = in_closed_form(algebra, one, [*generic], initial, found)
    for number in open_:
        if number not in found:
            found[number] = _recurrence(algebra, one, number, generic, initial)
    return [found[number] for number in range(len(generic))]


def in_closed_form(
    algebra: Algebra,
    one: Iteration,
    generic: list[tuple[list[Term], Term]],
    initial: Sequence[Array],
    known: Mapping[int, State] = MappingProxyType({}),
) -> dict[int, State]:
    """The states that have a closed form, and the known ones, which `generic` elements after the
    iteration are read by from then on."""
    found = dict(known)
    index = algebra.lift(one.index)
    inner = frozenset(placeholder.uid for placeholder in one.placeholders)
    changed = True
    while changed:
        changed = False
        for number, (variables, step) in enumerate(generic):
            if number in found:
                continue
            values = {one.placeholders[n]: partial(state, index) for n, state in found.items()}
            step = algebra.subst(step, values)
            generic[number] = (variables, step)
            own = one.placeholders[number], inner, variables, step
            closed = closed_form(
                Step(algebra, one.index, *own, initial[number], one.growth[number])
            )
            if closed is not None:
                found[number] = closed
                changed = True
    return found


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
