"""The rule `drop-reshapes`: what comes back to the shape that it had is not reshaped."""

from __future__ import annotations

from collections.abc import Iterator

from onnx import NodeProto

from passes.rule import Edit, NothingToDo, Site, register
from passes.rules.reshaped import reshaped, reshapes, sizes_of
from passes.rules.static_sizes import stands_in_loop
from passes.value_types import dims_of

_MOST = 8  # nodes between the tensor and the one that gives it its shape back


def considers(node: NodeProto, opset: int, target: int) -> bool:
    """Whether a node gives a tensor other axes."""
    return reshapes(node) and len(node.output) == 1


@register("drop-reshapes", considers=considers, optional=True)
def drop_reshapes(site: Site) -> Edit:
    """Read a tensor as it is where nodes of a body reshape it to the shape that it has.

    Before, in a body:

        <int64[3] row = {0, 1, 4}, int64[1] axis = {1}>
        a = Reshape (x, row)
        y = Squeeze (a, axis)

    After, where x has two axes, the second one of size 4:

        a = Reshape (x, row)
        y = Identity (x)

    Followed are Reshape, Squeeze and Unsqueeze with fixed shapes and axes. A size that is not
    known must come back to its axis. Nodes outside of bodies stay, and so do those in the body of
    a Loop, whose values may change their shapes from one iteration to the next.
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
            return Edit((same,), note=note, context=tuple(chain[:-1]), tidies=True)
    raise NothingToDo


def _chain(site: Site) -> Iterator[NodeProto]:
    """The site's node, and those next to it that reshape what it reads, last first."""
    node: NodeProto | None = site.node
    for _ in range(_MOST):
        if node is None or not reshapes(node):
            return
        yield node
        node = site.model.producer(site.scope.owner, node.input[0])


def _comes_back(site: Site, source: str, chain: list[NodeProto]) -> bool:
    """Whether the nodes of a chain give the shape that they find, and cannot fail."""
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
