"""Vectorising a body: every value that depends on a batched one gets the new leading axis."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, replace

import numpy as np
from onnx import GraphProto, NodeProto, ValueInfoProto, helper

from passes.analysis.safety.randomness import is_pure
from passes.ir import scope as scoping
from passes.ir.operators import Registry, op_of
from passes.types.value_types import dims_of, elem_type_of, tensor_type
from passes.vectorize.rows_writer import RowsWriter

#: Writes what does the work of a node for every row. It is called where an input carries the axis;
#: the outputs it writes carry it, except those that it returns.
BatchRule = Callable[[NodeProto, "Vectorizer"], "set[str] | None"]

#: How each op runs over one more leading axis; filled by the files of the families.
TABLE: Registry[BatchRule] = Registry()
batched = TABLE.enter


@dataclass(frozen=True)
class BatchedBody:
    """A vectorised body; `carrying` tells for each output whether it has the axis."""

    graph: GraphProto
    carrying: tuple[bool, ...]


@dataclass(frozen=True)
class Vectorizer(RowsWriter):
    """Walks through a body and writes its nodes for all rows, by the rules of the table."""

    def nodes(self, nodes: Iterable[NodeProto]) -> None:
        """Write the nodes of a graph, each for all rows where it depends on one."""
        for node in nodes:
            if not any(self.carries(name) for name in scoping.free_names(node)):
                self._leave(node)
                continue
            rule = TABLE.get(op_of(node))
            if rule is None:
                self.refuse_node("no-batching-rule", node, "has no vectorisation rule")
            plain = rule(node, self) or set()
            self.carrying.update(set(filter(None, node.output)) - plain)

    def _leave(self, node: NodeProto) -> None:
        """A node that no row touches stays; a random one would give all rows one draw."""
        if not is_pure(node):
            self.refuse_node("random", node, "draws other numbers for each row")
        self.author.adopt([node])

    def inside(self, prefix: str, carrying: Collection[str]) -> Vectorizer:
        """A vectorizer for a nested body, in which these names carry the axis, too."""
        author = self.author.inside(prefix)
        return replace(self, author=author, carrying=self.carrying | set(carrying))

    def body(
        self, graph: GraphProto, carrying: Collection[str], must: Collection[str]
    ) -> BatchedBody:
        """Vectorise a nested body whose inputs `carrying` have the axis.

        Outputs in `must` get it in any case.
        """
        inner = self.inside(graph.name, carrying)
        return inner.whole(graph, must)

    def whole(self, graph: GraphProto, must: Collection[str]) -> BatchedBody:
        """Write all of `graph` and answer with the body it becomes."""
        self.author.adopt([], graph.initializer)
        self.nodes(graph.node)
        outputs: list[ValueInfoProto] = []
        carrying: list[bool] = []
        own = {name for node in graph.node for name in node.output}
        for value in graph.output:
            name = value.name
            if name in must and not self.carries(name):
                name = self.spread(name)
            elif name not in own and elem_type_of(self.type_of(name)):
                name = self._copied(name)
            own.discard(name)
            carrying.append(name in self.carrying)
            outputs.append(self._typed(value, name, carrying[-1]))
        inputs = [self._typed(value, value.name, self.carries(value.name)) for value in graph.input]
        body = self.author.graph(graph.name, inputs, outputs)
        body.doc_string = graph.doc_string
        body.metadata_props.extend(graph.metadata_props)
        body.sparse_initializer.extend(graph.sparse_initializer)
        return BatchedBody(body, tuple(carrying))

    def _copied(self, name: str) -> str:
        """A value under a name of its own: an output of a body must not be an input or an outer
        value, and none may be listed twice."""
        copy = self.op("Identity", name)
        if self.carries(name):
            self.carrying.add(copy)
        return copy

    def _typed(self, value: ValueInfoProto, name: str, carries: bool) -> ValueInfoProto:
        """An input or output of a body, with the axis where it carries it."""
        known = self.type_of(value.name) or value.type
        typed = ValueInfoProto(name=name, type=known)
        dims = dims_of(known)
        if carries and dims is not None:
            typed.type.CopyFrom(tensor_type(elem_type_of(known), (self.axis.dim, *dims)))
        elif carries:
            typed.type.CopyFrom(tensor_type(elem_type_of(known), None))
        return typed


def shifted(axis: int) -> int:
    """An axis of a row in the batched value; one that counts from the back stays."""
    return axis + 1 if axis >= 0 else axis


def reduced(ctx: Vectorizer, name: str, axis: int) -> int:
    """An axis of a row to reduce, in the batched value.

    onnxruntime gives a wrong shape where the value is empty and the axis counts from the back.
    """
    if axis >= 0 or ctx.axis.nonempty:
        return shifted(axis)
    return axis + ctx.rank(name) + 1


def shifted_input(ctx: Vectorizer, name: str, reduces: str = "") -> str:
    """Return an input of axes (int64, of any shape), counted after the new axis.

    `reduces` is the value that a reducer takes them of: see `reduced`.
    """

    def counted(axis: int) -> int:
        return reduced(ctx, reduces, axis) if reduces else shifted(axis)

    known = ctx.constant(name)
    if known is not None:
        axes = np.array([counted(int(axis)) for axis in known.ravel()], np.int64)
        return ctx.value(axes.reshape(known.shape), "axes")
    ours = ctx.op("Cast", name, to=helper.np_dtype_to_tensor_dtype(np.dtype(np.int64)))
    back = counted(-1) + 1  # what is added to axes that count from the back
    low = ctx.op("Add", ours, ctx.int(back)) if back else ours
    high = ctx.op("Add", ours, ctx.int(1))
    return ctx.op("Where", ctx.op("Less", ours, ctx.int(0)), low, high)


def all_axes(rank: int) -> range:
    """Every axis of a row, in the batched value."""
    return range(1, rank + 1)
