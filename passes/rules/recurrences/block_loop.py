"""Writes a loop as a Scan over blocks of iterations, and what is left after the last block."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from onnx import TypeProto

from passes.bodies.branches import Branch, Results, either
from passes.bodies.moving import place_rows, time_first
from passes.bodies.time_length import Length, length_of
from passes.ir import scope as scoping
from passes.ir.draft import BLOCKS
from passes.loops.form import Collected, Kind, LoopForm, Scanned
from passes.rule import Claim, Edit
from passes.rules.recurrences.block_body import BlockBody, marked
from passes.rules.recurrences.block_length import trips_of
from passes.types.value_types import dims_of, elem_type_of, tensor_type
from passes.writing import spelling
from passes.writing.author import Author

#: Measured: products of a block carry roundings up to 10 times as far as the steps of the loop.
_FURTHER = 4.0


@dataclass(frozen=True)
class BlockLoop:
    """Writes a loop; all values are known by their names in its body. `exact`: nothing rounds;
    `regroups`: sums of floats are regrouped."""

    block: BlockBody
    exact: bool
    regroups: bool

    def edit(self) -> Edit:
        """The Edit.

        Raises:
            NotLinear: a value cannot be laid out.
            Refused: an op has no vectorization rule.
        """
        body, form, site = self.block.body, self.block.body.form, self.block.body.site
        author = Author.at(site, "scan")
        length = length_of(body.site, author, form.scanned)
        rows = [self._rows(author, scanned, length) for scanned in form.scanned]
        trips = trips_of(body)
        if trips is None:
            outputs = self._any_number(author, rows, length)
        else:
            outputs = self._fixed(author, rows, trips)
        for collected in form.collected:
            if collected.tensor:
                rank = len(dims_of(body.rows.types[collected.body_output]) or ()) + 1
                value = outputs[collected.body_output]
                place_rows(author, value, collected, rank, turned=collected.reversed)
        for carried in form.carried:
            if carried.final:
                author.op("Identity", outputs[carried.body_output], outputs=[carried.final])
        note = f"{self.block.length} iterations at once"
        return replace(
            author.edit(note + "; sums of floats are regrouped" * self.regroups),
            exact=self.exact,
            regroups=self.regroups,
            context=length.context,
            claim=Claim(_FURTHER, branches=True),
        )

    def _rows(self, author: Author, scanned: Scanned, length: Length) -> str:
        """A scanned tensor with the iterations in their order as axis 0."""
        value = time_first(self.block.body, author, scanned, length)
        return spelling.reversed_rows(author, value) if scanned.reversed else value

    @property
    def _results(self) -> list[str]:
        """The next states, and what is collected."""
        states = [carried.body_output for carried in self.block.body.form.carried]
        return [*states, *self.block.collected]

    def _types(self) -> list[TypeProto]:
        """The types of these after the loop."""
        types = self.block.body.rows.types
        states = [types[carried.body_output] for carried in self.block.body.form.carried]
        rows = [types[name] for name in self.block.collected]
        return [
            *states,
            *(tensor_type(elem_type_of(one), (None, *(dims_of(one) or ()))) for one in rows),
        ]

    def _fixed(self, author: Author, rows: Sequence[str], trips: int) -> dict[str, str]:
        """A known number of iterations."""
        count, rest = divmod(trips, self.block.length)
        found = self._blocks(author, rows, count, trips - rest, cut=rest > 0)
        return self._rest(author, rows, found, author.ints(trips - rest)) if rest else found

    def _any_number(self, author: Author, rows: Sequence[str], length: Length) -> dict[str, str]:
        """A number of iterations that is known at run time; no Scan is to run over nothing."""
        carried = self.block.body.form.carried
        size = author.ints(self.block.length)
        initial = {one.body_output: one.initial for one in carried}

        def one_by_one(inner: Author) -> Results:
            found = self._one_by_one(inner, rows, initial)
            return Results([found[name] for name in self._results])

        def in_blocks(inner: Author) -> Results:
            count = inner.op("Div", length.size, size)
            whole = inner.op("Mul", count, size)
            found = self._blocks(inner, rows, count, whole, cut=True)
            left = inner.op("Less", whole, length.size)
            results = [inner.fresh(name) for name in self._results]

            def with_rest(last: Author) -> Results:
                rest = self._rest(last, rows, found, whole)
                return Results([rest[name] for name in self._results])

            def without(last: Author) -> Results:
                return Results([last.op("Identity", found[name]) for name in self._results])

            ways = Branch("rest", with_rest), Branch("no_rest", without)
            either(inner, left, *ways, results, self._types())
            return Results(results)

        enough = author.op("Less", author.ints(self.block.length - 1), length.size)
        results = [author.fresh(name) for name in self._results]
        ways = Branch("in_blocks", in_blocks), Branch("one_by_one", one_by_one)
        either(author, enough, *ways, results, self._types())
        return dict(zip(self._results, results, strict=True))

    def _blocks(
        self, author: Author, rows: Sequence[str], count: int | str, total: int | str, cut: bool
    ) -> dict[str, str]:
        """The Scan over `count` blocks, of `total` iterations: of the first ones if `cut`. Names
        are those of int64 [1]."""
        form, types = self.block.body.form, self.block.body.rows.types
        read = []
        for value, one in zip(rows, form.scanned, strict=True):
            if cut:
                end = author.ints(total) if isinstance(total, int) else total
                value = author.op("Slice", value, author.ints(0), end, author.ints(0))
            row = dims_of(types[one.body_input]) or ()
            read.append(spelling.with_front(author, value, [count, self.block.length], 1, row))
        block = self.block.graph(author)
        states, outputs = len(form.carried), scoping.output_names(block)
        names = zip(form.carried, scoping.input_names(block), outputs, strict=False)
        carried = [
            replace(
                one,
                body_input=read,
                body_output=returned,
                final=author.fresh(f"{one.body_output}/last"),
            )
            for one, read, returned in names
        ]
        collected = [Collected(name, author.fresh(f"{name}/blocks")) for name in outputs[states:]]
        scanned = [
            Scanned(value, one.body_input) for value, one in zip(read, form.scanned, strict=True)
        ]
        loop = LoopForm(Kind.SCAN, block, tuple(carried), tuple(scanned), tuple(collected))
        author.adopt([marked(loop, BLOCKS)])
        found = {old.body_output: new.final for old, new in zip(form.carried, carried, strict=True)}
        for name, blocks in zip(self.block.collected, collected, strict=True):
            row = dims_of(types[name]) or ()
            found[name] = spelling.with_front(author, blocks.tensor, [total], 2, row)
        return found

    def _rest(
        self, author: Author, rows: Sequence[str], found: Mapping[str, str], start: str
    ) -> dict[str, str]:
        """The iterations from `start` on, one by one; what the loop returns then."""
        rest = [
            author.op("Slice", value, start, author.ints(spelling.LAST), author.ints(0))
            for value in rows
        ]
        added = self._one_by_one(author, rest, found)
        for name in self.block.collected:
            added[name] = author.op("Concat", found[name], added[name], axis=0)
        return added

    def _one_by_one(
        self, author: Author, rows: Sequence[str], states: Mapping[str, str]
    ) -> dict[str, str]:
        """The loop as it was, from these states on."""
        form = self.block.body.form
        scanned = [
            Scanned(value, one.body_input) for value, one in zip(rows, form.scanned, strict=True)
        ]
        carried = [
            replace(one, initial=states[one.body_output], final=author.fresh("last"))
            for one in form.carried
        ]
        collected = [Collected(name, author.fresh(f"{name}/rows")) for name in self.block.collected]
        author.adopt([self.block.one_by_one(carried, scanned, collected)])
        return {
            **{one.body_output: one.final for one in carried},
            **{one.body_output: one.tensor for one in collected},
        }
