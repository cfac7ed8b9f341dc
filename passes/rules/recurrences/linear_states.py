"""Finds carried values whose next value is linear in themselves, and what is read of them.

S' = a * S - w (p . S) + u v: the decay `a` multiplies element by element, `w` and `p` correct the
state along one axis (delta rule), `u v` are products that no state feeds.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from passes.bodies.time_body import TimeBody
from passes.ir import scope as scoping
from passes.ir.live import dependents
from passes.ir.operators import op_of
from passes.loops.form import Carried
from passes.operators.comparisons import LOGIC
from passes.rules.recurrences.index_notation import ONE, At, Factor, Notation, NotLinear, Summand
from passes.types.value_types import dims_of


@dataclass(frozen=True)
class Correction:
    """- left (right . S): both have the index `along` of the state's axis."""

    left: Summand
    right: Summand
    along: int


@dataclass(frozen=True)
class Read:
    """A value that sums over the axis `along` of the state.

    `order` are the state's indices of its axes, `ONE` for an axis of size 1. Each of `terms` is
    multiplied by the state, `before` its update or after it; `others` by nothing.
    """

    name: str
    order: At
    along: int
    terms: tuple[tuple[Summand, bool], ...]
    others: tuple[Summand, ...]


@dataclass(frozen=True)
class LinearState:
    """A carried value that is linear in itself, its axes indexed by `at`.

    `decays` are added up to what multiplies it; none: it is not kept. `updates` are products, one
    added to it each.
    """

    carried: Carried
    at: At
    decays: tuple[Summand, ...]
    corrections: tuple[Correction, ...]
    updates: tuple[Summand, ...]


_LARGEST = ("Max", "Min")
#: The log of a sum of two exps, which no operator computes.
LOG_ADD_EXP = "LogAddExp"
_Feeds = dict[str, list[Summand]]


@dataclass(frozen=True)
class StateFinder:
    """Finds linear states in a body; `unsolved` are the states that nothing may depend on."""

    body: TimeBody
    notation: Notation
    unsolved: frozenset[str]

    @classmethod
    def of(cls, body: TimeBody, unsolved: Collection[str]) -> StateFinder:
        """A finder for a body."""

        def dims(name: str) -> tuple[int | str | None, ...] | None:
            return dims_of(body.rows.types.get(name) or body.site.type_of(name))

        fed = dependents(body.nodes, [carried.body_input for carried in body.form.carried])
        notation = Notation(body.index, dims, body.rows.constants.get, frozenset(fed))
        return cls(body, notation, frozenset(unsolved))

    @cached_property
    def dependent(self) -> frozenset[str]:
        """The values that depend on an unsolved state."""
        return dependents(self.body.nodes, self.unsolved)

    def state(self, carried: Carried) -> LinearState:
        """A carried value as a linear state, not yet with what reads it.

        Raises:
            NotLinear: it is none.
        """
        name = carried.body_input
        at = self.notation.everywhere(name)
        decays, corrections, updates = list[Summand](), list[Correction](), list[Summand]()
        for term in self._read(Factor(carried.body_output, at), {name}):
            own = [factor for factor in term.factors if factor.name in self.unsolved]
            if not own:
                updates.append(term)
                continue
            (state,) = own if len(own) == 1 else (None,)
            if state is None or state.name != name or state.inverse:
                raise NotLinear
            rest = term.without(state)
            if state.at == at and not rest.sums:
                decays.append(rest)
            else:
                corrections.append(_correction(rest, state.at, at))
        return LinearState(carried, at, tuple(decays), tuple(corrections), tuple(updates))

    def coupled(self, carried: Carried) -> tuple[LinearState, dict[str, tuple[Summand, ...]]]:
        """A carried value to which unsolved states of the same shape are added, element by element.

        Returns:
            The state, and what multiplies each of these states, a sum of products.

        Raises:
            NotLinear: it is none.
        """
        at, feeds, updates = self.notation.everywhere(carried.body_input), _Feeds(), list[Summand]()
        kind = self.body.rows.types.get(carried.body_input)
        for term in self._read(Factor(carried.body_output, at), self.unsolved):
            own = [factor for factor in term.factors if factor.name in self.unsolved]
            if not own:
                updates.append(term)
                continue
            rest = term.without(own[0])
            same = self.body.rows.types.get(own[0].name) == kind
            if len(own) > 1 or own[0].inverse or own[0].at != at or rest.sums or not same:
                raise NotLinear
            feeds.setdefault(own[0].name, []).append(rest)
        decays = {name: tuple(terms) for name, terms in feeds.items()}
        return LinearState(carried, at, (), (), tuple(updates)), decays

    def largest(self, carried: Carried) -> tuple[LinearState, str]:
        """A carried value that is the larger, or smaller, of itself and another one: max(s + a, b);
        or what another operator without a preferred order makes of the two.

        Returns:
            The state, of whose `decays` a is the sum, and the operator.

        Raises:
            NotLinear: it is none.
        """
        name, after = carried.body_input, self.after(carried)
        at, node = self.notation.everywhere(name), self.body.index.producers.get(after)
        if node is None or op_of(node) not in (*_LARGEST, *LOGIC) or len(node.input) != 2:
            raise NotLinear
        own, other = sorted(node.input, key=lambda value: value not in self.dependent)
        if own not in self.dependent or other in self.dependent:
            raise NotLinear
        out = self.notation.dims(after) or ()
        terms = self._read(self.notation.operand(own, out, at), {name})
        states = [term for term in terms if term == Summand((Factor(name, at),))]
        added = [term for term in terms if term not in states]
        if (
            len(states) != 1
            or (added and op_of(node) in LOGIC)
            or any(factor.name == name for term in added for factor in term.factors)
        ):
            raise NotLinear
        update = Summand((self.notation.operand(other, out, at),))
        return LinearState(carried, at, tuple(added), (), (update,)), op_of(node)

    def log_sum(self, carried: Carried) -> tuple[LinearState, bool]:
        """A carried value that is log(exp(s + a) + exp(b)), with the larger exponent taken out
        before and added again, or as it is.

        Returns:
            The state, of whose `decays` a is the sum, of whose `updates` b; and whether the larger
            one was taken out, so that no exp overflows.

        Raises:
            NotLinear: it is none.
        """
        at = self.notation.everywhere(carried.body_input)
        state = Summand((Factor(carried.body_input, at),))

        out = self.notation.dims(carried.body_input) or ()

        def read(name: str) -> list[Summand]:
            factor = self.notation.operand(name, out, at)
            return self._read(factor, {carried.body_input}, ("Log", "Exp", "Max"))

        def computed(term: Summand, op: str) -> Sequence[str]:
            """The operands of the operator that computes all of a term; none of another one."""
            name = term.factors[0].name if term.factors else ""
            node = self.body.index.producers.get(name)
            whole = replace(term, negative=False) == Summand((Factor(name, at),))
            return node.input if node is not None and op_of(node) == op and whole else ()

        terms = read(self.after(carried))
        logs = [term for term in terms if computed(term, "Log") and not term.negative]
        taken = [term for term in terms if term not in logs]
        summed = [one for log in logs for one in read(*computed(log, "Log"))]
        exps = [computed(one, "Exp") for one in summed if not one.negative]
        if len(logs) != 1 or len(taken) > 1 or len(summed) != 2 or not all(exps) or len(exps) != 2:
            raise NotLinear
        exponents = [read(*inputs) for inputs in exps]
        for term in taken:
            opposite = replace(term, negative=True)
            larger = [read(name) for name in computed(term, "Max")]
            if term.negative or any(one.count(opposite) != 1 for one in exponents):
                raise NotLinear
            exponents = [[one for one in terms if one != opposite] for terms in exponents]
            if sorted(map(str, larger)) != sorted(map(str, exponents)):
                raise NotLinear
        own, other = sorted(exponents, key=lambda terms: state not in terms)
        added = [term for term in own if term != state]
        known = all(
            one.name not in self.dependent for term in (*added, *other) for one in term.factors
        )
        if own.count(state) != 1 or not known:
            raise NotLinear
        return LinearState(carried, at, tuple(added), (), tuple(other)), bool(taken)

    def _read(
        self, factor: Factor, leaves: Collection[str], ops: Collection[str] = ()
    ) -> list[Summand]:
        """A value as a sum of products of what no state feeds, states, and what `ops` compute."""

        def goes_on(one: Factor) -> bool:
            node = self.body.index.producers.get(one.name)
            ends = one.name in leaves or (node is not None and op_of(node) in ops)
            return one.name in self.dependent and not ends

        return self.notation.read(factor, goes_on)

    def keeps_shape(self, carried: Carried) -> bool:
        """Return whether a state has known sizes, or symbols, which stay as they are."""
        before, after = map(self.notation.dims, (carried.body_input, carried.body_output))
        return before is not None and None not in before and before == after

    def after(self, carried: Carried) -> str:
        """The next value, as the node computes it that does more than copy it."""
        return self.body.index.source(carried.body_output)

    def reads(self, state: LinearState) -> tuple[dict[str, Read], set[str]]:
        """Return the sums over an axis of a state, and the values that contain the whole state."""
        before, after = state.carried.body_input, self.after(state.carried)
        whole, found = {before, after, state.carried.body_output}, dict[str, Read]()
        for node in self.body.nodes:
            if whole.isdisjoint(scoping.free_names(node)):
                continue
            name = node.output[0]
            try:
                read = self._sums(state, name, before, after)
            except NotLinear:
                read = None
            if read is None:
                whole.update(node.output)
            else:
                found[name] = read
        return found, whole

    def _sums(self, state: LinearState, name: str, before: str, after: str) -> Read | None:
        """The value as a Read; None where it has the whole state in it.

        Raises:
            NotLinear: it is not linear in the state.
        """
        at = self.notation.everywhere(name)
        found, others = list[tuple[Summand, bool, dict[int, int]]](), list[Summand]()
        for term in self._read(Factor(name, at), {before, after}):
            own = [factor for factor in term.factors if factor.name in (before, after)]
            if not own:
                others.append(term)
                continue
            if len(own) > 1 or own[0].inverse:
                raise NotLinear
            (factor,) = own
            if len({*factor.at} - {ONE}) < len(factor.at) - factor.at.count(ONE):
                raise NotLinear
            mapping = dict(zip(factor.at, state.at, strict=True))
            found.append((term.without(factor), factor.name == before, mapping))
        if not found:  # an If or a loop reads the state, and returns something else
            raise NotLinear
        along = [_along(term, mapping) for term, _, mapping in found]
        if set(along) == {None}:
            return None
        first, *same = set(along)
        mapping = {old: new for *_, known in found for old, new in known.items()}
        if (
            first is None
            or same
            or any(mapping[old] != new for *_, k in found for old, new in k.items())
        ):
            raise NotLinear
        return Read(
            name,
            tuple(mapping.get(index, index) for index in at),
            first,
            tuple((renamed(term, mapping, first), is_before) for term, is_before, _ in found),
            tuple(renamed(term, mapping) for term in others),
        )


def _along(term: Summand, mapping: dict[int, int]) -> int | None:
    """The index of the state's axis that a term sums over; None where it sums over none.

    Raises:
        NotLinear: it sums over several.
    """
    summed = [new for old, new in mapping.items() if old in term.sums]
    if len(summed) > 1:
        raise NotLinear
    return summed[0] if summed else None


def _correction(rest: Summand, state: At, at: At) -> Correction:
    """A product with the state along one axis, taken apart.

    Raises:
        NotLinear: it is none of one vector with another.
    """
    moved = [(own, index) for own, index in zip(state, at, strict=True) if own != index]
    if len(moved) != 1 or rest.sums != {moved[0][0]}:
        raise NotLinear
    summed, index = moved[0]
    left = tuple(factor for factor in rest.factors if index in factor.at)
    right = tuple(factor for factor in rest.factors if index not in factor.at)
    if any(summed in factor.at for factor in left):
        raise NotLinear
    read = renamed(Summand(right, negative=not rest.negative), {summed: index})
    return Correction(Summand(left), read, index)


def renamed(term: Summand, mapping: dict[int, int], summed: int = ONE) -> Summand:
    """A term with other indices, no longer summed over `summed`."""
    factors = tuple(
        replace(factor, at=tuple(mapping.get(index, index) for index in factor.at))
        for factor in term.factors
    )
    sums = frozenset(mapping.get(index, index) for index in term.sums) - {summed}
    return Summand(factors, sums, term.negative)
