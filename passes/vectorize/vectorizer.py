"""Vectorising a body: every value that depends on a batched one gets the new leading axis."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt
from onnx import GraphProto, NodeProto, TypeProto, ValueInfoProto, helper

from passes import scope as scoping
from passes import spelling
from passes.author import Author
from passes.rule import Refused
from passes.speculation import is_pure
from passes.value_types import Dim, dims_of, elem_type_of, tensor_type
from passes.vectorize.rows import Rows
from passes.vectorize.table import TABLE


@dataclass(frozen=True)
class Axis:
    """The new leading axis: `size` names its size (int64 [1]) where the body can read it.

    `static` is the size where it is known; `nonempty` says that it is never 0 where the body
    runs.
    """

    size: str
    static: int | None = None
    nonempty: bool = False


@dataclass(frozen=True)
class Vectorizer:
    """What a rule sees and writes with. All names are unique, at every depth of the body.

    `carrying` are the names that carry the axis; it grows as nodes are written. A name keeps
    its meaning but for the axis. Ranks, dims and axes are those of one row.
    """

    rows: Rows
    axis: Axis
    author: Author
    carrying: set[str]
    path: str
    spread_types: dict[str, TypeProto] = field(default_factory=dict)

    # --- what is known ---

    def carries(self, name: str) -> bool:
        """Whether a value has the new axis."""
        return name in self.carrying

    def type_of(self, name: str) -> TypeProto | None:
        """The type of a value in one row."""
        known = self.rows.types.get(name)
        return known if dims_of(known) is not None else self.spread_types.get(name, known)

    def dims(self, name: str) -> tuple[Dim, ...]:
        """The dims of a value in one row.

        Raises:
            Refused: `unknown-rank` where inference does not tell even how many there are.
        """
        typed = self.type_of(name)
        known = dims_of(typed)
        if typed is not None and not typed.HasField("tensor_type"):
            self.refuse("no-batching-rule", f"{name!r} is no tensor, so it has no axes", name)
        if known is None:
            self.refuse("unknown-rank", f"the rank of {name!r} in the body is not known", name)
        return known

    def rank(self, name: str) -> int:
        """The rank of a value in one row."""
        return len(self.dims(name))

    def elem_type(self, name: str) -> int:
        """The element type of a value.

        Raises:
            Refused: `unknown-type` where inference does not tell it.
        """
        known = elem_type_of(self.type_of(name))
        if not known:
            self.refuse("unknown-type", f"the type of {name!r} in the body is not known", name)
        return known

    def constant(self, name: str) -> npt.NDArray[Any] | None:
        """The value where it is fixed and small, else None."""
        return self.rows.constants.get(name)

    def refuse(self, code: str, sentence: str, *culprits: str) -> NoReturn:
        """Give up: this body cannot be vectorised."""
        raise Refused(code, f"{self.path}: {sentence}", [self.path, *culprits])

    def only_rows(self, node: NodeProto, *positions: int) -> None:
        """Refuse where one of these inputs carries the axis: shapes, sizes and axes of a row
        may differ from row to row then.

        Raises:
            Refused: `batched-operand`.
        """
        for position in positions:
            if position < len(node.input) and self.carries(node.input[position]):
                self.refuse(
                    "batched-operand",
                    f"{node.op_type} takes its input {position} ({node.input[position]!r}) from "
                    "each row, and the rows may differ",
                    node.input[position],
                )

    # --- writing ---

    def op(self, op_type: str, *inputs: str, **attributes: Any) -> str:
        """Write a new node; the name of its output."""
        return self.author.op(op_type, *inputs, **attributes)

    def again(
        self,
        node: NodeProto,
        inputs: Sequence[str] | None = None,
        outputs: Sequence[str] | None = None,
        **attributes: Any,
    ) -> None:
        """Write `node` once more with other inputs, outputs or attributes (None: without)."""
        copy = NodeProto()
        copy.CopyFrom(node)
        if inputs is not None:
            del copy.input[:]
            copy.input.extend(inputs)
        if outputs is not None:
            del copy.output[:]
            copy.output.extend(outputs)
        kept = [one for one in copy.attribute if one.name not in attributes]
        made = [
            helper.make_attribute(name, value)
            for name, value in attributes.items()
            if value is not None
        ]
        del copy.attribute[:]
        copy.attribute.extend([*kept, *made])
        self.author.adopt([copy])

    def note(self, name: str, elem_type: int, dims: Sequence[Dim], *, carries: bool = True) -> str:
        """Let `rank`, `carries` and the rest know a value that a rule wrote: its type in a row."""
        self.spread_types[name] = tensor_type(elem_type, tuple(dims))
        if carries:
            self.carrying.add(name)
        return name

    def name_as(self, value: str, output: str) -> None:
        """Give `value` the name that the body knows it by."""
        self.author.op("Identity", value, outputs=[output])

    def raised(self, name: str, rank: int) -> str:
        """A carrying value with axes of size 1 behind the new one, up to `rank` of a row, so
        that it broadcasts as the row does. A value without the axis broadcasts as it is."""
        missing = rank - self.rank(name)
        if not self.carries(name) or missing <= 0:
            return name
        axes = list(range(1, 1 + missing))
        return spelling.unsqueeze_axes(self.author, name, axes)

    def spread(self, name: str) -> str:
        """`name` with the new axis: itself, or the same value for every row."""
        if not name or self.carries(name):
            return name
        row = spelling.unsqueeze(self.author, name, 0)
        if self.axis.static == 0:  # an Expand to nothing is left out by onnxruntime
            wide = spelling.part(self.author, row, 0, 0, 0)
        else:
            ones = self.author.constant(np.ones(self.rank(name), np.int64), "ones")
            shape = self.op("Concat", self.axis.size, ones, axis=0)
            wide = self.op("Expand", row, shape)
        known = self.type_of(name)
        if known is not None:
            self.spread_types[wide] = known
        self.carrying.add(wide)
        return wide

    # --- walking ---

    def nodes(self, nodes: Iterable[NodeProto]) -> None:
        """Write the nodes of a graph, each for all rows where it depends on one."""
        for node in nodes:
            if not any(self.carries(name) for name in scoping.free_names(node)):
                self._leave(node)
                continue
            rule = TABLE.get(node.op_type) if scoping.is_onnx_domain(node.domain) else None
            if rule is None:
                self.refuse(
                    "no-batching-rule",
                    f"{node.op_type} {list(node.output)} has no vectorisation rule",
                    *node.output,
                )
            plain = rule(node, self) or set()
            self.carrying.update(set(filter(None, node.output)) - plain)

    def _leave(self, node: NodeProto) -> None:
        """A node that no row touches stays; a random one would give all rows one draw."""
        if not is_pure(node):
            self.refuse(
                "random",
                f"{node.op_type} {list(node.output)} draws anew for each row",
                *node.output,
            )
        self.author.adopt([node])

    def inside(self, prefix: str, carrying: Collection[str]) -> Vectorizer:
        """A vectorizer for a nested body, in which these names carry the axis, too."""
        author = self.author.inside(prefix)
        return replace(self, author=author, carrying=self.carrying | set(carrying))

    def body(self, graph: GraphProto, carrying: Collection[str], must: Collection[str]) -> Body:
        """Vectorise a nested body whose inputs `carrying` have the axis.

        Outputs in `must` get it in any case.
        """
        inner = self.inside(graph.name, carrying)
        return inner.whole(graph, must)

    def whole(self, graph: GraphProto, must: Collection[str]) -> Body:
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
        made = self.author.graph(graph.name, inputs, outputs)
        made.doc_string = graph.doc_string
        made.metadata_props.extend(graph.metadata_props)
        made.sparse_initializer.extend(graph.sparse_initializer)
        return Body(made, tuple(carrying))

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
            typed.type.CopyFrom(tensor_type(elem_type_of(known), (self.axis.static, *dims)))
        elif carries:
            typed.type.CopyFrom(tensor_type(elem_type_of(known), None))
        return typed


@dataclass(frozen=True)
class Body:
    """A vectorised body; `carrying` says of each output whether it has the axis."""

    graph: GraphProto
    carrying: tuple[bool, ...]
