"""The definitions and readers of values in one graph."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from onnx import FunctionProto, GraphProto, NodeProto, TensorProto

from passes.ir import scope as scoping
from passes.ir.operators import HOLDERS, op_of, ops_of
from passes.ir.scope import Owner

#: Stands for the outputs of a graph among the positions of readers.
OUTPUT = -1


@dataclass(frozen=True, eq=False)
class GraphIndex:
    """The values of one graph or function by name; it must not change any more.

    Each table is made on first use. `Model.index` has the index of a graph of the original model,
    `LoopForm.index` that of the body of a loop. `own`: the names of the functions of the model, if
    they are known: the other operators without bodies need not be looked through for these.
    `derived` caches what analysis finds out about the values.
    """

    owner: Owner
    own: frozenset[str] | None = None
    derived: dict[Hashable, Any] = field(default_factory=dict, repr=False)

    @cached_property
    def inputs(self) -> frozenset[str]:
        """The names of the inputs."""
        return frozenset(scoping.input_names(self.owner))

    @cached_property
    def initializers(self) -> dict[str, TensorProto]:
        """The dense initializers; a function has none."""
        dense = () if isinstance(self.owner, FunctionProto) else self.owner.initializer
        return {tensor.name: tensor for tensor in dense}

    @cached_property
    def nodes(self) -> list[NodeProto]:
        """The nodes. While they are kept, protobuf need not make an object for each anew."""
        return self.owner.node[:]

    @cached_property
    def ops(self) -> list[str]:
        """The operators of the nodes."""
        return ops_of(self.nodes)

    @cached_property
    def reads(self) -> list[list[str]]:
        """The inputs of each node."""
        return [node.input[:] for node in self.nodes]

    @cached_property
    def writes(self) -> list[list[str]]:
        """The outputs of each node."""
        return [node.output[:] for node in self.nodes]

    @cached_property
    def holders(self) -> dict[int, list[tuple[str, GraphProto]]]:
        """The bodies of nodes, as `subgraphs` has them, by the positions of the nodes."""
        own, pairs = self.own, enumerate(self.ops)
        may = [at for at, op in pairs if own is None or op in HOLDERS or op in own or "::" in op]
        found = {at: scoping.subgraphs(self.nodes[at]) for at in may}
        return {at: graphs for at, graphs in found.items() if graphs}

    @cached_property
    def read(self) -> set[str]:
        """The names that the nodes read, in their bodies too."""
        captured = (scoping.free_names(self.nodes[position]) for position in self.holders)
        return set[str]().union(*self.reads, *captured) - {""}

    @cached_property
    def producers(self) -> dict[str, NodeProto]:
        """The node that computes a value."""
        pairs = zip(self.nodes, self.writes, strict=True)
        return {name: node for node, names in pairs for name in names if name}

    @cached_property
    def positions(self) -> dict[str, int]:
        """The position of the node that computes a value."""
        pairs = enumerate(self.writes)
        return {name: position for position, names in pairs for name in names if name}

    @cached_property
    def readers(self) -> dict[str, list[int]]:
        """The positions of the nodes that read a value, in bodies too, each once; and OUTPUT."""
        found: dict[str, list[int]] = {}
        for position, node in enumerate(self.nodes):
            for name in scoping.free_names(node):
                found.setdefault(name, []).append(position)
        for name in scoping.output_names(self.owner):
            found.setdefault(name, []).append(OUTPUT)
        return found

    @property
    def defined(self) -> set[str]:
        """Every name that an input, an initializer or a node's output of this very graph has."""
        written = set[str]().union(*self.writes) - {""}
        return written.union(self.inputs, self.initializers, self._sparse)

    def defines(self, name: str) -> bool:
        """Return whether a name is an input, an initializer or a node's output of this very
        graph."""
        made = name in self.producers or name in self.initializers
        return made or name in self.inputs or name in self._sparse

    def source(self, name: str) -> str:
        """The value that Identities of this very graph copy to a name."""
        while (node := self.producers.get(name)) is not None and op_of(node) == "Identity":
            name = node.input[0]
        return name

    @cached_property
    def _sparse(self) -> frozenset[str]:
        return frozenset(scoping.initializer_names(self.owner)).difference(self.initializers)
