"""Two forms of a loop, of which the size of a row takes the quicker one when the model runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from onnx import GraphProto, NodeProto, TensorProto, TypeProto, helper

from passes.ir import scope as scoping
from passes.ir.operators import op_of
from passes.ir.repeated import replace_all
from passes.rule import Edit
from passes.rules.dissolve_map.dissolving_plan import Plan
from passes.rules.time_axis.time_body import SPREAD, UNKNOWN_DIM, TimeBody
from passes.rules.time_axis.time_cost import PRODUCTS
from passes.types.value_types import dims_of, elem_type_of
from passes.writing import spelling
from passes.writing.author import Author

_LARGEST = 1 << 12


def by_size(body: TimeBody, edit: Edit) -> Edit:
    """The Edit that dissolves a loop, where its rows are small; else the loop, in an If.

    The Edit itself, where it costs less with rows of any size, or no one size decides.
    """
    limit = None if place_of_size(body) is None or edit.annotations else _limit(body)
    either = None if limit is None else up_to(body, edit, limit)
    return either or edit


def up_to(body: TimeBody, edit: Edit, limit: int) -> Edit | None:
    """An Edit where rows are no longer than a limit, else the loop as it is, in an If.

    None where no one size of the rows is open, or the types of the outputs are not known.
    """
    place, site = place_of_size(body), body.site
    written = {name for node in edit.nodes for name in node.output}
    known = {name: site.type_of(name) for name in site.node.output if name in written}
    outputs = {name: one for name, one in known.items() if one is not None and elem_type_of(one)}
    if place is None or len(outputs) < len(known):
        return None
    author = Author(site.target, site.names, site.node.name or "scan")
    size = spelling.squeeze(author, spelling.size_of_axis(author, *place), 0)
    node = helper.make_node(
        "If",
        [author.op("Greater", size, author.int(limit))],
        list(outputs),
        then_branch=_branch(author, "large", [site.node], (), outputs),
        else_branch=_branch(author, "small", edit.nodes, edit.initializers, outputs),
    )
    return replace(
        edit,
        nodes=(*author.nodes, node),
        initializers=tuple(author.constants),
        note=f"{edit.note}, where {place[0]!r} is no longer than {limit} on axis {place[1]}",
    )


def place_of_size(body: TimeBody) -> tuple[str, int] | None:
    """The axis of an outer tensor whose size alone is open in the rows.

    None, too, where there are products: weights are to stand in one place, where runtimes pack
    them.
    """
    graphs = scoping.graphs_below(body.rows.graph)
    if any(op_of(node) in PRODUCTS for graph in graphs for node in graph.node):
        return None
    made = [node for node in body.nodes if op_of(node) != "Constant"]  # of these, sizes are fixed
    shapes = [dims_of(body.rows.types.get(name)) for node in made for name in node.output]
    if None in shapes:
        return None
    open_ = {dim for dims in shapes for dim in dims or () if not isinstance(dim, int)}
    (symbol,) = open_ if len(open_) == 1 else (None,)
    return None if symbol is None else body.open_sizes.get(symbol)


def _limit(body: TimeBody) -> int | None:
    """Up to which size to dissolve the loop; None where it always pays."""
    limit = UNKNOWN_DIM
    while Plan(replace(body, unknown=limit * SPREAD)).pays:
        limit *= 2
        if limit > _LARGEST:
            return None
    return limit


def _branch(
    author: Author,
    name: str,
    nodes: Sequence[NodeProto],
    tensors: Sequence[TensorProto],
    outputs: Mapping[str, TypeProto],
) -> GraphProto:
    """A branch that gives these outputs, under names of its own."""
    inner = author.inside(f"{author.prefix}/{name}")
    own = {output: inner.fresh(output) for output in outputs}
    for node in nodes:
        copy = NodeProto()
        copy.CopyFrom(node)
        scoping.rename_free(copy, own)
        replace_all(copy.output, [own.get(output, output) for output in node.output])
        inner.adopt([copy])
    inner.adopt([], tensors)
    infos = [helper.make_value_info(own[output], type_) for output, type_ in outputs.items()]
    return inner.graph(inner.prefix, [], infos)
