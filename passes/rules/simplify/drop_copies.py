"""The rule `drop-copies`: what a node returns unchanged is read where it comes from."""

from __future__ import annotations

from onnx import NodeProto

from passes.analysis.integers.computed import stands_in_loop
from passes.analysis.sizes.whole_axes import cuts_of
from passes.ir.attributes import attribute, numbers
from passes.ir.operators import op_of
from passes.rule import Edit, NothingToDo, Site, nodes_of, register
from passes.types.value_types import dims_of, elem_type_of

#: What returns its input as it is, if that is the only one.
_JOINS = ("Concat", "Max", "Min", "Sum")


@register("drop-copies", considers=nodes_of("Cast", "Slice", *_JOINS), optional=True)
def drop_copies(site: Site) -> Edit:
    """Read a tensor of a body as it is where a Slice, a Cast or a Concat returns it unchanged.

    Before, in a body, where rows is float[T,2,8]:

        <int64[1] start = {0}, int64[1] end = {9223372036854775807}, int64 axis = {0}>
        all = Slice (rows, start, end, axis)
        row = Gather <axis = 1> (all, i)
        cast = Cast <to = 1> (row)
        y = Concat <axis = 0> (cast)

    After:

        all = Identity (rows)
        row = Gather <axis = 1> (all, i)
        cast = Identity (row)
        y = Identity (cast)

    Exporters write `x[:, i]` so, cast states to the type they have, and join a single index. Nodes
    outside of bodies stay, and so does a Slice of a value of a Loop's body, whose rank may be
    another one than is declared.
    """
    node = site.node
    is_copy = {"Cast": _keeps_type, "Slice": _takes_all}.get(op_of(node), _is_single)
    if site.scope.outer is None or not is_copy(site):
        raise NothingToDo
    same = NodeProto(op_type="Identity", input=node.input[:1], output=list(node.output))
    return Edit((same,), note=f"{node.input[0]!r} as it is")


def _keeps_type(site: Site) -> bool:
    return elem_type_of(site.type_of(site.node.input[0])) == attribute(site.node, "to", 0) != 0


def _is_single(site: Site) -> bool:
    if op_of(site.node) != "Concat" or len(site.node.input) != 1:
        return len(site.node.input) == 1
    dims, axis = dims_of(site.type_of(site.node.input[0])), attribute(site.node, "axis", 0)
    return dims is not None and -len(dims) <= axis < len(dims)  # else it fails


def _takes_all(site: Site) -> bool:
    node = site.node
    home = site.model.home(site.scope, node.input[0])
    dims = dims_of(site.type_of(node.input[0]))
    cuts = cuts_of(node, lambda node, place, name: numbers(node, place, name, site.constant))
    if dims is None or cuts is None or home is None or stands_in_loop(home):
        return False
    return all(cut.is_whole and -len(dims) <= cut.axis < len(dims) for cut in cuts)
