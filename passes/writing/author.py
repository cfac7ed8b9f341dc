"""Authors what a rewrite adds: nodes, constants and bodies in one opset, with graphsurgeon.

Only what is new is built here. Existing nodes never pass through graphsurgeon, which drops
their docs and metadata: `adopt` takes them as they are. Operators whose spelling changes with the
opset are in `spelling.py`.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import onnx_graphsurgeon as gs
from onnx import GraphProto, NodeProto, TensorProto, ValueInfoProto, helper, numpy_helper
from onnx_graphsurgeon.exporters.onnx_exporter import OnnxExporter

from passes.ir import scope as scoping
from passes.ir.draft import Draft
from passes.ir.live import live
from passes.ir.names import Names
from passes.ir.operators import op_of
from passes.operators.folding import MOST_ELEMENTS
from passes.rule import Edit, Site
from passes.writing.purposes import Extra, Purpose
from passes.writing.spelling import Array, Writer, content


class Author(Writer):
    """Writes a list of nodes that a rewrite adds."""

    def __init__(self, opset: int, names: Names, prefix: str) -> None:
        self._opset = opset
        self.names = names
        self.prefix = prefix
        self._written: list[gs.Node | NodeProto | Draft] = []
        self._fresh: set[str] = set()  # outputs of nodes that no caller named
        self._once: dict[Hashable, str] = {}
        self._shared: set[str] = set()  # values that `once` returns
        self._values: dict[Hashable, str] = {}
        self._tensors: dict[str, TensorProto] = {}
        self._purpose: Purpose | None = None
        #: For the outputs of nodes that serve a purpose: the purpose, and their inputs.
        self._serving: dict[str, tuple[Purpose, tuple[str, ...]]] = {}

    @classmethod
    def at(cls, site: Site, name: str = "") -> Author:
        """An author of what takes a site's place; its values are called after the node, after
        `name` or after the operator."""
        return cls(site.target, site.names, site.node.name or name or op_of(site.node).lower())

    @property
    def opset(self) -> int:
        """The opset that the nodes are written in."""
        return self._opset

    def inside(self, prefix: str) -> Author:
        """An author for a body: it shares the supply of names, and serves the same purpose."""
        inner = Author(self.opset, self.names, prefix)
        inner._purpose, inner._serving = self._purpose, self._serving
        return inner

    @contextmanager
    def serving(self, purpose: Purpose) -> Iterator[None]:
        """Mark what is written meanwhile as serving a purpose, which the report names.

        The innermost counts; what `once` shares with nodes of another purpose counts for none.
        """
        around, self._purpose = self._purpose, purpose
        try:
            yield
        finally:
            self._purpose = around

    def edit(self, note: str, nodes: Iterable[NodeProto] | None = None) -> Edit:
        """The Edit of these nodes, by default all that were written, with the constants."""
        made = tuple(self.nodes if nodes is None else nodes)
        return Edit(made, tuple(self.constants), note=note, extras=self.extras(made))

    def extras(self, nodes: Iterable[NodeProto]) -> tuple[Extra, ...]:
        """Return the number of these nodes, and of those in their bodies, for each purpose."""
        counted = Counter(self._purposes_of(nodes))
        return tuple(
            Extra(count, purpose.what, purpose.option) for purpose, count in counted.items()
        )

    def _purposes_of(self, nodes: Iterable[NodeProto]) -> Iterator[Purpose]:
        for node in nodes:
            if node.output and node.output[0] in self._serving:
                yield self._serving[node.output[0]][0]
            for _, graph in scoping.subgraphs(node):
                yield from self._purposes_of(graph.node)

    def _share(self, name: str) -> None:
        """Unmark a value that another purpose needs as well, with all that it depends on."""
        known = self._serving.get(name)
        if known is not None and known[0] != self._purpose:
            del self._serving[name]
            for read in known[1]:
                self._share(read)

    def fresh(self, hint: str) -> str:
        """A new value name that shows where it comes from; what the prefix tells is told once."""
        if not self.prefix:
            return self.names.fresh(hint)
        outer, parts = self.prefix.split("/"), hint.split("/")
        while len(parts) > 1 and outer[:1] == parts[:1]:
            del outer[0], parts[0]
        return self.names.fresh("/".join((self.prefix, *parts)))

    def op(
        self, op_type: str, *inputs: str, outputs: Sequence[str] = (), name: str = "", **attrs: Any
    ) -> str:
        """Write a node, which may have a name of its own; returns the name of its first output."""
        written = list(outputs) or [self.fresh(op_type.lower())]
        if not outputs:
            self._fresh.update(written)
        if self._purpose is not None:
            self._serving[written[0]] = self._purpose, inputs
        node = gs.Node(
            op=op_type,
            name=name,
            attrs=attrs,
            inputs=[self._variable(value) for value in inputs],
            outputs=[self._variable(value) for value in written],
        )
        self._written.append(node)
        return written[0]

    def name_as(self, value: str, output: str) -> None:
        """Let `value` be called `output`: rename it if the last node computes it, else copy it."""
        last = self._written[-1] if self._written else None
        if isinstance(last, gs.Node) and value in self._fresh and value not in self._shared:
            names = [variable.name for variable in last.outputs]
            if value in names:
                last.outputs = [self._variable(output if name == value else name) for name in names]
                self._fresh.discard(value)
                if value in self._serving:
                    self._serving[output] = self._serving.pop(value)
                return
        self.op("Identity", value, outputs=[output])

    def once(self, key: Hashable, write: Callable[[], str]) -> str:
        """The result of `write`, which is called for the first one of equal keys."""
        if key not in self._once:
            self._once[key] = write()
            self._shared.add(self._once[key])
        else:
            self._share(self._once[key])
        return self._once[key]

    def adopt(
        self, nodes: Iterable[NodeProto | Draft], constants: Iterable[TensorProto] = ()
    ) -> None:
        """Append existing nodes, as they are, to what was written so far."""
        for node in nodes:
            self._written.append(node)
            if self._purpose is not None and node.output:
                self._serving[node.output[0]] = self._purpose, tuple(node.input)
        for tensor in constants:
            self._tensors[tensor.name] = tensor

    def value(self, array: Array, hint: str = "constant") -> str:
        """The name of a fixed value; equal values are shared."""
        key = content(array)
        if key not in self._values:
            name = self._values[key] = self.fresh(hint)
            self._tensors[name] = numpy_helper.from_array(array, name)
        return self._values[key]

    def constant(self, name: str) -> Array | None:
        """The small integers or bools of this name that were written here, else None."""
        tensor = self._tensors.get(name)
        return None if tensor is None else small(tensor)

    @property
    def nodes(self) -> list[NodeProto]:
        """The nodes that were written, in order."""
        make = GraphProto().node.add
        return [
            written.node(make) if isinstance(written, Draft) else _exported(written)
            for written in self._written
        ]

    @property
    def drafts(self) -> list[Draft]:
        """The nodes that were written, in order, as drafts that may still change."""
        return [
            written if isinstance(written, Draft) else Draft.of(_exported(written))
            for written in self._written
        ]

    @property
    def constants(self) -> list[TensorProto]:
        """The constants that the nodes need."""
        return list(self._tensors.values())

    def graph(
        self, name: str, inputs: Sequence[ValueInfoProto], outputs: Sequence[ValueInfoProto]
    ) -> GraphProto:
        """Return the written nodes as a body, without unread nodes.

        The graph's name is made an identifier: onnx's text format cannot read back others.
        """
        plain = re.sub(r"\W", "_", name)
        nodes = self.read(value.name for value in outputs)
        return helper.make_graph(nodes, plain, inputs, outputs, self.constants)

    def read(self, results: Iterable[str]) -> list[NodeProto]:
        """Return the written nodes, without values of fresh names that do not contribute to
        `results`."""

        def is_named(node: NodeProto) -> bool:
            return not self._fresh.issuperset(node.output)

        return live(self.nodes, results, scoping.free_names, is_named)[0]

    def _variable(self, name: str) -> gs.Tensor:
        return gs.Variable(name) if name else gs.Variable.empty()


def _exported(node: gs.Node | NodeProto) -> NodeProto:
    return node if isinstance(node, NodeProto) else OnnxExporter.export_node(node)


def small(tensor: TensorProto) -> Array | None:
    """The value of a small tensor of integers or bools that is not external data."""
    kinds = (TensorProto.INT64, TensorProto.INT32, TensorProto.BOOL)
    if tensor.data_type not in kinds or tensor.data_location == TensorProto.EXTERNAL:
        return None
    few = math.prod(tensor.dims) <= MOST_ELEMENTS
    return numpy_helper.to_array(tensor) if few else None
