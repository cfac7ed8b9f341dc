"""A Loop that each row runs another number of times: run to the longest, and choose by row."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from onnx import GraphProto, NodeProto, TensorProto, ValueInfoProto

from passes.ir import scope as scoping
from passes.loops.form import Carried, Condition, LoopForm
from passes.types.value_types import tensor_type
from passes.vectorize.choosing import chosen, flat, may_run_for_all, one_shape
from passes.vectorize.vectorizer import Vectorizer
from passes.writing import spelling
from passes.writing.author import Author


def each_its_own(node: NodeProto, at: Vectorizer, form: LoopForm) -> None:
    """Rows that are done keep their values until the last one is.

    Each row is asked itself whether it goes on, on its own values, so the loop ends where the
    loops of all rows end.

    Raises:
        Refused: `collected-while` where the rows would collect different counts, and
            `not-speculatable` or `ragged-rows` where done rows cannot be run on.
    """
    form = _without_unused(form, at.author.opset)
    if form.collected:
        names = [one.tensor for one in form.collected]
        at.refuse("collected-while", f"the rows may collect different counts in {names}", *names)
    may_run_for_all(at, node, [form.body])
    for one in form.carried:
        one_shape(at, node, one.initial, one.body_input, one.body_output)
    limits = _limits(at, form)
    running = _running_at_first(at, form, limits)
    _write(at, form, limits, running)


def _limits(at: Vectorizer, form: LoopForm) -> str:
    """How often each row may run, int64 [B]; empty where that is the same for all."""
    if not at.carries(form.trip_count):
        return ""
    return flat(at, form.trip_count, at.rank(form.trip_count))


def _running_at_first(at: Vectorizer, form: LoopForm, limits: str) -> str:
    """Which rows run at all, bool [B]."""
    conditions = [at.op("Less", at.author.int(0), limits)] if limits else []
    initial = form.condition.initial if form.condition is not None else ""
    if not initial and not limits:
        initial = at.author.constant(np.array(True), "true")
        at.note(initial, TensorProto.BOOL, (), carries=False)
    if initial:
        rank = at.rank(initial)
        conditions.append(flat(at, at.spread(initial), rank))
    return spelling.both(at.author, conditions)


def _any(author: Author, flags: str, rank: int) -> str:
    """Whether a flag is set, of rank 0 or 1 as the body has it; not where there are none."""
    count = spelling.total(author, author.op("Cast", flags, to=TensorProto.INT64))
    found = author.op("Less", author.int(0), count)
    return spelling.unsqueeze(author, found, 0) if rank else found


def _write(at: Vectorizer, form: LoopForm, limits: str, running: str) -> None:
    """The Loop over all rows, with one more carried value: the rows that still run."""
    assert form.condition is not None
    must = {one.body_output for one in form.carried}
    if not form.goes_on(at.constant):
        must.add(form.condition.body_output)
    body = at.body(form.body, {one.body_input for one in form.carried}, must).graph
    going, *results = scoping.output_names(body)
    tail = at.inside(form.body.name, ())
    before = tail.author.fresh("running")
    after = [before, *_conditions(at, tail, form, going, limits)]
    carried = [
        replace(
            one,
            initial=at.spread(one.initial),
            body_output=chosen(tail, before, result, one.body_input, one.body_input),
            final=one.final or at.author.fresh("unused"),
        )
        for one, result in zip(form.carried, results, strict=True)
    ]
    still = spelling.both(tail.author, after) if after[1:] else tail.op("Identity", before)
    carried.append(Carried(running, before, still, at.author.fresh("unused")))
    asked = form.condition.body_input
    starts, goes_on = (
        _any(author, flags, at.rank(asked))
        for author, flags in ((at.author, running), (tail.author, still))
    )
    condition = Condition(starts, asked, goes_on)
    _complete(body, at, tail, carried, condition)
    trips = "" if limits else form.trip_count
    written = replace(
        form, body=body, carried=tuple(carried), condition=condition, trip_count=trips
    )
    at.author.adopt([written.to_node()])


def _conditions(
    at: Vectorizer, tail: Vectorizer, form: LoopForm, going: str, limits: str
) -> list[str]:
    """What else must hold for a row to run on: what its body says, and the limit of its own."""
    assert form.condition is not None
    found = []
    if not form.goes_on(at.constant):
        found.append(flat(tail, going, at.rank(form.condition.body_output)))
    if limits:
        following = tail.op("Add", form.iteration, tail.author.int(1))
        found.append(tail.op("Less", following, limits))
    return found


def _complete(
    body: GraphProto, at: Vectorizer, tail: Vectorizer, carried: list[Carried], condition: Condition
) -> None:
    """Add what chooses by row to the body, and declare its inputs and outputs."""
    body.node.extend(tail.author.nodes)
    body.initializer.extend(tail.author.constants)
    rows = tensor_type(TensorProto.BOOL, (at.axis.static,))
    body.input.append(ValueInfoProto(name=carried[-1].body_input, type=rows))
    asked = next(one.type for one in body.input if one.name == condition.body_input)
    types = [asked, *(value.type for value in body.output[1:]), rows]
    names = [condition.body_output, *(one.body_output for one in carried)]
    del body.output[:]
    for name, kind in zip(names, types, strict=True):
        body.output.append(ValueInfoProto(name=name, type=kind))


def _without_unused(form: LoopForm, opset: int) -> LoopForm:
    """Without collected outputs that nobody asks for."""
    kept = tuple(one for one in form.collected if one.tensor)
    if len(kept) == len(form.collected):
        return form
    return LoopForm.from_node(replace(form, collected=kept).to_node(), opset)
