"""The order in which the values of all iterations of a Scan can be computed at once, if any."""

from __future__ import annotations

from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter

from onnx import NodeProto

from passes.bodies.may_leave import check_dropped
from passes.bodies.recurrences import Recurrence, Update, recurrence_of
from passes.bodies.time_body import TimeBody
from passes.bodies.time_cost import START, Gains, row_bytes
from passes.ir import scope as scoping
from passes.rules.dissolve_map.prefix_values import ReadValues

#: What is computed: the node at a position, or the carried value of this name.
Step = int | str


class DissolvingPlan:
    """The steps that are needed of a body, each after those that it depends on.

    `states` are the carried values by their names in the body; `steps` the nodes that compute
    the next value from the previous one, which are not written.
    """

    def __init__(self, body: TimeBody) -> None:
        self.body = body
        self.form = body.form
        recurrences = [recurrence_of(body, carried) for carried in self.form.carried]
        self.states = {recurrence.carried.body_input: recurrence for recurrence in recurrences}
        self.steps = {
            recurrence.node: recurrence for recurrence in recurrences if recurrence.node is not None
        }
        self.order = self._order()
        self.needed = frozenset(step for step in self.order if isinstance(step, int))
        self.readers = body.readers()

    @property
    def written(self) -> list[NodeProto]:
        """The nodes to write, for all iterations."""
        return [self.body.nodes[position] for position in sorted(self.needed - self.steps.keys())]

    def check(self) -> None:
        """Check that it pays, and that every node left out may go.

        Raises:
            Refused: `random`, `may-fail` or `not-worth-it`.
        """
        positions = {*range(len(self.body.nodes))} - {*self.order} - {*self.steps}
        check_dropped(self.body, sorted(positions))
        if not self.pays:
            raise self.body.site.refused(
                "not-worth-it",
                "what is computed for all iterations at once does not stay in the cache, which "
                "costs more than the loop",
            )

    @property
    def pays(self) -> bool:
        """True if the loop costs more than what replaces it."""
        body = self.body
        saving = Gains(body, body.varying, self.readers)
        saved = sum(map(saving.of, self.needed)) + START * (len(self.form.scanned) + 1)
        return saved >= sum(map(self._joining, self.states.values()))

    def _joining(self, recurrence: Recurrence) -> int:
        """The cost of concatenating the initial value and those of all iterations."""
        is_sum = recurrence.kind is Update.SUM
        if not is_sum and (recurrence.kind is not Update.LAST or not self.users(recurrence)):
            return 0
        times = 2 + (is_sum and bool(self.users(recurrence)))  # joined, summed up, and cut
        return times * row_bytes(self.body, recurrence.carried.body_input)

    def _order(self) -> list[Step]:
        """The steps that are needed, each after those that it depends on.

        Raises:
            Refused: `carries` where a carried value depends on itself in another way.
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
            raise self.body.site.refused(
                "carries",
                f"{names[0]!r} is computed from its previous value, so the iterations must run one "
                "by one",
                *dict.fromkeys(names),
            ) from None

    def _roots(self) -> Iterator[Step]:
        for collected in self.form.collected:
            if collected.tensor:
                yield from self._step(collected.body_output)
        for carried in self.form.carried:
            if carried.final:
                yield carried.body_input

    def _step(self, name: str) -> Iterator[Step]:
        """The step that computes a value, if one of the body does."""
        if name in self.states:
            yield name
        elif name in self.body.index.positions:
            yield self.body.index.positions[name]

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

    def uses(self, recurrence: Recurrence) -> ReadValues:
        """Return which values of a recurrence are read."""
        before, after = self._users_of(recurrence.carried.body_input, recurrence), False
        if recurrence.node is not None:
            after = bool(self._users_of(self.body.nodes[recurrence.node].output[0], recurrence))
        return ReadValues(bool(before), after, bool(recurrence.carried.final))

    def users(self, recurrence: Recurrence) -> list[str]:
        """The readers of values of a recurrence other than the last one."""
        users = self._users_of(recurrence.carried.body_input, recurrence)
        if recurrence.node is not None:
            users += self._users_of(self.body.nodes[recurrence.node].output[0], recurrence)
        return users

    def _users_of(self, name: str, recurrence: Recurrence) -> list[str]:
        """The readers of a value, but for the node that computes the next one."""
        needed = {step for step in self.order if isinstance(step, int) and step != recurrence.node}
        users = [
            self.body.nodes[position].output[0]
            for position in self.readers.get(name, ())
            if position in needed
        ]
        others = {other.value for other in self.states.values() if other is not recurrence}
        collected = {other.body_output for other in self.form.collected if other.tensor}
        return [*users, name] if name in others | collected else users


def _place(step: Step) -> tuple[int, str]:
    return (step, "") if isinstance(step, int) else (-1, step)
