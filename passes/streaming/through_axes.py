"""Operators that work on each frame by itself: where they move the axis of time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from onnx import NodeProto

from passes.ir.attributes import attribute, attributes, text
from passes.ir.operators import op_of
from passes.ir.protos import changed
from passes.streaming.flows import Flow, Frames, Last, Reason
from passes.streaming.streamer import BY_ELEMENT, Streamer, streamed

#: From this opset on, Softmax and its like work along one axis only.
_ONE_AXIS = 13
#: Beyond any size.
_END = 2**31 - 1


@streamed(BY_ELEMENT, "PRelu", "QuantizeLinear", "DequantizeLinear", "Dropout")
def _by_element(node: NodeProto, at: Streamer) -> Sequence[Flow]:
    """Frames meet frames at one axis; all else broadcasts to them."""
    names = [name for name in node.input if name]
    found = [frames for name in names if (frames := at.frames(name))]
    rank = max(map(at.rank, names)) if len(names) > 1 else found[0].rank
    flow = replace(found[0], axis=found[0].from_end + rank, rank=rank)
    same = all(replace(one, axis=one.from_end + rank, rank=rank) == flow for one in found)
    at.need(same, Reason.WHOLE, "reads frames of different times, or on different axes, together")
    for name in names:
        at.need(not at.is_count(name), Reason.NUMBER, f"computes with {name!r}")
        dims = at.dims(name) if not at.frames(name) else None
        per_frame = dims and len(dims) >= -flow.from_end and dims[flow.from_end] not in (1, None)
        chosen = op_of(node) in ("QuantizeLinear", "DequantizeLinear") and dims and len(dims) == 1
        if chosen:
            per_frame = attribute(node, "axis", 1) % rank == flow.axis and dims != (1,)
        at.need(not per_frame, Reason.WHOLE, f"reads {name!r}, which has an element for each frame")
    return at.keep(node, *[flow] * len(node.output))


@streamed("Softmax", "LogSoftmax", "Hardmax", "LpNormalization", "LayerNormalization")
def _normalizes(node: NodeProto, at: Streamer) -> Sequence[Flow]:
    frames = at.only(0, "data")
    several = op_of(node) == "LayerNormalization"
    old = at.author.opset < _ONE_AXIS and op_of(node) in ("Softmax", "LogSoftmax", "Hardmax")
    axis = attribute(node, "axis", 1 if old else -1) % frames.rank
    over = frames.axis >= axis if several or old else frames.axis == axis
    at.need(not over, Reason.WHOLE, "normalizes over time")
    return at.keep(node, frames, *[None] * (len(node.output) - 1))


@streamed("BatchNormalization", "LRN")
def _channels(node: NodeProto, at: Streamer) -> Sequence[Flow]:
    frames = at.only(0, "data")
    at.need(frames.axis != 1 and len(node.output) == 1, Reason.WHOLE, "normalizes over time")
    return at.keep(node, frames)


@streamed(
    *("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2"),
    *("ReduceLogSum", "ReduceLogSumExp", "ReduceSumSquare", "ArgMax", "ArgMin"),
)
def _reduces(node: NodeProto, at: Streamer) -> Sequence[Flow]:
    frames = at.only(0, "data")
    if op_of(node).startswith("Arg"):
        axes: list[int] | None = [attribute(node, "axis", 0)]
    else:
        axes = at.numbers(1, "axes")
    nothing = not axes and attribute(node, "noop_with_empty_axes", 0)
    gone = {axis % frames.rank for axis in axes or ([] if nothing else range(frames.rank))}
    at.need(frames.axis not in gone, Reason.WHOLE, "reduces over time")
    if attribute(node, "keepdims", 1):
        return at.keep(node, frames)
    return at.keep(node, _without(frames, gone))


def _without(frames: Frames, gone: set[int]) -> Frames:
    """The frames of a value without these axes."""
    before = sum(axis < frames.axis for axis in gone)
    return replace(frames, axis=frames.axis - before, rank=frames.rank - len(gone))


@streamed("Transpose")
def _transposes(node: NodeProto, at: Streamer) -> Sequence[Flow]:
    frames = at.only(0, "data")
    perm = attributes(node, "perm") or [*reversed(range(frames.rank))]
    return at.keep(node, replace(frames, axis=perm.index(frames.axis)))


@streamed("Squeeze", "Unsqueeze")
def _squeezes(node: NodeProto, at: Streamer) -> Sequence[Flow]:
    frames, axes = at.only(0, "data"), at.numbers(1, "axes")
    if axes is None:
        raise at.refused(Reason.UNSUPPORTED, "has axes that are unknown")
    if op_of(node) == "Squeeze":
        gone = {axis % frames.rank for axis in axes}
        at.need(frames.axis not in gone, Reason.WHOLE, "squeezes the axis of time")
        return at.keep(node, _without(frames, gone))
    rank = frames.rank + len(axes)
    new = {axis % rank for axis in axes}
    axis = [place for place in range(rank) if place not in new][frames.axis]
    return at.keep(node, replace(frames, axis=axis, rank=rank))


@streamed("Expand", "ConstantOfShape")
def _fills(node: NodeProto, at: Streamer) -> Sequence[Flow]:
    """Each frame is filled alike."""
    frames, dims = at.frames(node.input[0]), at.dims(node.output[0])
    place = at.axis_of_time(node.output[0])
    if frames is not None and not any(map(at.is_count, node.input)) and dims is not None:
        at.fixed(node.input[1:], "its shape")
        return at.keep(node, replace(frames, axis=frames.from_end + len(dims), rank=len(dims)))
    plain = frames is None or not (frames.past or frames.ahead or frames.every > 1)
    if place is None or dims is None or not plain:
        raise at.refused(Reason.NUMBER, "makes a tensor whose size depends on the number of frames")
    own = frames is None or place == frames.from_end + len(dims)
    at.need(own, Reason.WHOLE, "repeats the sequence")
    return at.keep(node, Frames(place, len(dims)))


@streamed("Reshape", "Flatten")
def _shapes(node: NodeProto, at: Streamer) -> Sequence[Flow]:
    """The axes before that of time have as many elements as before."""
    name, out = node.input[0], node.output[0]
    frames, before, dims = at.frames(name), at.dims(name), at.dims(out)
    fixed = not any(map(at.is_count, node.input))
    if frames is None or before is None or dims is None:
        raise at.refused(Reason.NUMBER, "makes a tensor whose shape is unknown")
    at.need(fixed or not (frames.past or frames.ahead), Reason.NUMBER, "shapes padded frames")
    front, rest = _product(at, name, range(frames.axis)), range(frames.axis + 1, len(before))
    back = _product(at, name, rest)
    # the size of time may be the -1, so it is what is left
    places = [
        place
        for place in range(len(dims))
        if _product(at, out, range(place)) == front
        and _product(at, out, range(place + 1, len(dims))) == back
        and not isinstance(dims[place], int)
    ]
    at.need(len(places) == 1, Reason.WHOLE, "is not seen to keep the axis of time")
    return at.keep(node, replace(frames, axis=places[0], rank=len(dims)))


def _product(at: Streamer, name: str, axes: Iterable[int]) -> tuple[int, frozenset[str]] | None:
    """The number of elements along axes: a factor, and symbolic sizes; None where one is unknown,
    or occurs twice."""
    factor, symbols = 1, list[str]()
    for axis in axes:
        size = at.integers.size(name, axis)
        if size is None:
            return None
        if size.number is None:
            symbols.append(f"{sorted(size.terms, key=str)}{size.constant}")
        else:
            factor *= size.number
    return (factor, frozenset(symbols)) if len(set(symbols)) == len(symbols) else None


@streamed("MatMul")
def _matmul(node: NodeProto, at: Streamer) -> Sequence[Flow]:
    left, right = map(at.frames, node.input)
    ranks = [at.rank(name) for name in node.input]
    rank = max(ranks)
    for frames, place in ((left, -1), (right, -2)):
        if frames is not None:
            contracted = frames.from_end == place or frames.rank == 1
            at.need(not contracted, Reason.WHOLE, "sums over time")
    vector = right is not None and ranks[0] == 1
    at.need(not vector, Reason.UNSUPPORTED, "multiplies a vector by frames")
    found = left or right
    assert found is not None
    if left is not None and right is not None:
        flow = replace(left, axis=0, rank=0) == replace(right, axis=0, rank=0)
        same = left.from_end == right.from_end < -2 and flow
        at.need(same, Reason.WHOLE, "multiplies frames by all others, as attention does")
    for name in node.input:
        at.need(not at.is_count(name), Reason.NUMBER, f"computes with {name!r}")
    if ranks[1] == 1:  # its axis disappears, with that of the vector
        return at.keep(node, replace(found, rank=found.rank - 1))
    return at.keep(node, replace(found, axis=found.from_end + rank, rank=rank))


@streamed("Gemm")
def _gemm(node: NodeProto, at: Streamer) -> Sequence[Flow]:
    frames = at.only(0, "data")
    rows = 1 if attribute(node, "transA", 0) else 0
    at.need(frames.axis == rows, Reason.WHOLE, "sums over time")
    dims = at.dims(node.input[2]) if len(node.input) > 2 and node.input[2] else ()
    plain = dims is not None and (len(dims) < 2 or dims[0] == 1)
    at.need(plain, Reason.WHOLE, "adds an element for each frame")
    return at.keep(node, replace(frames, axis=0))


@streamed("Einsum")
def _einsum(node: NodeProto, at: Streamer) -> Sequence[Flow]:
    left, arrow, result = text(node, "equation", "").replace(" ", "").partition("->")
    terms = left.split(",")
    at.need(bool(arrow) and "." not in left, Reason.UNSUPPORTED, "has an equation without letters")
    found = [(term, at.frames(name)) for term, name in zip(terms, node.input, strict=True)]
    letters = {term[frames.axis] for term, frames in found if frames is not None}
    timed = [replace(frames, axis=0, rank=0) for _, frames in found if frames is not None]
    letter = next(iter(letters))
    alone = len(letters) == 1 and len(set(timed)) == 1 and result.count(letter) == 1
    at.need(alone, Reason.WHOLE, "sums over time, or multiplies frames by others")
    for name, (term, frames) in zip(node.input, found, strict=True):
        steady = frames is not None or (at.flows.get(name) is None and letter not in term)
        at.need(steady, Reason.WHOLE, f"reads {name!r} as an element for each frame")
        at.need(term.count(letter) <= 1, Reason.WHOLE, "reads a diagonal of frames")
    return at.keep(node, replace(timed[0], axis=result.index(letter), rank=len(result)))


@streamed("Concat")
def _concat(node: NodeProto, at: Streamer) -> Sequence[Flow]:
    found = {at.frames(name) for name in node.input}
    frames = next(iter(found))
    at.need(len(found) == 1, Reason.WHOLE, "joins frames with others, or with what has none")
    assert frames is not None
    along = attribute(node, "axis", 1) % frames.rank == frames.axis
    at.need(not along, Reason.WHOLE, "joins sequences along time")
    return at.keep(node, frames)


@streamed("Split")
def _split(node: NodeProto, at: Streamer) -> Sequence[Flow]:
    frames = at.only(0, "data")
    along = attribute(node, "axis", 0) % frames.rank == frames.axis
    at.need(not along, Reason.WHOLE, "splits the sequence along time")
    return at.keep(node, *[frames] * len(node.output))


@streamed("Gather")
def _gather(node: NodeProto, at: Streamer) -> Sequence[Flow]:
    data, indices = node.input
    picked = at.constant(indices)
    if at.flows.get(data) is None:
        frames = at.only(1, "indices")
        axis, rank = attribute(node, "axis", 0), at.rank(data)
        axis %= rank
        return at.keep(node, replace(frames, axis=axis + frames.axis, rank=rank + frames.rank - 1))
    frames, rank = at.only(0, "data"), at.rank(indices)
    axis = attribute(node, "axis", 0) % frames.rank
    if axis == frames.axis:
        last = picked is not None and picked.size == 1 and int(picked.reshape(-1)[0]) == -1
        at.need(last and not frames.ahead, Reason.WHOLE, "picks frames other than the last")
        return at.keep(node, Last())
    moved = frames.axis + (rank - 1 if axis < frames.axis else 0)
    return at.keep(node, replace(frames, axis=moved, rank=frames.rank + rank - 1))


_ENDS = "cuts at a place that is not seen to be the number of frames"


@streamed("Slice")
def _slice(node: NodeProto, at: Streamer) -> Sequence[Flow]:
    starts, ends = at.numbers(1, "starts"), at.numbers(2, "ends")
    axes, steps = at.numbers(3, "axes"), at.numbers(4, "steps")
    frames = at.frames(node.input[0])
    if frames is None or starts is None:
        raise at.refused(Reason.NUMBER, "cuts at places that are unknown")
    if ends is None and starts == [0] and axes and axes[0] % frames.rank == frames.axis:
        found = at.integers.outside(node.input[2])
        whole = found is not None and found.items == (at.time,) and steps in (None, [1])
        at.need(whole and frames == replace(frames, every=1, past=0), Reason.NUMBER, _ENDS)
        return at.keep(node, replace(frames, ahead=0))
    at.only(0, "data")
    if ends is None:
        raise at.refused(Reason.NUMBER, _ENDS)
    places = [axis % frames.rank for axis in axes or range(len(starts))]
    if frames.axis not in places:
        return at.keep(node, frames)
    place = places.index(frames.axis)
    start, end, step = starts[place], ends[place], steps[place] if steps else 1
    if (start, step) == (-1, 1) and end >= _END and not frames.ahead:
        return at.keep(node, Last())
    at.need(step == 1, Reason.BACKWARDS if step < 0 else Reason.WHOLE, "takes frames in steps")
    tail = 0 if end >= _END else -end
    fits = 0 <= start <= frames.past and 0 <= tail <= frames.ahead
    at.need(fits, Reason.WHOLE, f"takes the frames from {start} to {end} of the sequence")
    flow = replace(frames, past=frames.past - start, ahead=frames.ahead - tail)
    if not tail:
        return at.keep(node, flow)
    ends[place] = _END
    if len(node.input) < 3:
        return at.keep(changed(node, {"ends": ends}), flow)
    inputs = [*node.input]
    inputs[2] = at.author.ints(*ends)
    return at.keep(changed(node, {}, inputs=inputs), flow)


@streamed("Shape", "Size")
def _shape(node: NodeProto, at: Streamer) -> Sequence[Flow]:
    frames = at.only(0, "data")
    at.need(not frames.past and not frames.ahead, Reason.NUMBER, "reads the size of padded frames")
    return at.keep(node, at.count(node.output[0]))


@streamed("ReverseSequence")
def _reverses(node: NodeProto, at: Streamer) -> Sequence[Flow]:
    raise at.refused(Reason.BACKWARDS, "reverses the sequence")


@streamed(
    *("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool", "InstanceNormalization"),
    *("GroupNormalization", "Attention", "MultiHeadAttention"),
)
def _of_the_whole(node: NodeProto, at: Streamer) -> Sequence[Flow]:
    raise at.refused(Reason.WHOLE, "reads all frames at once")


@streamed("If", "Loop")
def _control_flow(node: NodeProto, at: Streamer) -> Sequence[Flow]:
    raise at.refused(Reason.LOOP, "reads frames in its bodies, and is no Scan over time")
