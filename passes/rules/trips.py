"""How often a Loop runs that nothing in its body ends."""

from __future__ import annotations

from dataclasses import dataclass

from onnx import NodeProto

from passes.author import Author
from passes.loop_form import LoopForm
from passes.rule import Refused, Site
from passes.rules.affine import Affine, Atom
from passes.rules.guards import conjuncts
from passes.rules.integers import Integers
from passes.rules.truth import Truth
from passes.value_types import dims_of


@dataclass(frozen=True)
class Trips:
    """The trip count: `count` names M, `size` says what is known of it.

    `starts` names the condition that lets the loop run at all, empty where it always does.
    `zeros` are sums that a guard on M makes 0: sizes that it says are equal.
    """

    count: str
    size: Affine
    starts: str
    rank: int | None
    zeros: tuple[Affine, ...] = ()

    @property
    def at_least_one(self) -> bool:
        """Whether the loop runs in every run of the model."""
        return not self.starts and (self.size - 1).never_negative

    def scalar(self, author: Author) -> str:
        """The trip count as an int64 scalar; below 1 where the loop does not run."""
        if self.size.number is not None:
            count = author.int(self.size.number)
        elif self.rank == 0:
            count = self.count
        else:
            count = author.op("Reshape", self.count, author.ints())
        if not self.starts:
            return count
        starts = author.op("Reshape", self.starts, author.ints())
        return author.op("Where", starts, count, author.int(0))

    def vanishes(self, slack: Affine) -> Affine:
        """A difference, less what the guard on M says is 0."""
        for zero in self.zeros:
            for factor in (1, -1):
                if (slack + zero.times(factor)).number is not None:
                    return slack + zero.times(factor)
        return slack


def trips_of(site: Site, form: LoopForm) -> Trips:
    """The trip count of a Loop.

    Raises:
        Refused: `condition` where the body computes when to end, `endless` where nothing ends
            it, `no-iteration` where it never runs.
    """
    truth = Truth(site, form)
    if not truth.ends_never():
        raise Refused(
            "condition",
            f"whether the loop goes on is computed in its body as "
            f"{truth.condition.body_output!r}, so its trip count is not known before it runs",
            [site.path, truth.condition.body_output],
        )
    if not form.trip_count:
        raise Refused("endless", "the loop has no trip count and nothing ends it", [site.path])
    initial = truth.condition.initial
    integers = Integers(site)
    size = _size(site, integers, form.trip_count)
    starts = "" if not initial or truth.always(initial) else initial
    if size.number is not None and size.number < 1:
        raise Refused(
            "no-iteration", f"the trip count is {size.number}: the body never runs", [site.path]
        )
    dims = dims_of(site.type_of(form.trip_count))
    rank = None if dims is None else len(dims)
    return Trips(form.trip_count, size, starts, rank, tuple(_zeros(integers, form.trip_count)))


def _size(site: Site, integers: Integers, name: str) -> Affine:
    known = integers.outside(name)
    if known is not None and known.single is not None:
        return known.single
    return Affine.of(Atom(("trip count", site.path), name, shown=name))


def _zeros(integers: Integers, name: str) -> list[Affine]:
    """The differences that guards on the way to a number make 0."""
    found: list[Affine] = []
    node = integers.producer(name)
    while node is not None and node.op_type in ("Identity", "Squeeze", "Unsqueeze", "Reshape"):
        guard = integers.guard(node)
        if guard is not None:
            found += _equalities(integers, guard.condition)
        node = integers.producer(node.input[0])
    return found


def _equalities(integers: Integers, condition: str) -> list[Affine]:
    equal: list[NodeProto] = [
        node for node in conjuncts(condition, integers.producer) if node.op_type == "Equal"
    ]
    found = []
    for node in equal:
        sides = [integers.outside(name) for name in node.input]
        one, other = (None if side is None else side.single for side in sides)
        if one is not None and other is not None:
            found.append(one - other)
    return found
