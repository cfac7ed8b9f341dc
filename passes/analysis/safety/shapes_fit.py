"""Proves that an op fits its shapes, so that it cannot fail where the original did not run it.

A body that never runs, or a branch that is not taken, may hold ops that do not fit what they
would read. What is not proven to fit here may fail. Two sizes with one symbol are proven to be
equal for inputs of the model, and elsewhere where the user lets inputs be assumed to be valid.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest

import numpy as np
from onnx import NodeProto, TypeProto

from passes.analysis.integers.exactness import Array
from passes.analysis.sizes.reshaped import RESHAPING, reshaped, sizes_of
from passes.analysis.sizes.whole_axes import cuts_of
from passes.ir import scope as scoping
from passes.ir.attributes import attribute, has_references, numbers
from passes.ir.operators import op_of
from passes.ir.versions import NEGATIVE_AXES, OLDEST_OPSET, SOFTMAX_OF_ONE_AXIS
from passes.operators.table import traits_of
from passes.operators.traits import Shape, Work
from passes.types.value_types import Dim, Dims, dims_of


@dataclass(frozen=True)
class Known:
    """Facts about the values that nodes read: dims, constants, types; `trusted`: whether
    sizes of one symbol are equal, as in proven dims."""

    opset: int
    dims_of: Callable[[str], Dims | None]
    constant: Callable[[str], Array | None]
    trusted: bool = True
    type_of: Callable[[str], TypeProto | None] = lambda name: None

    @classmethod
    def of_types(
        cls,
        opset: int,
        types: Mapping[str, TypeProto],
        constants: Callable[[str], Array | None],
        *,
        trusted: bool = True,
    ) -> Known:
        """The facts that types give, for names that are unique at every depth."""
        return cls(opset, lambda name: dims_of(types.get(name)), constants, trusted, types.get)

    @classmethod
    def nothing(cls) -> Known:
        """No facts, not even the opset."""
        return cls(0, lambda name: None, lambda name: None)

    def dims(self, node: NodeProto) -> list[Dims] | None:
        """The dims of all inputs that are not omitted; None where a rank is unknown."""
        found = [self.dims_of(name) for name in node.input if name]
        return None if None in found else [dims for dims in found if dims is not None]

    def same(self, sizes: Sequence[Dim]) -> bool:
        """Return whether these sizes are proven to be equal."""
        first, *rest = sizes
        known = isinstance(first, int) or (self.trusted and first is not None)
        return not rest or (known and all(size == first for size in rest))

    def broadcast(self, shapes: Sequence[Dims]) -> Dims | None:
        """The shape that these broadcast to; None where it is not proven that they do."""
        result: list[Dim] = []
        for column in zip_longest(*(reversed(shape) for shape in shapes), fillvalue=1):
            sizes = [size for size in column if size != 1]
            if sizes and not self.same(sizes):
                return None
            result.append(sizes[0] if sizes else 1)
        return tuple(reversed(result))

    def ints(self, node: NodeProto, position: int, name: str) -> list[int] | None:
        """Integers from an attribute or a constant input; None where there is neither."""
        return numbers(node, position, name, self.constant)


def _axis(node: NodeProto, dims: Sequence[Dims], known: Known) -> bool:
    default = -1 if known.opset >= SOFTMAX_OF_ONE_AXIS and op_of(node) != "Flatten" else 1
    rank = len(dims[0])
    return -rank <= attribute(node, "axis", default) < rank


def _clip(node: NodeProto, dims: Sequence[Dims], known: Known) -> bool:
    return all(dim == () for dim in dims[1:])


def _matmul(node: NodeProto, dims: Sequence[Dims], known: Known) -> bool:
    left, right = dims
    if not left or not right or not known.same([left[-1], right[-2:][0]]):
        return False
    return known.broadcast([left[:-2], right[:-2]]) is not None


def _gemm(node: NodeProto, dims: Sequence[Dims], known: Known) -> bool:
    if len(dims[0]) != 2 or len(dims[1]) != 2:
        return False
    left = dims[0][:: -1 if attribute(node, "transA", 0) else 1]
    right = dims[1][:: -1 if attribute(node, "transB", 0) else 1]
    product = (left[0], right[1])
    added = len(dims) < 3 or known.broadcast([product, dims[2]]) == product
    return added and known.same([left[1], right[0]])


def _concat(node: NodeProto, dims: Sequence[Dims], known: Known) -> bool:
    rank, axis = len(dims[0]), attribute(node, "axis", 1)
    if not -rank <= axis < rank or any(len(dim) != rank for dim in dims):
        return False
    return all(
        position == axis % rank or known.same(column)
        for position, column in enumerate(zip(*dims, strict=True))
    )


def _transpose(node: NodeProto, dims: Sequence[Dims], known: Known) -> bool:
    order = known.ints(node, 1, "perm")
    return order is None or sorted(order) == list(range(len(dims[0])))


def _gather(node: NodeProto, dims: Sequence[Dims], known: Known) -> bool:
    axis, index = attribute(node, "axis", 0), known.constant(node.input[1])
    if index is None or not -len(dims[0]) <= axis < len(dims[0]):
        return False
    size, least = dims[0][axis], 0 if known.opset < NEGATIVE_AXES else -1
    if not isinstance(size, int):
        return False
    return bool(np.all(index >= least * size) and np.all(index < size))


def _view(node: NodeProto, dims: Sequence[Dims], known: Known) -> bool:
    given = known.ints(node, 1, RESHAPING[op_of(node)])
    if op_of(node) != "Reshape" and not given:  # Squeeze takes every axis of size 1
        every = given is not None or (len(node.input) < 2 and None not in dims[0])
        return op_of(node) == "Squeeze" and every
    return given is not None and reshaped(node, sizes_of(dims[0]), given) is not None


def _reduce(node: NodeProto, dims: Sequence[Dims], known: Known) -> bool:
    axes, rank = known.ints(node, 1, "axes"), len(dims[0])
    if axes is None:
        return len(node.input) < 2 or not node.input[1]
    return all(-rank <= axis < rank for axis in axes)


def _pooled(node: NodeProto, dims: Sequence[Dims], known: Known) -> bool:
    return len(dims[0]) > 2


def _expand(node: NodeProto, dims: Sequence[Dims], known: Known) -> bool:
    shape = known.ints(node, 1, "shape")
    return shape is not None and known.broadcast([dims[0], tuple(shape)]) is not None


def _summed(node: NodeProto, dims: Sequence[Dims], known: Known) -> bool:
    axis, rank = known.ints(node, 1, "axis"), len(dims[0])
    return axis is not None and len(axis) == 1 and -rank <= axis[0] < rank


def _tile(node: NodeProto, dims: Sequence[Dims], known: Known) -> bool:
    repeats = known.ints(node, 1, "repeats")
    return repeats is not None and len(repeats) == len(dims[0]) and min(repeats, default=0) >= 0


def _slice(node: NodeProto, dims: Sequence[Dims], known: Known) -> bool:
    cuts, rank = cuts_of(node, known.ints), len(dims[0])
    if cuts is None or any(known.constant(name) is None for name in node.input[1:] if name):
        return False
    return all(-rank <= cut.axis < rank and cut.step for cut in cuts)


def _split(node: NodeProto, dims: Sequence[Dims], known: Known) -> bool:
    axis, given, count = attribute(node, "axis", 0), known.ints(node, 1, "split"), len(node.output)
    size = dims[0][axis] if -len(dims[0]) <= axis < len(dims[0]) else None
    if not isinstance(size, int) or (not given and any(node.input[1:])):
        return False
    return sum(given) == size and min(given) >= 0 if given else size > 0 == size % count


Check = Callable[[NodeProto, Sequence[Dims], Known], bool]
#: What ops require of shapes beyond what their traits imply.
_CHECKS: Mapping[str, Check] = {
    "ArgMax": _axis,
    "ArgMin": _axis,
    "Clip": _clip,
    "Concat": _concat,
    "CumSum": _summed,
    "Expand": _expand,
    "Flatten": _axis,
    "Gather": _gather,
    "Gemm": _gemm,
    "GlobalAveragePool": _pooled,
    "GlobalLpPool": _pooled,
    "GlobalMaxPool": _pooled,
    "Hardmax": _axis,
    "LogSoftmax": _axis,
    "MatMul": _matmul,
    **dict.fromkeys(RESHAPING, _view),
    "Slice": _slice,
    "Softmax": _axis,
    "Split": _split,
    "Tile": _tile,
    "Transpose": _transpose,
}


def fits(node: NodeProto, known: Known) -> bool:
    """Return whether a node of the standard domain is proven to fit the shapes that it reads."""
    if has_references(node):
        return op_of(node) == "Constant"
    shape, check = traits_of(node).shape, _CHECKS.get(op_of(node))
    free = not node.input or traits_of(node).work is Work.FREE
    if check is None and (shape is Shape.ELEMENTWISE or free):
        return True
    if shape is Shape.BROADCAST and len(set(node.input)) == 1:
        return True
    dims = known.dims(node)
    if dims is None or known.opset < OLDEST_OPSET:
        return False
    if shape is Shape.BROADCAST:
        return known.opset >= traits_of(node).since and known.broadcast(dims) is not None
    if shape is Shape.REDUCED:
        return _reduce(node, dims, known)
    return check is not None and check(node, dims, known)


def leaves(node: NodeProto) -> Iterator[NodeProto]:
    """A node, or the nodes in its bodies that have no bodies themselves."""
    pending = [node]
    while pending:
        current = pending.pop()
        if scoping.holds_graphs(current):
            pending.extend(scoping.inner_nodes(current))
        else:
            yield current
