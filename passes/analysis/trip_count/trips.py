"""How often a Loop runs that nothing in its body ends."""

from __future__ import annotations

from dataclasses import dataclass

from passes.analysis.integers.affine import Affine, Atom
from passes.analysis.integers.guards import conjuncts
from passes.analysis.integers.integers import Integers
from passes.analysis.trip_count.truth import Truth
from passes.ir.operators import op_of
from passes.loops.form import LoopForm
from passes.rule import Refused, Site
from passes.types.value_types import dims_of
from passes.writing.author import Author


@dataclass(frozen=True)
class Trips:
    """The trip count: `count` names M, `size` says what is known of it.

    `starts` names the condition that lets the loop run at all, empty where it always does.
    `guards` are the values on the way to M that are guarded; `zeros` are sums that these guards
    make 0: sizes that they say are equal. `only_equalities`: they say nothing else.
    """

    count: str
    size: Affine
    starts: str
    rank: int | None
    guards: frozenset[str] = frozenset()
    zeros: tuple[Affine, ...] = ()
    only_equalities: bool = True

    @property
    def at_least_one(self) -> bool:
        """Whether the loop runs in every run of the model."""
        return not self.starts and self.size.at_least(1)

    @property
    def at_least_one_if_non_empty(self) -> bool:
        """Whether the loop runs in every run of the model in which no size is 0."""
        sizes = all(atom.axis is not None and count > 0 for atom, count in self.size.terms)
        least = self.size.constant + sum(count for _, count in self.size.terms)
        return not self.starts and sizes and self.size.fits() and least >= 1

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
    starts = "" if truth.starts() else initial
    if size.number is not None and size.number < 1:
        raise Refused(
            "no-iteration", f"the trip count is {size.number}: the body never runs", [site.path]
        )
    dims = dims_of(site.type_of(form.trip_count))
    rank = None if dims is None else len(dims)
    guards = integers.guards(form.trip_count)
    said = [_equalities(integers, guard.condition) for guard in guards.values()]
    zeros = tuple(zero for found in said for zero in found or ())
    return Trips(form.trip_count, size, starts, rank, frozenset(guards), zeros, None not in said)


def _size(site: Site, integers: Integers, name: str) -> Affine:
    known = integers.outside(name)
    if known is not None and known.single is not None:
        return known.single
    return Affine.of(Atom(("trip count", site.path), name, shown=name))


def _equalities(integers: Integers, condition: str) -> list[Affine] | None:
    """The differences that are 0 where a condition holds; None where it says more than that."""
    found = []
    for node in conjuncts(condition, integers.producer):
        sides = [integers.outside(name) for name in node.input] if op_of(node) == "Equal" else []
        if len(sides) != 2 or sides[0] is None or sides[1] is None:
            return None
        one, other = sides[0].single, sides[1].single
        if one is None or other is None:
            return None
        found.append(one - other)
    return found
