"""The nodes of a graph in an order that depends on what they compute alone, not on the file."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from functools import cached_property
from itertools import chain

from onnx import NodeProto, TensorProto

from passes.ir import scope as scoping
from passes.ir.attributes import has_references
from passes.ir.constants import Constants
from passes.ir.external_data import byte_size
from passes.ir.model import Model
from passes.ir.operators import called_key, op_of
from passes.ir.scope import Scope

#: A value: the rank of the node that computes it and the number of its output, or `LEAF` and the
#: number of a leaf, which the graph does not compute: an input, a constant, an outer value.
Value = tuple[int, int]
LEAF = -1
#: Constants of at most as many bytes are compared by what they hold; larger ones by their names.
_COMPARED = 1 << 12


class Flow:
    """The nodes of a graph that its outputs depend on, by rank: after all that they depend on,
    directly after the deepest of it.

    Constants are leaves, those that hold the same are one; Identities are looked through. `keys`
    are equal for nodes that differ only in what they read; those of nodes with bodies, and of nodes
    with attributes of the function around, are unique. `positions` leads to the list of the graph.
    """

    def __init__(self, model: Model, scope: Scope) -> None:
        self.model = model
        self.nodes: list[NodeProto] = list(scope.owner.node)
        self.names: list[str] = []  # of the leaves
        self.tensors: list[TensorProto | None] = []  # of those that are constants
        self.copies: dict[str, str] = {}  # the values that Identities copy
        self._constants = Constants(model, scope)
        self._leaves: dict[Hashable, int] = {}
        self._made: dict[str, tuple[int, int]] = {}
        read = [self._inputs(position, node) for position, node in enumerate(self.nodes)]
        self.positions = self._order(scoping.output_names(scope.owner), read)
        ranks = {position: rank for rank, position in enumerate(self.positions)}
        self._values = {
            name: (ranks[at], out) for name, (at, out) in self._made.items() if at in ranks
        }
        self.reads = [tuple(map(self.value, read[position])) for position in self.positions]
        numbers: dict[Hashable, int] = {}
        self.keys = [
            numbers.setdefault(self._key(position), len(numbers)) for position in self.positions
        ]

    def node(self, rank: int) -> NodeProto:
        """The node of a rank."""
        return self.nodes[self.positions[rank]]

    def name(self, value: Value) -> str:
        """The name of a value."""
        rank, number = value
        return self.names[number] if rank == LEAF else self.node(rank).output[number]

    def tensor(self, value: Value) -> TensorProto | None:
        """The tensor of a constant."""
        return self.tensors[value[1]] if value[0] == LEAF else None

    def value(self, name: str) -> Value:
        """The value that a name means."""
        name = self.copies.get(name, name)
        found = self._values.get(name)
        return (LEAF, self._leaf(name)) if found is None else found

    @cached_property
    def readers(self) -> list[list[int]]:
        """The ranks of the nodes that read a node's outputs, by its rank."""
        found: list[list[int]] = [[] for _ in self.positions]
        for rank, read in enumerate(self.reads):
            for producer in {value[0] for value in read} - {LEAF}:
                found[producer].append(rank)
        return found

    def dependents(self, ranks: Iterable[int]) -> bytearray:
        """For each node, whether it depends on one of these."""
        found, start = bytearray(len(self.positions)), set(ranks)
        for rank, read in enumerate(self.reads):
            if any(value[0] in start or found[value[0]] for value in read if value[0] != LEAF):
                found[rank] = 1
        return found

    def _inputs(self, position: int, node: NodeProto) -> Sequence[str]:
        operator = op_of(node)
        if operator == "Identity":
            self.copies[node.output[0]] = self.copies.get(node.input[0], node.input[0])
        elif operator != "Constant":
            self._made.update(
                (name, (position, out)) for out, name in enumerate(node.output) if name
            )
            return scoping.free_names(node) if scoping.holds_graphs(node) else node.input[:]
        return ()

    def _order(self, outputs: Iterable[str], read: Sequence[Sequence[str]]) -> list[int]:
        """The positions in the order of a walk from the outputs, the deepest inputs first."""
        heights, needs = [0] * len(read), list[list[int]]()
        for position, names in enumerate(read):
            made = (self._made.get(self.copies.get(name, name)) for name in names)
            below = list(dict.fromkeys(one[0] for one in made if one))[::-1]
            needs.append(sorted(below, key=heights.__getitem__))
            heights[position] = 1 + (heights[needs[-1][-1]] if below else 0)
        roots = (self._made.get(self.copies.get(name, name)) for name in outputs)
        stack = sorted((root[0] for root in roots if root), key=heights.__getitem__)
        found, done = list[int](), bytearray(len(read))
        while stack:
            position = stack[-1]
            pending = [] if done[position] else [one for one in needs[position] if not done[one]]
            stack.extend(pending)
            if not pending:
                stack.pop()
                if not done[position]:
                    done[position] = 1
                    found.append(position)
        return found

    def _key(self, position: int) -> Hashable:
        node = self.nodes[position]
        attributes = node.attribute[:]
        if attributes and (scoping.holds_graphs(node) or has_references(node)):
            return position
        written = sorted(one.SerializeToString(deterministic=True) for one in attributes)
        return (called_key(node), *written, *map(bool, chain(node.input, ("",), node.output)))

    def _leaf(self, name: str) -> int:
        found = self._leaves.get(name)
        if found is None:
            tensor = self._constants.tensor(name) if name else None
            content: Hashable = name
            if tensor is not None and byte_size(tensor) <= _COMPARED:
                array = self.model.read(tensor)
                held = array.tobytes() if array.dtype != object else tuple(array.ravel())
                content = (tensor.data_type, tuple(tensor.dims), held)
            found = self._leaves.setdefault(content, len(self.names))
            self._leaves[name] = found
            if found == len(self.names):
                self.names.append(name)
                self.tensors.append(tensor)
        return found
