"""The rule `drop-copies`: what a node returns unchanged is read where it comes from."""

from __future__ import annotations

import numpy as np
from onnx import NodeProto

from passes.analysis.sizes.static_sizes import stands_in_loop
from passes.ir.attributes import attribute, numbers
from passes.ir.operators import op_of
from passes.rule import Edit, NothingToDo, Site, register
from passes.types.value_types import dims_of, elem_type_of

#: No axis is longer.
_END = int(np.iinfo(np.int32).max)


def considers(node: NodeProto, opset: int, target: int) -> bool:
    """Whether a node may return its input."""
    return op_of(node) == "Cast" or (op_of(node) == "Slice" and len(node.input) > 2)


@register("drop-copies", considers=considers, optional=True)
def drop_copies(site: Site) -> Edit:
    """Read a tensor of a body as it is where a Slice takes all of it, or a Cast keeps its type.

    Before, in a body, where rows is float[T,2,8]:

        <int64[1] start = {0}, int64[1] end = {9223372036854775807}, int64 axis = {0}>
        all = Slice (rows, start, end, axis)
        row = Gather <axis = 1> (all, i)
        y = Cast <to = 1> (row)

    After:

        all = Identity (rows)
        row = Gather <axis = 1> (all, i)
        y = Identity (row)

    Exporters write `x[:, i]` so, and cast states to the type they have. Nodes outside of bodies
    stay, and so does a Slice of a value of a Loop's body, whose rank may be another one than is
    declared.
    """
    node = site.node
    if site.scope.outer is None or not (_keeps_type if op_of(node) == "Cast" else _takes_all)(site):
        raise NothingToDo
    same = NodeProto(op_type="Identity", input=node.input[:1], output=list(node.output))
    return Edit((same,), note=f"{node.input[0]!r} as it is")


def _keeps_type(site: Site) -> bool:
    return elem_type_of(site.type_of(site.node.input[0])) == attribute(site.node, "to", 0) != 0


def _takes_all(site: Site) -> bool:
    node = site.node
    home = site.model.home(site.scope, node.input[0])
    dims = dims_of(site.type_of(node.input[0]))
    if dims is None or home is None or stands_in_loop(home):
        return False
    starts, ends = (numbers(node, place, "", site.constant) for place in (1, 2))
    if not starts or not ends or any(starts) or min(ends) < _END:
        return False
    given = (place for place in (3, 4) if len(node.input) > place and node.input[place])
    known = {place: numbers(node, place, "", site.constant) for place in given}
    axes, steps = known.get(3, range(len(starts))), known.get(4, [1])
    if axes is None or steps is None:
        return False
    return all(-len(dims) <= axis < len(dims) for axis in axes) and set(steps) == {1}
