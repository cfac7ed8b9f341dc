"""Slices of one tensor, or constants, that the copies read: as the scanned input of a Scan, and the
types that they must have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
from onnx import NodeProto, TensorProto, TypeProto

from passes.analysis.integers.integers import Integers
from passes.ir.attributes import attribute, numbers
from passes.ir.operators import op_of
from passes.operators.exactness import Array
from passes.rule import Site
from passes.rules.reroll.chain import Outer, Wire
from passes.rules.reroll.flow import LEAF, Flow, Value
from passes.types.value_types import (
    FLOATS,
    INFERRED,
    Dims,
    dims_of,
    elem_type_of,
    is_static,
    tensor_type,
)
from passes.writing import spelling
from passes.writing.author import Author


class Kinds:
    """The types of the values around a site; sizes are equal where that is proven. Values that are
    `alike` others have the types of these."""

    def __init__(self, site: Site, alike: Mapping[str, str]) -> None:
        self.site, self._alike = site, alike
        #: Whether sizes were needed that are known only at run time.
        self.symbolic = False

    @cached_property
    def _integers(self) -> Integers:
        return Integers(self.site)

    def of(self, name: str) -> tuple[int, Dims]:
        """The element type and the sizes of a tensor.

        Raises:
            Refused: `unknown-shape`.
        """
        name = self._alike.get(name, name)
        known = self.site.type_of(name)
        elem_type, dims = elem_type_of(known), dims_of(known)
        if elem_type and not is_static(dims):
            self.symbolic = True
            dims = self._integers.proven_dims(self.site.scope, name)
        if not elem_type or dims is None or None in dims:
            what = f"the type or the shape of {name!r} is unknown"
            raise self.site.refused("unknown-shape", what, name)
        return elem_type, dims

    def other(self, names: Sequence[str]) -> int | None:
        """The position of the first value of another type than that of the first one, if any."""
        kind = self.of(names[0])
        return next((at for at, name in enumerate(names) if at and self.of(name) != kind), None)

    def declared(self, name: str, without: int | None = None) -> TypeProto:
        """The type for an input or output of a body: that of a value, or of its slices along the
        axis that they are `without`."""
        elem_type, dims = elem_type_of(self.site.type_of(name)), dims_of(self.site.type_of(name))
        if dims is None:
            return tensor_type(elem_type, None)
        kept = [None if isinstance(dim, str) and dim.startswith(INFERRED) else dim for dim in dims]
        if without is not None:
            del kept[without]
        return tensor_type(elem_type, tuple(kept))


@dataclass(frozen=True)
class Slices:
    """A tensor to scan along an axis; `kept`: what the copies read still has that axis."""

    tensor: str
    type: TypeProto
    axis: int = 0
    reversed: bool = False
    kept: bool = False


class Slicing:
    """Finds and writes the tensors that a loop scans."""

    def __init__(self, flow: Flow, kinds: Kinds, author: Author) -> None:
        self.flow, self.kinds, self.author = flow, kinds, author
        self.site = kinds.site
        #: The Splits whose inputs are scanned instead of their outputs.
        self.splits: dict[str, NodeProto] = {}

    def of(self, wire: Outer) -> Slices:
        """The tensor, or the constants, of which each copy has its own slice.

        Raises:
            Refused: `weights-differ`, `inputs-differ` or `unknown-shape`.
        """
        tensors = [tensor for value in wire.values if (tensor := self.flow.tensor(value))]
        if len(tensors) == len(wire.values):
            return self._stacked_constants(tensors)
        return self._parts(wire.values) or self._stacked(wire.values)

    def cut_by(self, node: NodeProto, row: Sequence[Wire]) -> Slices | None:
        """The slices that a node of each copy cuts out of one tensor; None if it does not."""
        kind = op_of(node)
        if kind not in ("Gather", "Slice") or len(row) < 2 or not all(map(_is_outer, row)):
            return None
        wires = [wire for wire in row if isinstance(wire, Outer)]
        tensor = _one(wires[0])
        held = [self._integers(wire) for wire in wires[1:]]
        if tensor is None or not held or any(one is None for one in held):
            return None
        given = [one for one in held if one is not None]
        if kind == "Gather":
            axis = attribute(node, "axis", 0)
            one = all(array.shape in ((), (1,)) for array in given[0])
            picked = [slice(int(array.item()), None) for array in given[0]] if one else []
            return self._cut(tensor, axis, picked, kept=given[0][0].shape == (1,), single=True)
        starts, ends, *more = given
        axes = more[0] if more else [np.zeros(1, np.int64)] * len(starts)
        steps = more[1] if len(more) > 1 else [np.ones(1, np.int64)]
        if any(array.shape != (1,) for array in (*starts, *axes)) or any(
            step != 1 for step in steps
        ):
            return None
        if len({int(axis.item()) for axis in axes}) > 1:
            return None
        limits = [slice(int(s.item()), int(e.item())) for s, e in zip(starts, ends, strict=True)]
        return self._cut(tensor, int(axes[0].item()), limits, kept=True, single=False)

    def _integers(self, wire: Outer) -> list[Array] | None:
        """The whole numbers that the copies read."""
        read = [self.flow.tensor(value) for value in wire.values]
        kinds = (TensorProto.INT64, TensorProto.INT32)
        found = [self.flow.model.read(one) for one in read if one and one.data_type in kinds]
        return found if len(found) == len(read) else None

    def _cut(
        self, value: Value, axis: int, parts: Sequence[slice], *, kept: bool, single: bool
    ) -> Slices | None:
        """Parts of one element along an axis, if each is beside the one before."""
        name = self.flow.name(value)
        dims = dims_of(self.site.type_of(name))
        if dims is None or not parts or not -len(dims) <= axis < len(dims):
            return None
        size = dims[axis]
        if not isinstance(size, int):
            return None
        if single:
            places = [part.start + size * (part.start < 0) for part in parts]
        else:
            ranges = [range(*part.indices(size)) for part in parts]
            places = [one[0] if len(one) == 1 else -1 for one in ranges]
        return self._beside(name, axis % len(dims), size, places, kept=kept)

    def _beside(
        self, name: str, axis: int, size: int, places: Sequence[int], *, kept: bool
    ) -> Slices | None:
        steps = {after - before for before, after in pairwise(places)}
        if steps not in ({1}, {-1}) or min(places) < 0 or max(places) >= size:
            return None
        tensor, type_ = name, self.kinds.declared(name, axis)
        if len(places) < size:
            first, last = min(places), max(places)
            tensor = self.author.once(
                ("part", name, axis, first, last),
                lambda: spelling.part(self.author, name, axis, first, last + 1),
            )
        return Slices(tensor, type_, axis, steps == {-1}, kept)

    def _parts(self, values: Sequence[Value]) -> Slices | None:
        """The outputs of a Split into parts of size 1."""
        producers = {rank for rank, _ in values}
        (rank,) = producers if len(producers) == 1 else (LEAF,)
        node = None if rank == LEAF else self.flow.node(rank)
        if node is None or op_of(node) != "Split":
            return None
        dims = dims_of(self.site.type_of(node.input[0]))
        axis = attribute(node, "axis", 0)
        size = None if dims is None or not -len(dims) <= axis < len(dims) else dims[axis]
        sizes = numbers(node, 1, "split", self.site.constant)
        if dims is None or size != len(node.output) or (sizes and set(sizes) != {1}):
            return None
        self.splits[node.output[0]] = node
        return self._beside(
            node.input[0], axis % len(dims), size, [out for _, out in values], kept=True
        )

    def _stacked_constants(self, tensors: Sequence[TensorProto]) -> Slices:
        first, arrays = tensors[0], [self.flow.model.read(tensor) for tensor in tensors]
        filled = all((array == array.reshape(-1)[:1]).all() for array in arrays)
        if first.data_type in FLOATS and not filled and not self.site.options.stack_weights:
            raise self.site.refused(
                "weights-differ",
                f"{len(tensors)} copies have a weight each, as {first.name!r}; --stack-weights "
                "makes one of these",
                first.name,
            )
        return Slices(
            self.author.value(np.stack(arrays), "each"),
            tensor_type(first.data_type, tuple(first.dims)),
        )

    def _stacked(self, values: Sequence[Value]) -> Slices:
        """Values of one static type, joined along a new axis."""
        names = [self.flow.name(value) for value in values]
        other = self.kinds.other(names)
        if other is not None or not is_static(self.kinds.of(names[0])[1]):
            raise self.site.refused(
                "inputs-differ",
                f"copies read {names[0]!r} and {names[other or 1]!r}, which are not proven to be "
                "of one shape",
                names[0],
                names[other or 1],
            )
        rows = [spelling.unsqueeze(self.author, name, 0) for name in names]
        return Slices(self.author.op("Concat", *rows, axis=0), self.kinds.declared(names[0]))


def _is_outer(wire: Wire) -> bool:
    return isinstance(wire, Outer)


def _one(wire: Outer) -> Value | None:
    """The value that all copies read."""
    return wire.values[0] if len(set(wire.values)) == 1 else None
