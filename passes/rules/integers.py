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
from onnx import GraphProto, NodeProto, TypeProto, numpy_helper

from passes import scope as scoping
from passes.constant_nodes import constant_tensor
from passes.rule import Constants, Site
from passes.rules.affine import Affine, Atom, Ints, size_atom, symbol_atom
from passes.rules.guards import Guard, guarded
from passes.rules.integer_ops import FOLLOWED, WHOLE, Reading, attribute
from passes.scope import Scope
from passes.value_types import dims_of, elem_type_of

_MOST_ITEMS = 64  # a shape, not data
_DEEPEST = 100
#: Ops of one input whose output has its shape.
SHAPE_KEEPING = (
    *("Abs", "Cast", "Ceil", "Cos", "Elu", "Erf", "Exp", "Floor", "Gelu", "Identity", "LeakyRelu"),
    *("Log", "LogSoftmax", "Neg", "Not", "Reciprocal", "Relu", "Round", "Sigmoid", "Sin"),
    *("Softmax", "Softplus", "Sqrt", "Tanh"),
)


@dataclass
class Integers:
    """What is known of whole numbers at a site: outside the loop, and in its body where given.

    `known` are names of the body that are settled already; None means not a number to follow.
    """

    site: Site
    body: GraphProto | None = None
    known: Mapping[str, Ints | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._memo: dict[tuple[object, str], Ints | None] = {}
        body = self.body or GraphProto()
        self._producers = {name: node for node in body.node for name in node.output if name}
        self._initializers = {tensor.name: tensor for tensor in body.initializer}
        self._inputs = set(scoping.input_names(body)) - set(self._initializers)

    def outside(self, name: str) -> Ints | None:
        """The numbers that an outer value holds, None where they cannot be followed."""
        return self._at(self.site.scope, name, 0)

    def inside(self, name: str) -> Ints | None:
        """The numbers that a value holds as the body sees it."""
        return self._at(None, name, 0)

    def constant_inside(self, name: str) -> npt.NDArray[Any] | None:
        """The fixed value of what the body sees under a name."""
        mine = name in self._producers or name in self._initializers or name in self._inputs
        return self._constant(None if mine else self.site.scope, name)

    def size(self, name: str, axis: int) -> Affine | None:
        """The size of an axis of an outer tensor; None where the axis does not exist."""
        return self._size(self.site.scope, name, axis)

    def source(self, name: str) -> NodeProto | None:
        """The node that makes a value, as the body sees it, inside or outside."""
        if name in self._producers:
            return self._producers[name]
        return self.producer(name)

    def producer(self, name: str) -> NodeProto | None:
        """The node that makes an outer value."""
        home = self._home(self.site.scope, name)
        return None if home is None else self.site.model.producer(home.owner, name)

    def guard(self, node: NodeProto) -> Guard | None:
        """The guard that a node outside the loop is."""
        return self._guard(self.site.scope, node)

    def guards(self, name: str) -> dict[str, Guard]:
        """The guards on the way to a number, by what they give, as the body sees it."""
        found: dict[str, Guard] = {}
        pending, seen = [name], {name}
        while pending:
            node = self.source(pending.pop())
            if node is None or node.op_type not in FOLLOWED or node.op_type in ("Shape", "Size"):
                continue
            inside = node.output[0] in self._producers
            guard = self._guard(None if inside else self.site.scope, node)
            if guard is not None:
                found[node.output[0]] = guard
            reads = [node.input[0]] if guard is not None else list(node.input)
            pending += [one for one in reads if one and one not in seen]
            seen.update(reads)
        return found

    def is_outer(self, name: str) -> bool:
        """Whether the body takes a value from outside."""
        mine = name in self._producers or name in self._initializers or name in self._inputs
        return not mine and self._home(self.site.scope, name) is not None

    def same_meaning(self, node: NodeProto, output: str) -> bool:
        """Whether what an outer node reads is called the same at the site, and in the body."""
        home = self._home(self.site.scope, output)
        return home is not None and all(
            self.is_outer(name) and self._home(home, name) == self._home(self.site.scope, name)
            for name in filter(None, node.input)
        )

    def visible(self, atom: Atom) -> bool:
        """Whether the tensor that tells an atom is called the same at the site."""
        home = self._home(self.site.scope, atom.tensor)
        return home is not None and len(atom.key) > 1 and home.key == atom.key[1]

    def _home(self, scope: Scope, name: str) -> Scope | None:
        """The scope that defines what a name means."""
        return next((at for at in scope.chain() if self.site.model.defines(at.owner, name)), None)

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

    def _guard(self, scope: Scope | None, node: NodeProto) -> Guard | None:
        return guarded(
            node,
            lambda name: self._producer(scope, name),
            lambda name: self._constant(scope, name),
        )

    def _producer(self, scope: Scope | None, name: str) -> NodeProto | None:
        if scope is None:
            return self._producers.get(name)
        return self.site.model.producer(scope.owner, name)

    def _constant(self, scope: Scope | None, name: str) -> npt.NDArray[Any] | None:
        if scope is not None:
            return Constants(self.site.model, scope).value(name)
        if name in self._initializers:
            return np.asarray(self.site.model.read(self._initializers[name]))
        node = self._producers.get(name)
        tensor = constant_tensor(node) if node is not None else None
        return None if tensor is None else np.asarray(numpy_helper.to_array(tensor))

    def _type(self, scope: Scope | None, name: str) -> TypeProto | None:
        if scope is not None:
            return self.site.types.of(scope, name)
        return self.site.body_type_of("body", name)

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
            found = self._size_through(home, node, position, depth + 1)
            if found is not None:
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
        if node.op_type in SHAPE_KEEPING:
            return self._size(home, node.input[0], axis, depth)
        if node.op_type == "Transpose":
            perm = next((list(one.ints) for one in node.attribute if one.name == "perm"), None)
            return None if perm is None else self._size(home, node.input[0], perm[axis], depth)
        if node.op_type == "ConstantOfShape":
            shape = self._at(home, node.input[0], depth)
            whole = shape is not None and shape.rank == 1 and axis < len(shape.items)
            return shape.items[axis] if shape is not None and whole else None
        return None


def _ints_of(array: npt.NDArray[Any]) -> Ints | None:
    if array.dtype not in (np.int64, np.int32) or array.ndim > 1 or array.size > _MOST_ITEMS:
        return None
    return Ints(tuple(Affine(int(item)) for item in array.ravel()), array.ndim)
