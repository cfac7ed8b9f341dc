"""Operators that work on each frame by itself, and those that are seen to mix frames."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod

from onnx import NodeProto

from passes.ir.attributes import attribute, text
from passes.ir.operators import op_of
from passes.ir.protos import changed
from passes.operators.table import traits_of, where
from passes.streaming.plan import Count, Flow, Last, Reason
from passes.streaming.streamer import BY_ELEMENT, Streamer, streamed

#: Beyond any size.
END = 2**31 - 1


@streamed(
    *(BY_ELEMENT, "PRelu", "QuantizeLinear", "DequantizeLinear", "Dropout"),
    *where(lambda row: row.apart),
    *("Transpose", "Squeeze", "Unsqueeze", "Concat", "Split", "MatMul", "Gemm"),
)
def _by_itself(node: NodeProto, at: Streamer) -> Sequence[Flow]:
    """A frame of the output is computed of one frame, unless the output has another number of
    frames, or a second axis of time, as where frames are multiplied by all others."""
    found = [frames for name in node.input if (frames := at.frames(name))]
    for name in node.input:
        counts = isinstance(at.flows.get(name), Count)
        at.need(not counts, Reason.NUMBER, f"computes with {name!r}, the number of frames")
    same = len({replace(frames, axis=0) for frames in found}) == 1
    at.need(same, Reason.WHOLE, "reads frames of different times together")
    return at.keep(node, *(at.like(found[0], name) if name else None for name in node.output))


@streamed("Einsum")
def _einsum(node: NodeProto, at: Streamer) -> Sequence[Flow]:
    terms = text(node, "equation", "").replace(" ", "").partition("->")[0].split(",")
    found = [(term, at.frames(name)) for term, name in zip(terms, node.input, strict=True)]
    letters = {term[frames.axis] for term, frames in found if frames and "." not in term}
    once = len(letters) == 1 and all(term.count(next(iter(letters))) < 2 for term in terms)
    at.need(once, Reason.WHOLE, "multiplies frames by others")
    return _by_itself(node, at)


@streamed(*where(lambda row: row.along_axis), "LayerNormalization")
def _normalizes(node: NodeProto, at: Streamer) -> Sequence[Flow]:
    frames = at.only()
    old = at.author.opset < traits_of(node).along_axis
    axis = attribute(node, "axis", 1 if old else -1) % at.rank(node.input[0])
    after = old or op_of(node) == "LayerNormalization"
    over = frames.axis >= axis if after else frames.axis == axis
    at.need(not over, Reason.WHOLE, "normalizes over time")
    return at.keep(node, frames, *[None] * (len(node.output) - 1))


@streamed(*where(lambda row: row.pools), "BatchNormalization")
def _of_channels(node: NodeProto, at: Streamer) -> Sequence[Flow]:
    frames, pools = at.only(), traits_of(node).pools
    apart = frames.axis < 2 if pools else frames.axis != 1
    # a second output is the statistics of all, or where in the whole the largest elements are
    at.need(
        apart and len(node.output) == 1,
        Reason.WHOLE,
        "pools over time" if pools else "normalizes over time",
    )
    return at.keep(node, *[frames] * len(node.output))


@streamed("Reshape", "Flatten", "Expand", "Tile")
def _shapes(node: NodeProto, at: Streamer) -> Sequence[Flow]:
    """The axes before that of time have as many elements as before."""
    frames = at.frames(node.input[0])
    if frames is None:
        raise at.refused(Reason.WHOLE, "has a shape that depends on frames")
    found = at.like(frames, node.output[0])
    counts = any(isinstance(at.flows.get(name), Count) for name in node.input)
    at.need(not (counts and (frames.past or frames.ahead)), Reason.NUMBER, "shapes padded frames")
    if op_of(node) in ("Reshape", "Flatten"):
        before, after = (at.seen.shape(name) for name in (node.input[0], node.output[0]))
        same = prod(before[: frames.axis]) == prod(after[: found.axis])
        at.need(same, Reason.WHOLE, "does not keep the frames in their order")
    return at.keep(node, found)


@streamed("Gather")
def _gather(node: NodeProto, at: Streamer) -> Sequence[Flow]:
    frames, picked = at.frames(node.input[0]), at.constant(node.input[1])
    if frames is None or attribute(node, "axis", 0) % at.rank(node.input[0]) != frames.axis:
        return _by_itself(node, at)
    last = picked is not None and picked.size == 1 and int(picked.reshape(-1)[0]) == -1
    at.need(last and not frames.ahead, Reason.WHOLE, "picks frames other than the last")
    return at.keep(changed(node, {}, inputs=[at.cut(node.input[0]), node.input[1]]), Last())


@streamed("Slice")
def _slice(node: NodeProto, at: Streamer) -> Sequence[Flow]:
    """Padding is cut off, or the last frame is taken; other axes are cut as they were."""
    name = node.input[0]
    starts, axes, steps = at.numbers(1, "starts"), at.numbers(3, "axes"), at.numbers(4, "steps")
    ends, frames = at.numbers(2, "ends"), at.frames(name)
    if frames is None or starts is None:
        raise at.refused(Reason.NUMBER, "cuts at unknown places")
    places = [axis % at.rank(name) for axis in axes or range(len(starts))]
    place = places.index(frames.axis) if frames.axis in places else None
    if ends is None:
        found = [values[node.input[2]].tolist() for values in at.seen.values[:2]]
        plain = frames == replace(frames, every=1, past=0) and starts == [0] and place == 0
        whole = plain and found == [[sizes[at.time]] for sizes in at.seen.sizes[:2]]
        at.need(whole, Reason.NUMBER, "cuts at a place that is not the number of frames")
        return at.keep(node, replace(frames, ahead=0, closed=True))
    at.only()
    if place is None:
        return at.keep(node, frames)
    start, end, step = starts[place], ends[place], steps[place] if steps else 1
    if (start, step) == (-1, 1) and end >= END and not frames.ahead:
        return at.keep(changed(node, {}, inputs=[at.cut(name), *node.input[1:]]), Last())
    at.need(step == 1, Reason.BACKWARDS if step < 0 else Reason.WHOLE, "takes frames in steps")
    tail = 0 if end >= END else -end
    later = max(start - frames.past, 0)
    fits = start >= 0 and tail >= 0 and later + tail <= frames.ahead
    at.need(fits, Reason.WHOLE, f"takes the frames from {start} to {end} of the sequence")
    at.reading(frames, later)
    ends[place] = END
    inputs = [*node.input]
    if len(inputs) > 1 and tail:
        inputs[2] = at.author.ints(*ends)
    kept = changed(node, {} if len(inputs) > 1 else {"ends": ends}, inputs=inputs)
    past, ahead = max(frames.past - start, 0), frames.ahead - tail - later
    return at.keep(kept, replace(frames, past=past, ahead=ahead, later=frames.later - later))


@streamed("Shape", "Size")
def _shape(node: NodeProto, at: Streamer) -> Sequence[Flow]:
    frames = at.only()
    at.need(not frames.past and not frames.ahead, Reason.NUMBER, "reads the size of padded frames")
    return at.keep(node, at.count(node.output[0]))


@streamed("ReverseSequence")
def _reverses(node: NodeProto, at: Streamer) -> Sequence[Flow]:
    raise at.refused(Reason.BACKWARDS, "reverses the sequence")


@streamed("If", "Loop")
def _control_flow(node: NodeProto, at: Streamer) -> Sequence[Flow]:
    raise at.refused(Reason.LOOP, "reads frames in its bodies, and is no Scan over time")
