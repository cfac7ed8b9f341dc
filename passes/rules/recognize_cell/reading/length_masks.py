"""Masks that compare the number of a step with the length of a row: true, then false."""

from __future__ import annotations

import numpy as np
from onnx import NodeProto, TensorProto

from passes.analysis.integers.integers import Integers
from passes.ir.attributes import attribute, has_references, numbers
from passes.ir.operators import op_of
from passes.loops.form import Scanned
from passes.operators.comparisons import COMPARISONS, ORDERINGS
from passes.rule import Site
from passes.types.value_types import Dims, dims_of

#: Types in which no number of a step wraps around.
_WIDE = (TensorProto.INT32, TensorProto.INT64, TensorProto.FLOAT, TensorProto.DOUBLE)
_DEEPEST = 16


def lengths_in(site: Site, mask: Scanned) -> dict[str, NodeProto]:
    """The nodes that prove that a mask is true, then false, along its first axis, by their first
    outputs; empty where it is not proven."""
    proof = _Proof(site)
    return proof.nodes if mask.axis % 3 == 0 and proof.is_prefix(mask.tensor) else {}


class _Proof:
    def __init__(self, site: Site) -> None:
        self.site, self.integers = site, Integers(site)
        self.nodes: dict[str, NodeProto] = {}

    def is_prefix(self, name: str) -> bool:
        """Return whether a bool is true, then false, along its first axis."""
        node = self._node(name)
        if node is None:
            return False
        if self._adds_later_axes(node):
            return self.is_prefix(node.input[0])
        if op_of(node) not in ORDERINGS:
            return False
        number, length = node.input if "<" in COMPARISONS[op_of(node)] else reversed(node.input)
        dims, others = self._dims(number), self._dims(length)
        if dims is None or others is None:
            return False
        return (len(others) < len(dims) or others[:1] == (1,)) and self.rises(number)

    def rises(self, name: str, depth: int = 0) -> bool:
        """Return whether numbers never fall along the first axis."""
        fixed = self.site.constant(name)
        if fixed is not None:
            return fixed.ndim > 0 and bool((np.diff(fixed, axis=0) >= 0).all())
        node = self._node(name)
        if node is None or depth > _DEEPEST:
            return False
        widens = op_of(node) == "Cast" and attribute(node, "to", 0) in _WIDE
        if widens or self._adds_later_axes(node):
            return self.rises(node.input[0], depth + 1)
        if op_of(node) == "Range":
            step = self.site.constant(node.input[2])
            return step is not None and bool((step > 0).all())
        return op_of(node) == "Squeeze" and self._are_places_of_ones(node.input[0])

    def _are_places_of_ones(self, name: str) -> bool:
        """Return whether a value is the places of the elements of a vector, [1, size]."""
        node = self._node(name)
        if node is None or op_of(node) != "NonZero" or len(self._dims(node.input[0]) or ()) != 1:
            return False
        ones = self._node(node.input[0])
        return ones is not None and op_of(ones) == "ConstantOfShape"

    def _adds_later_axes(self, node: NodeProto) -> bool:
        """Return whether a node only adds axes of size 1, none of them first."""
        if op_of(node) == "Identity":
            return True
        axes = numbers(node, 1, "axes", self.site.constant) if op_of(node) == "Unsqueeze" else None
        rank = len(self._dims(node.output[0]) or ())
        return bool(axes and rank) and all(axis % rank for axis in axes or ())

    def _dims(self, name: str) -> Dims | None:
        return dims_of(self.site.type_of(name))

    def _node(self, name: str) -> NodeProto | None:
        """The node that computes a value, noted as part of the proof."""
        node = self.integers.producer(name)
        if node is None or has_references(node) or not self.integers.same_meaning(node, name):
            return None
        self.nodes[node.output[0]] = node
        return node
