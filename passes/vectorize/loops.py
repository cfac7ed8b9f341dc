"""Scan and Loop inside of a body: the axis goes through their carried and scanned values."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

import numpy as np
from onnx import NodeProto

from passes import scope as scoping
from passes.loop_form import Collected, Kind, LoopForm
from passes.vectorize.axes import shifted
from passes.vectorize.row_loops import each_its_own, ends_by_row, without_condition
from passes.vectorize.table import batched
from passes.vectorize.vectorizer import Body, Vectorizer


@batched("Scan", "Loop")
def loop(node: NodeProto, at: Vectorizer) -> set[str]:
    """All rows run one loop, where they all run it equally often.

    Which carried values have the axis is a fixpoint that starts from the initial ones: a value
    that becomes one of each row is spread from the start.
    """
    form = _with_outputs_named(at, LoopForm.from_node(node, at.author.opset))
    body, states = vectorized_body(at, form, _at_first(at, form))
    asks = form.condition is not None and bool(form.condition.initial)
    if form.condition is not None and body.carrying[0] and not asks:
        form = without_condition(at, form)
        body, states = vectorized_body(at, form, _at_first(at, form))
    if ends_by_row(at, form, body):
        each_its_own(node, at, form)
        return set()
    return _together(at, form, body, states)


def _with_outputs_named(at: Vectorizer, form: LoopForm) -> LoopForm:
    """onnxruntime has no loops with omitted outputs."""
    carried = (
        replace(one, final=one.final or at.author.fresh("unused")) for one in form.carried
    )
    collected = (
        replace(one, tensor=one.tensor or at.author.fresh("unused")) for one in form.collected
    )
    return replace(form, carried=tuple(carried), collected=tuple(collected))


def _at_first(at: Vectorizer, form: LoopForm) -> set[int]:
    return {index for index, one in enumerate(form.carried) if at.carries(one.initial)}


def vectorized_body(
    at: Vectorizer, form: LoopForm, states: Collection[int]
) -> tuple[Body, set[int]]:
    """The body, and the least set of carried values, `states` among them, that have the axis."""
    scanned = {one.body_input for one in form.scanned if at.carries(one.tensor)}
    first = int(form.condition is not None)
    found = set(states)
    while True:
        inputs = scanned | {form.carried[index].body_input for index in found}
        body = at.body(form.body, inputs, {form.carried[index].body_output for index in found})
        now = {index for index in range(len(form.carried)) if body.carrying[first + index]}
        if now <= found:
            return body, found
        found |= now


def _together(at: Vectorizer, form: LoopForm, body: Body, states: set[int]) -> set[str]:
    """Write the loop; the names of its outputs that are one for all rows."""
    outputs = scoping.output_names(body.graph)
    head = outputs[: int(form.condition is not None)]
    results = outputs[len(head) :]
    count = len(form.carried)
    carried = (
        replace(
            one,
            initial=at.spread(one.initial) if index in states else one.initial,
            body_output=result,
        )
        for index, (one, result) in enumerate(zip(form.carried, results, strict=False))
    )
    scanned = (
        replace(one, axis=shifted(one.axis)) if at.carries(one.tensor) else one
        for one in form.scanned
    )
    elements = list(zip(form.collected, results[count:], strict=True))
    wide = {one.tensor for one, result in zip(elements, body.carrying[len(head) + count :], strict=True)} 
    written = replace(
        form,
        body=body.graph,
        carried=tuple(carried),
        scanned=tuple(scanned),
        collected=tuple(collected),
        condition=None if form.condition is None else replace(form.condition, body_output=head[0]),
    )
    at.author.adopt([written.to_node()])
