"""The rule `unroll-partial`: a Loop runs several iterations at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from onnx import GraphProto, NodeProto, TensorProto, TypeProto, helper

from passes.analysis.bodies.context import context_of
from passes.analysis.trip_count.trip_count import TripCount
from passes.bodies.copy_budget import allow, refuse_copies_of_copies, refuse_random
from passes.ir.operators import op_of
from passes.ir.protos import changed, named
from passes.ir.versions import LESS_TAKES_INTEGERS
from passes.loops.form import Collected, LoopForm
from passes.rule import Edit, Site, register
from passes.rules.unroll.known_failure import refuse_known_failure
from passes.rules.unroll.unrolling import Unrolling, part_of_loop, remaining_body
from passes.types.value_types import dims_of, elem_type_of, tensor_type
from passes.writing import spelling
from passes.writing.author import Author
from passes.writing.branches import Branch, Results, either
from passes.writing.tidy import Tidy, own, without_copies


def considers(node: NodeProto, opset: int, target: int) -> bool:
    """Return whether a node is a Loop that this rule has not written itself."""
    if op_of(node) != "Loop":
        return False
    return all(entry.key != PARTIAL_KEY for entry in node.metadata_props)


@register("unroll-partial", considers=considers, optional=True)
def unroll_partial(site: Site) -> Edit:
    """Run `--factor` iterations of a Loop at a time, and the remaining ones in a second Loop.

    Before:

        y, z = Loop <body = step (i, go, s) { t = f (s, i) }> (M, "", h)

    After (a factor of 2):

        pairs, rest = ...
        s2, even, odd = Loop <body = steps (i, go, s) { ... }> (pairs, "", h)
        y, last = Loop <body = step (i, go, s) { ... }> (rest, "", s2)
        z = ...

    A Scan is lowered to a Loop first. One Gather puts what the copies collect in order. Where
    the trip count is static and not above the factor, every iteration is written out.

    Refuses:
    - `condition`: the loop may end before its trip count is reached
    - `no-trip-count`: the loop runs forever
    - `too-many-nodes`: the copies would take more nodes or bytes than are allowed, or are
      in copies of copies, in loops nested too deeply
    - `random`: the body draws random numbers, and every copy would draw the same ones
    - `iteration-fails`: an iteration cannot run with the sizes and constants known there
    - `strings`: the loop collects strings, whose rows onnxruntime cannot gather
    - `opset-too-old`: the opset is below 9, which compares no integers, and cannot create rows
      of a size that is known only at run time, where no iteration runs
    """
    form = LoopForm.from_node(site.node, site.opset)
    count = TripCount(site, form)
    if count.conditional:
        raise site.refused("condition", "a condition may end the loop before its count")
    if count.unlimited:
        raise site.refused("no-trip-count", "neither a count nor a condition ends the loop")
    refuse_random(site, form.body.node)
    factor = site.options.factor
    if count.static is not None and count.static <= factor:
        allow(site, form, count.static)
        edit = Unrolling(site, form, count.static).edit(f"all {count.static} iterations")
        refuse_known_failure(site, edit)
        return replace(edit, context=context_of(site))  # the trip count may follow from it
    _refuse_strings(site, form)
    site.need_opset(LESS_TAKES_INTEGERS, "compares no integers, to divide the trip count")
    refuse_copies_of_copies(site, form, factor + 1, PARTIAL_KEY)
    allow(site, form, factor + 1)
    edit = Partial(site, form, factor).edit(f"{factor} iterations at a time")
    initial = form.condition.initial if form.condition else ""
    # the condition is true because of the iterations before
    return replace(edit, context=context_of(site)) if initial else edit


def _refuse_strings(site: Site, form: LoopForm) -> None:
    for collected in form.collected:
        if elem_type_of(site.body_type_of("body", collected.body_output)) in (
            0,
            TensorProto.STRING,
        ):
            what = f"{collected.body_output!r} is collected, and may be strings"
            raise site.refused("strings", what, collected.body_output)


@dataclass(frozen=True)
class Interleaving:
    """`rounds` and `rest` name the trip counts of both loops, int64 scalars."""

    author: Author
    factor: int
    rounds: str
    rest: str

    def write(self, parts: Sequence[str], tail: str, kind: TypeProto, name: str) -> None:
        """Write what the copies collected (`parts`), in the order of the iterations, then what the
        rest collected (`tail`), of type `kind`, as `name`.

        A loop that did not run knows only some sizes of what it collected, so only what did run
        is concatenated.
        """
        author = self.author
        some = author.op("Less", author.int(0), self.rounds)

        def ordered(inner: Author) -> str:
            return self._joined(inner, self._interleaved(inner, parts), tail, kind)

        alone = _branch("alone", lambda inner: inner.op("Identity", tail))
        either(author, some, _branch("ordered", ordered), alone, [name], [kind])

    def _interleaved(self, author: Author, parts: Sequence[str]) -> str:
        """Row r of copy c becomes row r * factor + c."""
        count = author.int(self.factor)
        vector = spelling.unsqueeze(author, self.rounds, 0)
        position = spelling.arange(author, author.op("Mul", vector, author.ints(self.factor)))
        row = author.op("Div", position, count)
        copy = author.op("Sub", position, author.op("Mul", row, count))
        index = author.op("Add", author.op("Mul", copy, self.rounds), row)
        return author.op("Gather", author.op("Concat", *parts, axis=0), index, axis=0)

    def _joined(self, author: Author, rows: str, tail: str, kind: TypeProto) -> str:
        condition = self.author.op("Less", self.author.int(0), self.rest)
        joined = author.fresh("if")
        both = _branch("both", lambda inner: inner.op("Concat", rows, tail, axis=0))
        one = _branch("one", lambda inner: inner.op("Identity", rows))
        either(author, condition, both, one, [joined], [kind])
        return joined


def _branch(label: str, write: Callable[[Author], str]) -> Branch:
    return Branch(label, lambda inner: Results([write(inner)]), name=label)


#: The metadata key of loops that are unrolled in part; its value is the factor.
PARTIAL_KEY = "passes.factor"


class Partial(Unrolling):
    """Writes both loops in place of a site's node."""

    def __init__(self, site: Site, form: LoopForm, factor: int) -> None:
        super().__init__(site, form, factor)
        self.factor = factor
        self._symbols = frozenset()  # a size may differ between rounds

    def edit(self, note: str) -> Edit:
        """Write the loops, and put what they collected in order."""
        author = self.author
        author.adopt(self.body.nodes, self.body.constants)
        trips = self._scalar(self.form.trip_count)
        rounds = author.op("Div", trips, author.int(self.factor))
        done = author.op("Mul", rounds, author.int(self.factor))
        rest = author.op("Sub", trips, done)
        states, rows = self._rounds(rounds)
        last = self._rest(rest, done, states)
        ordered = Interleaving(author, self.factor, rounds, rest)
        for collected, parts, tail in zip(self.form.collected, rows, last, strict=True):
            if collected.tensor:
                ordered.write(parts, tail, self._rows_type(collected), collected.tensor)
        return replace(author.edit(note), annotations=self.body.annotations)

    def _scalar(self, trips: str) -> str:
        """The trip count as a scalar of 0 or more; it may be a vector of one element, or
        negative."""
        author = self.author
        trips = spelling.scalar(author, trips, self.site.type_of(trips))
        zero = author.int(0)
        return author.op("Where", author.op("Less", zero, trips), trips, zero)

    def _rounds(self, rounds: str) -> tuple[list[str], list[list[str]]]:
        """The loop over rounds: its final states; for each collected value its parts by copy."""
        form, fresh = self.form, self.author.fresh
        states = [fresh(f"{carried.body_output}/rounds") for carried in form.carried]
        rows = [
            [fresh(f"{collected.body_output}/it{copy}/rows") for copy in range(self.factor)]
            for collected in form.collected
        ]
        outputs = [*states, *(name for parts in rows for name in parts)]
        self._write_loop("rounds", [rounds, "", *self.initials], outputs, self._round())
        return states, rows

    def _write_loop(
        self, part: str, inputs: list[str], outputs: list[str], body: GraphProto
    ) -> None:
        node = changed(self.site.node, {"body": body}, inputs=inputs, outputs=outputs)
        self.author.adopt([part_of_loop(node, part, {PARTIAL_KEY: f"{self.factor}"})])

    def _round(self) -> GraphProto:
        """The body of that loop."""
        inner = self.author.inside(f"{self.author.prefix}/round")
        number, go = inner.fresh("number"), inner.fresh("go")
        inputs = [
            *map(helper.make_value_info, (number, go), self.form.head_types),
            *(named(value, inner.fresh(value.name)) for value in self.body.graph.input[2:]),
        ]
        first = inner.op("Mul", number, inner.int(self.factor))
        states = [value.name for value in inputs[2:]]
        for copy in range(self.factor):
            number = inner.op("Add", first, inner.int(copy)) if copy else first
            done = self.iteration(inner, f"it{copy}", number, states)
            states = done.states
            self._keep(done.rows)
        results = [go, *states, *(row for rows in self.collected for row in rows)]
        declared = list(self.body.graph.output)
        types = [inputs[1], *declared[1 : 1 + len(states)]]
        for value in declared[1 + len(states) :]:
            types += [value] * self.factor
        names = [own(inner, result, value) for result, value in zip(results, types, strict=True)]
        nodes, constants = Tidy(
            inner,
            frozenset(names),
            lambda name: None,
            lambda name: None,
            finals=False,
            doubts=self.doubts,
        ).clean()
        nodes, names = without_copies(nodes, names)
        outputs = [named(value, name) for value, name in zip(types, names, strict=True)]
        defined = {name for node in nodes for name in node.output}
        plain = f"{self.body.graph.name or 'body'}_rounds"
        inside = defined.difference(names)
        known = [value for value in self.value_info if value.name in inside]
        graph = helper.make_graph(nodes, plain, inputs, outputs, constants, value_info=known)
        kept = [one for one in self.annotations if one.tensor_name in defined]
        graph.quantization_annotation.extend(kept)
        return graph

    def _rest(self, rest: str, done: str, states: Sequence[str]) -> list[str]:
        """Write the loop over the remaining iterations; returns what it collected."""
        inner = self.author.inside(f"{self.author.prefix}/rest")
        body = remaining_body(self, inner, first=done, counted=True)
        rows = [self.author.fresh(f"{one.body_output}/rest") for one in self.form.collected]
        finals = [carried.final or self.author.fresh("unused") for carried in self.form.carried]
        self._write_loop("rest", [rest, "", *states], [*finals, *rows], body)
        return rows

    def _rows_type(self, collected: Collected) -> TypeProto:
        """The type of collected rows; its sizes are not known in both branches."""
        known = self.site.body_type_of("body", collected.body_output)
        dims = dims_of(known)
        rank = None if dims is None else (None, *(None for _ in dims))
        return tensor_type(elem_type_of(known), rank)
