"""Whole numbers that the model computes from shapes, constants and the iteration number.

An index or a trip count is followed through the ops that exporters write for it, and becomes an
`Affine`, to which it is equal modulo 2**64. A number of 32 bits is followed only as far as it does
not wrap, for which no axis and no loop may be longer than 2**31.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from onnx import TensorProto, helper

from passes.analysis.integers.affine import LIMITS, Affine, Atom, Ints
from passes.analysis.integers.integer_ops import FOLLOWED, WHOLE, Reading, attribute, is_settled
from passes.analysis.sizes.sizes import DEEPEST, Sizes
from passes.ir.operators import op_of
from passes.ir.scope import Scope
from passes.types.value_types import dims_of, elem_type_of

_MOST_ITEMS = 64  # a shape, not data


@dataclass
class Integers(Sizes):
    """What is known of whole numbers at a site: outside the loop, and in its body where given.

    `known` are names of the body that are settled already; None means not a number to follow.
    """

    known: Mapping[str, Ints | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        super().__post_init__()
        self._memo: dict[tuple[object, str], Ints | None] = {}

    def outside(self, name: str) -> Ints | None:
        """The numbers that an outer value holds, None where they cannot be followed."""
        return self._at(self.site.scope, name, 0)

    def inside(self, name: str) -> Ints | None:
        """The numbers that a value holds as the body sees it."""
        return self._at(None, name, 0)

    def wrapping(self, name: str) -> Ints | None:
        """The same, with numbers of 32 bits that may wrap: equal to these modulo 2**32."""
        return self._modular(None, name, 0)

    def _at(self, scope: Scope | None, name: str, depth: int) -> Ints | None:
        found = self._modular(scope, name, depth)
        if found is None or found.elem_type == TensorProto.INT64 or found.exact:
            return found
        home = self._home(scope or self.site.scope, name)
        own = scope is None and self.is_own(name)
        return None if home is None or own else self._leaf(home, name)

    def _modular(self, scope: Scope | None, name: str, depth: int) -> Ints | None:
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
        if node is not None and is_settled(node):
            if depth >= DEEPEST:
                self._cut_short = True
                return self._leaf(scope, name)
            follow = FOLLOWED.get(op_of(node))
            found = follow(self._reading(scope, depth + 1), node) if follow else None
            if found is not None:
                return found
        return self._leaf(scope, name)

    def _reading(self, scope: Scope | None, depth: int) -> Reading:
        return Reading(
            lambda name: self._modular(scope, name, depth),
            lambda name: self._shape(scope, name),
            lambda node: self._guard(scope, node),
            lambda name: self._length(scope, name, depth),
        )

    def _length(self, scope: Scope | None, name: str, depth: int) -> Affine | None:
        """How many slices of size 1 a tensor was split into."""
        home = None if scope is None else self._home(scope, name)
        node = self._producer(home, name)
        if node is None or op_of(node) != "SplitToSequence":
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
        dims, elem_type = dims_of(known), elem_type_of(known)
        if elem_type not in WHOLE or dims not in ((), (1,)):
            return None
        assert dims is not None
        atom = Atom(("value", scope.key, name), name, within=LIMITS[elem_type], shown=name)
        return Ints((Affine.of(atom),), len(dims), elem_type)


def _ints_of(array: npt.NDArray[Any]) -> Ints | None:
    if array.dtype not in (np.int64, np.int32) or array.ndim > 1 or array.size > _MOST_ITEMS:
        return None
    elem_type = helper.np_dtype_to_tensor_dtype(array.dtype)
    return Ints(tuple(Affine(int(item)) for item in array.ravel()), array.ndim, elem_type)
