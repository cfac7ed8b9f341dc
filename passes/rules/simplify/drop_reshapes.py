"""The rule `drop-reshapes`: a tensor that is reshaped to its own shape is read as it is."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from onnx import NodeProto

from passes.analysis.integers.folding import Array
from passes.analysis.sizes.static_sizes import stands_in_loop
from passes.ir.operators import op_of
from passes.rule import Edit, NothingToDo, Site, register
from passes.types.value_types import Dims, dims_of

#: A size: a number, or, in a tuple, the axis of the original tensor that has this size.
Size = int | tuple[int]
Sizes = tuple[Size, ...]
Constant = Callable[[str], Array | None]

RESHAPING = ("Reshape", "Squeeze", "Unsqueeze")


def reshapes(node: NodeProto) -> bool:
    """Whether a node returns the elements of its first input, in order, with other axes."""
    return op_of(node) in RESHAPING


def sizes_of(dims: Dims) -> Sizes:
    """The sizes of the original tensor."""
    return tuple(dim if isinstance(dim, int) else (position,) for position, dim in enumerate(dims))


def reshaped(node: NodeProto, sizes: Sizes, constant: Constant) -> Sizes | None:
    """The sizes of the output of a node; None where they are unknown, or it would fail."""
    name = "shape" if op_of(node) == "Reshape" else "axes"
    numbers = _numbers(node, name, constant)
    if numbers is None:
        return None
    if op_of(node) == "Reshape":
        return _in_shape(node, sizes, numbers)
    return (_squeezed if op_of(node) == "Squeeze" else _unsqueezed)(sizes, numbers)


def _numbers(node: NodeProto, name: str, constant: Constant) -> list[int] | None:
    declared = next((attribute for attribute in node.attribute if attribute.name == name), None)
    if declared is not None:
        return None if declared.ref_attr_name else list(declared.ints)
    value = constant(node.input[1]) if len(node.input) > 1 and node.input[1] else None
    return None if value is None else [int(number) for number in value.reshape(-1)]


def _squeezed(sizes: Sizes, axes: Sequence[int]) -> Sizes | None:
    rank = len(sizes)
    if not axes or not all(-rank <= axis < rank and sizes[axis] == 1 for axis in axes):
        return None  # onnxruntime drops every axis of size 1 where none is named
    gone = {axis % rank for axis in axes}
    return tuple(size for position, size in enumerate(sizes) if position not in gone)


def _unsqueezed(sizes: Sizes, axes: Sequence[int]) -> Sizes | None:
    rank = len(sizes) + len(axes)
    places = {axis % rank for axis in axes if -rank <= axis < rank}
    if len(places) < len(axes):
        return None
    rest = iter(sizes)
    return tuple(1 if position in places else next(rest) for position in range(rank))


def _in_shape(node: NodeProto, sizes: Sizes, shape: Sequence[int]) -> Sizes | None:
    """A 0 copies a size, unless `allowzero`; a -1 is the rest, where that is one size."""
    zero_is_a_size = any(
        attribute.name == "allowzero" and attribute.i for attribute in node.attribute
    )
    if zero_is_a_size and 0 in shape:
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
    elif open_:
        rest = open_[0] if known == wanted and len(open_) == 1 else None
    else:
        rest = known // wanted if known % wanted == 0 else None
    if rest is None:
        return None
    return tuple(
        sizes[position] if size == 0 else rest if size == -1 else size
        for position, size in enumerate(shape)
    )


_MOST = 8  # nodes between the tensor and the one that restores its shape


def considers(node: NodeProto, opset: int, target: int) -> bool:
    """Whether a node changes the axes of a tensor."""
    return reshapes(node) and len(node.output) == 1


@register("drop-reshapes", considers=considers, optional=True)
def drop_reshapes(site: Site) -> Edit:
    """Read a tensor as it is where nodes of a body reshape it to its own shape.

    Before, in a body:

        <int64[3] row = {0, 1, 4}, int64[1] axis = {1}>
        a = Reshape (x, row)
        y = Squeeze (a, axis)

    After, where x has two axes, the second one of size 4:

        a = Reshape (x, row)
        y = Identity (x)

    Reshape, Squeeze and Unsqueeze with constant shapes and axes are followed. An unknown size
    must return to its axis. Nodes outside of bodies stay, and so do those in the body of
    a Loop, whose values may change their shapes between iterations.
    """
    if site.scope.outer is None or stands_in_loop(site.scope):
        raise NothingToDo
    chain: list[NodeProto] = []
    for node in _chain(site):
        chain.insert(0, node)
        source = node.input[0]
        if _comes_back(site, source, chain):
            same = NodeProto(op_type="Identity", input=[source], output=list(site.node.output))
            note = f"{source!r} as it is"
            return Edit((same,), note=note, context=tuple(chain[:-1]))
    raise NothingToDo


def _chain(site: Site) -> Iterator[NodeProto]:
    """The site's node, and those directly before it that reshape its input, last first."""
    node: NodeProto | None = site.node
    for _ in range(_MOST):
        if node is None or not reshapes(node):
            return
        yield node
        node = site.model.producer(site.scope.owner, node.input[0])


def _comes_back(site: Site, source: str, chain: list[NodeProto]) -> bool:
    """Whether the nodes of a chain restore the shape of its input, and cannot fail."""
    dims = dims_of(site.type_of(source))
    if dims is None:
        return False
    sizes = first = sizes_of(dims)
    for node in chain:
        found = reshaped(node, sizes, site.constant)
        if found is None:
            return False
        sizes = found
    return sizes == first
