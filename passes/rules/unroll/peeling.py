"""Writes one iteration of a loop before it, or after it; the loop runs the others."""

from __future__ import annotations

from collections.abc import Callable

from passes.analysis.trip_count.trip_count import TripCount
from passes.ir.draft import ITERATION_KEY
from passes.ir.protos import changed
from passes.loops.form import Collected, Kind, LoopForm, Scanned
from passes.rule import Edit, Site
from passes.rules.unroll.branch_types import rows_type
from passes.rules.unroll.either_way import either_way, skipped
from passes.rules.unroll.remaining import remaining_body
from passes.rules.unroll.unrolling import Outputs, Unrolling, part_of_loop
from passes.types.value_types import dims_of
from passes.writing import guards, spelling
from passes.writing.author import Author
from passes.writing.branches import Branch, Results, either
from passes.writing.purposes import GUARD_SIZES, HANDLE_NO_TRIPS

#: The metadata key of loops of which an iteration was peeled; its value is which one.
PEELED_KEY = "passes.peeled"


class Peeling(Unrolling):
    """Writes the iteration and the loop in place of a site's node."""

    def __init__(self, site: Site, form: LoopForm, count: TripCount, *, last: bool) -> None:
        super().__init__(site, form, 1)
        self.count = count
        self.last = last
        self.more_follow = (count.static or 0) > 1  # in every run
        self.length = ""  # the trip count, an int64 scalar, where it is needed

    def edit(self, note: str) -> Edit:
        """Write both, in an If where the loop may not run at all."""
        author = self.author
        author.adopt(self.body.nodes, self.body.constants)
        self.length = self._length_of_loop()
        if self.count.evidently_runs:
            outputs = self._both(author)
        else:
            outputs = self._either("runs", self._started(), self._both, author, self.initials)
        for value, name in zip(outputs.names, self.form.outputs, strict=True):
            self._hand_on(value, name, "")
        return self._cleaned(note)

    def _length_of_loop(self) -> str:
        """The trip count; "" where only a condition ends the loop."""
        form, author = self.form, self.author
        if self.count.static is not None:
            return author.int(self.count.static)
        if form.kind is Kind.SCAN:
            return self._length_of_scan()
        return spelling.scalar(author, form.trip_count, self.site.type_of(form.trip_count))

    def _length_of_scan(self) -> str:
        author, scanned = self.author, self.form.scanned
        sizes = [spelling.size_of_axis(author, read.tensor, read.axis) for read in scanned]
        first, *others = [spelling.squeeze(author, size, 0) for size in sizes]
        if others and not self._valid_inputs:
            with author.serving(GUARD_SIZES):
                same = [author.op("Equal", first, other) for other in others]
                return guards.must_count(author, first, spelling.both(author, same))
        return first

    def _started(self) -> str:
        """The condition that the loop runs at all, where that is not certain."""
        author, starts = self.author, self.count.starts
        parts = []
        with author.serving(HANDLE_NO_TRIPS):
            if starts:
                parts.append(spelling.scalar(author, starts, self.site.type_of(starts)))
            if self.count.static is None and self.length:
                parts.append(author.op("Less", author.int(0), self.length))
            return spelling.both(author, parts)

    def _both(self, author: Author) -> Outputs:
        """Write the iteration and the loop, where at least one iteration runs."""
        if self.last:
            loop = self._loop(author, self.initials, "")
            peeled = self._peeled(author, loop.states, self._before(author, self.length))
            return Outputs(peeled.states, self._joined(author, loop.rows, peeled.rows))
        number = self.author.int(0) if self.form.condition else ""
        peeled = self._peeled(author, self.initials, number)
        loop = self._loop(author, peeled.states, peeled.go_on)
        return Outputs(loop.states, self._joined(author, peeled.rows, loop.rows))

    def _before(self, author: Author, number: str) -> str:
        """The number minus one; "" in a Scan, which has none."""
        if self.form.kind is Kind.SCAN:
            return ""
        if self.count.static is not None:
            return self.author.int(self.count.static - 1)
        return author.op("Sub", number, self.author.int(1))

    def _peeled(self, author: Author, states: list[str], number: str) -> Outputs:
        """Write the iteration."""
        elements = [
            spelling.squeeze(author, self._part(author, scanned, peeled=True), scanned.axis)
            for scanned in self.form.scanned
        ]
        tag = "last" if self.last else "first"
        number = number and spelling.of_rank(author, number, self.form.iteration_rank)
        return self.iteration(author, tag, number, states, elements, lifted=True)

    def _part(self, author: Author, scanned: Scanned, *, peeled: bool) -> str:
        """The slice of a scanned tensor that the iteration reads, or the rest of it."""
        at_front = self.last == scanned.reversed
        if at_front:
            start, end = (0, 1) if peeled else (1, None)
        else:
            start, end = (-1, None) if peeled else (0, -1)
        return spelling.part(author, scanned.tensor, scanned.axis, start, end)

    def _loop(self, author: Author, states: list[str], go_on: str) -> Outputs:
        """Write the loop over the other iterations; onnxruntime runs no Scan over nothing."""

        def run(inner: Author) -> Outputs:
            return self._run(inner, states, go_on)

        if self.form.kind is Kind.LOOP or self.more_follow:
            return run(author)
        with author.serving(HANDLE_NO_TRIPS):
            more = author.op("Less", self.author.int(1), self.length)
        return self._either("more", more, run, author, states)

    def _either(
        self,
        name: str,
        condition: str,
        run: Callable[[Author], Outputs],
        author: Author,
        states: list[str],
    ) -> Outputs:
        """Write an If that runs iterations, or passes on the `states`."""

        def skip(inner: Author) -> Outputs:
            return skipped(self, inner, states)

        outputs = Outputs.of(self.form, lambda one: self.author.fresh(f"{one}/{name}"))
        ways = {name: run, f"not_{name}": skip}
        return either_way(self, author, condition, ways, outputs, HANDLE_NO_TRIPS)

    def _run(self, author: Author, states: list[str], go_on: str) -> Outputs:
        """Write the loop, its iterations counted from 1 where the first one was peeled."""
        form, source = self.form, self.site.node
        inner = author.inside(f"{author.prefix}/rest")
        offset = self.author.int(1) if form.condition and not self.last else ""
        body = remaining_body(self, inner, first=offset)
        rests = [self._part(author, scanned, peeled=False) for scanned in form.scanned]
        inputs = [*self._head(author, go_on), *states, *rests]
        outputs = Outputs.of(form, lambda name: self.author.fresh(f"{name}/rest"))
        node = changed(source, {"body": body}, inputs=inputs, outputs=outputs.names)
        marks = {ITERATION_KEY: "rest", PEELED_KEY: "last" if self.last else "first"}
        author.adopt([part_of_loop(node, "rest", marks)])
        return outputs

    def _head(self, author: Author, go_on: str) -> list[str]:
        """The trip count and the condition of the loop, where it is a Loop."""
        condition = self.form.condition
        if condition is None:
            return []
        count = self._before(author, self.length) if self.form.trip_count else ""
        if self.last or (not condition.initial and not self.count.ends_early):
            return [count, condition.initial]
        return [count, self._of_declared_rank(author, go_on)]

    def _of_declared_rank(self, author: Author, go_on: str) -> str:
        """The condition that the iteration returns, with the rank that the body declares for it."""
        assert self.form.condition is not None
        returned = dims_of(self.site.body_type_of("body", self.form.condition.body_output))
        rank = self.form.condition_rank
        if returned is not None and len(returned) == rank:
            return go_on
        return author.op("Reshape", go_on, self.author.ints(*[1] * rank))

    def _joined(self, author: Author, leading: list[str], trailing: list[str]) -> list[str]:
        """Concatenate rows of earlier and later iterations; a loop that did not run knows only some
        sizes of what it collected."""
        pairs = zip(self.form.collected, leading, trailing, strict=True)
        return [self._join(author, collected, before, after) for collected, before, after in pairs]

    def _join(self, author: Author, collected: Collected, leading: str, trailing: str) -> str:
        loop, peeled = (leading, trailing) if self.last else (trailing, leading)
        ordered = [trailing, leading] if collected.reversed else [leading, trailing]
        if self.more_follow:
            return author.op("Concat", *ordered, axis=collected.axis)
        size = spelling.scalar_size(author, loop, collected.axis)
        with author.serving(HANDLE_NO_TRIPS):
            condition = author.op("Less", self.author.int(0), size)
        joined = author.fresh("if")

        def together(inner: Author) -> Results:
            return Results([inner.op("Concat", *ordered, axis=collected.axis)])

        either(
            author,
            condition,
            {
                "then_branch": Branch("all", together, name="all"),
                "else_branch": Branch("", lambda inner: Results([peeled]), name="alone"),
            },
            [joined],
            [rows_type(self.site, self.form, collected)],
            purpose=HANDLE_NO_TRIPS,
            cleaning=self.cleaning,
        )
        return joined
