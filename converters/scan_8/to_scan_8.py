"""The way down: a Scan without a batch axis as a Scan-8 with its batch or a batch of one row,
or as a Loop."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from onnx import GraphProto, NodeProto, TensorProto, helper

from passes.converters.scan_8.batched_scan import RowType, ready_body, row_type
from passes.converters.scan_8.whole_batch import SINCE_9, with_whole_batch
from passes.converters.writing.conversion import Conversion
from passes.loops.form import Collected, LoopForm
from passes.rules.lower_scan.lower_scan import lower_scan
from passes.types.value_types import tensor_type
from passes.writing import spelling


def to_scan_8(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """The nodes of opset 8 that do what a Scan-9 does, with axes that are not negative.

    It has the whole batch where the body is proven to work row by row alike, else a batch of 1:
    what it scans gets its axis to the front, and everything a batch axis before that; the results
    lose them again. A Scan-8 writes its rows forward only: another one puts them in reverse.

    Raises:
        Refused: `unknown-rank`, `unknown-type`: of what is scanned on another axis, or of what
            the body returns.
        ChosenByCaller: callers of the function around choose how it scans.
    """
    form = LoopForm.from_node(node, ctx.version + 1)
    states = [row_type(ctx.site, (one.body_output, one.body_input)) for one in form.carried]
    rows = [row_type(ctx.site, (one.body_output,)) for one in form.collected]
    whole = with_whole_batch(node, ctx, form, [*states, *rows])
    if whole is not None:
        return [whole]
    fed = [one.initial for one in form.carried]
    for scanned in form.scanned:
        name = scanned.tensor
        if scanned.axis:
            name = spelling.axis_moved(ctx, name, scanned.axis, 0, ctx.known_rank(name))
        fed.append(name)
    batches = [spelling.unsqueeze(ctx, name, 0) for name in fed]
    results = [ctx.fresh(f"{name or 'unused'}/batch") for name in node.output]
    backwards = [int(one.reversed) for one in form.scanned]
    scan = ctx.changed(
        node,
        inputs=["", *batches],
        outputs=results,
        without=SINCE_9,
        body=ready_body(ctx.site, form, (*states, *rows)),
        directions=backwards if any(backwards) else None,
    )
    ctx.adopt(scan)
    for carried, result in zip(form.carried, results, strict=False):
        if carried.final:
            spelling.squeeze(ctx, result, 0, [carried.final])
    for collected, row, result in zip(
        form.collected, rows, results[len(form.carried) :], strict=True
    ):
        if not collected.tensor:
            continue
        if collected.reversed:
            body = _same(ctx, row)
            result = ctx.op("Scan", "", result, num_scan_inputs=1, directions=[1], body=body)
        _place(ctx, collected, row, spelling.squeeze(ctx, result, 0))
    return []


def scan_to_loop(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """The nodes of opset 7, which has no Scan: what the rule `lower-scan` makes of it, and another
    Loop for each output that is collected in reverse.

    Raises:
        Refused: with the codes of the rule, and as `to_scan_8`.
        ChosenByCaller: callers of the function around choose how it scans.
    """
    form = LoopForm.from_node(node, ctx.version + 1)
    forward = [
        replace(one, tensor=ctx.fresh(f"{one.tensor}/forward"), reversed=False, axis=0)
        if one.reversed and one.tensor
        else one
        for one in form.collected
    ]
    plain = replace(form, collected=tuple(forward)).to_node()
    edit = lower_scan(replace(ctx.site, place=replace(ctx.site.place, node=plain)))
    ctx.made.initializers.update((tensor.name, tensor) for tensor in edit.initializers)
    ctx.nodes.extend(edit.nodes)
    for collected, rows in zip(form.collected, forward, strict=True):
        if rows is not collected:
            row = row_type(ctx.site, (collected.body_output,))
            _place(ctx, collected, row, _reversed(ctx, row, rows.tensor))
    return []


def _place(ctx: Conversion, collected: Collected, row: RowType, rows: str) -> None:
    """Give an output what was collected on axis 0, on the axis that it has."""
    if ctx.nodes[-1].output[0] == rows and not collected.axis:
        ctx.nodes[-1].output[0] = collected.tensor
    else:
        rank, outputs = len(row.dims) + 1, [collected.tensor]
        spelling.axis_moved(ctx, rows, 0, collected.axis, rank, outputs)


def _reversed(ctx: Conversion, row: RowType, rows: str) -> str:
    """Rows in the opposite order: a Loop that carries a number for company, as Loop-1 must."""
    one = ctx.whole(1, "one")
    count = spelling.scalar_size(ctx, rows, 0)
    last = ctx.op("Sub", count, one)
    number, condition = tensor_type(TensorProto.INT64, ()), tensor_type(TensorProto.BOOL, ())
    step, go, on, carried, carried_on, place, taken = map(
        ctx.fresh, ("step", "go", "on", "carried", "carried_on", "place", "row")
    )
    body = helper.make_graph(
        [
            helper.make_node("Identity", [go], [on]),
            helper.make_node("Identity", [carried], [carried_on]),
            helper.make_node("Sub", [last, step], [place]),
            helper.make_node("Gather", [rows, place], [taken], axis=0),
        ],
        "backwards",
        [
            helper.make_value_info(step, number),
            helper.make_value_info(go, condition),
            helper.make_value_info(carried, number),
        ],
        [
            helper.make_value_info(on, condition),
            helper.make_value_info(carried_on, number),
            row.value_info(taken),
        ],
    )
    outputs = [ctx.fresh("unused"), ctx.fresh("backwards")]
    ctx.op("Loop", count, "", one, outputs=outputs, body=body)
    return outputs[1]


def _same(ctx: Conversion, row: RowType) -> GraphProto:
    """A body that returns the row it gets."""
    given, returned = ctx.fresh("row"), ctx.fresh("same_row")
    node = helper.make_node("Identity", [given], [returned])
    return helper.make_graph([node], "same", [row.value_info(given)], [row.value_info(returned)])
