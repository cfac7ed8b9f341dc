"""What If and loops share, values chosen by row, and a Loop that each row runs another number of
times: run to the longest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from onnx import GraphProto, NodeProto, TensorProto, ValueInfoProto

from passes.analysis.safety.may_fail import failing_on_other_values
from passes.ir import scope as scoping
from passes.ir.operators import op_of
from passes.loops.form import Carried, Condition, LoopForm
from passes.types.value_types import tensor_type
from passes.vectorize.vectorizer import Vectorizer
from passes.writing import spelling
from passes.writing.author import Author
from passes.writing.spelling import Writer


def choose(writer: Writer, mask: str, new: str, old: str, elem_type: int) -> str:
    """Return `new` where the bool `mask` is true, else `old`; all broadcast against each other.

    NaN and Inf of the value not taken do not get through. In onnxruntime a -0.0 of `new`
    becomes 0.0: that is what its Where does. What it lacks goes through a wider type, as
    everywhere (`fitting_types`), but for bools, for which logic is cheaper.
    """
    if elem_type == TensorProto.BOOL:
        taken = writer.op("And", mask, new)
        kept = writer.op("And", writer.op("Not", mask), old)
        return writer.op("Or", taken, kept)
    return writer.op("Where", mask, new, old)


def row_mask(writer: Writer, mask: str, rank: int, axes: int = 1) -> str:
    """A mask over `axes` leading axes, shaped to choose among rows of `rank` axes."""
    return spelling.unsqueeze_axes(writer, mask, range(axes, axes + rank))


def may_run_for_all(ctx: Vectorizer, node: NodeProto, bodies: Sequence[GraphProto]) -> None:
    """Refuse where bodies would run on values of rows that never saw them, and might fail.

    Raises:
        Refused: `not-speculatable`.
    """
    culprits = [
        culprit
        for body in bodies
        for culprit in failing_on_other_values(body, ctx.rows.known(ctx.opset))
    ]
    if culprits:
        ops = ", ".join(sorted({op_of(culprit) for culprit in culprits}))
        ctx.refuse(
            "not-speculatable",
            f"rows may take different branches of {op_of(node)} {list(node.output)}, and "
            f"{ops} in it may fail for rows that take another one",
            *(name for culprit in culprits for name in culprit.output),
        )


def one_shape(ctx: Vectorizer, node: NodeProto, *names: str) -> None:
    """Refuse where values that rows may choose from have not provably one shape.

    Raises:
        Refused: `ragged-rows`.
    """
    first, *others = [ctx.dims(name) for name in names]
    if None in first or any(other != first for other in others):
        shapes = ", ".join(f"{name} {list(ctx.dims(name))}" for name in names)
        ctx.refuse(
            "ragged-rows",
            f"{op_of(node)} {list(node.output)} may give each row another shape: {shapes}",
            *names,
        )


def flat(ctx: Vectorizer, value: str, rank: int) -> str:
    """Return a value with one element for each row, of this rank, as a vector [B]."""
    for _ in range(rank):
        value = spelling.squeeze(ctx, value, -1)
    return value


def chosen(ctx: Vectorizer, mask: str, new: str, old: str, like: str) -> str:
    """Per row `new` where `mask` (bool [B]) holds, else `old`; `like` has their type in a row."""
    wide = row_mask(ctx, mask, ctx.rank(like))
    return choose(ctx, wide, new, old, ctx.elem_type(like))


def each_its_own(node: NodeProto, ctx: Vectorizer, form: LoopForm) -> None:
    """Write a loop in which rows that are done keep their values until the last one is.

    Each row decides itself whether to continue, from its own values, so the loop ends when the
    loops of all rows end.

    Raises:
        Refused: `collected-while` where the rows would collect different counts, and
            `not-speculatable` or `ragged-rows` where done rows cannot be run on.
    """
    form = _without_unused(form, ctx.opset)
    if form.collected:
        names = [collected.tensor for collected in form.collected]
        ctx.refuse("collected-while", f"the rows may collect different counts in {names}", *names)
    may_run_for_all(ctx, node, [form.body])
    for carried in form.carried:
        one_shape(ctx, node, carried.initial, carried.body_input, carried.body_output)
    limits = _limits(ctx, form)
    running = _running_at_first(ctx, form, limits)
    _write(ctx, form, limits, running)


def _limits(ctx: Vectorizer, form: LoopForm) -> str:
    """Return the trip count of each row, int64 [B]; empty if it is the same for all."""
    if not ctx.carries(form.trip_count):
        return ""
    return flat(ctx, form.trip_count, ctx.rank(form.trip_count))


def _running_at_first(ctx: Vectorizer, form: LoopForm, limits: str) -> str:
    """Return which rows run at all, bool [B]."""
    conditions = [ctx.op("Less", ctx.int(0), limits)] if limits else []
    initial = form.condition.initial if form.condition is not None else ""
    if not initial and not limits:
        initial = ctx.value(np.array(True), "true")
        ctx.note(initial, TensorProto.BOOL, (), carries=False)
    if initial:
        rank = ctx.rank(initial)
        conditions.append(flat(ctx, ctx.spread(initial), rank))
    return spelling.both(ctx, conditions)


def _any(author: Author, flags: str, rank: int) -> str:
    """Return whether a flag is set, of rank 0 or 1 as the body has it; not where there are none."""
    count = spelling.total(author, author.op("Cast", flags, to=TensorProto.INT64))
    found = author.op("Less", author.int(0), count)
    return spelling.unsqueeze(author, found, 0) if rank else found


def _write(ctx: Vectorizer, form: LoopForm, limits: str, running: str) -> None:
    """The Loop over all rows, with one more carried value: the rows that still run."""
    assert form.condition is not None
    must = {carried.body_output for carried in form.carried}
    if not form.goes_on(ctx.constant):
        must.add(form.condition.body_output)
    body = ctx.body(form.body, {carried.body_input for carried in form.carried}, must).graph
    going, *results = scoping.output_names(body)
    tail = ctx.inside(form.body.name, ())
    before = tail.fresh("running")
    after = [before, *_conditions(ctx, tail, form, going, limits)]
    carried = [
        replace(
            carried,
            initial=ctx.spread(carried.initial),
            body_output=chosen(tail, before, result, carried.body_input, carried.body_input),
            final=carried.final or ctx.fresh("unused"),
        )
        for carried, result in zip(form.carried, results, strict=True)
    ]
    still = spelling.both(tail, after) if after[1:] else tail.op("Identity", before)
    carried.append(Carried(running, before, still, ctx.fresh("unused")))
    given = form.condition.body_input
    starts, goes_on = (
        _any(author, flags, ctx.rank(given))
        for author, flags in ((ctx.author, running), (tail.author, still))
    )
    condition = Condition(starts, given, goes_on)
    _complete(body, ctx, tail, carried, condition)
    trips = "" if limits else form.trip_count
    written = replace(
        form, body=body, carried=tuple(carried), condition=condition, trip_count=trips
    )
    ctx.author.adopt([written.to_node()])


def _conditions(
    ctx: Vectorizer, tail: Vectorizer, form: LoopForm, going: str, limits: str
) -> list[str]:
    """Return the other conditions for a row to run on: that of its body, and its own limit."""
    assert form.condition is not None
    found = []
    if not form.goes_on(ctx.constant):
        found.append(flat(tail, going, ctx.rank(form.condition.body_output)))
    if limits:
        following = tail.op("Add", form.iteration, tail.int(1))
        found.append(tail.op("Less", following, limits))
    return found


def _complete(
    body: GraphProto,
    ctx: Vectorizer,
    tail: Vectorizer,
    carried: list[Carried],
    condition: Condition,
) -> None:
    """Add what chooses by row to the body, and declare its inputs and outputs."""
    body.node.extend(tail.author.nodes)
    body.initializer.extend(tail.author.constants)
    rows = tensor_type(TensorProto.BOOL, (ctx.axis.static,))
    body.input.append(ValueInfoProto(name=carried[-1].body_input, type=rows))
    condition_type = next(value.type for value in body.input if value.name == condition.body_input)
    types = [condition_type, *(value.type for value in body.output[1:]), rows]
    names = [condition.body_output, *(state.body_output for state in carried)]
    del body.output[:]
    for name, kind in zip(names, types, strict=True):
        body.output.append(ValueInfoProto(name=name, type=kind))


def _without_unused(form: LoopForm, opset: int) -> LoopForm:
    """Without collected outputs that are not used."""
    kept = tuple(collected for collected in form.collected if collected.tensor)
    if len(kept) == len(form.collected):
        return form
    return LoopForm.from_node(replace(form, collected=kept).to_node(), opset)
