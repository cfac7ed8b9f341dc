"""Writes one iteration of a loop in front of it, or behind it; the loop does the others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass

from onnx import GraphProto, NodeProto, TypeProto, helper

from passes.analysis.trip_count.truth import Truth
from passes.ir.operators import op_of
from passes.loops.form import Collected, Kind, LoopForm, Scanned
from passes.rule import Edit, Site
from passes.rules.unroll.remaining import remaining_body
from passes.rules.unroll.unrolling import Unrolling
from passes.types.value_types import dims_of
from passes.writing import spelling
from passes.writing.author import Author
from passes.writing.branch_graph import branch_graph, branching
from passes.writing.branch_types import rows_type, state_type
from passes.writing.draft import ITERATION_KEY
from passes.writing.purposes import GUARD_SIZES, HANDLE_NO_TRIPS


@dataclass(frozen=True)
class Given:
    """What a loop, or a part of it, gives: states, and rows by collected output."""

    states: list[str]
    rows: list[str]


Write = Callable[[Author], Given]


class EitherWay(Unrolling):
    """Writes iterations that may not take place."""

    def _either(
        self, author: Author, condition: str, then: Write, other: Write, name: str
    ) -> Given:
        """Either of two ways to give states and rows."""
        types = [state_type(self.site, one) for one in self.form.carried]
        types += [rows_type(self.site, self.form, one) for one in self.form.collected]
        graphs = []
        for label, write in ((name, then), (f"not_{name}", other)):
            with author.serving(HANDLE_NO_TRIPS) if write is other else nullcontext():
                inner = author.inside(f"{author.prefix}/{label}")
            outside, self.value_info = self.value_info, []
            annotated, self.annotations = self.annotations, []
            given = write(inner)
            graphs.append(self._branch(inner, label, [*given.states, *given.rows], types))
            self.value_info, self.annotations = outside, annotated
        names = [self.author.fresh(f"{one.body_output}/{name}") for one in self.form.carried]
        rows = [self.author.fresh(f"{one.body_output}/{name}") for one in self.form.collected]
        yes, no = graphs
        with author.serving(HANDLE_NO_TRIPS):
            author.adopt([branching(condition, [*names, *rows], yes, no, name)])
        return Given(names, rows)

    def _branch(
        self, inner: Author, label: str, given: Sequence[str], types: Sequence[TypeProto | None]
    ) -> GraphProto:
        return branch_graph(
            inner,
            label,
            given,
            types,
            outer=self._known,
            type_of=self._type_of,
            value_info=self.value_info,
            annotations=self.annotations,
            doubts=self.doubts,
        )


#: The metadata of loops of which an iteration was peeled: which one.
PEELED_KEY = "passes.peeled"


@dataclass(frozen=True)
class Known:
    """What is known of a loop before it runs: its trip count, where that is static; whether it
    `starts` and whether more than one iteration `follows`, in every run."""

    trips: int | None
    starts: bool
    follows: bool


class Peeling(EitherWay):
    """Writes the iteration and the loop in the place of a site's node."""

    def __init__(self, site: Site, form: LoopForm, known: Known, *, last: bool) -> None:
        super().__init__(site, form, 1)
        self.known = known
        self.last = last
        self._goes_on = form.kind is not Kind.LOOP or Truth(site, form).ends_never()
        self.length = ""  # the trip count, an int64 scalar, where it is needed

    def edit(self, note: str) -> Edit:
        """Write both, in an If where the loop may not run at all."""
        author = self.author
        author.adopt(self.body.nodes, self.body.constants)
        self.length = self._length_of_loop()
        if self.known.starts:
            given = self._both(author)
        else:
            given = self._either(author, self._started(), self._both, self._none, "runs")
        finals = [one.final for one in self.form.carried]
        finals += [one.tensor for one in self.form.collected]
        for value, name in zip((*given.states, *given.rows), finals, strict=True):
            if name:
                author.op("Identity", value, outputs=[name])
        return self._cleaned(note)

    def _length_of_loop(self) -> str:
        """The trip count; "" where only a condition ends the loop."""
        form, author = self.form, self.author
        if self.known.trips is not None:
            return author.int(self.known.trips)
        if form.kind is Kind.SCAN:
            return self._length_of_scan()
        if not form.trip_count or dims_of(self.site.type_of(form.trip_count)) == ():
            return form.trip_count
        return author.op("Reshape", form.trip_count, author.ints())

    def _length_of_scan(self) -> str:
        author, scanned = self.author, self.form.scanned
        sizes = [spelling.size_of_axis(author, one.tensor, one.axis) for one in scanned]
        first, *others = [spelling.squeeze(author, size, 0) for size in sizes]
        if others and not self._valid_inputs:
            with author.serving(GUARD_SIZES):
                same = [author.op("Equal", first, other) for other in others]
                counted = spelling.must_count(author, sizes[0], spelling.both(author, same))
            return spelling.squeeze(author, counted, 0)
        return first

    def _started(self) -> str:
        """Whether the loop runs at all, where that is not certain."""
        author, condition = self.author, self.form.condition
        parts = []
        with author.serving(HANDLE_NO_TRIPS):
            if condition and condition.initial and self.site.constant(condition.initial) is None:
                initial = condition.initial
                if dims_of(self.site.type_of(initial)) != ():
                    initial = author.op("Reshape", initial, author.ints())
                parts.append(initial)
            if self.known.trips is None and self.length:
                parts.append(author.op("Less", author.int(0), self.length))
            return spelling.both(author, parts)

    def _none(self, author: Author) -> Given:
        """What the loop gives where it does not run."""
        return Given(
            [one.initial for one in self.form.carried],
            [self._nothing(author, one) for one in self.form.collected],
        )

    def _both(self, author: Author) -> Given:
        """The iteration and the loop, of which the first does not stop at nothing."""
        states = [one.initial for one in self.form.carried]
        if self.last:
            loop = self._loop(author, states, "")
            peeled, _ = self._peeled(author, loop.states, self._before(author, self.length))
            return Given(peeled.states, self._joined(author, loop.rows, peeled.rows))
        number = self.author.int(0) if self.form.condition else ""
        peeled, go_on = self._peeled(author, states, number)
        loop = self._loop(author, peeled.states, go_on)
        return Given(loop.states, self._joined(author, peeled.rows, loop.rows))

    def _before(self, author: Author, number: str) -> str:
        """One less."""
        if self.form.kind is Kind.SCAN:
            return ""
        if self.known.trips is not None:
            return self.author.int(self.known.trips - 1)
        return author.op("Sub", number, self.author.int(1))

    def _peeled(self, author: Author, states: list[str], number: str) -> tuple[Given, str]:
        """The iteration: what it gives, each row [.., 1, ..], and its condition."""
        elements = [
            spelling.squeeze(author, self._part(author, one, peeled=True), one.axis)
            for one in self.form.scanned
        ]
        tag = "last" if self.last else "first"
        written = self._written(author, tag, number, states, elements)
        self.value_info += written.value_info
        self.annotations += written.annotations
        go_on = written.outputs[0] if self.form.condition else ""
        results = written.outputs[1:] if self.form.condition else written.outputs
        count = len(states)
        after = [
            self._kept_shape(author, position, new, old)
            for position, (new, old) in enumerate(zip(results[:count], states, strict=True))
        ]
        rows = [
            spelling.unsqueeze(author, row, one.axis)
            for one, row in zip(self.form.collected, results[count:], strict=True)
        ]
        return Given(after, rows), go_on

    def _part(self, author: Author, one: Scanned, *, peeled: bool) -> str:
        """What the iteration reads of a scanned tensor, or what it leaves."""
        at_front = self.last == one.reversed
        if at_front:
            start, end = (0, 1) if peeled else (1, None)
        else:
            start, end = (-1, None) if peeled else (0, -1)
        return spelling.part(author, one.tensor, one.axis, start, end)

    def _loop(self, author: Author, states: list[str], go_on: str) -> Given:
        """The loop over the other iterations; onnxruntime runs no Scan over nothing."""

        def run(at: Author) -> Given:
            return self._run(at, states, go_on)

        def skip(at: Author) -> Given:
            return Given(states, [self._nothing(at, one) for one in self.form.collected])

        if self.form.kind is Kind.LOOP or self.known.follows:
            return run(author)
        with author.serving(HANDLE_NO_TRIPS):
            more = author.op("Less", self.author.int(1), self.length)
        return self._either(author, more, run, skip, "more")

    def _run(self, author: Author, states: list[str], go_on: str) -> Given:
        """The loop, its iterations counted on where the first one was peeled."""
        form, source = self.form, self.site.node
        inner = author.inside(f"{author.prefix}/rest")
        offset = self.author.int(1) if form.condition and not self.last else ""
        body = remaining_body(inner, form, self.body, "rest", first=offset)
        node = NodeProto(op_type=op_of(source), doc_string=source.doc_string)
        node.name = f"{source.name}/rest" if source.name else ""
        node.attribute.extend(one for one in source.attribute if one.name != "body")
        node.attribute.append(helper.make_attribute("body", body))
        node.metadata_props.extend(source.metadata_props)
        node.metadata_props.add(key=ITERATION_KEY, value="rest")
        node.metadata_props.add(key=PEELED_KEY, value="last" if self.last else "first")
        fed = [*states, *(self._part(author, one, peeled=False) for one in form.scanned)]
        node.input.extend([*self._head(author, go_on), *fed])
        given = Given(
            [self.author.fresh(f"{one.body_output}/rest") for one in form.carried],
            [self.author.fresh(f"{one.body_output}/rest") for one in form.collected],
        )
        node.output.extend([*given.states, *given.rows])
        author.adopt([node])
        return given

    def _head(self, author: Author, go_on: str) -> list[str]:
        """The trip count and the condition of the loop, where it is a Loop."""
        condition = self.form.condition
        if condition is None:
            return []
        count = self._before(author, self.length) if self.form.trip_count else ""
        if self.last or (not condition.initial and self._goes_on):
            return [count, condition.initial]
        return [count, self._of_declared_rank(author, go_on)]

    def _of_declared_rank(self, author: Author, go_on: str) -> str:
        """The condition that the iteration returns, as the body declares the one it gets."""
        assert self.form.condition is not None
        returned = dims_of(self.site.body_type_of("body", self.form.condition.body_output))
        rank = self.form.condition_rank
        if returned is not None and len(returned) == rank:
            return go_on
        return author.op("Reshape", go_on, self.author.ints(*[1] * rank))

    def _joined(self, author: Author, early: list[str], late: list[str]) -> list[str]:
        """Rows of earlier and later iterations together; a loop that did not run knows only some
        sizes of what it collected."""
        pairs = zip(self.form.collected, early, late, strict=True)
        return [self._join(author, one, before, after) for one, before, after in pairs]

    def _join(self, author: Author, one: Collected, early: str, late: str) -> str:
        loop, peeled = (early, late) if self.last else (late, early)
        ordered = [late, early] if one.reversed else [early, late]
        if self.known.follows:
            return author.op("Concat", *ordered, axis=one.axis)
        size = spelling.squeeze(author, spelling.size_of_axis(author, loop, one.axis), 0)
        together, alone = author.inside(f"{author.prefix}/all"), author.inside(author.prefix)
        both = together.op("Concat", *ordered, axis=one.axis)
        types = [rows_type(self.site, self.form, one)]
        with author.serving(HANDLE_NO_TRIPS):
            return author.op(
                "If",
                author.op("Less", self.author.int(0), size),
                then_branch=self._branch(together, "all", [both], types),
                else_branch=self._branch(alone, "alone", [peeled], types),
            )
