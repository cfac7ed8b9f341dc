"""The sizes of tensors at a site, in terms of those that only the run tells."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy.typing as npt
from onnx import GraphProto, NodeProto

from passes.analysis.integers.affine import Affine, Atom, Ints, size_atom, symbol_atom
from passes.analysis.integers.integer_ops import is_settled
from passes.analysis.sizes.body_view import BodyView
from passes.analysis.sizes.made_up_sizes import size_symbol
from passes.analysis.sizes.sizes_across import Across
from passes.analysis.sizes.sizes_through import SizeReading, size_through
from passes.ir import scope as scoping
from passes.ir.scope import Scope
from passes.types.value_types import Dims, dims_of

DEEPEST = 100


@dataclass
class Sizes(BodyView):
    """Follows the sizes of outer tensors: through what makes them, and into and out of bodies.

    That of a tensor which is not followed further is the atom of its very axis.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        self._sizes: dict[tuple[object, str, int], Affine | None] = {}
        self._cut_short = False

    def size(self, name: str, axis: int) -> Affine | None:
        """The size of an axis of an outer tensor; None where the axis does not exist."""
        return self._size(self.site.scope, name, axis)

    def proven_dims(self, scope: Scope, name: str) -> Dims | None:
        """The dims of a value as a scope sees it, of which only those have one symbol that are
        proven to be one size, or declared to be where a user vouches for that."""
        dims = self._dims(scope, name)
        if dims is None or self._trusts_all:
            return dims
        return tuple(
            dim if isinstance(dim, int) else size_symbol(self._size(scope, name, axis))
            for axis, dim in enumerate(dims)
        )

    def axes(self, names: Iterable[str]) -> dict[Atom, tuple[str, int]]:
        """The numbers that only the run tells and that an axis of these outer tensors has."""
        found: dict[Atom, tuple[str, int]] = {}
        for name in names:
            for axis in range(len(self._dims(self.site.scope, name) or ())):
                size = self.size(name, axis) or Affine()
                for atom, _ in size.terms:
                    if size == Affine.of(atom):
                        found.setdefault(atom, (name, axis))
        return found

    def is_made_of_others(self, name: str) -> bool:
        """Whether the size of some axis of an outer tensor is known from that of another one."""
        home = self._home(self.site.scope, name)
        dims = None if home is None else dims_of(self.site.types.of(home, name))
        if home is None or dims is None:
            return False
        for axis in range(len(dims)):
            self.size(name, axis)
        return any(self._sizes.get((home.key, name, axis)) for axis in range(len(dims)))

    @abstractmethod
    def _at(self, scope: Scope | None, name: str, depth: int) -> Ints | None:
        """The numbers that a value holds."""

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
        if not isinstance(dim, int):
            found = self._known(home, name, position, depth)
            if found is not None:
                return found
        if isinstance(dim, str) and (self._is_signature(home, name) or self._trusts_all):
            return symbol_atom(home.key, name, position, dim)
        return size_atom(home.key, name, position, dim)

    def _known(self, home: Scope, name: str, axis: int, depth: int) -> Affine | None:
        """The size of an axis that is followed: once for all sites, unless it is cut short."""
        key = (home.key, name, axis)
        if key in self._sizes:
            return self._sizes[key]
        shared, place = self.site.types.derived, ("size", id(home.owner), self._trusts_all, *key)
        found: Affine | None
        owner, found = shared.get(place, (None, None))
        if owner is not home.owner:
            if depth >= DEEPEST:
                self._cut_short = True
                return None
            self._sizes[key] = None  # in a cycle, which no valid model has
            found = self._followed(home, name, axis, depth + 1)
            if not self._cut_short:
                shared[place] = (home.owner, found)
        self._sizes[key] = found
        return found

    def _is_signature(self, home: Scope, name: str) -> bool:
        """Whether a value is an input of the model: sizes of one symbol are equal among these."""
        main = home.outer is None and isinstance(home.owner, GraphProto)
        return main and name in self.site.model.input_names(home.owner)

    @property
    def _trusts_all(self) -> bool:
        return self.site.assumes("valid-inputs")

    def _followed(self, home: Scope, name: str, axis: int, depth: int) -> Affine | None:
        """The size of an axis of what a graph itself defines, from what that is made of."""
        node = self.site.model.producer(home.owner, name)
        if node is None:
            return self._across(depth).inwards(home, name, axis)
        if not is_settled(node):
            return None
        if scoping.holds_graphs(node):
            return self._across(depth).outwards(home, node, name, axis)
        guard = self._guard(home, node)
        if guard is not None:
            return self._size(home, guard.value, axis, depth)
        read = SizeReading(
            lambda name, at: self._size(home, name, at, depth),
            lambda name: self._dims(home, name),
            lambda name: self._fixed(home, name),
            lambda name: self._at(home, name, depth),
        )
        return size_through(read, node, axis)

    def _across(self, depth: int) -> Across:
        def number(scope: Scope, name: str) -> Affine | None:
            found = self._at(scope, name, depth)
            return None if found is None else found.single

        def rank(scope: Scope, name: str) -> int | None:
            dims = self._dims(scope, name)
            return None if dims is None else len(dims)

        def size(scope: Scope, name: str, axis: int) -> Affine | None:
            return self._size(scope, name, axis, depth)

        return Across(self.site, size, rank, number, self._maker)

    def _maker(self, scope: Scope, name: str) -> NodeProto | None:
        home = self._home(scope, name)
        return None if home is None else self.site.model.producer(home.owner, name)

    def _dims(self, scope: Scope, name: str) -> Dims | None:
        home = self._home(scope, name)
        return None if home is None else dims_of(self.site.types.of(home, name))

    def _fixed(self, scope: Scope, name: str) -> npt.NDArray[Any] | None:
        home = self._home(scope, name)
        return None if home is None else self._constant(home, name)
