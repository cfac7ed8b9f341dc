"""Keeps two forms of a loop; the size of a row selects the faster one at run time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from onnx import NodeProto, TensorProto

from passes.bodies.branches import Branch, Results, either
from passes.bodies.time_body import SPREAD, UNKNOWN_DIM, TimeBody
from passes.ir import scope as scoping
from passes.ir.operators import op_of
from passes.ir.protos import copied, replace_all
from passes.operators.table import traits_of
from passes.operators.traits import Work
from passes.rule import Edit
from passes.rules.dissolve_map.dissolving_plan import DissolvingPlan
from passes.types.value_types import dims_of, elem_type_of
from passes.writing import spelling
from passes.writing.author import Author

_LARGEST = 1 << 12


def dispatch_on_size(body: TimeBody, edit: Edit) -> Edit:
    """The Edit that dissolves a loop where its rows are small, and else runs it, in an If.

    The given Edit where it costs less with rows of any size, or where no single size decides.
    """
    limit = None if place_of_size(body) is None or edit.annotations else _limit(body)
    either = None if limit is None else up_to(body, edit, limit)
    return either or edit


def up_to(body: TimeBody, edit: Edit, limit: int) -> Edit | None:
    """An Edit for rows no longer than a limit; else the loop runs as it is, in an If.

    None unless exactly one size of the rows is unknown, and the types of the outputs are known.
    """
    place, site = place_of_size(body), body.site
    written = {name for node in edit.nodes for name in node.output}
    types = {name: site.type_of(name) for name in site.node.output if name in written}
    outputs = {
        name: type_ for name, type_ in types.items() if type_ is not None and elem_type_of(type_)
    }
    if place is None or len(outputs) < len(types):
        return None
    author = Author.at(site, "scan")
    size = spelling.scalar_size(author, *place)
    large = Branch("large", _copied([site.node], (), outputs))
    small = Branch("small", _copied(edit.nodes, edit.initializers, outputs))
    condition = author.op("Greater", size, author.int(limit))
    names, kinds = list(outputs), list(outputs.values())
    either(author, condition, large, small, names, kinds, other_first=True)
    return replace(
        edit,
        nodes=tuple(author.nodes),
        initializers=tuple(author.constants),
        note=f"{edit.note}, where {place[0]!r} is no longer than {limit} on axis {place[1]}",
    )


def place_of_size(body: TimeBody) -> tuple[str, int] | None:
    """The axis of an outer tensor that has the only unknown size of the rows.

    None also where there are products: their weights must stay in one place, where runtimes pack
    them.
    """
    graphs = scoping.graphs_below(body.rows.graph)
    if any(traits_of(node).work is Work.PRODUCT for graph in graphs for node in graph.node):
        return None
    nodes = [node for node in body.nodes if op_of(node) != "Constant"]  # of these, sizes are fixed
    shapes = [dims_of(body.rows.types.get(name)) for node in nodes for name in node.output]
    if None in shapes:
        return None
    open_ = {dim for dims in shapes for dim in dims or () if not isinstance(dim, int)}
    (symbol,) = open_ if len(open_) == 1 else (None,)
    return None if symbol is None else body.open_sizes.get(symbol)


def _limit(body: TimeBody) -> int | None:
    """The largest row size for which to dissolve the loop; None where it always pays."""
    limit = UNKNOWN_DIM
    while DissolvingPlan(replace(body, unknown=limit * SPREAD)).pays:
        limit *= 2
        if limit > _LARGEST:
            return None
    return limit


def _copied(
    nodes: Sequence[NodeProto], tensors: Sequence[TensorProto], outputs: Iterable[str]
) -> Callable[[Author], Results]:
    """Writes copies of these nodes, their outputs under new names."""

    def write(inner: Author) -> Results:
        own = {output: inner.fresh(output) for output in outputs}
        for node in nodes:
            copy = copied(node)
            scoping.rename_free(copy, own)
            replace_all(copy.output, [own.get(output, output) for output in node.output])
            inner.adopt([copy])
        inner.adopt([], tensors)
        return Results(list(own.values()))

    return write
