"""Whether a loop runs at least once: proven before the model runs, or told by it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from passes.analysis.integers.affine import Affine, Atom
from passes.analysis.integers.integers import Integers
from passes.analysis.trip_count import facts
from passes.analysis.trip_count.trips import Trips
from passes.analysis.trip_count.truth import Truth
from passes.ir.versions import WHERE_SINCE
from passes.loops.form import Kind, LoopForm
from passes.rule import Site
from passes.types.value_types import Dim, dims_of
from passes.writing import spelling
from passes.writing.author import Author


@dataclass(frozen=True)
class Running:
    """What is known of the first iteration of a loop.

    `sure`: it runs in every run of the model. `never`: in none.
    """

    site: Site
    form: LoopForm
    sure: bool
    never: bool
    once: bool  # at most one iteration runs
    trips: Trips | None = None

    @classmethod
    def of(cls, site: Site, form: LoopForm) -> Running:
        """What is known of a loop at its site."""
        if form.kind is Kind.LOOP:
            return _of_loop(site, form)
        sizes = [facts.scanned_size(site, one.tensor, one.axis) for one in form.scanned]
        known = [size for size in sizes if isinstance(size, int)]
        sure = max(known, default=0) > 0
        if form.kind is Kind.SCAN_8:
            batch = [facts.scanned_size(site, one.tensor, 0) for one in form.scanned]
            sure = sure and not form.lengths and any(_positive(size) for size in batch)
        never = 0 in known
        found = cls(site, form, sure, never, 1 in known and form.kind is Kind.SCAN)
        return found._assuming()

    def _assuming(self) -> Running:
        """The same, with what the user lets us take for granted."""
        if self.site.assumes("non-empty"):
            return replace(self, sure=self.sure or self.sure_if_non_empty)
        return self

    @property
    def is_told(self) -> bool:
        """Whether the model can compute in front of the loop whether it runs, and ask by an If."""
        if self.site.options.no_branches:
            return False
        return self.form.kind is not Kind.SCAN_8 and self.site.target >= WHERE_SINCE

    @property
    def sure_if_non_empty(self) -> bool:
        """Whether it runs in every run in which no size is 0."""
        if self.form.kind is not Kind.LOOP:
            return not self.never
        return self.sure or (self.trips is not None and self.trips.at_least_one_if_non_empty)

    @property
    def rests_on_proof(self) -> bool:
        """Whether nodes in front of the loop tell whether it runs, or a part of that."""
        if self.sure or self.trips is None:
            return self.sure
        condition = self.form.condition
        starts = condition is not None and condition.initial and not self.trips.starts
        return bool(starts) or self.trips.size.number is not None

    def condition(self, author: Author) -> str:
        """Write whether an iteration runs, a bool scalar; where that `is_told`."""
        if self.form.kind is Kind.SCAN:
            first = self.form.scanned[0]
            count = spelling.squeeze(
                author, spelling.size_of_axis(author, first.tensor, first.axis), 0
            )
        elif self.trips is not None:
            count = self.trips.scalar(author)
        else:
            assert self.form.condition is not None
            return author.op("Reshape", self.form.condition.initial, author.ints())
        return author.op("Greater", count, author.int(0))


def _positive(size: Dim) -> bool:
    return isinstance(size, int) and size > 0


def _of_loop(site: Site, form: LoopForm) -> Running:
    truth = Truth(site, form)
    starts = "" if truth.starts() else truth.condition.initial
    first = site.constant(starts) if starts else None
    stopped = first is not None and first.size == 1 and not first.item()
    if not form.trip_count:
        return Running(site, form, not starts, stopped, False)
    known = Integers(site).outside(form.trip_count)
    size = known.single if known is not None else None
    if size is None:
        size = Affine.of(Atom(("trip count", site.path), form.trip_count))
    dims = dims_of(site.type_of(form.trip_count))
    trips = Trips(form.trip_count, size, starts, None if dims is None else len(dims))
    never = stopped or (size.number is not None and size.number < 1)
    found = Running(site, form, trips.at_least_one, never, size.number == 1, trips)
    return found._assuming()
