"""Scan and Loop inside of a body: the axis goes through their carried and scanned values."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from onnx import NodeProto

from passes.ir import scope as scoping
from passes.loops.form import Collected, Kind, LoopForm
from passes.loops.scan_axes import write_scan
from passes.vectorize.axes import shifted
from passes.vectorize.row_loops import each_its_own
from passes.vectorize.vectorizer import Body, Vectorizer, batched


@batched("Scan", "Loop")
def loop(node: NodeProto, at: Vectorizer) -> set[str]:
    """All rows run one loop, where they all run it equally often.

    Which carried values have the axis is a fixpoint that starts from the initial ones: a value
    that becomes one of each row is spread from the start.
    """
    form = LoopForm.from_node(node, at.author.opset)
    starts = form.condition.initial if form.condition is not None else ""
    by_row = at.carries(form.trip_count) or at.carries(starts)
    inside = _Inside.of(at, form)
    if by_row or inside.ends_by_row:
        each_its_own(node, at, form)
        return set()
    return inside.write(at)


@dataclass(frozen=True)
class _Inside:
    """A loop with its vectorised body, whose outputs `form` names; flags say what has the axis."""

    form: LoopForm
    ends_by_row: bool
    states: tuple[bool, ...]
    elements: tuple[bool, ...]

    @classmethod
    def of(cls, at: Vectorizer, form: LoopForm) -> _Inside:
        body = _fixpoint(at, form)
        first = int(form.condition is not None)
        count = first + len(form.carried)
        return cls(
            form=_on_body(form, body),
            ends_by_row=any(body.carrying[:first]),
            states=body.carrying[first:count],
            elements=body.carrying[count:],
        )

    def write(self, at: Vectorizer) -> set[str]:
        """Write the loop; answers with its outputs that are one for all rows."""
        form = self.form
        collected = [
            _placed(at, form, *one) for one in zip(form.collected, self.elements, strict=True)
        ]
        written = replace(
            form,
            carried=tuple(
                replace(
                    one,
                    initial=at.spread(one.initial) if wide else one.initial,
                    final=one.final or at.author.fresh("unused"),
                )
                for one, wide in zip(form.carried, self.states, strict=True)
            ),
            scanned=tuple(
                replace(one, axis=shifted(one.axis)) if at.carries(one.tensor) else one
                for one in form.scanned
            ),
            collected=tuple(collected),
        )
        write_scan(at.author, written, rows=int(at.axis.nonempty))
        for one, made in zip(form.collected, collected, strict=True):
            if one.tensor and one.tensor != made.tensor:
                _to_front(at, form, one, made.tensor)
        flags = zip(form.outputs, (*self.states, *self.elements), strict=True)
        return {name for name, wide in flags if name and not wide}


def _fixpoint(at: Vectorizer, form: LoopForm) -> Body:
    """The body in which the fewest carried values have the axis; at most one round for each."""
    scanned = {one.body_input for one in form.scanned if at.carries(one.tensor)}
    first = int(form.condition is not None)
    found = {index for index, one in enumerate(form.carried) if at.carries(one.initial)}
    while True:
        carried = [form.carried[index] for index in found]
        inputs = scanned | {one.body_input for one in carried}
        body = at.body(form.body, inputs, {one.body_output for one in carried})
        now = {index for index in range(len(form.carried)) if body.carrying[first + index]}
        if now <= found:
            return body
        found |= now


def _on_body(form: LoopForm, body: Body) -> LoopForm:
    """The loop on another body, whose outputs may have other names."""
    outputs = iter(scoping.output_names(body.graph))
    condition = form.condition
    if condition is not None:
        condition = replace(condition, body_output=next(outputs))
    return replace(
        form,
        body=body.graph,
        condition=condition,
        carried=tuple(replace(one, body_output=next(outputs)) for one in form.carried),
        collected=tuple(replace(one, body_output=next(outputs)) for one in form.collected),
    )


def _placed(at: Vectorizer, form: LoopForm, one: Collected, wide: bool) -> Collected:
    """A collected output of all rows; a Loop puts the new axis second, so it gets a draft name.

    No output is omitted: onnxruntime has no loops without them.
    """
    drafted = not one.tensor or (wide and form.kind is Kind.LOOP)
    tensor = at.author.fresh("collected") if drafted else one.tensor
    axis = shifted(one.axis) if wide and form.kind is Kind.SCAN else one.axis
    return replace(one, tensor=tensor, axis=axis)


def _to_front(at: Vectorizer, form: LoopForm, one: Collected, draft: str) -> None:
    """[time, B, ...] as [B, time, ...].

    Where no iteration ran, onnxruntime gives a size that it does not know as 0: the new axis
    gets its size again then (a 0 in a Reshape keeps the axis there).
    """
    rank = at.rank(one.tensor)
    front = at.op("Transpose", draft, perm=[1, 0, *range(2, 1 + rank)])
    if at.axis.static is None and not _runs(at, form):
        first = np.eye(1, 1 + rank, dtype=np.int64)[0]  # a Concat onnxruntime would turn into a -1
        shape = at.op("Mul", at.axis.size, at.author.constant(first, "first"))
        front = at.op("Reshape", front, shape)
    at.name_as(front, one.tensor)


def _runs(at: Vectorizer, form: LoopForm) -> bool:
    """Whether the Loop is known to run once at least."""
    most = at.constant(form.trip_count)
    starts = form.condition.initial if form.condition is not None else ""
    true = at.constant(starts)
    started = not starts or (true is not None and bool(true.all()))
    return started and most is not None and bool(most.ravel()[0] > 0)
