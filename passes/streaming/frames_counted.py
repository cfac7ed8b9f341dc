"""Nodes that read the number of frames: numbers of frames go on from chunk to chunk."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from onnx import NodeProto

from passes.ir import scope as scoping
from passes.ir.operators import op_of
from passes.ir.protos import changed
from passes.operators.comparisons import COMPARISONS, holds
from passes.streaming.plan import Flow, Frames, Reason
from passes.streaming.streamer import BY_COUNT, Streamer, streamed
from passes.writing import spelling

#: What copies numbers to other places, where its first input, or each, has them.
_COPIES = frozenset({"Gather", "Identity", "Reshape", "Slice", "Split", "Squeeze", "Unsqueeze"})
#: What copies numbers, or one of its own, to as many places as others tell.
_REPEATS = frozenset({"Concat", "ConstantOfShape", "Expand", "Shape", "Tile"})
#: What computes other numbers in one way for every number of frames, element by element or of all.
_COMPUTES = frozenset(
    {"Add", "Cast", "Ceil", "Div", "Floor", "Mul", "Neg", "Not", "ReduceProd", "ReduceSum", "Sub"}
)


@streamed(BY_COUNT)
def _counts(node: NodeProto, at: Streamer) -> Sequence[Flow]:
    """A node that reads no frames, but perhaps their number."""
    read = scoping.free_names(node)
    if not any(at.is_counted(name) for name in read):
        return at.keep(node, *[None] * len(node.output))
    steady = not any(at.is_counted(name) for n, name in enumerate(node.input) if n != 1)
    numbered = op_of(node) == "Range" and steady and node.input[1] not in at.counted
    if numbered and _is_numbered(node, at):
        return _numbers(node, at)
    if at.counted.intersection(read) or not _is_known(node, at):
        at.counted.update(filter(None, node.output))
    return at.keep(node, *map(at.count, node.output))


def _is_known(node: NodeProto, at: Streamer) -> bool:
    """Return whether the two numbers of frames that were tried show what a node computes of any."""
    op, counted = op_of(node), [at.is_counted(name) for name in node.input]
    if op in _REPEATS:
        return True
    if op in _COPIES:
        return not any(counted[1:])
    if op == "Where":
        return not counted[0]
    return _is_as_ever(node, at) or (op in _COMPUTES and _differs(node, at))


def _differs(node: NodeProto, at: Streamer) -> bool:
    """Return whether each element of the output differs between two numbers of frames if one does
    from which it is computed."""
    few, many = at.seen.values[:2]
    (output,) = node.output
    moves = [np.asarray(few[name] != many[name]) for name in node.input if at.is_counted(name)]
    moved = np.asarray(few[output] != many[output])
    if any(one.ndim > moved.ndim for one in moves):
        return bool(moved.all())
    return bool((moved | ~np.logical_or.reduce(np.broadcast_arrays(moved, *moves)[1:])).all())


def _is_as_ever(node: NodeProto, at: Streamer) -> bool:
    """Return whether a node compares sizes with numbers that are too small for any difference, as
    there is a frame: 0 or less, or 1 where it tells whether sizes are less."""
    known = [at.constant(name) for name in node.input]
    if len(known) != 2 or (known[0] is None) == (known[1] is None):
        return False
    place = 0 if known[0] is not None else 1
    limit = known[place]
    assert limit is not None
    if op_of(node) not in (*COMPARISONS, "Max") or not _is_size(node.input[1 - place], at):
        return False
    if op_of(node) == "Max":
        return bool((limit <= 1).all())
    ranges = ((1 - one, np.inf) if place else (-np.inf, one - 1) for one in map(float, limit.flat))
    return all(holds(op_of(node), *range_) is not None for range_ in ranges)


def _is_size(name: str, at: Streamer) -> bool:
    """Return whether a value has sizes of another one, in any form."""
    made = at.producer(name)
    while made is not None and (op_of(made) in _COPIES or op_of(made) == "Cast"):
        made = at.producer(made.input[0])
    return made is not None and op_of(made) in ("Shape", "Size")


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
