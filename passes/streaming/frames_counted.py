"""Nodes that read the number of frames: numbers of frames go on from chunk to chunk."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from onnx import NodeProto

from passes.ir import scope as scoping
from passes.ir.attributes import attribute
from passes.ir.operators import op_of
from passes.ir.protos import changed
from passes.streaming.plan import Count, Flow, Frames, Reason
from passes.streaming.streamer import BY_COUNT, Streamer, streamed
from passes.writing import spelling


@streamed(BY_COUNT)
def _counts(node: NodeProto, at: Streamer) -> Sequence[Flow]:
    """A failure that depends on the number of frames in the whole, which no chunk knows, is left
    out."""
    read = scoping.free_names(node)
    counts = [isinstance(at.flows.get(name), Count) or name in at.counted for name in read]
    if not any(counts):
        return at.keep(node, *[None] * len(node.output))
    steady = not counts[0]
    if op_of(node) == "Range" and steady and _is_numbered(node, at):
        return _numbers(node, at)
    made = [at.producer(name) for name in node.input]
    if op_of(node) == "Gather" and steady and _may_fail(node, made[1], at):
        return at.keep(changed(node, {}, inputs=[node.input[0], at.author.int(0)]), None)
    if op_of(node) != "Gather" or made[0] is None or op_of(made[0]) != "Shape":
        at.counted.update(filter(None, node.output))
    return at.keep(node, *map(at.count, node.output))


def _may_fail(node: NodeProto, places: NodeProto | None, at: Streamer) -> bool:
    """Return whether a Gather reads the only row, or fails, as it reads the one after it."""
    if places is None or op_of(places) != "Where" or attribute(node, "axis", 0):
        return False
    ends = [at.constant(name) for name in places.input[1:]]
    known = [end.tolist() for end in ends if end is not None]
    return known == [0, 1] and at.seen.shape(node.input[0])[:1] == (1,)


def _is_numbered(node: NodeProto, at: Streamer) -> bool:
    """Return whether the output has a whole number for each frame, of which the first ones stay if
    there are more frames."""
    name = node.output[0]
    few, many = (values[name] for values in at.seen.values[:2])
    last = few.ndim - 1
    framed = at.seen.times(name) == [last] and at.seen.has(name, Frames(last))
    alone = framed and few.dtype.kind == "i" and few.size == few.shape[last]
    return alone and np.array_equal(many[..., : few.size], few)


@streamed("NonZero")
def _nonzero(node: NodeProto, at: Streamer) -> Sequence[Flow]:
    """The places of elements that are all alike are their numbers."""
    filled = at.producer(node.input[0])
    alike = filled is not None and op_of(filled) == "ConstantOfShape"
    at.need(alike and _is_numbered(node, at), Reason.NUMBER, "numbers some frames of the whole")
    return _numbers(node, at)


def _numbers(node: NodeProto, at: Streamer) -> Sequence[Flow]:
    """What is added to the numbers in the first chunk becomes a state."""
    name, write = node.output[0], at.author
    few = at.seen.values[0][name]
    axis, (first, second) = few.ndim - 1, few.reshape(-1)[:2]
    step = write.value(np.asarray(second - first))
    slot = at.slot(f"{at.label}_from", name, fill=0, frames=1, axis=axis)
    own = write.fresh("numbers")
    write.adopt([changed(node, {}, outputs=[own])])
    count = write.op("Cast", write.op("Size", own), to=at.seen.elem_type(name))
    write.op("Add", own, slot.input, outputs=[name])
    write.op("Add", slot.input, write.op("Mul", count, step), outputs=[slot.output])
    if slot.each:
        after = write.op("Add", name, write.value(np.asarray(second - first - first)))
        rows = write.op("Transpose", after, perm=[axis, *range(axis)])
        spelling.unsqueeze(write, rows, axis + 1, [slot.each])
    return [Frames(axis, closed=True)]
