"""Writes a loop with linear states by onnxruntime's kernel for them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, reduce

import numpy as np
from onnx import NodeProto, TensorProto, ValueInfoProto, helper

from passes.bodies.moving import Outside, cleaned
from passes.bodies.time_body import TimeBody
from passes.bodies.time_length import length_of
from passes.ir import scope as scoping
from passes.ir.operators import op_of
from passes.ir.places import CONTRIB
from passes.rule import Edit
from passes.rules.attention.kernel_form import KernelForm
from passes.rules.recurrences.index_notation import ONE, Factor, Notation, NotLinear, Summand
from passes.rules.recurrences.layout import TIME, Rows, Writer
from passes.types.value_types import tensor_type
from passes.writing import spelling
from passes.writing.author import Author


@dataclass(frozen=True)
class KernelLoop:
    """Writes a loop, its states stage by stage, each by a node. Values have the names of the body
    until they are published."""

    body: TimeBody
    stages: tuple[tuple[KernelForm, ...], ...]

    def edit(self) -> Edit:
        """The Edit.

        Raises:
            NotLinear: a value cannot be laid out.
            Refused: an op has no vectorization rule, or a decay may be negative.
        """
        body, form = self.body, self.body.form
        author = Author(body.site.target, body.site.names, body.site.node.name or "attention")
        outside = Outside(body, author, length_of(body.site, author, form.scanned))
        for scanned in form.scanned:
            outside.read(scanned, turned=scanned.reversed)
        written, known = set[int](), set[str]()
        states, types, context = dict[str, str](), list[ValueInfoProto](), list[NodeProto]()
        for stage in self.stages:
            needed = [one.name for kernel in stage for one in kernel.form.inputs]
            self._write(outside, needed, written, known)
            for kernel in stage:
                node = KernelNode(body, kernel, outside)
                states[kernel.form.state.carried.body_output] = node.write()
                types += node.types
                context += node.logs.context
                known.update(kernel.form.reads)
        collected = [one for one in form.collected if one.tensor]
        self._write(outside, [one.body_output for one in collected], written, known)
        names = outside.place(collected)
        for carried in form.carried:
            if carried.final:
                value = states[carried.body_output]
                author.op("Identity", names.get(value, value), outputs=[carried.final])
        edit = replace(cleaned(body, author, outside, (), "by LinearAttention"), exact=False)
        fresh = {name for node in edit.nodes for name in node.output}
        return replace(
            edit,
            value_info=tuple(one for one in types if one.name in fresh),
            context=(*context, *edit.context),
        )

    def _write(
        self, outside: Outside, names: Sequence[str], written: set[int], known: set[str]
    ) -> None:
        """Write what values need, for all iterations, as far as it is not there."""
        positions = set(self._behind(names, known)) - written
        outside.write([self.body.nodes[position] for position in sorted(positions)])
        outside.take_constants(names)
        written |= positions

    def _behind(self, names: Sequence[str], stop: set[str]) -> Iterator[int]:
        """The positions of the nodes that values depend on, but for those in `stop`."""
        pending, seen = list(names), set(stop)
        while pending:
            name = pending.pop()
            position = self.body.index.positions.get(name)
            if name not in seen and position is not None:
                yield position
                pending += scoping.free_names(self.body.nodes[position])
            seen.add(name)


@dataclass(frozen=True)
class KernelNode:
    """Writes the node of one state. Leading axes are heads; the one of unknown size is the
    batch."""

    body: TimeBody
    kernel: KernelForm
    outside: Outside

    @property
    def author(self) -> Author:
        """The author of its nodes."""
        return self.outside.inner

    @cached_property
    def writer(self) -> Writer:
        """Writes products of factors."""
        return Writer(self.author, self.outside.vectorizer.carries)

    @cached_property
    def rows(self) -> Rows:
        """Writes [batch.., iterations, heads.., rows or columns]."""
        form = self.kernel.form
        return Rows(
            self.writer, self._prefix, form.along, form.columns or ONE, 1, np.dtype(np.float32)
        )

    @property
    def _prefix(self) -> tuple[int, ...]:
        return (*self.kernel.batch, TIME, *self.kernel.heads)

    @property
    def _batch_size(self) -> str:
        """The size of the batch, int64 [1]."""
        state, author = self.kernel.form.state, self.author
        if not self.kernel.batch:
            return author.ints(1)
        (batch,) = self.kernel.batch
        return spelling.size_of_axis(author, state.carried.initial, state.at.index(batch))

    @cached_property
    def logs(self) -> Logs:
        """Writes the logs of its decays."""
        return Logs(self.body, self.kernel.notation, self.writer)

    @cached_property
    def names(self) -> tuple[str, str]:
        """The outputs of the node."""
        return self.author.fresh("read"), self.author.fresh("state")

    @property
    def types(self) -> list[ValueInfoProto]:
        """The types of these, of which onnx knows nothing."""
        kernel = self.kernel
        batch = next((kernel.notation.sizes[index] for index in kernel.batch), 1)
        width = kernel.size(*kernel.heads) * kernel.columns
        shapes = (batch, self.body.trips, width), (batch, *self._state_shape)
        return [
            ValueInfoProto(name=name, type=tensor_type(TensorProto.FLOAT, shape))
            for name, shape in zip(self.names, shapes, strict=True)
        ]

    @property
    def _state_shape(self) -> tuple[int, int, int]:
        kernel = self.kernel
        return kernel.size(*kernel.heads), kernel.rows, kernel.columns

    def write(self) -> str:
        """Write it, and what is read of the state; the name of the last state."""
        kernel, form, author = self.kernel, self.kernel.form, self.author
        order = (*kernel.batch, *kernel.heads, form.along, form.columns or ONE)
        first = 0 if kernel.batch else 1
        start = self.writer.moved(form.state.carried.initial, form.state.at, order)
        start = author.op("Reshape", start, author.ints(first, *self._state_shape))

        def read(row: str, before: bool) -> str:
            term = kernel.output.products[0][0].row
            query, heads = self._shared(row, term)
            key, _ = self._shared(self.rows.row(kernel.key), kernel.key)
            value = self._packed(self.rows.column(kernel.value), kernel.value, form.columns)
            node = helper.make_node(
                "LinearAttention",
                [query, key, value, start, self._decay(), self._rate()],
                self.names,
                domain=CONTRIB,
                q_num_heads=heads,
                kv_num_heads=kernel.size(*kernel.heads),
                update_rule=kernel.rule,
                scale=1.0,
            )
            while not node.input[-1]:
                node.input.pop()
            author.adopt([node])
            sizes = [kernel.size(index) for index in (*kernel.heads, form.columns or ONE)]
            around = (0, 0) if kernel.batch else (-1,)
            return author.op("Reshape", self.names[0], author.ints(*around, *sizes))

        found = self.rows.output(kernel.output, read)
        name = kernel.output.read.name
        author.op("Identity", found, outputs=[name])
        self.outside.vectorizer.carrying.add(name)
        sizes = [0 if index in kernel.batch else kernel.size(index) for index in order]
        last = author.op("Reshape", self.names[1], author.ints(*sizes))
        return author.op("Identity", self.writer.moved(last, order, form.state.at))

    def _shared(self, row: str, term: Summand) -> tuple[str, int]:
        """Rows as the node reads them, and how many heads they are of: fewer than there are states
        where they are the same for the last axes around."""
        heads = self.kernel.heads
        while heads and heads[-1] not in term.indices:
            heads = heads[:-1]
        gone = len(self.kernel.heads) - len(heads)
        if gone:
            end = len(self._prefix)
            row = spelling.along(self.author, "Squeeze", row, range(end - gone, end))
        return self._packed(row, term, self.kernel.form.along, heads), self.kernel.size(*heads)

    def _packed(
        self, value: str, term: Summand, last: int | None, heads: Sequence[int] | None = None
    ) -> str:
        """[batch, iterations, heads * size of the last axis], of [batch.., iterations, heads..,
        last]."""
        author, kernel = self.author, self.kernel
        order = [*(kernel.heads if heads is None else heads), *([last] if last else [])]
        carries = any(self.writer.carries(factor.name) for factor in term.factors)
        if not carries or not term.indices.issuperset([*kernel.batch, *order]):
            steps = author.ints(1) if carries else self.outside.length.size
            batch = [self._batch_size] if kernel.batch else []
            sizes = author.ints(*(kernel.size(index) for index in order))
            shape = author.op("Concat", *batch, steps, sizes, axis=0)
            value = author.op("Expand", value, shape)
        around = (0, 0) if kernel.batch else (1, -1)
        return author.op("Reshape", value, author.ints(*around, kernel.size(*order)))

    def _decay(self) -> str:
        form, factors = self.kernel.form, self.kernel.decay
        if not factors:
            return ""
        last = form.along if form.decays_by_row else None
        order = [*self._prefix, *([last] if last else [])]
        logs = [self.logs.of(factor, order) for factor in factors]
        total = reduce(lambda one, other: self.author.op("Add", one, other), logs)
        return self._packed(total, Summand(factors), last)

    def _rate(self) -> str:
        if self.kernel.beta is None:
            return ""
        rate = self.kernel.beta
        if not rate.factors:
            sizes = (self._batch_size, self.outside.length.size, self.author.ints(1))
            shape = self.author.op("Concat", *sizes, axis=0)
            return spelling.filled(self.author, shape, TensorProto.FLOAT, 1)
        placed = self.writer.placed(rate, self._prefix)
        return self._packed(placed, rate, None)


#: What gives elements of its first operand and no others: a decay is followed through these.
_MOVES = ("Identity", "Unsqueeze", "Squeeze", "Reshape", "Transpose", "Expand", "Slice", "Split")
#: What is never negative.
_POSITIVE = ("Exp", "Sigmoid", "Softplus", "Abs", "ReduceSumSquare")


@dataclass(frozen=True)
class Logs:
    """Writes logs; `context` are the nodes outside of the loop from which it follows that a decay
    is never negative."""

    body: TimeBody
    notation: Notation
    writer: Writer
    context: list[NodeProto] = field(default_factory=list)

    def of(self, factor: Factor, order: Sequence[int]) -> str:
        """The log of a factor: of an Exp in the loop, what it was computed of.

        Raises:
            Refused: `negative`.
        """
        author, plain = self.writer.author, replace(factor, inverse=False)
        constant = self.body.rows.constants.get(factor.name)
        if constant is not None and bool(np.all(constant >= 0)):
            with np.errstate(divide="ignore"):
                logs = np.log(constant.astype(np.float64)).astype(np.float32)
            log = self.writer.moved(author.value(logs, "log"), factor.at, order)
            return author.op("Neg", log) if factor.inverse else log
        source = self._source(plain)
        node = self.notation.index.producers.get(source.name)
        if node is not None and op_of(node) == "Exp":
            log = self.writer.factor(replace(source, name=node.input[0]), order)
        elif (node is not None and op_of(node) in _POSITIVE) or self._is_positive(source.name):
            log = author.op("Log", self.writer.factor(plain, order))
        else:
            what = f"the decay {factor.name!r} may be negative, and has no log"
            raise self.body.site.refused("negative", what, factor.name)
        return author.op("Neg", log) if factor.inverse else log

    def _source(self, factor: Factor) -> Factor:
        """Return the source that nodes of the body only move to a factor."""
        node = self.notation.index.producers.get(factor.name)
        while node is not None and op_of(node) in _MOVES:
            try:
                (term,) = self.notation.step(factor)
            except NotLinear:
                break
            (factor,) = term.factors
            node = self.notation.index.producers.get(factor.name)
        return factor

    def _is_positive(self, name: str) -> bool:
        """Return whether nodes before the loop show that a value is never negative."""
        site = self.body.site
        scanned = {one.body_input: one.tensor for one in self.body.form.scanned}
        name, chain = scanned.get(name, name), list[NodeProto]()
        while (node := site.graph.producers.get(name)) is not None:
            chain.append(node)
            if op_of(node) in _POSITIVE:
                self.context.extend(reversed(chain))
                return True
            if op_of(node) not in _MOVES:
                return False
            name = node.input[0]
        return False
