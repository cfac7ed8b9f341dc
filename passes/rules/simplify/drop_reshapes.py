"""The rule `drop-reshapes`: a tensor that is reshaped to its own shape is read as it is."""

from __future__ import annotations

from collections.abc import Iterator

from onnx import NodeProto

from passes.analysis.integers.computed import stands_in_loop
from passes.analysis.integers.integer_ops import is_settled
from passes.analysis.sizes.sizes_through import RESHAPING, reshaped, sizes_of
from passes.ir.attributes import attribute, has_references
from passes.ir.operators import op_of
from passes.rule import Edit, NothingToDo, Site, register
from passes.types.value_types import dims_of

_MOST = 8  # nodes between the tensor and the one that restores its shape


def considers(node: NodeProto, opset: int, target: int) -> bool:
    """Return whether a node changes the axes of a tensor, or joins tensors."""
    return op_of(node) in (*RESHAPING, "Concat") and len(node.output) == 1


@register("drop-reshapes", considers=considers, optional=True)
def drop_reshapes(site: Site) -> Edit:
    """Read a tensor as it is where nodes reshape it to its own shape, or cut and join it.

    Before:

        <int64[3] row = {0, 1, 4}, int64[1] axis = {1}>
        a = Reshape (x, row)
        y = Squeeze (a, axis)

    After, where x has two axes, the second one of size 4:

        a = Reshape (x, row)
        y = Identity (x)

    Reshape, Squeeze and Unsqueeze with constant shapes and axes are followed. An unknown size
    must return to its axis. A Concat of all parts that a Split cuts along the same axis is what was
    split. Nodes in the body of a Loop stay, as its values may change their shapes between
    iterations.
    """
    if stands_in_loop(site.scope):
        raise NothingToDo
    if op_of(site.node) == "Concat":
        return _joined(site)
    chain: list[NodeProto] = []
    for node in _chain(site):
        chain.insert(0, node)
        source = node.input[0]
        if _comes_back(site, source, chain):
            same = NodeProto(op_type="Identity", input=[source], output=list(site.node.output))
            note = f"{source!r} as it is"
            return Edit((same,), note=note, context=tuple(chain[:-1]))
    raise NothingToDo


def _joined(site: Site) -> Edit:
    """The Edit of a Concat of what a Split cuts. Raises NothingToDo where it is none."""
    copies: dict[str, NodeProto] = {}
    parts = [_copied(site, name, copies) for name in site.node.input]
    split = site.model.producer(site.scope.owner, parts[0])
    if split is None or op_of(split) != "Split" or split.output[:] != parts:
        raise NothingToDo
    if not is_settled(split) or has_references(site.node):
        raise NothingToDo
    dims = dims_of(site.type_of(split.input[0]))
    axes = [attribute(node, "axis", 0) for node in (split, site.node)]
    if not dims or len({axis % len(dims) for axis in axes}) > 1:
        raise NothingToDo
    source = split.input[0]
    same = NodeProto(op_type="Identity", input=[source], output=list(site.node.output))
    return Edit((same,), note=f"{source!r} as it is", context=(split, *reversed(copies.values())))


def _copied(site: Site, name: str, copies: dict[str, NodeProto]) -> str:
    """The value that Identities copy; adds these to `copies`."""
    node = site.model.producer(site.scope.owner, name)
    while node is not None and op_of(node) == "Identity":
        copies[name], name = node, node.input[0]
        node = site.model.producer(site.scope.owner, name)
    return name


def _chain(site: Site) -> Iterator[NodeProto]:
    """The site's node, and those directly before it that reshape its input, last first."""
    node: NodeProto | None = site.node
    for _ in range(_MOST):
        if node is None or op_of(node) not in RESHAPING or not is_settled(node):
            return
        yield node
        node = site.model.producer(site.scope.owner, node.input[0])


def _comes_back(site: Site, source: str, chain: list[NodeProto]) -> bool:
    """Return whether the nodes of a chain restore the shape of its input, and cannot fail."""
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
