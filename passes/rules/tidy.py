"""Light cleaning of what was written out: only there, and only what cannot be wrong."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field

import numpy as np
from onnx import GraphProto, NodeProto, TensorProto, TypeProto, numpy_helper

from passes import scope as scoping
from passes.author import Author
from passes.rules.folding import MOST_ELEMENTS, Array, folded
from passes.rules.iteration import ITERATION_KEY
from passes.speculation import SPECULATABLE
from passes.value_types import dims_of


@dataclass
class Tidy:
    """Folds constant indices, shapes and conditions, and drops what nobody reads any more.

    `keep` are the names that others read, `outer` knows constants of the surroundings, and
    `type_of` the types that every iteration agrees on.
    """

    author: Author
    keep: Collection[str]
    outer: Callable[[str], Array | None]
    type_of: Callable[[str], TypeProto | None]
    finals: bool = True
    _same: dict[str, str] = field(default_factory=dict)
    _values: dict[str, Array | None] = field(default_factory=dict)
    _made: set[str] = field(default_factory=set)

    def clean(self) -> tuple[list[NodeProto], list[TensorProto]]:
        """The nodes that the author wrote, cleaned, and the constants that they read."""
        nodes = self._folded(self.author.nodes)
        nodes = self._alive(_finals_renamed(nodes, self.keep) if self.finals else nodes)
        read = {name for node in nodes for name in scoping.free_names(node)}
        return nodes, [one for one in self.author.constants if one.name in read]

    def _folded(self, nodes: Iterable[NodeProto]) -> list[NodeProto]:
        self._values = {one.name: _small(one) for one in self.author.constants}
        kept: list[NodeProto] = []
        pending = list(nodes)[::-1]
        while pending:
            node = pending.pop()
            scoping.rename_free(node, self._relevant(node))
            self._made.update(node.output)
            branch = self._branch(node)
            if branch is not None:
                pending.extend(reversed(self._inlined(node, branch)))
            elif not self._gone(node):
                kept.append(node)
        return kept

    def _relevant(self, node: NodeProto) -> dict[str, str]:
        same = self._same
        return {name: same[name] for name in scoping.free_names(node) if name in same}

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

    def _alive(self, nodes: list[NodeProto]) -> list[NodeProto]:
        """The nodes that somebody reads, and those that could fail or draw."""
        needed = set(self.keep)
        alive = []
        for node in reversed(nodes):
            if not needed.isdisjoint(node.output) or not _may_go(node):
                needed.update(scoping.free_names(node))
                alive.append(node)
        return alive[::-1]


def _may_go(node: NodeProto) -> bool:
    written = any(one.key == ITERATION_KEY for one in node.metadata_props)
    return not written or (node.op_type in SPECULATABLE and scoping.is_onnx_domain(node.domain))


def _small(tensor: TensorProto) -> Array | None:
    """The value of a small whole-number tensor that stands in the model itself."""
    kinds = (TensorProto.INT64, TensorProto.INT32, TensorProto.BOOL)
    if tensor.data_type not in kinds or tensor.data_location == TensorProto.EXTERNAL:
        return None
    count = int(np.prod(tensor.dims, dtype=np.int64))
    return numpy_helper.to_array(tensor) if count <= MOST_ELEMENTS else None


def _finals_renamed(nodes: list[NodeProto], keep: Collection[str]) -> list[NodeProto]:
    """Values that are only passed on to the outside are written under the name it knows."""
    producers = {name: node for node in nodes for name in node.output}
    renamed: dict[str, str] = {}
    kept = []
    for node in nodes:
        source = node.input[0] if node.op_type == "Identity" and node.output[0] in keep else ""
        if source in producers and source not in renamed and source not in keep:
            renamed[source] = node.output[0]
        else:
            kept.append(node)
    for node in kept:
        wanted = {name: renamed[name] for name in scoping.free_names(node) if name in renamed}
        scoping.rename_free(node, wanted)
        for position, name in enumerate(node.output):
            node.output[position] = renamed.get(name, name)
    return kept
