"""The sizes that Reshape, Squeeze and Unsqueeze give, where it is proven that they do not fail."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from onnx import NodeProto

from passes.ir.attributes import attribute
from passes.ir.operators import op_of
from passes.operators.contract import Operands
from passes.operators.contract import Size as AxisSize
from passes.operators.contracts import contract_of
from passes.operators.exactness import Array
from passes.types.value_types import Dims

#: A size: a number, or, in a tuple, the axis of the original tensor that has this size; none of it
#: where it is another one.
Size = int | tuple[int, ...]
Sizes = tuple[Size, ...]
_OTHER: Size = ()

#: The ops that return the elements of their first input, in order, with other axes.
RESHAPING = ("Reshape", "Squeeze", "Unsqueeze")


def sizes_of(dims: Dims) -> Sizes:
    """The sizes of the original tensor."""
    return tuple(dim if isinstance(dim, int) else (position,) for position, dim in enumerate(dims))


def reshaped(
    node: NodeProto, sizes: Sizes, constant: Callable[[str], Array | None]
) -> Sizes | None:
    """The sizes of the output of a node; None where it may fail."""
    operands = Operands(node, lambda name: sizes, constant)
    if op_of(node) == "Reshape":
        shape = operands.numbers(1, "shape")
        return None if shape is None else _in_shape(node, sizes, shape)
    contract = contract_of(operands)
    if contract is None or contract.sizes is None:
        return None

    def of(number: Any) -> Size:
        return sizes[number.axis] if isinstance(number, AxisSize) else number

    fits = all(of(need.size) == need.target for need in contract.needs)
    return tuple(map(of, contract.sizes)) if fits else None


def _in_shape(node: NodeProto, sizes: Sizes, shape: Sequence[int]) -> Sizes | None:
    """A 0 copies a size, unless `allowzero`; a -1 is the rest, for which copied sizes must not be
    0."""
    if attribute(node, "allowzero", 0) and 0 in shape:
        return None
    if min(shape, default=1) < -1 or shape.count(-1) > 1 or 0 in shape[len(sizes) :]:
        return None
    copied = {position for position, size in enumerate(shape) if size == 0}
    left = [size for position, size in enumerate(sizes) if position not in copied]
    open_ = [size for size in left if isinstance(size, tuple)]
    known = int(np.prod([size for size in left if isinstance(size, int)], dtype=np.int64))
    wanted = int(np.prod([size for size in shape if size > 0], dtype=np.int64))
    if -1 not in shape:
        rest: Size | None = 1 if known == wanted and not open_ else None
    elif any(sizes[position] == 0 or isinstance(sizes[position], tuple) for position in copied):
        return None  # where a size that is copied is 0, what is left is unknown
    elif known % wanted:
        return None
    elif open_:
        rest = open_[0] if known == wanted and len(open_) == 1 else _OTHER
    else:
        rest = known // wanted
    if rest is None:
        return None
    return tuple(
        sizes[position] if size == 0 else rest if size == -1 else size
        for position, size in enumerate(shape)
    )
