"""The body of a loop over blocks: all iterations of a block at once.

What no state feeds is computed for the whole block (`vectorize`), then the states and what is read
of them (`matrix_steps`, `element_steps`), then what is computed of that. An If runs the iterations
one by one where products would not do: with NaN, infinity, or numbers beyond the range in which
they are exact.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from onnx import GraphProto, NodeProto, TypeProto, ValueInfoProto, helper

from passes.bodies.branches import Branch, Results, either
from passes.bodies.time_body import TimeBody
from passes.ir import scope as scoping
from passes.ir.draft import ITERATION_KEY, ONE_BY_ONE
from passes.ir.live import keep_nodes, live
from passes.ir.protos import copied, replace_all
from passes.loops.form import Carried, Collected, Kind, LoopForm, Scanned
from passes.rules.recurrences import element_steps, matrix_steps
from passes.rules.recurrences.decays import Decay
from passes.rules.recurrences.forms import ElementForm
from passes.rules.recurrences.layout import Prepared, Writer
from passes.rules.recurrences.plan import Form, Stage
from passes.types.value_types import dims_of, elem_type_of, tensor_type
from passes.vectorize import Axis, Vectorizer
from passes.writing import spelling
from passes.writing.author import Author


@dataclass(frozen=True)
class BlockBody:
    """A loop to run over blocks of `length` iterations, its states stage by stage."""

    body: TimeBody
    stages: tuple[Stage, ...]
    length: int

    @cached_property
    def collected(self) -> list[str]:
        """The values that are collected, each once."""
        return list(
            dict.fromkeys(one.body_output for one in self.body.form.collected if one.tensor)
        )

    def one_by_one(
        self,
        carried: Sequence[Carried],
        scanned: Sequence[Scanned],
        collected: Sequence[Collected],
    ) -> NodeProto:
        """A Scan over iterations as they were, in names of its own, with a mark."""
        body, names = self.body, self.body.site.names
        nodes = [body.nodes[position] for position in sorted(self._needed(collected))]
        graph = copied(body.rows.graph)
        replace_all(graph.node, nodes)
        del graph.output[:]
        own = {}
        computed = {name for node in nodes for name in node.output}
        computed -= {one.body_output for one in carried}
        for name in (row.body_output for row in collected):
            own[name] = name if name in computed else names.fresh(f"{name}/own")
            if name not in computed:  # each output of a body is a value of its own
                graph.node.append(helper.make_node("Identity", [name], [own[name]]))
        for name in (*(one.body_output for one in carried), *own):
            graph.output.add(name=own.get(name, name), type=body.rows.types[name])
        rows = tuple(replace(row, body_output=own[row.body_output]) for row in collected)
        steps = LoopForm(Kind.SCAN, graph, tuple(carried), tuple(scanned), rows)
        return marked(steps.renamed(scoping.rename_all(graph, names.fresh)), ONE_BY_ONE)

    def _needed(self, collected: Sequence[Collected]) -> set[int]:
        """The positions of the nodes that the states, and what is collected, depend on."""
        names = [one.body_output for one in self.body.form.carried]
        names += [one.body_output for one in collected]
        return self.body.needs(names).nodes

    def graph(self, outer: Author) -> GraphProto:
        """The body."""
        body, form = self.body, self.body.form
        author = outer.inside("block")
        author.adopt([], body.rows.graph.initializer)
        axis = Axis(author.ints(self.length), self.length, nonempty=True)
        elements = {scanned.body_input for scanned in form.scanned}
        vectorizer = Vectorizer(body.rows, axis, author, set(elements), body.site.path)
        names = [carried.body_input for carried in form.carried]
        starts = {name: author.names.fresh(name) for name in names}
        ends: dict[str, str] = {}
        written, known = set[int](), set[str]()
        for number, stage in enumerate(self.stages):
            self._write(
                vectorizer,
                [one.name for form in stage.forms for one in form.inputs],
                written,
                known,
            )
            ends |= self._either(number, vectorizer, starts)
            known.update(stage.reads)
            vectorizer.carrying.update(stage.reads)
        self._write(vectorizer, self.collected, written, known)
        outputs = []
        for carried in form.carried:
            outputs.append(self._typed(carried.body_output, ends[carried.body_input]))
        for name in self.collected:
            own = author.op("Identity", vectorizer.spread(name))
            outputs.append(ValueInfoProto(name=own, type=self._blocked(name)))
        inputs = [
            *(self._typed(name, starts[name]) for name in names),
            *(
                ValueInfoProto(name=scanned.body_input, type=self._blocked(scanned.body_input))
                for scanned in form.scanned
            ),
        ]
        graph = author.graph(f"{body.rows.graph.name}_block", inputs, outputs)
        # products of which only the factors are read
        keep_nodes(graph, live(graph.node, scoping.output_names(graph), scoping.free_names)[0])
        return graph

    def _write(
        self, vectorizer: Vectorizer, names: Sequence[str], written: set[int], known: set[str]
    ) -> None:
        """Write what values need, for all iterations of the block, as far as it is not there."""
        positions = self.body.needs(names, stop=known).nodes - written
        vectorizer.nodes(self.body.nodes[position] for position in sorted(positions))
        written |= positions

    def _typed(self, name: str, own: str) -> ValueInfoProto:
        return ValueInfoProto(name=own, type=self.body.rows.types[name])

    def _blocked(self, name: str) -> TypeProto:
        """The type of a value of a whole block."""
        known = self.body.rows.types[name]
        return tensor_type(elem_type_of(known), (self.length, *(dims_of(known) or ())))

    def _either(
        self, number: int, vectorizer: Vectorizer, starts: Mapping[str, str]
    ) -> dict[str, str]:
        """Write what is read of the states of a stage, at once or one by one; returns the states
        after the block."""
        stage, form, author = self.stages[number], self.body.form, vectorizer.author
        writer = Writer(author, vectorizer.carries)
        ready = [self._prepared(stage, one, writer, starts) for one in stage.forms]
        states = [state.carried for one in stage.forms for state in one.states]
        ends = {one.body_input: author.fresh(one.body_output) for one in states}
        names = [*ends.values(), *stage.reads]

        checks = [check for one in ready for check in one.checks]
        early = {}
        for place, one in enumerate(ready):
            if one.judge is not None:
                early[place] = one.write(author)
                checks += one.judge(author, early[place])

        def at_once(inner: Author) -> Results:
            written = [early.get(place) or one.write(inner) for place, one in enumerate(ready)]
            last = [inner.op("Identity", state) for ends, _ in written for state in ends]
            reads = {name: value for _, found in written for name, value in found.items()}
            return Results([*last, *(inner.op("Identity", reads[name]) for name in stage.reads)])

        def one_by_one(inner: Author) -> Results:
            carried = [
                replace(one, initial=starts[one.body_input], final=inner.fresh("last"))
                for one in form.carried
            ]
            scanned = [Scanned(one.body_input, one.body_input) for one in form.scanned]
            collected = [Collected(name, inner.fresh(f"{name}/rows")) for name in stage.reads]
            inner.adopt([self.one_by_one(carried, scanned, collected)])
            finals = {one.body_input: one.final for one in carried}
            return Results([*(finals[name] for name in ends), *(one.tensor for one in collected)])

        types = [
            *(self.body.rows.types[one.body_input] for one in states),
            *(self._blocked(name) for name in stage.reads),
        ]
        if not checks:
            for name, value in zip(names, at_once(author).names, strict=True):
                author.name_as(value, name)
            return ends
        branches = Branch("at_once", at_once), Branch("one_by_one", one_by_one)
        either(author, spelling.both(author, checks), *branches, names, types)
        return ends

    def _prepared(
        self, stage: Stage, form: Form, writer: Writer, starts: Mapping[str, str]
    ) -> Prepared:
        names = [state.carried.body_input for state in form.states]
        kind = elem_type_of(self.body.rows.types[names[0]])
        own = [starts[name] for name in names]
        notation = stage.finder.notation
        if isinstance(form, ElementForm):
            return element_steps.prepared(form, notation, writer, self.length, kind, own)
        dtype = np.dtype(helper.tensor_dtype_to_np_dtype(kind))
        plain = Decay(writer.author, self.length, len(form.around) + 2, dtype)
        return matrix_steps.prepared(form, notation, writer, plain, own[0])


def marked(form: LoopForm, kind: str) -> NodeProto:
    """Return the node of a loop, with a mark of the purpose for which it was written."""
    node = form.to_node()
    node.metadata_props.add(key=ITERATION_KEY, value=kind)
    return node
