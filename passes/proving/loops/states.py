"""The states of a loop before an iteration: in closed form, or as a recurrence of those
that they depend on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import starmap, zip_longest
from types import MappingProxyType

from passes.proving.loops.closed_forms import State, Step, closed_form
from passes.proving.symbolic_evaluator import Reason
from passes.proving.terms.algebra import Algebra
from passes.proving.terms.arrays import Array, Indices
from passes.proving.terms.numbers import Values
from passes.proving.terms.term import Term, subterms

#: For each state, variables for its indices, and its element there after an iteration.
_Elements = list[tuple[list[Term], Term]]
#: The elements of states that a state reads: the number and the indices of each.
_Reads = Mapping[int, Sequence[tuple[int, Indices]]]


@dataclass(frozen=True)
class Iteration:
    """The results of one iteration on placeholders: `index` is its number, `condition` whether
    another one follows, `initial` are the states before the first one, `growth` is by how much the
    sizes of each state grow."""

    algebra: Algebra
    index: Term
    placeholders: list[Term]
    initial: Sequence[Array]
    states: list[Array]
    growth: Sequence[tuple[Term, ...]]
    condition: Term
    collected: Sequence[Array] = ()
    required: Sequence[tuple[Term, Reason]] = ()

    def begins(self, iterations: Term) -> list[Array]:
        """The initial states with the sizes that they have after some iterations."""
        pairs = zip(self.initial, self.growth, strict=True)
        return [longer(*pair, iterations) for pair in pairs]

    @cached_property
    def _sized(self) -> list[Array]:
        return self.begins(self.algebra.lift(self.index))

    def read(self, states: Iterable[tuple[int, State]], iteration: Term) -> Values:
        """The placeholders of these states before an iteration."""
        return {self.placeholders[number]: partial(state, iteration) for number, state in states}

    def solved(self, known: Mapping[int, State] = MappingProxyType({})) -> list[State]:
        """Every state in closed form, or as a recurrence of those that it depends on."""
        after = [array.generic() for array in self.states]
        found = self._closed(after, known)
        # what no other state reads may be made of recurrences, as rows that are appended
        open_ = [number for number in range(len(after)) if number not in found]
        read = {other for number in open_ for other in self._members(number, after)[1:]}
        found |= {number: self._recurrence(number, after) for number in open_ if number in read}
        found = self._closed([*after], found)
        return [
            found.get(number) or self._recurrence(number, after) for number in range(len(after))
        ]

    def in_closed_form(self, known: Mapping[int, State]) -> dict[int, State]:
        """The states that have a closed form, and the known ones."""
        return self._closed([array.generic() for array in self.states], known)

    def _closed(self, after: _Elements, known: Mapping[int, State]) -> dict[int, State]:
        """The states that have a closed form, and the known ones, which the elements `after` the
        iteration are read by from then on."""
        algebra, found = self.algebra, dict(known)
        inner = frozenset(placeholder.uid for placeholder in self.placeholders)
        changed = True
        while changed:
            changed = False
            for number, (variables, element) in enumerate(after):
                if number in found:
                    continue
                values = self.read(found.items(), algebra.lift(self.index))
                element = algebra.subst(element, values)
                after[number] = (variables, element)
                own = self.placeholders[number], inner, variables, element
                sizes = self._sized[number], self.growth[number]
                closed = closed_form(Step(algebra, self.index, *own, *sizes))
                if closed is not None:
                    found[number] = closed
                    changed = True
        return found

    def _recurrence(self, number: int, after: _Elements) -> State:
        """A state as a recurrence; axes along which no element reads another one are its
        parameters."""
        algebra, members = self.algebra, self._members(number, after)
        rest = {
            m: [axis for axis, size in enumerate(self._sized[m].shape) if size is not algebra.one]
            for m in members
        }
        reads = {m: self._reads(after[m][1]) for m in members}
        parameters: list[tuple[Term, dict[int, int]]] = []
        for axis in [*rest[number]]:
            axes = _alike({number: axis}, after, reads, rest)
            if axes is not None:
                parameters.append((after[number][0][axis], axes))
                for m, one in axes.items():
                    rest[m].remove(one)
        states = [
            algebra.placeholder(self.initial[m].dtype, *self.placeholders[m].shown) for m in members
        ]
        pairs = zip(members, states, strict=True)
        inner = {
            self.placeholders[m]: _narrowed(algebra.applied_to(state), rest[m])
            for m, state in pairs
        }
        inits, steps = [], []
        for m in members:
            variables, element = after[m]
            at = [algebra.zero] * len(variables)
            for parameter, axes in parameters:
                if m in axes:
                    at[axes[m]] = algebra.lift(parameter)
            # a step makes the elements that the state has after it
            own = [algebra.variable(self.states[m].shape[axis]) for axis in rest[m]]
            for axis, variable in zip(rest[m], own, strict=True):
                at[axis] = algebra.lift(variable)
            inits.append((own, self._sized[m].at(at)))
            index = algebra.variable()
            names = {**dict(zip(variables, at, strict=True)), self.index: algebra.lift(index)}
            steps.append(([index, *own], algebra.subst(element, {**names, **inner})))
        made = algebra.recurrence(0, states, inits, steps)

        def state_at(iteration: Term, indices: Indices) -> Term:
            values = {p: indices[axes[number]] for p, axes in parameters}
            own = tuple(indices[axis] for axis in rest[number])
            return algebra.state(algebra.subst(made, values), iteration, own)

        return state_at

    def _reads(self, element: Term) -> list[tuple[int, Indices]]:
        """The states that an element reads, each with the indices at which it does."""
        place = {placeholder: number for number, placeholder in enumerate(self.placeholders)}
        read = (one for one in subterms(element) if one.op == "app" and one.args[0] in place)
        return [(place[one.args[0]], one.args[1:]) for one in read]

    def _members(self, number: int, after: _Elements) -> list[int]:
        """The states that a state depends on, itself first."""
        members = [number]
        for member in members:
            read = dict.fromkeys(other for other, _ in self._reads(after[member][1]))
            members += [other for other in read if other not in members]
        return members


def longer(array: Array, growth: Sequence[Term], iterations: Term) -> Array:
    """A state with the sizes that it has after some iterations."""
    algebra = array.algebra
    sizes = sums(algebra, array.shape, [algebra.mul(by, iterations) for by in growth])
    return type(array)(algebra, array.dtype, sizes, array.at)


def sums(algebra: Algebra, *terms: Sequence[Term]) -> tuple[Term, ...]:
    """The sums of terms at equal places; where one list ends, nothing is added."""
    return tuple(starmap(algebra.add, zip_longest(*terms, fillvalue=algebra.zero)))


def _narrowed(
    element_of: Callable[[Indices], Term], axes: Sequence[int]
) -> Callable[[Indices], Term]:
    return lambda at: element_of(tuple(at[axis] for axis in axes))


def _alike(
    axes: dict[int, int], after: _Elements, reads: _Reads, left: Mapping[int, Sequence[int]]
) -> dict[int, int] | None:
    """The axis of each state that an axis of the first one is, of those that are `left`, if every
    read is at the own index; states without one must not read those that have one."""
    pending = [*axes]
    while pending:
        member = pending.pop()
        own = after[member][0][axes[member]]
        for other, indices in reads[member]:
            fits = [axis for axis in left[other] if _is(indices[axis], own)]
            if other not in axes and fits:
                axes[other] = fits[0]
                pending.append(other)
    for member, read in reads.items():
        same = after[member][0][axes[member]] if member in axes else None
        for other, indices in read:
            if other in axes:
                if same is None or not _is(indices[axes[other]], same):
                    return None
            elif same is not None and any(same.uid in index.free for index in indices):
                return None
    return axes


def _is(index: Term, variable: Term) -> bool:
    return index.data == (1,) and index.args[0].args == (variable,)
