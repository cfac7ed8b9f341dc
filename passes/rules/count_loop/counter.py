"""The trip count of a Loop: its M, and for how many iterations its condition holds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from onnx import NodeProto

from passes.analysis.integers.affine import Affine
from passes.analysis.integers.integers import Integers
from passes.analysis.trip_count.conditions import LoopConditions
from passes.analysis.trip_count.trip_count import TripCount
from passes.ir.operators import op_of
from passes.loops.form import LoopForm
from passes.operators.comparisons import ORDERINGS
from passes.operators.exactness import Array
from passes.operators.functions import NUMPY
from passes.rule import Site
from passes.rules.count_loop.comparisons import CounterTest, CounterTests
from passes.rules.count_loop.counting import ENDLESS, Counting
from passes.writing import guards, spelling
from passes.writing.author import Author
from passes.writing.purposes import GUARD_COUNT, GUARD_FLOATS


@dataclass(frozen=True)
class Counted:
    """The name of a trip count, its description in the report, and what is known about the limits
    of which the least ends the loop.

    `parts`: these values of the body are counted, and the rest of the condition stays; none where
    nothing else ends the loop.
    """

    trips: str
    note: str
    sizes: tuple[Affine, ...]
    parts: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Counter:
    """Writes the trip count of a loop that its condition ends."""

    site: Site
    form: LoopForm
    author: Author

    def count(self) -> Counted:
        """Write the trip count."""
        reader = CounterTests.of(self.site, self.form)
        condition = self.form.condition
        assert condition is not None
        starts = [
            node
            for node in LoopConditions.around(self.site).open_parts(condition.initial)
            if not reader.is_redundant_with(node, self.limit)
        ]
        parts = LoopConditions.inside(self.site, self.form).open_parts(condition.body_output)
        fixed = exact_trips(self.site, self.form, parts[0]) if len(parts) == 1 else None
        if fixed is not None:
            count = self.author.int(fixed)
            count = self._if_started(count) if starts else count
            note = f"{fixed} iterations by a float counter"
            return Counted(self._limited(count, None), note, (Affine(fixed),))
        found = reader.among(parts)
        counting = [part.output[0] for part, one in zip(parts, found, strict=True) if part and one]
        comparisons = list(dict.fromkeys(one for one in found if one is not None))
        ending = [
            comparison for comparison in comparisons if not comparison.holds_through(self.limit)
        ]
        partly = None in found
        note = "counts while " + " and ".join(map(str, ending)) + " and data" * partly
        sizes = (*(_roughly(comparison) for comparison in ending), *self._limits)
        if partly:
            count = self._at_most(reader, ending, starts) if ending else self.form.trip_count
            return Counted(count, note if ending else "data ends it", sizes, frozenset(counting))
        if not ending:
            count, note = self._unconditional(starts)
            return Counted(self._with_float_guard(count, comparisons), note, self._limits)
        count = self._with_float_guard(self._ended(reader, ending, starts), comparisons)
        return Counted(count, note, sizes)

    @cached_property
    def limit(self) -> Affine | None:
        """The value of the loop's M, if it has one and the value is known."""
        return TripCount(self.site, self.form).size if self.form.trip_count else None

    @property
    def _limits(self) -> tuple[Affine, ...]:
        return () if self.limit is None else (self.limit,)

    def _ended(
        self,
        reader: CounterTests,
        comparisons: Sequence[CounterTest],
        starts: Sequence[NodeProto | None],
    ) -> str:
        """The trip count of a loop that comparisons end, and M where it has one."""
        same = _matches(reader, comparisons, starts)
        count, endless = self._iterations(reader, comparisons, same)
        count = self._if_started(count) if starts and not same else count
        if self.form.trip_count or not endless:
            return self._limited(count, _size(comparisons, same))
        with self.author.serving(GUARD_COUNT):
            finite = self.author.op("Less", count, self.author.int(ENDLESS))
            return guards.must_count(self.author, count, finite)

    def _at_most(
        self,
        reader: CounterTests,
        comparisons: Sequence[CounterTest],
        starts: Sequence[NodeProto | None],
    ) -> str:
        """The most iterations of a loop that comparisons end, or M, or data: the condition on data
        stays, and so does the initial condition as a whole. A count of `ENDLESS` ends nothing."""
        counted = [node for node in starts if any(reader.outside(node, one) for one in comparisons)]
        same = _matches(reader, comparisons, counted)
        count, _ = self._iterations(reader, comparisons, same)
        return self._limited(count, _size(comparisons, same))

    def _iterations(
        self, reader: CounterTests, comparisons: Sequence[CounterTest], same: bool
    ) -> tuple[str, bool]:
        """Return the number of iterations, once started, until one of the comparisons fails, and
        whether all may hold forever. `same`: the start depends on the same comparisons, one
        iteration earlier; else the first iteration runs."""
        counting = Counting(self.site, reader.integers, self.author)
        begun = [
            (comparison, comparison.before if same else comparison.first)
            for comparison in comparisons
        ]
        found = [counting.times(comparison, start, negative=same) for comparison, start in begun]
        times = [name for name, _ in found]
        endless = all(one for _, one in found)
        if same:
            return self._least(times), endless
        if all(counting.reaches_largest(comparison, start) for comparison, start in begun):
            times.append(self.author.int(ENDLESS))  # one more must be a number
        return self._one_more(self._least(times)), endless

    def _unconditional(self, starts: Sequence[NodeProto | None]) -> tuple[str, str]:
        """The trip count where only the initial condition can keep the loop from running to M."""
        if not self.form.trip_count:
            raise self.site.refused("endless", "the loop has no trip count and nothing ends it")
        if not starts:
            return self.form.trip_count, "the condition always holds"
        count = self._if_started(self._scalar(self.form.trip_count))
        return count, "only the initial condition counts"

    def _with_float_guard(self, count: str, comparisons: Sequence[CounterTest]) -> str:
        """The count, or a failure where the compared floats would no longer be exact."""
        most = min(
            (comparison.most for comparison in comparisons if comparison.most is not None),
            default=None,
        )
        fixed = None if self.limit is None else self.limit.number
        if most is None or (fixed is not None and fixed <= most):
            return count
        if self.site.assumes("valid-inputs"):
            return count
        author = self.author
        with author.serving(GUARD_FLOATS):
            count = self._scalar(count) if count == self.form.trip_count else count
            exact = author.op("Less", count, author.int(most + 1))
            return guards.must_count(author, count, exact)

    def _if_started(self, count: str) -> str:
        assert self.form.condition is not None
        starts = self._scalar(self.form.condition.initial)
        return self.author.op("Where", starts, count, self.author.int(0))

    def _limited(self, count: str, size: Affine | None) -> str:
        """The smaller of the count, whose value is `size` where known, and of the loop's M."""
        if not self.form.trip_count:
            return count
        if size is not None and self.limit is not None and self.limit.fits():
            if (self.limit - size).least >= 0:
                return count
            if (size - self.limit).least >= 0:
                return self._scalar(self.form.trip_count)
        known = self.limit is not None and self._number(count) is not None
        fixed = self.limit.number if known and self.limit is not None else None
        limit = self._scalar(self.form.trip_count) if fixed is None else self.author.int(fixed)
        return self._least([count, limit])

    def _one_more(self, number: str) -> str:
        fixed = self._number(number)
        if fixed is not None:
            return self.author.int(fixed + 1)
        return self.author.op("Add", number, self.author.int(1))

    def _number(self, name: str) -> int | None:
        """The value of a constant that was written here."""
        value = self.author.constant(name)
        return None if value is None else int(value.item())

    def _least(self, numbers: Sequence[str]) -> str:
        fixed = [number for number in map(self._number, numbers) if number is not None]
        if len(fixed) > 1:
            numbers = [name for name in numbers if self._number(name) is None]
            numbers = [*numbers, self.author.int(min(fixed))]
        first, *others = numbers
        for other in others:
            less = self.author.op("Less", other, first)
            first = self.author.op("Where", less, other, first)
        return first

    def _scalar(self, name: str) -> str:
        return spelling.scalar(self.author, name, self.site.type_of(name))


def _size(comparisons: Sequence[CounterTest], same: bool) -> Affine | None:
    """The trip count by these comparisons, where it is known."""
    return comparisons[0].exact_room if same and len(comparisons) == 1 else None


def _roughly(comparison: CounterTest) -> Affine:
    """Return how often a comparison holds, if that is a constant; else the value it depends on."""
    number = comparison.room.number
    return comparison.room if number is None else Affine(number // abs(comparison.step))


def _matches(
    reader: CounterTests, comparisons: Sequence[CounterTest], starts: Sequence[NodeProto | None]
) -> bool:
    """Return whether the initial condition is the body's, one iteration earlier."""
    matching = [[reader.outside(node, comparison) for comparison in comparisons] for node in starts]
    every_start = all(any(row) for row in matching)
    every_part = all(any(row[position] for row in matching) for position in range(len(comparisons)))
    return every_start and every_part


_MOST_TRIPS = 1_000_000
_STEPS = ("Add", "Sub")


def exact_trips(site: Site, form: LoopForm, part: NodeProto | None) -> int | None:
    """The trip count of a loop that a float counter ends, once it started.

    The additions are done here as in the model, in its own type, so they round alike. None where
    a number is not constant, the condition has another form, or it would take too long.
    """
    if part is None or op_of(part) not in ORDERINGS:
        return None
    fixed = _Fixed(site, form)
    for position in (0, 1):
        counter = fixed.counter(part.input[position])
        bound = fixed.value(part.input[1 - position])
        if counter is not None and bound is not None:
            return _simulate(op_of(part), counter, bound, position == 1)
    return None


@dataclass(frozen=True)
class _Counter:
    """A number that starts at `initial` and makes a `step` in every iteration.

    `after`: the condition reads it after the step.
    """

    initial: Array
    op: str
    step: Array
    after: bool


@dataclass(frozen=True)
class _Fixed:
    site: Site
    form: LoopForm

    def value(self, name: str) -> Array | None:
        """The value of a scalar float constant, as the body sees it."""
        carried = self.form.unchanged.get(name)
        if carried is not None:
            return _single(self.site.constant(carried.initial))
        return _single(Integers(self.site, self.form.body).constant_inside(name))

    def counter(self, name: str) -> _Counter | None:
        """The counter that a value is, before or after its step."""
        for carried in self.form.carried:
            initial = _single(self.site.constant(carried.initial))
            if initial is None:
                continue
            producer = Integers(self.site, self.form.body).source(carried.body_output)
            if (
                producer is None
                or op_of(producer) not in _STEPS
                or producer.input[0] != carried.body_input
            ):
                continue
            step = self.value(producer.input[1])
            if step is not None and name in (carried.body_input, carried.body_output):
                return _Counter(initial, op_of(producer), step, name == carried.body_output)
        return None


def _single(array: Array | None) -> Array | None:
    if array is None or array.size != 1 or array.dtype not in (np.float32, np.float64, np.float16):
        return None
    return array.reshape(())


def _simulate(op: str, counter: _Counter, bound: Array, second: bool) -> int | None:
    value = counter.initial
    with np.errstate(all="ignore"):
        for trips in range(1, _MOST_TRIPS):
            after = NUMPY[counter.op](value, counter.step)
            seen = after if counter.after else value
            sides = (bound, seen) if second else (seen, bound)
            if not NUMPY[op](*sides):
                return trips
            value = after
    return None
