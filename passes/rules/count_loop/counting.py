"""Writes for how many iterations a comparison of a counter with a bound holds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from onnx import TensorProto

from passes.analysis.integers.affine import LIMITS, Affine, single_of
from passes.analysis.integers.integers import Integers
from passes.ir import scope as scoping
from passes.ir.operators import op_of
from passes.rule import Site
from passes.rules.count_loop.comparisons import CounterTest
from passes.types.value_types import dims_of, elem_type_of
from passes.writing import spelling
from passes.writing.author import Author

#: With a larger step, a 64-bit counter that wraps might still end in this century.
_LARGEST_STEP = 1 << 31
#: The largest int64.
LARGEST = LIMITS[TensorProto.INT64][1]
#: More iterations than any loop runs; one more is still an int64.
ENDLESS = (1 << 62) - 1


@dataclass(frozen=True)
class _Run:
    """Names of written values: the initial counter, its bound, their distance, whether the
    comparison holds at first, and for how many iterations it does."""

    begin: str
    bound: str
    distance: str
    holds: str
    count: str


@dataclass(frozen=True)
class Counting:
    """Writes integers that are computed outside a loop, from what the loop reads."""

    site: Site
    integers: Integers
    author: Author

    def number(self, value: Affine, elem_type: int, what: str) -> str:
        """An integer, as an int64 scalar.

        Raises:
            Refused: `overflow` where int32 arithmetic of the loop might wrap, `no-counter` where
                the number does not follow from what the loop reads.
        """
        if value.number is not None:
            return self.author.int(value.number)
        if elem_type == TensorProto.INT32 and not value.fits(elem_type):
            raise self.site.refused(
                "overflow", f"{what} is {value}, computed in int32, and may wrap"
            )
        for name in self._readable():
            known = single_of(self.integers.outside(name))
            more = None if known is None else value - known
            if more is not None and more.number is not None:
                return self._shifted(name, more.wrapped(TensorProto.INT64).constant)
        axes = self.integers.axes(scoping.free_names(self.site.node))
        if not {atom for atom, _ in value.terms} <= axes.keys():
            raise self.site.refused(
                "no-counter", f"{what} is {value}, which is computed in the body"
            )
        total = self.author.int(value.constant)
        for atom, count in sorted(value.terms, key=lambda term: str(term[0])):
            size = spelling.size_of_axis(self.author, *axes[atom])
            scalar = spelling.squeeze(self.author, size, 0)
            if count != 1:
                scalar = self.author.op("Mul", scalar, self.author.int(count))
            total = self.author.op("Add", total, scalar)
        return total

    def _readable(self) -> Iterator[str]:
        """The names that the loop reads, and the inputs of casts that it reads."""
        for name in scoping.free_names(self.site.node):
            yield name
            node = self.integers.producer(name)
            cast = node is not None and op_of(node) == "Cast"
            if node is not None and cast and self.integers.same_meaning(node, name):
                yield node.input[0]

    def _shifted(self, name: str, more: int) -> str:
        known = self.site.type_of(name)
        if elem_type_of(known) != TensorProto.INT64:
            name = self.author.op("Cast", name, to=TensorProto.INT64)
        if dims_of(known) != ():
            name = self.author.op("Reshape", name, self.author.ints())
        return self.author.op("Add", name, self.author.int(more)) if more else name

    def times(
        self, comparison: CounterTest, start: Affine, *, negative: bool = False
    ) -> tuple[str, bool]:
        """Return how often a comparison holds from `start` on, an int64 scalar, and whether it may
        hold forever: a counter that would wrap never ends its loop, and its count is `ENDLESS`.

        It is 0 or more, or may be `negative` where the comparison never holds.
        """
        author, step = self.author, abs(comparison.step)
        if start.number is not None and comparison.bound.number is not None:
            return author.int(self.fixed(comparison, start.number, comparison.bound.number)), False
        begin = self.number(start, comparison.elem_type, "the counter")
        bound = self.number(comparison.bound, comparison.bound_type, "the bound")
        low, high = (begin, bound) if comparison.upwards else (bound, begin)
        zero = (start if comparison.upwards else comparison.bound).number == 0
        distance = high if zero else author.op("Sub", high, low)
        sizes = start.at_least(0) and comparison.bound.at_least(0)  # their distance does not wrap
        if (zero or sizes) and negative and comparison.strict:
            if step == 1:
                return distance, False
            if comparison.upwards and not self._may_wrap(comparison):  # nor does what is added
                most = author.op("Add", distance, author.int(step - 1))
                return author.op("Div", most, author.int(step)), False
        if comparison.strict:
            holds = author.op("Greater", high, low)
            less = author.op("Sub", distance, author.int(1)) if step > 1 else distance
        else:
            holds = author.op("Not", author.op("Greater", low, high))
            less = distance
        count = author.op("Div", less, author.int(step)) if step > 1 else less
        if step > 1 or not comparison.strict:
            count = author.op("Add", count, author.int(1))
        count = author.op("Where", holds, count, author.int(0))
        return self._ending(comparison, start, _Run(begin, bound, distance, holds, count))

    def fixed(self, comparison: CounterTest, start: int, bound: int) -> int:
        """The number of iterations where all is constant."""
        distance = bound - start if comparison.upwards else start - bound
        step = abs(comparison.step)
        count = max(0, -(-distance // step) if comparison.strict else distance // step + 1)
        least, most = LIMITS[comparison.elem_type]
        if not least <= start + count * comparison.step <= most:
            raise self.site.refused(
                "overflow",
                f"the counter runs from {start} by {comparison.step} and would wrap before the "
                f"condition {comparison} ends the loop",
            )
        return min(count, ENDLESS)

    def most_times(self, comparison: CounterTest, start: Affine) -> int:
        """Return how often a comparison may hold at most from `start` on, by steps of 1."""
        begin, bound = (
            start.range(comparison.elem_type),
            comparison.bound.range(comparison.bound_type),
        )
        low, high = (begin, bound) if comparison.upwards else (bound, begin)
        return high[1] - low[0] + (0 if comparison.strict else 1)

    def reaches_largest(self, comparison: CounterTest, start: Affine) -> bool:
        """Return whether it may hold as often as the largest int64."""
        return self.most_times(comparison, start) // abs(comparison.step) >= LARGEST

    def _ending(self, comparison: CounterTest, start: Affine, run: _Run) -> tuple[str, bool]:
        """The count, or `ENDLESS` where the counter would wrap before it passes its bound."""
        author, conditions = self.author, []
        if self.most_times(comparison, start) > LARGEST:
            # The distance, or one more, may not fit an int64.
            fits = author.op("Not", author.op("Less", run.distance, author.int(0)))
            if abs(comparison.step) == 1 and not comparison.strict:
                fits = author.op("Greater", run.count, author.int(0))
            conditions.append(fits)
        if self._may_wrap(comparison):
            conditions.append(self._does_not_wrap(comparison, run))
        if not conditions:
            return run.count, False
        ends = author.op("Or", author.op("Not", run.holds), spelling.both(author, conditions))
        return author.op("Where", ends, run.count, author.int(ENDLESS)), True

    def _may_wrap(self, comparison: CounterTest) -> bool:
        """Return whether the counter may leave the range of its type on the step past the bound.

        Raises:
            Refused: `overflow` where it might then come back.
        """
        step = abs(comparison.step)
        if step == 1 and comparison.strict:
            return False
        least, most = LIMITS[comparison.elem_type]
        lowest, highest = comparison.bound.range(comparison.bound_type)
        if (highest + step <= most) if comparison.upwards else (least + step <= lowest):
            return False
        if step > 1 and (comparison.elem_type == TensorProto.INT32 or step > _LARGEST_STEP):
            raise self.site.refused(
                "overflow",
                f"it is not proven that the counter stays in the range of its type: it steps by "
                f"{comparison.step} until it no longer is {comparison}",
            )
        return True

    def _does_not_wrap(self, comparison: CounterTest, run: _Run) -> str:
        """Return whether the counter can go one step further from the last value that holds."""
        author, (least, most) = self.author, LIMITS[comparison.elem_type]
        last = run.bound  # by steps of 1, it gets there
        if abs(comparison.step) > 1:
            before = author.op("Sub", run.count, author.int(1))
            last = author.op(
                "Add", run.begin, author.op("Mul", before, author.int(comparison.step))
            )
        if comparison.upwards:
            return author.op("Not", author.op("Greater", last, author.int(most - comparison.step)))
        return author.op("Not", author.op("Less", last, author.int(least - comparison.step)))
