"""Finds equal values of a body: the same nodes compute them from the same values."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field

from onnx import GraphProto, NodeProto, TensorProto

from passes.analysis.safety.randomness import is_pure
from passes.ir import scope as scoping
from passes.ir.boundary import keep_outputs
from passes.ir.constant_pool import Kept
from passes.ir.constants import constant_tensor
from passes.ir.external_data import byte_size
from passes.ir.operators import called_key, op_of
from passes.operators.table import traits_of

_LARGE = 1 << 16  # bytes; a weight is not hashed for each body that reads it


@dataclass
class Numbering:
    """Numbers for the values of a body: equal numbers mean equal values, bit for bit.

    `labels` say which inputs of the body are assumed to be equal. Values of impure nodes, of nodes
    with bodies, and sparse or large constants equal nothing. `beside` numbers another body, whose
    numbering continues here: equal values of the two have one number.
    """

    body: GraphProto
    labels: Mapping[str, Hashable] = field(default_factory=dict)
    beside: Numbering | None = None
    _numbers: dict[str, int] = field(default_factory=dict)
    _known: dict[Hashable, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.beside is not None:
            self._known = self.beside._known
        for name in scoping.input_names(self.body):
            self._give(name, ("input", self.labels.get(name, ("own", name))))
        for tensor in self.body.initializer:
            self._give(tensor.name, self._content(tensor))
        for sparse in self.body.sparse_initializer:
            self._give(sparse.values.name, self._alone())
        for node in self.body.node:
            self._number(node)

    def of(self, name: str) -> int:
        """The number of a value; what the body captures has one, too."""
        if name not in self._numbers:
            self._give(name, ("outer", name))
        return self._numbers[name]

    def _number(self, node: NodeProto) -> None:
        if is_identity(node):
            self._numbers[node.output[0]] = self.of(node.input[0])
            return
        key = self._key(node)
        for position, name in enumerate(node.output):
            if name:
                self._give(name, (key, position) if position else key)

    def _key(self, node: NodeProto) -> Hashable:
        tensor = constant_tensor(node)
        if tensor is not None:
            return self._content(tensor)
        if scoping.holds_graphs(node) or not is_pure(node):
            return self._alone()
        if not traits_of(node).tensors:  # older Identities cannot copy it
            return self._alone()
        declared = sorted(
            attribute.SerializeToString(deterministic=True) for attribute in node.attribute
        )
        inputs = tuple(self.of(name) if name else -1 for name in node.input)
        written = tuple(map(bool, node.output))
        return (called_key(node), inputs, written, *declared)

    def _content(self, tensor: TensorProto) -> Hashable:
        if byte_size(tensor) > _LARGE:
            return self._alone()
        kept = Kept(tensor)
        return ("constant", kept.kind, kept.digest)

    def _alone(self) -> Hashable:
        """A key that equals no other one."""
        return ("only", len(self._known))

    def _give(self, name: str, key: Hashable) -> None:
        self._numbers[name] = self._known.setdefault(key, len(self._known))


def is_identity(node: NodeProto) -> bool:
    """Return whether a node only renames its input."""
    return op_of(node) == "Identity"


def names_below(body: GraphProto) -> set[str]:
    """The names that are defined in bodies nested in this one."""
    return {
        name for graph in list(scoping.graphs_below(body))[1:] for name in scoping.defined(graph)
    }


def read_as(body: GraphProto, mapping: Mapping[str, str]) -> None:
    """Let a body read values under other names, in place.

    An output of the body keeps its name, and gets an Identity: no other node may write it.
    """
    if not mapping:
        return
    for node in body.node:
        known = {name: mapping[name] for name in scoping.free_names(node) if name in mapping}
        scoping.rename_free(node, known)
    keep_outputs(body, mapping)
