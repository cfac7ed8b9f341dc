"""The body of a loop over blocks: all iterations of a block at once.

What no state feeds is computed for the whole block (`vectorize`), then the states and what is read
of them (`block_steps`), then what is computed of that. An If runs the iterations one by one where
products would not do: with NaN, infinity, or numbers beyond the range in which they are exact.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce

import numpy as np
from onnx import GraphProto, NodeProto, TypeProto, ValueInfoProto, helper

from passes.ir import scope as scoping
from passes.ir.live import keep_nodes, live
from passes.ir.repeated import replace_all
from passes.loops.form import Carried, Collected, Kind, LoopForm, Scanned
from passes.rules.recurrences.block_steps import BlockSteps, decay_of
from passes.rules.recurrences.decays import Decay, DecayOfAll, DecayOfRows
from passes.rules.recurrences.index_notation import Factor
from passes.rules.recurrences.layout import Writer
from passes.rules.recurrences.linear_states import StateFinder
from passes.rules.recurrences.matrix_form import MatrixForm
from passes.rules.time_axis.time_body import TimeBody
from passes.types.value_types import dims_of, elem_type_of, tensor_type
from passes.vectorize import Axis, Vectorizer
from passes.writing import spelling
from passes.writing.author import Author
from passes.writing.branches import Branch, Results, either
from passes.writing.draft import ITERATION_KEY, ONE_BY_ONE

#: The sum of the squares of all factors is less: products of a few of them do not overflow.
_LARGEST = 1e20
#: The log of what half a block may decay by, for rows: it keeps errors within 2x of the loop's.
_MOST_WAY = 6.0
#: The log of a decay, which then grows.
_MOST_GROWTH = 0.5


@dataclass(frozen=True)
class BlockBody:
    """A loop whose states all have matrix forms, to run over blocks of `length` iterations."""

    body: TimeBody
    finder: StateFinder
    forms: tuple[MatrixForm, ...]
    length: int

    @cached_property
    def collected(self) -> list[str]:
        """The values that are collected, each once."""
        return list(
            dict.fromkeys(one.body_output for one in self.body.form.collected if one.tensor)
        )

    def one_by_one(
        self, carried: Sequence[Carried], scanned: Sequence[Scanned], collected: Sequence[Collected]
    ) -> NodeProto:
        """A Scan over iterations as they were, in names of its own, marked."""
        body, names = self.body, self.body.site.names
        nodes = [body.nodes[position] for position in sorted(self._needed(collected))]
        graph = GraphProto()
        graph.CopyFrom(body.rows.graph)
        replace_all(graph.node, nodes)
        del graph.output[:]
        own = {}
        for one in collected:
            own[one.body_output] = names.fresh(f"{one.body_output}/own")
            graph.node.append(
                helper.make_node("Identity", [one.body_output], [own[one.body_output]])
            )
        for name in (*(one.body_output for one in carried), *own):
            graph.output.add(name=own.get(name, name), type=body.rows.types[name])
        renamed: dict[str, str] = {}

        def fresh(name: str) -> str:
            renamed[name] = names.fresh(name)
            return renamed[name]

        scoping.rename_all(graph, fresh)
        steps = LoopForm(
            Kind.SCAN,
            graph,
            tuple(
                replace(
                    one,
                    body_input=renamed[one.body_input],
                    body_output=renamed[one.body_output],
                )
                for one in carried
            ),
            tuple(replace(one, body_input=renamed[one.body_input]) for one in scanned),
            tuple(replace(one, body_output=renamed[own[one.body_output]]) for one in collected),
        )
        return marked(steps, ONE_BY_ONE)

    def _needed(self, collected: Sequence[Collected]) -> set[int]:
        """The positions of the nodes that the states, and what is collected, depend on."""
        names = [one.body_output for one in (*self.body.form.carried, *collected)]
        return {position for position, _ in self._behind(names, set())}

    def _behind(self, names: list[str], stop: set[str]) -> Iterator[tuple[int, NodeProto]]:
        """The nodes that values depend on, but for those in `stop`, by position."""
        positions, seen = self.body.index.positions, set(stop)
        pending = list(names)
        while pending:
            name = pending.pop()
            if name in seen:
                continue
            seen.add(name)
            position = positions.get(name)
            if position is not None:
                node = self.body.nodes[position]
                yield position, node
                pending += scoping.free_names(node)

    def graph(self, outer: Author) -> GraphProto:
        body, form = self.body, self.body.form
        author = outer.inside("block")
        author.adopt([], body.rows.graph.initializer)
        axis = Axis(author.ints(self.length), self.length, nonempty=True)
        elements = {scanned.body_input for scanned in form.scanned}
        vectorizer = Vectorizer(body.rows, axis, author, set(elements), body.site.path)
        dependent = self.finder.dependent
        vectorizer.nodes(node for node in body.nodes if dependent.isdisjoint(node.output))
        writer = Writer(author, vectorizer.carries)
        decays = [
            decay_of(form, self.finder.notation, writer, self._plain(author, form))
            for form in self.forms
        ]
        self._either(writer, decays)
        reads = {out.read.name for one in self.forms for out in one.outputs}
        vectorizer.carrying.update(reads)
        stop = reads | {
            name for name in scoping.all_names([body.rows.graph]) if name not in dependent
        }
        after = sorted(position for position, _ in self._behind(self.collected, stop))
        vectorizer.nodes(body.nodes[position] for position in after)
        outputs = []
        for carried in form.carried:
            outputs.append(
                ValueInfoProto(name=carried.body_output, type=body.rows.types[carried.body_output])
            )
        for name in self.collected:
            value = vectorizer.spread(name)
            own = author.op("Identity", value)
            outputs.append(ValueInfoProto(name=own, type=self._blocked(name)))
        inputs = [
            *(self._typed(carried.body_input) for carried in form.carried),
            *(
                ValueInfoProto(name=scanned.body_input, type=self._blocked(scanned.body_input))
                for scanned in form.scanned
            ),
        ]
        graph = author.graph(f"{body.rows.graph.name}_block", inputs, outputs)
        # products of rows and columns, of which only the factors are read
        keep_nodes(
            graph, live(list(graph.node), scoping.output_names(graph), scoping.free_names)[0]
        )
        return graph

    def _plain(self, author: Author, form: MatrixForm) -> Decay:
        kind = elem_type_of(self.body.rows.types[form.state.carried.body_input])
        dtype = helper.tensor_dtype_to_np_dtype(kind)
        return Decay(author, self.length, len(form.around) + 2, np.dtype(dtype))

    def _typed(self, name: str) -> ValueInfoProto:
        return ValueInfoProto(name=name, type=self.body.rows.types[name])

    def _blocked(self, name: str) -> TypeProto:
        """The type of a value of a whole block."""
        known = self.body.rows.types[name]
        return tensor_type(elem_type_of(known), (self.length, *(dims_of(known) or ())))

    def _either(self, writer: Writer, decays: list[Decay]) -> None:
        """The states after the block, and what is read of them: at once or one by one."""
        form = self.body.form
        results = [one.body_output for one in form.carried]
        reads = [out.read.name for one in self.forms for out in one.outputs]

        def at_once(author: Author) -> Results:
            written: dict[str, str] = {}
            for one, decay in zip(self.forms, decays, strict=True):
                inner = Writer(author, writer.carries)
                written |= BlockSteps(one, inner, replace(decay, author=author)).write()
            return Results([author.op("Identity", written[name]) for name in (*results, *reads)])

        def one_by_one(author: Author) -> Results:
            carried = [
                replace(one, initial=one.body_input, final=author.fresh("last"))
                for one in form.carried
            ]
            scanned = [Scanned(one.body_input, one.body_input) for one in form.scanned]
            collected = [Collected(name, author.fresh(f"{name}/rows")) for name in reads]
            author.adopt([self.one_by_one(carried, scanned, collected)])
            return Results([*(one.final for one in carried), *(one.tensor for one in collected)])

        types = [
            *(self.body.rows.types[name] for name in results),
            *(self._blocked(name) for name in reads),
        ]
        either(
            writer.author,
            self._in_range(writer, decays),
            {
                "then_branch": Branch("at_once", at_once),
                "else_branch": Branch("one_by_one", one_by_one),
            },
            [*results, *reads],
            types,
        )

    def _in_range(self, writer: Writer, decays: list[Decay]) -> str:
        """Whether the products of a block are exact enough, and nothing is NaN or infinite."""
        author = writer.author
        checks = []
        for form, decay in zip(self.forms, decays, strict=True):
            squares = [_square(author, factor) for factor in form.factors]
            squares.append(author.op("ReduceSumSquare", form.state.carried.body_input, keepdims=0))
            if isinstance(decay, DecayOfAll):
                squares.append(author.op("ReduceSumSquare", decay.logs, keepdims=0))
                most = author.op("ReduceMax", decay.logs, keepdims=0)
                checks.append(
                    author.op("Less", most, decay.constant(np.array(_MOST_GROWTH), "most"))
                )
            if isinstance(decay, DecayOfRows):
                squares.append(author.op("ReduceSumSquare", decay.logs, keepdims=0))
                for way in decay.ways[: 1 + form.reads_before]:
                    most = author.op("ReduceMax", author.op("Abs", way), keepdims=0)
                    checks.append(
                        author.op("Less", most, decay.constant(np.array(_MOST_WAY), "most"))
                    )
            total = reduce(lambda one, other: author.op("Add", one, other), squares)
            checks.append(author.op("Less", total, decay.constant(np.array(_LARGEST), "largest")))
        return spelling.both(author, checks)


def marked(form: LoopForm, kind: str) -> NodeProto:
    node = form.to_node()
    node.metadata_props.add(key=ITERATION_KEY, value=kind)
    return node


def _square(author: Author, factor: Factor) -> str:
    """The sum of the squares of a factor."""

    def written() -> str:
        value = author.op("Reciprocal", factor.name) if factor.inverse else factor.name
        return author.op("ReduceSumSquare", value, keepdims=0)

    return author.once(("square", factor.name, factor.inverse), written)
