"""Values that decide about control flow, from constants and what is known of sizes."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from onnx import NodeProto, helper

from passes.analysis.bodies.body_types import are_shapes_proven
from passes.analysis.bodies.context import context_of
from passes.analysis.integers.affine import Ints
from passes.analysis.integers.computed import Computed
from passes.analysis.integers.integer_ops import FOLLOWED, is_settled
from passes.analysis.integers.integers import Integers
from passes.ir.operators import op_of
from passes.ir.scope import Key, Place, Scope
from passes.ir.site import Site, Slot
from passes.operators.comparisons import COMPARISONS, holds
from passes.operators.exactness import Array
from passes.operators.folding import folded
from passes.types.value_types import dims_of, is_static

_MOST_ELEMENTS = 64
_FARTHEST = 64
_MOST_VALUES = 256

_KNOWN: Slot[dict[tuple[Key, str], Array | None]] = Slot()
_INTEGERS: Slot[dict[Key, Integers]] = Slot()


def decided(site: Site, name: str) -> tuple[Array, tuple[NodeProto, ...]] | None:
    """Return the value of `name` at a site, and the earlier nodes from which it follows; None if it
    is known only at run time."""
    values = _Decided(site, site.memory.once(_KNOWN, dict))
    value = values.value(site.scope, name)
    if value is None or site.constant(name) is not None:
        return None if value is None else (value, ())
    cone = _Cone(values, Integers(site))
    if not cone.take(name):
        return None
    return value, context_of(site, is_known=cone.is_known) if cone.needs_sizes else tuple(
        cone.nodes
    )


@dataclass(frozen=True)
class _Decided(Computed):
    """Also follows sizes of which some are known, or which are compared."""

    def _at_home(self, home: Scope, name: str, distance: int) -> Array | None:
        node = self.site.model.producer(home.owner, name)
        if node is not None and is_settled(node):
            found = self._followed(home, node, name)
            if found is None and op_of(node) in ("And", "Or"):
                found = self._stopped(home, node, distance)
            if found is None:
                found = folded(node, lambda read: self.value(home, read, distance + 1))
            if found is not None:
                return found
        return super()._at_home(home, name, distance)

    def _followed(self, home: Scope, node: NodeProto, name: str) -> Array | None:
        """Integers made of known sizes, or a comparison of integers that any sizes decide."""
        compares = op_of(node) in COMPARISONS and len(node.input) == 2 and not node.attribute
        if not compares and op_of(node) not in FOLLOWED:
            return None
        if not self._rests_on_proven_shapes(home, name, 0):
            return None
        integers = self._integers(home)
        if compares:
            left, right = (integers.outside(read) for read in node.input)
            return None if left is None or right is None else _compared(node, left, right)
        found = integers.outside(name)
        if found is None:
            return None
        numbers = [item.wrapped(found.elem_type).number for item in found.items]
        if None in numbers:
            return None
        dtype = helper.tensor_dtype_to_np_dtype(found.elem_type)
        return np.array(numbers if found.rank else numbers[0], dtype)

    def _stopped(self, home: Scope, node: NodeProto, distance: int) -> Array | None:
        """Return the result of an And or Or that one operand decides, if the shape of the other is
        known."""
        if node.attribute or not self._has_proven_shapes(home):
            return None
        for read, other in (node.input, node.input[::-1]):
            value = self.value(home, read, distance + 1)
            sizes = dims_of(self.site.types.of(home, other))
            if value is None or not value.size or sizes is None:
                continue
            ends = op_of(node) == "Or"
            fixed = [size for size in sizes if isinstance(size, int) and size <= _MOST_ELEMENTS]
            single = value.shape == () or len(fixed) == len(sizes) == value.ndim
            if single and len(fixed) == len(sizes) and bool(np.all(value == ends)):
                return np.full(np.broadcast_shapes(value.shape, tuple(fixed)), ends)
        return None

    def _rests_on_proven_shapes(self, scope: Scope, name: str, depth: int) -> bool:
        """Return whether integers are made of no sizes that a Loop may change."""
        home = self.site.model.home(scope, name)
        if home is None or depth > _FARTHEST:
            return False
        node = self.site.model.producer(home.owner, name)
        if self._has_proven_shapes(home) or node is None:
            return True
        if op_of(node) in ("Shape", "Size"):
            measured = self.site.model.home(home, node.input[0])
            return measured is not None and self._has_proven_shapes(measured)
        if op_of(node) in COMPARISONS or op_of(node) in FOLLOWED:
            reads = filter(None, node.input)
            return all(self._rests_on_proven_shapes(home, read, depth + 1) for read in reads)
        return True

    def _has_proven_shapes(self, home: Scope) -> bool:
        return are_shapes_proven(self._at(home))

    def _integers(self, home: Scope) -> Integers:
        found = self.site.memory.once(_INTEGERS, dict)
        if home.key not in found:
            found[home.key] = Integers(self._at(home))
        return found[home.key]

    def _at(self, home: Scope) -> Site:
        return replace(self.site, place=Place(self.site.node, 0, home))


@dataclass
class _Cone:
    """The nodes from which a value follows, in order.

    `needs_sizes`: sizes in it are proven by more nodes, those that compute the measured tensors.
    """

    values: _Decided
    integers: Integers
    nodes: list[NodeProto] = field(default_factory=list)
    needs_sizes: bool = False

    def is_known(self, name: str) -> bool:
        """Return whether a value is known at the site."""
        return self.values.value(self.values.site.scope, name) is not None

    def take(self, name: str) -> bool:
        """Collect the nodes; False where they are too many, or read names that differ here."""
        model, scope = self.values.site.model, self.values.site.scope
        pending, seen, found = [name], {name}, {}
        while pending:
            read = pending.pop()
            node, home = self.integers.producer(read), model.home(scope, read)
            if node is None or home is None:
                continue
            if len(seen) > _MOST_VALUES or not self.integers.same_meaning(node, read):
                return False
            found[len(home.key), model.index(home.owner).positions[read]] = node
            if op_of(node) in ("Shape", "Size", "SequenceLength"):
                self.needs_sizes |= not self._is_typed(node)
                continue
            if op_of(node) in COMPARISONS:
                self.needs_sizes |= not all(map(self.is_known, node.input))
            new = {one for one in node.input if one not in seen and self._is_part(one)}
            seen |= new
            pending += new
        self.nodes += [node for _, node in sorted(found.items(), key=lambda item: item[0])]
        return True

    def _is_part(self, name: str) -> bool:
        node = self.integers.producer(name) if name else None
        return node is not None and (op_of(node) in FOLLOWED or self.is_known(name))

    def _is_typed(self, node: NodeProto) -> bool:
        """Return whether all sizes that are known of a measured tensor are in its type."""
        site = self.values.site
        dims = dims_of(site.type_of(node.input[0]))
        if dims is None or op_of(node) == "Size":
            return is_static(dims)
        sizes = [self.integers.size(node.input[0], axis) for axis in range(len(dims))]
        return all(
            isinstance(dim, int) or size is None or size.number is None
            for dim, size in zip(dims, sizes, strict=True)
        )


def _compared(node: NodeProto, left: Ints, right: Ints) -> Array | None:
    """Return the result of a comparison, element by element."""
    count = max(len(left.items), len(right.items))
    if left.elem_type != right.elem_type or not (left.exact and right.exact):
        return None
    if not {len(left.items), len(right.items)} <= {1, count}:
        return None
    pairs = zip(
        left.items * (count // len(left.items)),
        right.items * (count // len(right.items)),
        strict=True,
    )
    differences = (one - other for one, other in pairs)
    outcomes = [holds(op_of(node), one.least, one.most) for one in differences]
    if None in outcomes:
        return None
    return np.array(outcomes if max(left.rank, right.rank) else outcomes[0], np.bool_)
