"""Operators that read earlier frames: they get states, which a chunk hands to the next one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from onnx import NodeProto, TensorProto

from passes.ir.attributes import attribute, attributes, number, text
from passes.ir.operators import op_of
from passes.ir.protos import changed, copied
from passes.ir.versions import CLIP_TAKES_INTEGERS
from passes.loops.form import Collected, LoopForm
from passes.operators.cells import INITIAL_H, LENGTHS, RECURRENT, CellInputs, X
from passes.streaming.frame_by_frame import END
from passes.streaming.plan import Flow, Frames, Reason
from passes.streaming.streamer import Slot, Streamer, streamed
from passes.writing import spelling
from passes.writing.guards import guarded

_OTHERS = "has no state for each frame of the chunk: a stride, or rows with lengths"


def with_all_outputs(node: NodeProto, fresh: Callable[[str], str]) -> list[str]:
    """The outputs of a recurrent operator, with names for those that it omits."""
    missing = 1 + len(RECURRENT[op_of(node)].states) - len(node.output)
    given = [*node.output, *[""] * missing]
    return [name or fresh("unused") for name in given]


@streamed(*RECURRENT)
def _recurrent(node: NodeProto, at: Streamer) -> Sequence[Flow]:
    """The initial states become inputs of the model, the final ones outputs."""
    direction = text(node, "direction", "forward")
    how = "backwards" if direction == "reverse" else "in both directions"
    at.need(direction == "forward", Reason.BACKWARDS, f"reads the sequence {how}")
    inputs = [*CellInputs.of(node)]
    outputs = with_all_outputs(node, at.author.fresh)
    counted = "reads lengths of rows (sequence_lens) that depend on time"
    at.need(at.flows.get(inputs[LENGTHS]) is None, Reason.LENGTHS, counted)
    at.fixed(filter(None, inputs[1:]), "its parameter")
    frames, later = at.frames(inputs[0]), attribute(node, "layout", 0)
    steps = frames is not None and frames.axis == later and not frames.past
    at.need(steps, Reason.WHOLE, "reads time as another axis than that of its steps")
    assert frames is not None
    ended = _ended(at, inputs, frames) if inputs[LENGTHS] else ""
    slots = []
    for place, letter in enumerate(RECURRENT[op_of(node)].states):
        initial, final = inputs[INITIAL_H + place], outputs[1 + place]
        fill = None if initial else 0.0
        slots.append(slot := at.slot(f"{at.label}_{letter}", initial or final, final, fill=fill))
        inputs[INITIAL_H + place] = slot.input
        if not at.is_read(final):
            outputs[1 + place] = slot.output
    if not at.wanted.chunk:
        inputs[INITIAL_H] = _if_any(at, inputs[0], slots[0])
    while not inputs[-1]:
        inputs.pop()
    kept = [at.author.fresh("state") if ended and name else name for name in outputs[1:]]
    at.author.adopt([changed(node, {}, inputs=inputs, outputs=[outputs[0], *kept])])
    for slot, new, final in zip(slots, kept, outputs[1:], strict=True):
        if ended:  # onnxruntime gives a row without frames the state 0
            at.author.op("Where", ended, slot.input, new, outputs=[final])
    if slots[0].each:
        alone = not ended and len(slots) == 1 and frames.every == 1
        at.need(alone, Reason.UNSUPPORTED, _OTHERS)
        perm = [1, 0, 2, 3] if later else [0, 1, 2, 3]
        at.author.op("Transpose", outputs[0], perm=perm, outputs=[slots[0].each])
    return [replace(frames, axis=later), *map(at.hand_on, slots, outputs[1:])]


def _ended(at: Streamer, inputs: list[str], frames: Frames) -> str:
    """Write the lengths of rows in a chunk in place of those in the whole; returns which rows have
    no frame, a bool for each, that broadcasts to a state."""
    write = at.author
    known = write.opset >= CLIP_TAKES_INTEGERS
    at.need(known, Reason.LENGTHS, f"reads the lengths of rows in opset {write.opset}")
    x, lengths = inputs[X], inputs[LENGTHS]
    done = at.slot(f"{at.label}_done", lengths, fill=0)
    size = write.op("Cast", spelling.scalar_size(write, x, frames.axis), to=TensorProto.INT32)
    none = write.value(np.zeros((), np.int32))
    inputs[LENGTHS] = write.op("Clip", write.op("Sub", lengths, done.input), none, size)
    write.op("Add", done.input, inputs[LENGTHS], outputs=[done.output])
    empty = write.op("Equal", inputs[LENGTHS], none)
    return spelling.unsqueeze_axes(write, empty, [1, 2] if frames.axis else [1])


def _if_any(at: Streamer, x: str, slot: Slot) -> str:
    """The state, or a failure of the model where there is no frame or no row: onnxruntime ends the
    process, or gives states that were never written."""
    write = at.author
    some = write.once(("some", x), lambda: write.op("Greater", write.op("Size", x), write.int(0)))
    return guarded(write, slot.input, some, at.seen.elem_type(slot.source))


@streamed("Scan")
def _scan(node: NodeProto, at: Streamer) -> Sequence[Flow]:
    """The carried values become inputs and outputs of the model."""
    form = LoopForm.from_node(node, at.author.opset)
    found = [at.frames(scanned.tensor) for scanned in form.scanned]
    for scanned, frames in zip(form.scanned, found, strict=True):
        along = frames is not None and scanned.axis % at.rank(scanned.tensor) == frames.axis
        at.need(along, Reason.WHOLE, f"scans {scanned.tensor!r} along no axis of time")
        at.need(not scanned.reversed, Reason.BACKWARDS, f"scans {scanned.tensor!r} backwards")
    plain = [replace(frames, axis=0) for frames in found if frames is not None]
    same = len(set(plain)) == 1 and not plain[0].past
    at.need(same, Reason.WHOLE, "scans padded frames, or frames of different times")
    at.fixed(form.captured, "a captured value")
    at.fixed([carried.initial for carried in form.carried], "the initial state")
    flows: list[Flow] = []
    form = form.with_all_outputs(at.author.fresh)
    slots = [
        at.slot(f"{at.label}_{one.body_input}", one.initial, one.final) for one in form.carried
    ]
    carried = [
        replace(one, initial=slot.input, final=one.final if at.is_read(one.final) else slot.output)
        for one, slot in zip(form.carried, slots, strict=True)
    ]
    form = replace(form, carried=tuple(carried))
    if at.wanted.each:
        at.need(plain[0].every == 1, Reason.UNSUPPORTED, _OTHERS)
        form = _with_each(form, slots, at.author.fresh)
    at.author.adopt([form.to_node()])
    flows += [at.hand_on(slot, one.final) for slot, one in zip(slots, carried, strict=True)]
    for one in form.collected[: len(node.output) - len(slots)]:
        at.need(not one.reversed, Reason.BACKWARDS, "collects a value backwards")
        flows.append(at.like(plain[0], one.tensor) if at.is_read(one.tensor) else None)
    return flows


def _with_each(form: LoopForm, slots: Sequence[Slot], fresh: Callable[[str], str]) -> LoopForm:
    """A loop that collects its states, too, under the names of the slots."""
    body, collected = copied(form.body), [*form.collected]
    types = {value.name: value.type for value in body.output}
    for slot, one in zip(slots, form.carried, strict=True):
        name = fresh("each")
        body.node.add(op_type="Identity", input=[one.body_output], output=[name])
        body.output.add(name=name, type=types[one.body_output])
        collected.append(Collected(name, slot.each))
    return replace(form, body=body, collected=tuple(collected))


@streamed("CumSum")
def _cumulates(node: NodeProto, at: Streamer) -> Sequence[Flow]:
    """The sum so far is put before the frames."""
    frames, axes = at.only(), at.constant(node.input[1])
    if axes is None:
        raise at.refused(Reason.UNSUPPORTED, "has an axis that is unknown")
    if int(axes.reshape(-1)[0]) % at.rank(node.input[0]) != frames.axis:
        return at.keep(node, frames)
    at.need(not attribute(node, "reverse", 0), Reason.BACKWARDS, "sums backwards")
    at.need(not frames.past, Reason.UNSUPPORTED, "sums padded frames")
    slot = at.slot(f"{at.label}_sum", node.input[0], fill=0.0, frames=1, axis=frames.axis)
    write = at.author
    joined = write.op("Concat", slot.input, node.input[0], axis=frames.axis)
    sums = write.op("CumSum", joined, node.input[1])
    start, end = (0, -1) if attribute(node, "exclusive", 0) else (1, END)
    axis = write.ints(frames.axis)
    write.op("Slice", sums, write.ints(start), write.ints(end), axis, outputs=[node.output[0]])
    write.op("Slice", sums, write.ints(-1), write.ints(END), axis, outputs=[slot.output])
    at.windows(slot, sums, node.input[0], frames)
    return [frames]


@streamed("Pad")
def _pads(node: NodeProto, at: Streamer) -> Sequence[Flow]:
    """Frames of padding before the first become a state; those after the last are left out."""
    frames, pads = at.only(), at.numbers(1, "pads")
    fill = at.constant(node.input[2]) if len(node.input) > 2 else None
    filled = text(node, "mode", "constant") == "constant"
    omitted = len(node.input) < 3 or not node.input[2]
    at.need(filled and (omitted or fill is not None), Reason.AHEAD, "repeats frames")
    axes = at.numbers(3, "axes") or [*range(at.rank(node.input[0]))]
    if pads is None or len(pads) != 2 * len(axes):
        raise at.refused(Reason.NUMBER, "has pads that are unknown")
    places = [axis % at.rank(node.input[0]) for axis in axes]
    if frames.axis not in places:
        return at.keep(node, frames)
    place = places.index(frames.axis)
    before, after = pads[place], pads[place + len(axes)]
    if not before and not after:
        return at.keep(node, frames)
    shortens = before < 0 or after < -frames.ahead or (before and frames.past)
    at.need(not shortens, Reason.WHOLE, "cuts frames off, or pads what is padded")
    value = number(node, "value", 0.0) if fill is None else float(fill.reshape(-1)[0])
    pads[place] = pads[place + len(axes)] = 0
    result = [replace(frames, past=frames.past + before, ahead=frames.ahead + after)]
    data = at.ended(node.input[0], frames, value) if after > 0 else node.input[0]
    if before:
        ends = [] if any(pads) else [node.output[0]]
        data = _after(at, data, before, frames, value, ends)
        if ends:
            return result
    old = len(node.input) < 2
    inputs = [data] if old else [data, at.author.ints(*pads), *node.input[2:]]
    return at.keep(changed(node, {"pads": pads} if old else {}, inputs=inputs), *result)


def _after(
    at: Streamer, name: str, count: int, frames: Frames, fill: float, ends: Sequence[str] = ()
) -> str:
    """Write frames with so many before them, which a state holds; returns the name of both."""
    axis = frames.axis
    slot = at.slot(f"{at.label}_cache", name, fill=fill, frames=count, axis=axis)
    write, later = at.author, frames.later
    joined = write.op("Concat", slot.input, name, axis=axis, outputs=ends)
    bounds = [write.ints(-count - later), write.ints(-later or END), write.ints(axis)]
    write.op("Slice", joined, *bounds, outputs=[slot.output])
    at.windows(slot, joined, name, frames)
    return joined


@streamed("Conv")
def _convolves(node: NodeProto, at: Streamer) -> Sequence[Flow]:
    """Padding before the first frame becomes a state."""
    frames = at.only()
    if frames.axis == 0:
        return at.keep(node, frames)
    at.need(frames.axis > 1, Reason.WHOLE, "sums over time, as over channels")
    place, spatial = frames.axis - 2, at.rank(node.input[0]) - 2
    size = at.seen.shape(node.input[1])[2 + place]
    stride = (attributes(node, "strides") or [1] * spatial)[place]
    reach = (size - 1) * (attributes(node, "dilations") or [1] * spatial)[place] + 1
    auto, pads = text(node, "auto_pad", "NOTSET"), attributes(node, "pads") or [0] * 2 * spatial
    at.need(auto in ("NOTSET", "VALID") or reach == stride == 1, Reason.AHEAD, f"pads by {auto}")
    before, after = (pads[place], pads[place + spatial]) if auto == "NOTSET" else (0, 0)
    at.need(not (before and frames.past), Reason.UNSUPPORTED, "pads what is padded")
    left, right = before + frames.past, after + frames.ahead
    later = max(reach - stride, 0) - left
    at.reading(frames, later)
    past, odd = divmod(max(-later, 0), stride)
    at.need(not odd and (past == 0 or reach >= stride), Reason.UNSUPPORTED, "pads no whole stride")
    ahead = (left + right - reach) // stride + 1 - past
    data = at.ended(node.input[0], frames, 0) if after > 0 else node.input[0]
    data = _after(at, data, before, frames, 0.0) if before else data
    pads[place] = pads[place + spatial] = 0
    given = {"pads": pads} if auto == "NOTSET" else {}
    kept = changed(node, given, inputs=[data, *node.input[1:]])
    beyond = (left + frames.later - reach) // stride + 1 - past
    every = frames.every * stride
    return at.keep(kept, replace(frames, every=every, past=past, ahead=ahead, later=beyond))
