"""Whole numbers that the model computes from shapes, constants and the iteration number.

An index or a trip count is followed through the ops that exporters write for it, and becomes an
`Affine`. Numbers of type int32 count as if they could not wrap: an axis or a loop would have to
be longer than 2**31.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from onnx import NodeProto

from passes import scope as scoping
from passes.rules.affine import Affine, Atom, Ints, size_atom, symbol_atom
from passes.rules.body_view import BodyView
from passes.rules.integer_ops import FOLLOWED, WHOLE, Reading, attribute
from passes.rules.sizes_through import SizeReading, size_through
from passes.scope import Scope
from passes.value_types import Dims, dims_of, elem_type_of

_MOST_ITEMS = 64  # a shape, not data
_DEEPEST = 100


@dataclass
class Integers(BodyView):
    """What is known of whole numbers at a site: outside the loop, and in its body where given.

    `known` are names of the body that are settled already; None means not a number to follow.
    """

    known: Mapping[str, Ints | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        super().__post_init__()
        self._memo: dict[tuple[object, str], Ints | None] = {}
        self._sizes: dict[tuple[object, str, int], Affine | None] = {}

    def outside(self, name: str) -> Ints | None:
        """The numbers that an outer value holds, None where they cannot be followed."""
        return self._at(self.site.scope, name, 0)

    def inside(self, name: str) -> Ints | None:
        """The numbers that a value holds as the body sees it."""
        return self._at(None, name, 0)

    def size(self, name: str, axis: int) -> Affine | None:
        """The size of an axis of an outer tensor; None where the axis does not exist."""
        return self._size(self.site.scope, name, axis)

    def _at(self, scope: Scope | None, name: str, depth: int) -> Ints | None:
        if scope is None:
            if name in self.known:
                return self.known[name]
            if name in self._inputs:
                return None
            if name not in self._producers and name not in self._initializers:
                scope = self.site.scope
        if scope is not None:
            home = self._home(scope, name)
            if home is None:
                return None
            scope = home
        key = (scope.key if scope else None, name)
        if key not in self._memo:
            self._memo[key] = None  # in a cycle, which no valid model has
            self._memo[key] = self._computed(scope, name, depth)
        return self._memo[key]

    def _computed(self, scope: Scope | None, name: str, depth: int) -> Ints | None:
        array = self._constant(scope, name)
        if array is not None:
            return _ints_of(array)
        node = self._producer(scope, name)
        if node is not None and scoping.is_onnx_domain(node.domain) and depth < _DEEPEST:
            follow = FOLLOWED.get(node.op_type)
            found = follow(self._reading(scope, depth + 1), node) if follow else None
            if found is not None:
                return found
        return self._leaf(scope, name)

    def _reading(self, scope: Scope | None, depth: int) -> Reading:
        return Reading(
            lambda name: self._at(scope, name, depth),
            lambda name: self._shape(scope, name),
            lambda node: self._guard(scope, node),
            lambda name: self._length(scope, name, depth),
        )

    def _length(self, scope: Scope | None, name: str, depth: int) -> Affine | None:
        """How many slices of size 1 a tensor was split into."""
        home = None if scope is None or name in self._producers else self._home(scope, name)
        node = self._producer(home, name)
        if node is None or node.op_type != "SplitToSequence":
            return None
        if len(node.input) > 1 and node.input[1]:
            parts = self._at(home, node.input[1], depth)
            single = parts.single if parts is not None and parts.rank == 0 else None
            if single is None or single.number != 1:
                return None
        axis = attribute(node, "axis", 0) or 0
        return None if home is None else self._size(home, node.input[0], axis, depth)

    def _shape(self, scope: Scope | None, name: str) -> Ints | None:
        """The sizes of a tensor; None where its rank is not known."""
        if scope is None and not self.is_outer(name):
            dims = dims_of(self._type(None, name))
            if dims is None or not all(isinstance(dim, int) for dim in dims):
                return None
            return Ints(tuple(Affine(int(dim or 0)) for dim in dims), 1)
        scope = scope or self.site.scope
        home = self._home(scope, name)
        dims = None if home is None else dims_of(self.site.types.of(home, name))
        if dims is None:
            return None
        sizes = [self._size(scope, name, axis) for axis in range(len(dims))]
        return Ints(tuple(size for size in sizes if size is not None), 1)

    def _leaf(self, scope: Scope | None, name: str) -> Ints | None:
        """A single number that only the run tells; what varies in the body is not followed."""
        if scope is None:
            return None
        known = self._type(scope, name)
        dims = dims_of(known)
        if elem_type_of(known) not in WHOLE or dims not in ((), (1,)):
            return None
        assert dims is not None
        return Ints((Affine.of(Atom(("value", scope.key, name), name, shown=name)),), len(dims))

    def _size(self, scope: Scope, name: str, axis: int, depth: int = 0) -> Affine | None:
        home = self._home(scope, name)
        if home is None:
            return None
        dims = dims_of(self.site.types.of(home, name))
        if dims is not None and not -len(dims) <= axis < len(dims):
            return None
        if dims is None and axis < 0:
            return None
        position = axis if dims is None else axis % len(dims)
        dim = None if dims is None else dims[position]
        node = self.site.model.producer(home.owner, name)
        if node is not None and not isinstance(dim, int) and depth < _DEEPEST:
            key = (home.key, name, position)
            if key not in self._sizes:
                self._sizes[key] = self._size_through(home, node, position, depth + 1)
            if (found := self._sizes[key]) is not None:
                return found
        if isinstance(dim, str) and "valid-inputs" in self.site.options.get("assume", ()):
            return symbol_atom(home.key, name, position, dim)
        return size_atom(home.key, name, position, dim)

    def _size_through(self, home: Scope, node: NodeProto, axis: int, depth: int) -> Affine | None:
        """The size of an axis of what a node gives, from what it reads."""
        if not scoping.is_onnx_domain(node.domain):
            return None
        guard = self._guard(home, node)
        if guard is not None:
            return self._size(home, guard.value, axis, depth)
        if node.op_type == "ConstantOfShape" or self._fills(home, node):
            shape = self._at(home, node.input[-1], depth)
            whole = shape is not None and shape.rank == 1 and axis < len(shape.items)
            return shape.items[axis] if shape is not None and whole else None
        if node.op_type == "Range":
            return self._range_length(home, node, depth)
        read = SizeReading(
            lambda name, at: self._size(home, name, at, depth),
            lambda name: self._dims(home, name),
            lambda name: self._fixed(home, name),
        )
        return size_through(read, node, axis)

    def _dims(self, scope: Scope, name: str) -> Dims | None:
        home = self._home(scope, name)
        return None if home is None else dims_of(self.site.types.of(home, name))

    def _fixed(self, scope: Scope, name: str) -> npt.NDArray[Any] | None:
        home = self._home(scope, name)
        return None if home is None else self._constant(home, name)

    def _fills(self, home: Scope, node: NodeProto) -> bool:
        """Whether a node fills a shape with a scalar."""
        return node.op_type == "Expand" and self._dims(home, node.input[0]) == ()

    def _range_length(self, home: Scope, node: NodeProto, depth: int) -> Affine | None:
        """How many numbers a Range counts one by one, if not fewer than none."""
        start, limit, step = (self._at(home, name, depth) for name in node.input)
        if start is None or limit is None or step is None:
            return None
        if start.single is None or limit.single is None or step.single is None:
            return None
        count = limit.single - start.single
        return count if step.single.number == 1 and count.never_negative else None


def _ints_of(array: npt.NDArray[Any]) -> Ints | None:
    if array.dtype not in (np.int64, np.int32) or array.ndim > 1 or array.size > _MOST_ITEMS:
        return None
    return Ints(tuple(Affine(int(item)) for item in array.ravel()), array.ndim)
