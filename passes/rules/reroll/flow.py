"""The nodes of a graph in an order that depends on what they compute alone, not on the file."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from functools import cached_property, lru_cache
from itertools import chain, count

from onnx import AttributeProto, NodeProto, TensorProto, defs

from passes.analysis.safety.shapes_fit import Known
from passes.ir import scope as scoping
from passes.ir.attributes import has_references
from passes.ir.constants import Constants
from passes.ir.external_data import byte_size
from passes.ir.model import Model
from passes.ir.operators import called_key, op_of
from passes.ir.protos import copied, replace_all
from passes.ir.scope import Scope

#: A value: the rank of the node that computes it and the number of its output, or `LEAF` and the
#: number of a leaf, which the graph does not compute: an input, a constant, an outer value.
Value = tuple[int, int]
LEAF = -1
#: Constants of at most as many bytes are compared by what they hold; larger ones by their names.
_COMPARED = 1 << 12


def names_read(node: NodeProto) -> Sequence[str]:
    """The names that a node reads: its inputs, of a node with bodies each once, with captures."""
    return scoping.free_names(node) if scoping.holds_graphs(node) else node.input[:]


def reading(node: NodeProto, names: Sequence[str]) -> NodeProto:
    """A node that reads other names, in the order of `names_read`."""
    new = copied(node)
    if scoping.holds_graphs(node):
        scoping.rename_free(new, dict(zip(names_read(node), names, strict=True)))
    else:
        replace_all(new.input, names)
    return new


@lru_cache(maxsize=1024)
def _defaults(op_type: str, opset: int, domain: str) -> frozenset[bytes]:
    """The attributes of an operator as they are by default."""
    try:
        declared = defs.get_schema(op_type, opset, domain).attributes.values()
    except defs.SchemaError:
        return frozenset()
    values = (one.default_value for one in declared)
    return frozenset(one.SerializeToString(deterministic=True) for one in values)


def _with_plain_names(node: NodeProto) -> NodeProto:
    """A node with bodies, where names depend only on what is read, and on its place."""
    node, places = copied(node), count()
    read = {name: f"read {place}" for place, name in enumerate(scoping.free_names(node))}
    scoping.rename_free(node, read)
    for _, graph in scoping.subgraphs(node):
        scoping.rename_all(graph, lambda _: f"own {next(places)}")
        for owner in scoping.graphs_below(graph):
            owner.name = ""
            replace_all(owner.value_info, [])
            for inner in owner.node:
                inner.name = inner.doc_string = ""
                replace_all(inner.metadata_props, [])
    # an input that is read twice is read by one name
    written = AttributeProto(name="", strings=[name.encode() for name in node.input])
    node.attribute.append(written)
    return node


class Flow:
    """The nodes of a graph that its outputs depend on, by rank: after all that they depend on,
    directly after the deepest of it.

    Constants are leaves, those that hold the same are one; Identities are looked through. `keys`
    are equal for nodes that differ only in what they read, in names within their bodies, or in
    attributes that have the values they have by default; those of nodes with attributes of the
    function around are unique. `positions` leads to the list of the graph.
    """

    def __init__(self, model: Model, scope: Scope) -> None:
        self.model, self.scope = model, scope
        self.nodes: list[NodeProto] = list(scope.owner.node)
        self.names: list[str] = []  # of the leaves
        self.tensors: list[TensorProto | None] = []  # of those that are constants
        self.copies: dict[str, str] = {}  # the values that Identities copy
        self.alike: dict[str, str] = {}  # values that were added, and such as they are like
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
    def known(self) -> Known:
        """What is known of the values."""
        return Known.of_graph(self.model, self.scope)

    @cached_property
    def readers(self) -> list[list[int]]:
        """The ranks of the nodes that read a node's outputs, by its rank."""
        found: list[list[int]] = [[] for _ in self.positions]
        for rank, read in enumerate(self.reads):
            for producer in {value[0] for value in read} - {LEAF}:
                found[producer].append(rank)
        return found

    def add(self, like: int, reads: Sequence[Value]) -> int:
        """Add a node that computes something nothing reads, and is like another one; its rank."""
        rank, node = len(self.positions), copied(self.node(like))
        for out, name in enumerate(node.output):
            node.output[out] = name and f"{name} of {rank}"
        self.alike |= zip(node.output, self.node(like).output, strict=True)
        self.positions.append(len(self.nodes))
        self.nodes.append(node)
        self.reads.append(tuple(reads))
        self.keys.append(self.keys[like])
        self.readers.append([])
        return rank

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
            return names_read(node)
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
        ends = map(bool, chain(node.input, ("",), node.output))
        if not node.attribute:
            return (called_key(node), *ends)
        if has_references(node):
            return position
        if scoping.holds_graphs(node):
            node = _with_plain_names(node)
            bodies = (
                graph for _, body in scoping.subgraphs(node) for graph in scoping.graphs_below(body)
            )
            if any(has_references(inner) for graph in bodies for inner in graph.node):
                return position
        opset = self.model.opset_at(self.scope, node.domain)
        written = {one.SerializeToString(deterministic=True) for one in node.attribute}
        domain, operator, _ = called = called_key(node)
        written -= _defaults(operator, opset, domain)
        return (called, *sorted(written), *ends)

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
