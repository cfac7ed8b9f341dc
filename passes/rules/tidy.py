"""Light cleaning of what was written out: only there, and only what cannot be wrong."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from onnx import GraphProto, NodeProto, TensorProto, TypeProto, numpy_helper

from passes import scope as scoping
from passes.author import Author
from passes.rules.folding import MOST_ELEMENTS, Array, folded
from passes.rules.iteration import ITERATION_KEY
from passes.rules.shape_checks import Reading
from passes.rules.shapes_fit import fits
from passes.speculation import SPECULATABLE
from passes.value_types import dims_of


@dataclass
class Tidy:
    """Folds constant indices, shapes and conditions, and drops what nobody reads any more.

    `keep` are the names that others read, `outer` knows constants of the surroundings, and
    `type_of` the types that every iteration agrees on. `careful`: what might fail for the sizes
    that it reads stays, although nobody reads it.
    """

    author: Author
    keep: Collection[str]
    outer: Callable[[str], Array | None]
    type_of: Callable[[str], TypeProto | None]
    finals: bool = True
    careful: bool = False
    _same: dict[str, str] = field(default_factory=dict)
    _values: dict[str, Array | None] = field(default_factory=dict)
    _made: set[str] = field(default_factory=set)
    _nests: set[int] = field(default_factory=set)  # the nodes with bodies, by identity

    def clean(self) -> tuple[list[NodeProto], list[TensorProto]]:
        """The nodes that the author wrote, cleaned, and the constants that they read."""
        nodes = self._folded(self.author.nodes)
        if self.finals:
            nodes = finals_renamed(nodes, self.keep, self._nests)
        nodes, read = self._alive(nodes)
        return nodes, [one for one in self.author.constants if one.name in read]

    def _folded(self, nodes: Iterable[NodeProto]) -> list[NodeProto]:
        self._values = {one.name: small(one) for one in self.author.constants}
        kept: list[NodeProto] = []
        pending = list(nodes)[::-1]
        while pending:
            node = pending.pop()
            if scoping.holds_graphs(node):
                self._nests.add(id(node))
            _rename(node, self._same, id(node) in self._nests)
            self._made.update(node.output)
            branch = self._branch(node)
            if branch is not None:
                pending.extend(reversed(self._inlined(node, branch)))
            elif not self._gone(node):
                kept.append(node)
        return kept

    def _gone(self, node: NodeProto) -> bool:
        """Whether a node is no longer needed: it passes a value on, or its value is known."""
        if len(node.output) != 1 or node.output[0] in self.keep:
            return False
        if node.op_type == "Identity" and scoping.is_onnx_domain(node.domain):
            self._same[node.output[0]] = node.input[0]
            return True
        value = self._shape(node)
        if value is None:
            value = folded(node, self._value)
        if value is None:
            return False
        name = self.author.constant(value)
        self._values[name] = value
        self._same[node.output[0]] = name
        return True

    def _value(self, name: str) -> Array | None:
        if name not in self._values:
            self._values[name] = None if name in self._made else self.outer(name)
        value = self._values[name]
        return value if value is not None and value.size <= MOST_ELEMENTS else None

    def _shape(self, node: NodeProto) -> Array | None:
        if node.op_type != "Shape" or not scoping.is_onnx_domain(node.domain) or node.attribute:
            return None
        dims = dims_of(self.type_of(node.input[0]))
        if dims is None or not all(isinstance(dim, int) for dim in dims):
            return None
        return np.array(dims, np.int64)

    def _branch(self, node: NodeProto) -> GraphProto | None:
        """The branch that an If takes, where that is known."""
        if node.op_type != "If" or not scoping.is_onnx_domain(node.domain):
            return None
        value = self._value(node.input[0])
        if value is None or value.size != 1:
            return None
        wanted = "then_branch" if value.item() else "else_branch"
        return next(graph for name, graph in scoping.subgraphs(node) if name == wanted)

    def _inlined(self, node: NodeProto, branch: GraphProto) -> list[NodeProto]:
        """The nodes of a branch, their names their own; its constants stand outside already."""
        tag = next((one.value for one in node.metadata_props if one.key == ITERATION_KEY), "")
        end = f"/{tag}" if tag else ""
        scoping.rename_all(branch, lambda name: self.author.names.fresh(f"{name}{end}"))
        nodes = []
        for inner in branch.node:
            copy = NodeProto()
            copy.CopyFrom(inner)
            copy.metadata_props.add(key=ITERATION_KEY, value=tag)
            nodes.append(copy)
        for given, name in zip(scoping.output_names(branch), node.output, strict=True):
            if name:
                nodes.append(NodeProto(op_type="Identity", input=[given], output=[name]))
        return nodes

    def _alive(self, nodes: list[NodeProto]) -> tuple[list[NodeProto], set[str]]:
        """The nodes that somebody reads, and those that could fail or draw; what is read."""
        needed = set(self.keep)
        alive = []
        for node in reversed(nodes):
            if not needed.isdisjoint(node.output) or not self._may_go(node):
                nests = id(node) in self._nests
                needed.update(scoping.free_names(node) if nests else node.input)
                alive.append(node)
        return alive[::-1], needed

    def _may_go(self, node: NodeProto) -> bool:
        nothing_known = Reading(self.author.opset, lambda name: None, lambda name: None)
        return _may_go(node) and (not self.careful or fits(node, nothing_known))


def _rename(node: NodeProto, mapping: Mapping[str, str], nests: bool) -> None:
    """Rename what a node reads; bodies look through all names that they are given, so few."""
    if nests:
        read = scoping.free_names(node)
        scoping.rename_free(node, {name: mapping[name] for name in read if name in mapping})
        return
    for position, name in enumerate(node.input):
        if name in mapping:
            node.input[position] = mapping[name]


def _may_go(node: NodeProto) -> bool:
    written = any(one.key == ITERATION_KEY for one in node.metadata_props)
    return not written or (node.op_type in SPECULATABLE and scoping.is_onnx_domain(node.domain))


def small(tensor: TensorProto) -> Array | None:
    """The value of a small whole-number tensor that stands in the model itself."""
    kinds = (TensorProto.INT64, TensorProto.INT32, TensorProto.BOOL)
    if tensor.data_type not in kinds or tensor.data_location == TensorProto.EXTERNAL:
        return None
    few = math.prod(tensor.dims) <= MOST_ELEMENTS
    return numpy_helper.to_array(tensor) if few else None


def finals_renamed(
    nodes: list[NodeProto], keep: Collection[str], nests: Collection[int] | None = None
) -> list[NodeProto]:
    """Values that are only passed on to the outside are written under the name it knows.

    `nests`: the nodes with bodies, by identity, where that is known.
    """
    passed = [one for one in nodes if one.op_type == "Identity" and one.output[0] in keep]
    makers = _makers(nodes, {node.input[0] for node in passed} - set(keep))
    renamed: dict[str, str] = {}
    gone = set()
    for node in passed:
        source = node.input[0]
        if source in makers and source not in renamed:
            renamed[source] = node.output[0]
            gone.add(id(node))
    if not renamed:
        return nodes
    first = min(makers[name] for name in renamed)  # nobody in front of it reads them
    for node in nodes[first:]:
        _rename(node, renamed, scoping.holds_graphs(node) if nests is None else id(node) in nests)
        for position, name in enumerate(node.output):
            if name in renamed:
                node.output[position] = renamed[name]
    return [node for node in nodes if id(node) not in gone]


def _makers(nodes: Sequence[NodeProto], names: set[str]) -> dict[str, int]:
    """Where those of these values are computed that are; most stand near the end."""
    found: dict[str, int] = {}
    for at in range(len(nodes) - 1, -1, -1):
        if len(found) == len(names):
            break
        found.update((name, at) for name in nodes[at].output if name in names)
    return found
