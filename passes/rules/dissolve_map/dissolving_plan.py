"""In which order the values of all iterations of a Scan can be computed at once, if they can."""

from __future__ import annotations

from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter

from onnx import NodeProto

from passes.ir import scope as scoping
from passes.rule import Refused
from passes.rules.dissolve_map.prefix_values import Uses
from passes.rules.dissolve_map.recurrences import Kind, Recurrence, recurrence_of
from passes.rules.time_axis.dropping import check_dropped
from passes.rules.time_axis.time_body import TimeBody
from passes.rules.time_axis.time_cost import START, Gains, row_bytes

#: What is computed: the node at a position, or the carried value of this name.
Step = int | str


class Plan:
    """What is needed of a body, each step behind what it is computed from.

    `states` are the carried values by their names in the body; `steps` the nodes that make the
    next value from the last one, which are not written.
    """

    def __init__(self, body: TimeBody) -> None:
        self.body = body
        self.form = body.form
        found = [recurrence_of(body, one) for one in self.form.carried]
        self.states = {one.carried.body_input: one for one in found}
        self.steps = {one.node: one for one in found if one.node is not None}
        self.order = self._order()
        self.needed = frozenset(step for step in self.order if isinstance(step, int))
        self.readers = body.readers()

    @property
    def written(self) -> list[NodeProto]:
        """The nodes to write, for all iterations."""
        return [self.body.nodes[at] for at in sorted(self.needed - self.steps.keys())]

    def check(self) -> None:
        """See that it is worth while, and that nothing goes that may not.

        Raises:
            Refused: `random`, `may-fail` or `not-worth-it`.
        """
        self._check_dropped()
        self._check_cost()

    def _check_dropped(self) -> None:
        """See that what nobody reads may go.

        Raises:
            Refused: `random` or `may-fail` where it may not.
        """
        positions = {*range(len(self.body.nodes))} - {*self.order} - {*self.steps}
        check_dropped(self.body, sorted(positions))

    def _check_cost(self) -> None:
        """See that the loop costs more than what is written instead.

        Raises:
            Refused: `not-worth-it`.
        """
        if not self.pays:
            raise Refused(
                "not-worth-it",
                "what is computed for all iterations at once does not stay in the cache, which "
                "costs more than the loop",
                [self.body.site.path],
            )

    @property
    def pays(self) -> bool:
        """Whether the loop costs more than what is written instead."""
        body = self.body
        saving = Gains(body, body.varying, self.readers)
        saved = sum(map(saving.of, self.needed)) + START * (len(self.form.scanned) + 1)
        return saved >= sum(map(self._joining, self.states.values()))

    def _joining(self, one: Recurrence) -> int:
        """What it costs to put the values of all iterations behind the initial one."""
        if one.kind not in (Kind.SUM, Kind.LAST) or not self.users(one):
            return 0
        times = 3 if one.kind is Kind.SUM else 2  # joined, summed up, and cut
        return times * row_bytes(self.body, one.carried.body_input)

    def _order(self) -> list[Step]:
        """What is needed of the body, each behind what it is computed from.

        Raises:
            Refused: `carries` where a carried value depends on itself otherwise.
        """
        pending = list(self._roots())
        needs: dict[Step, list[Step]] = {}
        while pending:
            step = pending.pop()
            if step not in needs:
                needs[step] = list(self._needs(step))
                pending.extend(needs[step])
        try:
            ordered = {step: needs[step] for step in sorted(needs, key=_place)}
            return list(TopologicalSorter(ordered).static_order())
        except CycleError as error:
            names = [step for step in error.args[1] if isinstance(step, str)]
            raise Refused(
                "carries",
                f"{names[0]!r} is computed from its last value, which needs the iterations one "
                "by one",
                [self.body.site.path, *dict.fromkeys(names)],
            ) from None

    def _roots(self) -> Iterator[Step]:
        for one in self.form.collected:
            if one.tensor:
                yield from self._step(one.body_output)
        for carried in self.form.carried:
            if carried.final:
                yield carried.body_input

    def _step(self, name: str) -> Iterator[Step]:
        """What computes a value, if anything of the body does."""
        if name in self.states:
            yield name
        elif name in self.body.producers:
            yield self.body.producers[name]

    def _needs(self, step: Step) -> Iterator[Step]:
        if isinstance(step, str):
            names = self.states[step].needs
        elif step in self.steps:
            yield self.steps[step].carried.body_input
            return
        else:
            names = scoping.free_names(self.body.nodes[step])
        for name in names:
            yield from self._step(name)

    def uses(self, one: Recurrence) -> Uses:
        """Which values of a recurrence are read."""
        before, after = self._users_of(one.carried.body_input, one), False
        if one.node is not None:
            after = bool(self._users_of(self.body.nodes[one.node].output[0], one))
        return Uses(bool(before), after, bool(one.carried.final))

    def users(self, one: Recurrence) -> list[str]:
        """What reads values of a recurrence other than the last one."""
        users = self._users_of(one.carried.body_input, one)
        if one.node is not None:
            users += self._users_of(self.body.nodes[one.node].output[0], one)
        return users

    def _users_of(self, name: str, one: Recurrence) -> list[str]:
        """What reads a value, but for the node that computes the next one."""
        needed = {at for at in self.order if isinstance(at, int) and at != one.node}
        users = [self.body.nodes[at].output[0] for at in self.readers.get(name, ()) if at in needed]
        others = {other.value for other in self.states.values() if other is not one}
        collected = {other.body_output for other in self.form.collected if other.tensor}
        return [*users, name] if name in others | collected else users


def _place(step: Step) -> tuple[int, str]:
    return (step, "") if isinstance(step, int) else (-1, step)
