"""The rule `peel`: the first or last iteration of a loop is written out beside it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from onnx import NodeProto

from passes.analysis.bodies.context import context_of
from passes.analysis.trip_count.trip_count import TripCount
from passes.bodies.branches import Branch, Results, either
from passes.bodies.copy_budget import allow, refuse_copies_of_copies, refuse_random
from passes.choices import Peel
from passes.ir.draft import ITERATION_KEY
from passes.ir.operators import is_loop_9
from passes.ir.protos import changed
from passes.ir.purposes import GUARD_SIZES, HANDLE_NO_TRIPS
from passes.ir.versions import LESS_TAKES_INTEGERS
from passes.loops.form import Collected, Kind, LoopForm, Scanned
from passes.rule import Claim, Edit, Limit, Site, register
from passes.rules.unroll.either_way import (
    either_way,
    refuse_states,
    refuse_two_shapes,
    rows_type,
    skipped,
)
from passes.rules.unroll.known_failure import refuse_known_failure
from passes.rules.unroll.unrolling import Outputs, Unrolling, part_of_loop, remaining_body
from passes.types.value_types import dims_of
from passes.writing import guards, spelling
from passes.writing.author import Author


def considers(node: NodeProto, opset: int, target: int) -> bool:
    """Return whether a node is a Loop, or a Scan of version 9 or later, that was not peeled yet."""
    peeled = any(entry.key == PEELED_KEY for entry in node.metadata_props)
    return is_loop_9(node, opset) and not peeled


@register("peel", considers=considers, optional=True)
def peel(site: Site) -> Edit:
    """Write out the first or the last iteration of a loop, which then runs one fewer.

    Before:

        y = Loop <body = step (i, go, s) { t = f (s, i) }> (three, "", h)

    After (`--peel first`):

        "t/first" = f (h, zero)
        y = Loop <body = step (i, go, s) { number = Add (i, one) t = f (s, number) }> (two, "",
            "t/first")

    A loop that may run no iteration is put, with the peeled one, into an If.
    A loop that runs once is replaced by its iteration. The iteration and the
    loop share the weights. The last iteration of a loop that a condition ends is not known in
    advance, so only its first one can be peeled.

    Refuses:
    - `no-iteration`: the loop never runs
    - `condition`: `--peel last`: the body computes whether the loop continues
    - `endless`: nothing ends the loop
    - `random`: the body draws random numbers, and a copy would draw its own
    - `unknown-shape`: possibly no iteration runs, and the rank of a collected element is unknown
    - `not-a-tensor`: a sequence or optional is carried, which no If of this opset can return
    - `old-if`: what is collected may be empty, or a state may change its shape, and before opset
      11 an If has one shape
    - `opset-too-old`: a trip count decides whether the loop runs, and the opset is below 9
    - `too-many-nodes`: the copies would take more nodes or bytes than are allowed, or are
      in copies of copies, in loops nested too deeply
    - `iteration-fails`: the iteration cannot run with the sizes and constants known there
    """
    form = LoopForm.from_node(site.node, site.opset)
    last = site.options.peel == Peel.last
    # onnxruntime, too, derives a trip count from known sizes: it would inline the If that checks
    # it, and crash over a Loop in it where the If is in a branch of another one that it inlines
    count = TripCount(site, form)
    if count.static == 1:
        allow(site, form, 1)
        edit = refuse_known_failure(site, Unrolling(site, form, 1).edit("the only iteration"))
        return replace(edit, context=context_of(site))  # the trip count may follow from it
    _refuse(site, form, count, last)
    refuse_copies_of_copies(site, form, 2, PEELED_KEY)
    allow(site, form, 2)
    edit = Peeling(site, form, count, last=last).edit(
        f"the {'last' if last else 'first'} iteration"
    )
    refuse_known_failure(site, edit)
    rests = count.static is not None or count.rests_on_proof
    if rests or _collects_open_sizes(site, form):  # sizes of no rows may follow from it, too
        edit = replace(edit, context=context_of(site))
    return edit if form.kind is Kind.SCAN else replace(edit, claim=Claim(limit=Limit(2)))


def _collects_open_sizes(site: Site, form: LoopForm) -> bool:
    """Return whether the size of what is collected is known only at run time."""
    return any(
        not isinstance(dim, int)
        for collected in form.collected
        for dim in dims_of(site.body_type_of("body", collected.body_output)) or ()
    )


def _refuse(site: Site, form: LoopForm, count: TripCount, last: bool) -> None:
    """Refuse what cannot be peeled.

    Raises:
        Refused: see the rule.
    """
    if count.never_runs:
        raise site.refused("no-iteration", "the loop never runs")
    refuse_random(site, form.body.node)
    if last and count.ends_early:
        assert form.condition is not None
        what = "which iteration is the last is known only after it"
        raise site.refused("condition", what, form.condition.body_output)
    if count.unlimited and not count.ends_early:
        raise site.refused("endless", "the loop has no trip count and nothing ends it")
    if (count.static or 0) < 2:
        refuse_two_shapes(site, form)
    if count.evidently_runs:
        return
    if form.trip_count:
        lacks = f"compares no integers, and {form.trip_count!r} may be 0"
        site.need_opset(LESS_TAKES_INTEGERS, lacks, form.trip_count)
    refuse_states(site, form)


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
            Branch("all", together, name="all"),
            Branch("", lambda inner: Results([peeled]), name="alone"),
            [joined],
            [rows_type(self.site, self.form, collected)],
            purpose=HANDLE_NO_TRIPS,
            cleaning=self.cleaning,
        )
        return joined
