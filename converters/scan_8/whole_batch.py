"""A Scan whose body works on a batch, row by row alike: as a Scan-8 of that batch, whose body sees
one row."""

from __future__ import annotations

from dataclasses import replace

from onnx import NodeProto

from passes.analysis.safety.randomness import is_pure
from passes.converters.scan_8.batched_scan import RowType, ready_body
from passes.converters.writing.conversion import Conversion
from passes.ir import scope as scoping
from passes.loops.form import LoopForm
from passes.operators.table import traits_of
from passes.operators.traits import Shape
from passes.types.value_types import Dims, dims_of, elem_type_of, tensor_type

#: Attributes that came with version 9.
SINCE_9 = tuple(
    f"scan_{side}_{what}" for side in ("input", "output") for what in ("axes", "directions")
)
_TIME = 1  # the axis that a Scan-8 runs along


def with_whole_batch(
    node: NodeProto, ctx: Conversion, form: LoopForm, results: list[RowType]
) -> NodeProto | None:
    """The Scan-8 with the batch that the Scan has; None where it is not proven to have one.

    It has one where all tensors are [batch, time, ...] already, the size of the batch is fixed and
    the first one of all that the body gets and returns, and the body computes element by element:
    then no row sees another one. `results` are the types of what the body returns.
    """
    placed = [(one.axis, False) for one in form.scanned]
    placed += [(one.axis, one.reversed) for one in form.collected]
    given = [one.body_input for one in form.carried] + [one.body_input for one in form.scanned]
    sizes = {_batch(_dims(ctx, name)) for name in given} | {_batch(one.dims) for one in results}
    if set(placed) - {(_TIME, False)} or len(sizes) != 1 or None in sizes:
        return None
    if not _works_by_row(ctx, form, set(given)):
        return None
    rows = [replace(one, dims=one.dims[1:]) for one in results]
    body = ready_body(ctx.site, form, rows)
    for value in body.input:
        dims = _dims(ctx, value.name) or ()
        value.type.CopyFrom(tensor_type(elem_type_of(value.type), dims[1:]))
    del body.value_info[:]
    backwards = [int(one.reversed) for one in form.scanned]
    return ctx.changed(
        node,
        inputs=["", *node.input],
        outputs=[name or ctx.fresh("unused") for name in node.output],
        without=SINCE_9,
        body=body,
        directions=backwards if any(backwards) else None,
    )


def _works_by_row(ctx: Conversion, form: LoopForm, batched: set[str]) -> bool:
    """Return whether a body computes element by element from values with a leading batch axis,
    `batched` to begin with, and others that broadcast on the axes after it."""
    for node in form.body.node:
        if scoping.holds_graphs(node) or not is_pure(node):
            return False
        read = [name for name in node.input if name]
        if batched.isdisjoint(read):
            continue
        shape = traits_of(node).shape
        if not (shape is Shape.BROADCAST or (shape is Shape.ELEMENTWISE and len(read) == 1)):
            return False
        dims = {name: _dims(ctx, name) for name in read}
        ranks = {name: len(one) for name, one in dims.items() if one is not None}
        if len(ranks) < len(dims):
            return False
        shared = max((ranks[name] for name in read if name not in batched), default=0)
        if {ranks[name] for name in batched.intersection(read)} != {max(ranks.values())}:
            return False
        if shared == max(ranks.values()):
            return False
        batched.update(filter(None, node.output))
    return batched.issuperset(form.body_outputs)


def _dims(ctx: Conversion, name: str) -> Dims | None:
    return dims_of(ctx.site.body_type_of("body", name))


def _batch(dims: Dims | None) -> int | None:
    """The size of the first axis, where it is fixed and not 0."""
    first = dims[0] if dims else None
    return first or None if isinstance(first, int) else None
