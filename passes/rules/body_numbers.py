"""Small whole numbers that a loop's body computes from the sizes of its values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from onnx import NodeProto

from passes.operators import called_key, op_of
from passes.rules.affine import LIMITS
from passes.rules.time_body import TimeBody
from passes.value_types import Dims, dims_of, elem_type_of
from passes.vectorize.axes import attribute

#: A whole number, or None where only the run tells it.
Number = int | None
_MOST = 64  # a shape, not data
_DEEPEST = 32
#: Ops that hand numbers on; of a Cast only those to whole numbers do.
_SAME = ("Identity", "Cast", "Squeeze", "Unsqueeze")


@dataclass(frozen=True)
class BodyNumbers:
    """Reads bounds and sizes, such as `(shape[1] + 3) / 4`, as far as they are known.

    Other than `Integers`, it goes by the types inside the body, of which a size may be open.
    """

    body: TimeBody
    _memo: dict[str, list[Number] | None] = field(default_factory=dict)

    def dims(self, name: str) -> Dims | None:
        """The dims of a value as the body sees it."""
        fixed = self.body.rows.constants.get(name)
        return dims_of(self.body.rows.types.get(name)) if fixed is None else fixed.shape

    def node(self, name: str) -> NodeProto | None:
        """The operator that makes a value of the body.

        None where the value is read or a constant, or what makes it is no operator of ONNX, or
        has an attribute that callers of a function choose.
        """
        at = self.body.producers.get(name)
        node = None if at is None else self.body.nodes[at]
        if node is None or op_of(node) == "Constant":
            return None
        chosen = any(one.ref_attr_name for one in node.attribute)
        return None if chosen or called_key(node) in self.body.functions else node

    def known(self, node: NodeProto, position: int) -> list[int] | None:
        """The numbers of an input of a node, None where it is omitted or they are not known."""
        if position >= len(node.input) or not node.input[position]:
            return None
        found = self.of(node.input[position])
        known = [one for one in found or () if one is not None]
        return known if found is not None and len(known) == len(found) else None

    def of(self, name: str, depth: int = 0) -> list[Number] | None:
        """The numbers of a scalar or vector, None where it is not followed."""
        if name not in self._memo:
            self._memo[name] = None if depth > _DEEPEST else self._computed(name, depth)
        return self._memo[name]

    def _computed(self, name: str, depth: int) -> list[Number] | None:
        fixed = self.body.rows.constants.get(name)
        if fixed is not None:
            small = fixed.dtype in (np.int64, np.int32) and fixed.size <= _MOST and fixed.ndim < 2
            return [int(one) for one in fixed.ravel()] if small else None
        node = self.node(name)
        if node is None:
            return None
        if op_of(node) == "Shape":
            dims = self.dims(node.input[0])
            part = slice(attribute(node, "start", 0), attribute(node, "end", _MOST))
            return None if dims is None else [_size(one) for one in dims[part]]
        if op_of(node) in _SAME:
            is_float = op_of(node) == "Cast" and attribute(node, "to", 0) not in LIMITS
            return None if is_float else self._held(name, self.of(node.input[0], depth + 1))
        follow = _FOLLOWED.get(op_of(node))
        inputs = [self.of(one, depth + 1) for one in node.input]
        told = [one for one in inputs if one is not None]
        if follow is None or len(told) != len(inputs):
            return None
        return self._held(name, follow(told))

    def _held(self, name: str, numbers: list[Number] | None) -> list[Number] | None:
        """Numbers as far as their type has them; what wraps is not followed."""
        limits = LIMITS.get(elem_type_of(self.body.rows.types.get(name)))
        if numbers is None or limits is None:
            return None
        return [
            one if one is not None and limits[0] <= one <= limits[1] else None for one in numbers
        ]


def _size(dim: int | str | None) -> Number:
    return dim if isinstance(dim, int) else None


def _gathered(inputs: Sequence[list[Number]]) -> list[Number] | None:
    data, places = inputs
    inside = [at for at in places if at is not None and -len(data) <= at < len(data)]
    return [data[at] for at in inside] if len(inside) == len(places) else None


def _joined(inputs: Sequence[list[Number]]) -> list[Number] | None:
    return [one for part in inputs for one in part]


def _pairwise(
    combine: Callable[[int, int], Number],
) -> Callable[[Sequence[list[Number]]], list[Number] | None]:
    def follow(inputs: Sequence[list[Number]]) -> list[Number] | None:
        one, other = inputs
        count = max(len(one), len(other))
        if not one or not other or not {len(one), len(other)} <= {1, count}:
            return None
        pairs = zip(one * (count // len(one)), other * (count // len(other)), strict=True)
        return [None if a is None or b is None else combine(a, b) for a, b in pairs]

    return follow


def _quotient(one: int, other: int) -> Number:
    return one // other if one >= 0 and other > 0 else None


_FOLLOWED: dict[str, Callable[[Sequence[list[Number]]], list[Number] | None]] = {
    "Gather": _gathered,
    "Concat": _joined,
    "Add": _pairwise(lambda one, other: one + other),
    "Sub": _pairwise(lambda one, other: one - other),
    "Mul": _pairwise(lambda one, other: one * other),
    "Div": _pairwise(_quotient),
}
