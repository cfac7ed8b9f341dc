"""Writes a Loop that runs several iterations at a time, and one for the rest."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from onnx import GraphProto, TypeProto, helper

from passes.ir.protos import changed, named
from passes.loops.form import Collected, LoopForm
from passes.rule import Edit, Site
from passes.rules.unroll.remaining import remaining_body
from passes.rules.unroll.unrolling import Unrolling, part_of_loop
from passes.types.value_types import dims_of, elem_type_of, tensor_type
from passes.writing import spelling
from passes.writing.author import Author
from passes.writing.body_outputs import own, without_copies
from passes.writing.branches import Branch, Results, either
from passes.writing.tidy import Tidy


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

        branches = {
            "then_branch": _branch("ordered", ordered),
            "else_branch": _branch("alone", lambda inner: inner.op("Identity", tail)),
        }
        either(author, some, branches, [name], [kind])

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
        branches = {
            "then_branch": _branch("both", lambda inner: inner.op("Concat", rows, tail, axis=0)),
            "else_branch": _branch("one", lambda inner: inner.op("Identity", rows)),
        }
        either(author, condition, branches, [joined], [kind])
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
        return Edit(
            tuple(author.nodes),
            tuple(author.constants),
            note=note,
            annotations=self.body.annotations,
        )

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
