"""Integers that the model computes from shapes, constants and the iteration number.

An index, a trip count or the size of an axis is followed through the ops that exporters write for
it, and into and out of bodies, and becomes an `Affine`, to which it is equal modulo 2**64. A
number of 32 bits is followed only as far as it does not wrap, for which no axis and no loop may be
longer than 2**31.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy.typing as npt
from onnx import GraphProto, NodeProto, TensorProto

from passes.analysis.integers.affine import (
    LIMITS,
    ONE,
    Affine,
    Atom,
    Ints,
    size_atom,
    symbol_atom,
)
from passes.analysis.integers.integer_ops import (
    FOLLOWED,
    WHOLE,
    Reading,
    ints_of,
    is_settled,
    splits_into_slices,
)
from passes.analysis.sizes.made_up_sizes import size_symbol
from passes.analysis.sizes.sizes_across import Across
from passes.analysis.sizes.sizes_through import empties_through, size_through
from passes.ir import scope as scoping
from passes.ir.attributes import attribute
from passes.ir.constants import Constants
from passes.ir.operators import op_of
from passes.ir.scope import Scope
from passes.ir.site import Site
from passes.operators.bounds import SIZE
from passes.types.value_types import Dims, dims_of, elem_type_of
from passes.writing.guards import Guard, guard_of

_DEEPEST = 100


@dataclass
class Integers:
    """The facts known about integers and sizes at a site: outside, and in its body if one is given.

    `known` are names of the body that are settled already; None means not a number to follow.
    `positive` is a number that is 1 or more wherever the answers are used, as a trip count is where
    the loop runs.
    Values that vary in the body are not followed, and a size that cannot be followed further
    is the atom of its own axis.
    """

    site: Site
    body: GraphProto | None = None
    known: Mapping[str, Ints | None] = field(default_factory=dict)
    positive: Affine = ONE

    def __post_init__(self) -> None:
        site = self.site
        key = (*site.scope.key, site.place.index, "body")
        self._body = Scope("", key, self.body, site.scope) if self.body is not None else None
        self._memo: dict[tuple[object, str], Ints | None] = {}
        self._sizes: dict[tuple[object, str, int], Affine | None] = {}
        self._cut_short = False

    # -- names --------------------------------------------------------------------------------

    def is_own(self, name: str) -> bool:
        """Return whether the body itself defines a name."""
        return self.body is not None and self.site.model.defines(self.body, name)

    def is_outer(self, name: str) -> bool:
        """Return whether the body takes a value from outside."""
        return not self.is_own(name) and self.site.model.home(self.site.scope, name) is not None

    def same_meaning(self, node: NodeProto, output: str) -> bool:
        """Return whether the inputs of an outer node have the same names at the site, and in the
        body."""
        home = self.site.model.home(self.site.scope, output)
        return home is not None and all(self.means(name, home) for name in scoping.free_names(node))

    def means(self, name: str, scope: Scope) -> bool:
        """Return whether a name of another scope means the same at the site, and in the body."""
        home, there = (self.site.model.home(start, name) for start in (self.site.scope, scope))
        return home is not None and not self.is_own(name) and there == home

    def source(self, name: str) -> NodeProto | None:
        """The node that computes a value, as the body sees it, inside or outside."""
        return self.site.model.visible_producer(self.inmost, name)

    def producer(self, name: str) -> NodeProto | None:
        """The node that computes an outer value."""
        return self.site.model.visible_producer(self.site.scope, name)

    def constant_inside(self, name: str) -> npt.NDArray[Any] | None:
        """The constant that a name means in the body."""
        return self._constant(self.inmost, name)

    def guard(self, node: NodeProto) -> Guard | None:
        """The guard that a node outside the loop is."""
        return self._guard(self.site.scope, node)

    def guards(self, name: str) -> dict[str, Guard]:
        """The guards on the way to a number, by their outputs, as the body sees it."""
        found: dict[str, Guard] = {}
        pending, seen = [name], {name}
        while pending:
            node = self.source(pending.pop())
            if node is None or op_of(node) not in FOLLOWED or op_of(node) in ("Shape", "Size"):
                continue
            inside = self.is_own(node.output[0])
            guard = self._guard(self.inmost if inside else self.site.scope, node)
            if guard is not None:
                found[node.output[0]] = guard
            reads = [node.input[0]] if guard is not None else list(node.input)
            pending += [read for read in reads if read and read not in seen]
            seen.update(reads)
        return found

    @property
    def inmost(self) -> Scope:
        """The scope of the body if one is given, else that of the site."""
        return self._body or self.site.scope

    def _guard(self, scope: Scope, node: NodeProto) -> Guard | None:
        return guard_of(
            node,
            partial(self.site.model.producer, scope.owner),
            partial(self._constant, scope),
            lambda name: dims_of(self.site.types.of(scope, name)),
        )

    def _constant(self, scope: Scope, name: str) -> npt.NDArray[Any] | None:
        return Constants(self.site.model, scope).value(name)

    # -- numbers ------------------------------------------------------------------------------

    def outside(self, name: str) -> Ints | None:
        """The numbers that an outer value holds; None where they cannot be followed."""
        return self._at(self.site.scope, name, 0)

    def inside(self, name: str) -> Ints | None:
        """The numbers that a value holds as the body sees it."""
        return self._at(self.inmost, name, 0)

    def seen_from(self, scope: Scope, name: str) -> Ints | None:
        """The numbers that a value holds as a scope sees it, which is `inmost` or around that."""
        return self._at(scope, name, 0)

    def wrapping(self, name: str) -> Ints | None:
        """The same, but numbers of 32 bits may wrap: they are equal modulo 2**32."""
        return self._modular(self.inmost, name, 0)

    def numbers(self, node: NodeProto, position: int, name: str) -> list[int] | None:
        """The constants that an input, or the attribute of older opsets, holds in the body."""
        return self._reading(0, self.inmost).numbers(node, position, name)

    def _at(self, scope: Scope, name: str, depth: int) -> Ints | None:
        found = self._modular(scope, name, depth)
        if found is None or found.elem_type == TensorProto.INT64 or found.exact:
            return found
        home = self.site.model.home(scope, name)
        return None if home is None else self._leaf(home, name)

    def _modular(self, scope: Scope, name: str, depth: int) -> Ints | None:
        if scope is self._body and name in self.known:
            return self.known[name]
        home = self.site.model.home(scope, name)
        if home is None:
            return None
        if home is self._body:
            own = self.site.model.index(home.owner)
            if name in own.inputs and name not in own.initializers:
                return None
        key = (home.key, name)
        if key not in self._memo:
            self._memo[key] = None  # in a cycle, which no valid model has
            self._memo[key] = self._computed(home, name, depth)
        return self._memo[key]

    def _computed(self, home: Scope, name: str, depth: int) -> Ints | None:
        array = self._constant(home, name)
        if array is not None:
            return ints_of(array)
        node = self.site.model.producer(home.owner, name)
        if node is not None and is_settled(node):
            if depth >= _DEEPEST:
                self._cut_short = True
                return self._leaf(home, name)
            follow = FOLLOWED.get(op_of(node))
            found = follow(self._reading(depth + 1, home), node) if follow else None
            if found is not None:
                return found
        return self._leaf(home, name)

    def _reading(self, depth: int, scope: Scope) -> Reading:
        return Reading(
            ints=lambda name: self._at(scope, name, depth),
            wrapping=lambda name: self._modular(scope, name, depth),
            size=lambda name, axis: self._size(scope, name, axis, depth),
            dims=partial(self._dims, scope),
            guard=partial(self._guard, scope),
            length=lambda name: self._length(scope, name, depth),
            empties=lambda name, axis, size: self._empties(scope, name, axis, size, depth),
            positive=self.positive,
        )

    def _length(self, scope: Scope, name: str, depth: int) -> Affine | None:
        """Return the number of slices of size 1 into which a tensor was split."""
        home = self.site.model.home(scope, name)
        node = None if home is None else self.site.model.producer(home.owner, name)
        if home is None or home is self._body or node is None or op_of(node) != "SplitToSequence":
            return None
        if not splits_into_slices(node, lambda read: self._at(home, read, depth)):
            return None
        return self._size(home, node.input[0], attribute(node, "axis", 0), depth)

    def _leaf(self, home: Scope, name: str) -> Ints | None:
        """A single number known only at run time; in the body, None."""
        if home is self._body:
            return None
        known = self.site.types.of(home, name)
        dims, elem_type = dims_of(known), elem_type_of(known)
        if elem_type not in WHOLE or dims not in ((), (1,)):
            return None
        assert dims is not None
        within = SIZE if is_iteration(home, name) else LIMITS[elem_type]
        atom = Atom(("value", home.key, name), name, within=within, shown=name)
        return Ints((Affine.of(atom),), len(dims), elem_type)

    # -- sizes --------------------------------------------------------------------------------

    def size(self, name: str, axis: int) -> Affine | None:
        """The size of an axis of an outer tensor; None where the axis does not exist."""
        return self._size(self.site.scope, name, axis)

    def fixed_size(self, name: str, axis: int) -> int | None:
        """The same as a number; None where it is unknown."""
        size = self.size(name, axis)
        return None if size is None else size.number

    def size_inside(self, part: str, name: str, axis: int) -> Affine | None:
        """The size of an axis of a value in a body of the site's node."""
        return self._size(self.site.body_scope(part), name, axis)

    def proven_dims(self, scope: Scope, name: str) -> Dims | None:
        """Return the dims of a value as a scope sees it, in which one symbol means only sizes that
        are proven, or assumed by the user, to be equal."""
        dims = self._dims(scope, name)
        if dims is None or self._trusts_all:
            return dims
        return tuple(
            dim if isinstance(dim, int) else size_symbol(self._size(scope, name, axis))
            for axis, dim in enumerate(dims)
        )

    def axes(self, names: Iterable[str]) -> dict[Atom, tuple[str, int]]:
        """The atoms that are the size of an axis of these outer tensors, with such an axis."""
        found: dict[Atom, tuple[str, int]] = {}
        for name in names:
            for axis in range(len(self._dims(self.site.scope, name) or ())):
                size = self.size(name, axis) or Affine()
                for atom, _ in size.terms:
                    if size == Affine.of(atom):
                        found.setdefault(atom, (name, axis))
        return found

    def is_made_of_others(self, name: str) -> bool:
        """Return whether the size of some axis of an outer tensor follows from other values."""
        home = self.site.model.home(self.site.scope, name)
        dims = None if home is None else dims_of(self.site.types.of(home, name))
        if home is None or dims is None:
            return False
        for axis in range(len(dims)):
            self.size(name, axis)
        return any(self._sizes.get((home.key, name, axis)) for axis in range(len(dims)))

    def _size(self, scope: Scope, name: str, axis: int, depth: int = 0) -> Affine | None:
        home = self.site.model.home(scope, name)
        if home is None:
            return None
        dims = dims_of(self.site.types.of(home, name))
        if dims is not None and not -len(dims) <= axis < len(dims):
            return None
        if dims is None and axis < 0:
            return None
        position = axis if dims is None else axis % len(dims)
        dim = None if dims is None else dims[position]
        if home is self._body:  # where a size may vary
            return Affine(dim) if isinstance(dim, int) else None
        if not isinstance(dim, int):
            found = self._known(home, name, position, depth)
            if found is not None:
                return found
        if isinstance(dim, str) and (self._is_signature(home, name) or self._trusts_all):
            return symbol_atom(home.key, name, position, dim)
        return size_atom(home.key, name, position, dim)

    def _known(self, home: Scope, name: str, axis: int, depth: int) -> Affine | None:
        """The size of an axis that is followed: cached for all sites, unless it is cut short."""
        key = (home.key, name, axis)
        if key in self._sizes:
            return self._sizes[key]
        shared, place = (
            self.site.model.index(home.owner).derived,
            (self._trusts_all, self.positive, *key),
        )
        if place not in shared:
            if depth >= _DEEPEST:
                self._cut_short = True
                return None
            self._sizes[key] = None  # in a cycle, which no valid model has
            found: Affine | None = self._followed(home, name, axis, depth + 1)
            if not self._cut_short:
                shared[place] = found
        else:
            found = shared[place]
        self._sizes[key] = found
        return found

    def _empties(self, scope: Scope, name: str, axis: int, size: Affine, depth: int) -> bool:
        """Return whether an axis has no element where this size is 0."""
        if self._size(scope, name, axis, depth) == size:
            return True
        home = self.site.model.home(scope, name)
        node = None if home is None else self.site.model.producer(home.owner, name)
        if home is None or node is None or not is_settled(node) or depth >= _DEEPEST:
            return False
        return empties_through(self._reading(depth + 1, home), node, axis, size)

    def _is_signature(self, home: Scope, name: str) -> bool:
        """Return whether a value is an input of the model: sizes of one symbol are equal among
        these."""
        main = home.outer is None and isinstance(home.owner, GraphProto)
        return main and name in self.site.model.index(home.owner).inputs

    @property
    def _trusts_all(self) -> bool:
        return self.site.assumes("valid-inputs")

    def _followed(self, home: Scope, name: str, axis: int, depth: int) -> Affine | None:
        """The size of an axis of a value that a graph itself defines, from what it depends on."""
        node = self.site.model.producer(home.owner, name)
        across = Across(self.site, partial(self._reading, depth))
        if node is None:
            return across.inwards(home, name, axis)
        if not is_settled(node):
            return None
        if scoping.holds_graphs(node):
            return across.outwards(home, node, name, axis)
        guard = self._guard(home, node)
        if guard is not None:
            return self._size(home, guard.value, axis, depth)
        return size_through(self._reading(depth, home), node, axis)

    def _dims(self, scope: Scope, name: str) -> Dims | None:
        home = self.site.model.home(scope, name)
        return None if home is None else dims_of(self.site.types.of(home, name))


def is_iteration(home: Scope, name: str) -> bool:
    """Return whether a name is the number of the iteration in the body of a Loop."""
    holder = home.holder
    if holder is None or op_of(holder.node) != "Loop" or not isinstance(home.owner, GraphProto):
        return False
    return bool(home.owner.input) and home.owner.input[0].name == name
