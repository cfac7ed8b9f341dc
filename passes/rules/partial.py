"""Writes a Loop that does several iterations at a time, and one that does the rest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from onnx import GraphProto, NodeProto, TensorProto, TypeProto, ValueInfoProto, helper

from passes import scope as scoping
from passes import spelling
from passes.author import Author
from passes.loop_form import Carried, Collected, Condition, Kind, LoopForm
from passes.rule import Edit, Site
from passes.rules.iteration import Iteration, write_iteration
from passes.rules.shared_body import SharedBody
from passes.rules.tidy import Tidy
from passes.value_types import dims_of, elem_type_of, tensor_type

#: The metadata of loops that are unrolled in part: with which factor.
PARTIAL_KEY = "passes.factor"
_IDENTITY_OF_SEQUENCES = 14


class Partial:
    """Writes both loops in the place of a site's node."""

    def __init__(self, site: Site, form: LoopForm, factor: int) -> None:
        self.site = site
        self.factor = factor
        self.author = Author(site.target, site.names, site.node.name or "loop")
        self.body = SharedBody.of(form.body, self.author, site.is_visible)
        self.form = replace(form, body=self.body.graph, constant_inputs=())
        self.true = self.author.constant(np.array(True), "true")

    def edit(self) -> Edit:
        """Write the loops, and put what they collected in order."""
        author = self.author
        author.adopt(self.body.nodes, self.body.constants)
        trips = self._scalar(self.form.trip_count)
        rounds = author.op("Div", trips, author.int(self.factor))
        done = author.op("Mul", rounds, author.int(self.factor))
        rest = author.op("Sub", trips, done)
        states, rows = self._rounds(rounds)
        last = self._rest(rest, done, states)
        for one, parts, tail in zip(self.form.collected, rows, last, strict=True):
            if one.tensor:
                self._in_order(one, parts, tail, rounds, rest)
        return Edit(
            tuple(author.nodes),
            tuple(author.constants),
            note=f"{self.factor} iterations at a time",
            annotations=self.body.annotations,
        )

    def _scalar(self, trips: str) -> str:
        """The trip count, which may be a vector of one, and negative for none."""
        author = self.author
        if dims_of(self.site.type_of(trips)) != ():
            trips = author.op("Reshape", trips, author.ints())
        zero = author.int(0)
        return author.op("Where", author.op("Less", zero, trips), trips, zero)

    def _rounds(self, rounds: str) -> tuple[list[str], list[list[str]]]:
        """The loop over rounds: its final states; for each collected value its parts by copy."""
        form, fresh = self.form, self.author.fresh
        states = [fresh(f"{one.body_output}/rounds") for one in form.carried]
        rows = [
            [fresh(f"{one.body_output}/it{copy}/rows") for copy in range(self.factor)]
            for one in form.collected
        ]
        body, names = self._round()
        count = 1 + len(states)
        carried = [
            Carried(one.initial, inside, outside, final)
            for one, inside, outside, final in zip(
                form.carried, scoping.input_names(body)[2:], names[1:count], states, strict=True
            )
        ]
        flat = [name for parts in rows for name in parts]
        collected = tuple(map(Collected, names[count:], flat))
        inputs = scoping.input_names(body)
        made = LoopForm(
            Kind.LOOP,
            body,
            tuple(carried),
            collected=collected,
            trip_count=rounds,
            condition=Condition("", inputs[1], names[0]),
            iteration=inputs[0],
        )
        self._adopt(made.to_node(), "rounds")
        return states, rows

    def _round(self) -> tuple[GraphProto, list[str]]:
        """The body of that loop, and what its outputs are called."""
        inner = self.author.inside(f"{self.author.prefix}/round")
        number, go = inner.fresh("number"), inner.fresh("go")
        inputs = [
            helper.make_value_info(number, tensor_type(TensorProto.INT64, ())),
            helper.make_value_info(go, tensor_type(TensorProto.BOOL, ())),
            *(_named(one, inner.fresh(one.name)) for one in self.body.graph.input[2:]),
        ]
        first = inner.op("Mul", number, inner.int(self.factor))
        states, collected = self._copies(inner, first, [one.name for one in inputs[2:]])
        results = [go, *states, *collected]
        declared = list(self.body.graph.output)
        types = declared[: 1 + len(states)]
        for value in declared[1 + len(states) :]:
            types += [value] * self.factor
        names = [_own(inner, one, value) for one, value in zip(results, types, strict=True)]
        outputs = [_named(one, name) for one, name in zip(types, names, strict=True)]
        nodes, constants = Tidy(
            inner, frozenset(names), lambda name: None, lambda name: None, finals=False
        ).clean()
        plain = f"{self.body.graph.name or 'body'}_rounds"
        return helper.make_graph(nodes, plain, inputs, outputs, constants), names

    def _copies(
        self, inner: Author, first: str, states: Sequence[str]
    ) -> tuple[list[str], list[str]]:
        """The iterations of a round: the states behind it, and what each collected, by value."""
        names = scoping.input_names(self.body.graph)
        current = list(states)
        collected: list[list[str]] = [[] for _ in self.form.collected]
        for copy in range(self.factor):
            number = inner.op("Add", first, inner.int(copy)) if copy else first
            values = [number, self.true, *current]
            written = self._iteration(inner, dict(zip(names, values, strict=True)), copy)
            current = written.outputs[1 : 1 + len(states)]
            for kept, name in zip(collected, written.outputs[1 + len(states) :], strict=True):
                kept.append(name)
        return current, [name for parts in collected for name in parts]

    def _iteration(self, inner: Author, inputs: dict[str, str], copy: int) -> Iteration:
        written = write_iteration(inner, self.body, inputs, f"it{copy}")
        inner.adopt(written.nodes)
        return written

    def _rest(self, rest: str, done: str, states: Sequence[str]) -> list[str]:
        """The loop over what remains: answers with what it collected."""
        inner = self.author.inside(f"{self.author.prefix}/rest")
        number = inner.fresh("number")
        values = list(self.body.graph.input)
        taken = [number, *(inner.fresh(one.name) for one in values[1:])]
        actual = inner.op("Add", number, done)
        mapping = dict(zip([one.name for one in values], [actual, *taken[1:]], strict=True))
        written = write_iteration(inner, self.body, mapping, "rest")
        inner.adopt(written.nodes)
        results = [taken[1], *written.outputs[1:]]
        declared = list(self.body.graph.output)
        names = [_own(inner, one, value) for one, value in zip(results, declared, strict=True)]
        outputs = [_named(one, name) for one, name in zip(declared, names, strict=True)]
        inputs = [_named(one, name) for one, name in zip(values, taken, strict=True)]
        graph = inner.graph(f"{self.body.graph.name or 'body'}_rest", inputs, outputs)
        rows = [self.author.fresh(f"{one.body_output}/rest") for one in self.form.collected]
        finals = [one.final or self.author.fresh("unused") for one in self.form.carried]
        node = helper.make_node("Loop", [rest, "", *states], [*finals, *rows], body=graph)
        self._adopt(node, "rest")
        return rows

    def _adopt(self, node: NodeProto, what: str) -> None:
        source = self.site.node
        if source.name:
            node.name = f"{source.name}/{what}"
        if source.doc_string:
            node.doc_string = source.doc_string
        node.metadata_props.extend(source.metadata_props)
        node.metadata_props.add(key=PARTIAL_KEY, value=f"{self.factor}")
        self.author.adopt([node])

    def _in_order(
        self, one: Collected, parts: Sequence[str], tail: str, rounds: str, rest: str
    ) -> None:
        """What the copies collected, in the order of the iterations, then what the rest did.

        A loop that did not run knows only some sizes of what it collected, so only what did run
        is put together.
        """
        author = self.author
        some = author.op("Less", author.int(0), rounds)
        more = author.op("Less", author.int(0), rest)
        together = author.inside(f"{author.prefix}/ordered")
        ordered = self._interleaved(together, parts, rounds)
        kind = self._rows_type(one)
        inside = self._joined(together, ordered, tail, more, kind)
        alone = author.inside(f"{author.prefix}/alone")
        only = alone.op("Identity", tail)
        author.op(
            "If",
            some,
            outputs=[one.tensor],
            then_branch=together.graph("ordered", [], [helper.make_value_info(inside, kind)]),
            else_branch=alone.graph("alone", [], [helper.make_value_info(only, kind)]),
        )

    def _rows_type(self, one: Collected) -> TypeProto:
        """The type of collected rows; sizes are not known in both branches."""
        known = self.site.body_type_of("body", one.body_output)
        dims = dims_of(known)
        rank = None if dims is None else (None, *(None for _ in dims))
        return tensor_type(elem_type_of(known), rank)

    def _interleaved(self, author: Author, parts: Sequence[str], rounds: str) -> str:
        """Row r of copy c becomes row r * factor + c."""
        count = author.int(self.factor)
        total = author.op("Mul", spelling.unsqueeze(author, rounds, 0), author.ints(self.factor))
        at = spelling.arange(author, total)
        row = author.op("Div", at, count)
        copy = author.op("Sub", at, author.op("Mul", row, count))
        index = author.op("Add", author.op("Mul", copy, rounds), row)
        return author.op("Gather", author.op("Concat", *parts, axis=0), index, axis=0)

    def _joined(self, author: Author, rows: str, tail: str, more: str, kind: TypeProto) -> str:
        both, first = author.inside(f"{author.prefix}/both"), author.inside(f"{author.prefix}/one")
        all_rows, same = both.op("Concat", rows, tail, axis=0), first.op("Identity", rows)
        return author.op(
            "If",
            more,
            then_branch=both.graph("both", [], [helper.make_value_info(all_rows, kind)]),
            else_branch=first.graph("one", [], [helper.make_value_info(same, kind)]),
        )


def _own(author: Author, name: str, value: ValueInfoProto) -> str:
    """A body's output, from a node of its own; early Identity takes tensors only."""
    if value.type.HasField("sequence_type") and author.opset < _IDENTITY_OF_SEQUENCES:
        return name
    return author.op("Identity", name, outputs=[author.fresh("out")])


def _named(value: ValueInfoProto, name: str) -> ValueInfoProto:
    copy = ValueInfoProto()
    copy.CopyFrom(value)
    copy.name = name
    return copy
