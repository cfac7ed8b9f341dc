"""The states before the first chunk: their shapes and values, seen in runs of the original."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
from onnx import ValueInfoProto

from passes.ir.model import Model
from passes.ir.protos import copied, replace_all
from passes.streaming.flows import CannotStream, Reason
from passes.streaming.plan import Size, State
from passes.streaming.streamer import Slot
from passes.types.value_types import dims_of
from passes.verify import signature
from passes.verify.executor import Array, Ended, Feeds
from passes.verify.inputs.draw import CannotDraw, Drawer
from passes.verify.inputs.hints import model_hints
from passes.verify.inputs.plans import ATTEMPTS, LARGER, ORDINARY, Plan
from passes.verify.reference import ReferenceExecutor

#: Distinct sizes of dims, twice, so that it shows which size a state has.
_SIZES = (ORDINARY, LARGER)


def first_states(model: Model, slots: Sequence[Slot]) -> list[State]:
    """The states of slots, which do not depend on what the inputs hold.

    Raises:
        CannotStream: the model fails on inputs of some size, or a state is not of a form that can
            be described.
    """
    if not slots:
        return []
    runs = [_run(model, slots, sizes) for sizes in _SIZES]
    return [_state(slot, [(sizes, found[slot.source]) for sizes, found in runs]) for slot in slots]


def _run(
    model: Model, slots: Sequence[Slot], sizes: tuple[int, ...]
) -> tuple[Mapping[str, int], Mapping[str, Array]]:
    """The sizes of the dims, by name, and the values of the sources in a run of the original."""
    proto = copied(model.proto)
    replace_all(proto.graph.output, [ValueInfoProto(name=slot.source) for slot in slots])
    drawn = tuple(signature.inputs(proto.graph))
    drawer = Drawer(drawn, hints=model_hints(model))
    executor, reason = ReferenceExecutor(), ""
    for feeds in _drawn(drawer, sizes):
        try:
            outcome = executor.run(proto, feeds, base_dir=model.base_dir)
        except Ended as error:
            reason = reason or str(error)
            continue
        values = {name: np.asarray(value) for name, value in outcome.outputs.items()}
        return sizes_of(drawn, feeds), values
    raise CannotStream(Reason.INITIAL, f"the model fails on all inputs that were tried: {reason}")


def _drawn(drawer: Drawer, sizes: tuple[int, ...]) -> Iterator[Feeds]:
    for attempt in range(len(ATTEMPTS)):
        try:
            yield drawer.case(Plan("ordinary", "first states", sizes), attempt).feeds
        except CannotDraw as error:
            raise CannotStream(Reason.INITIAL, f"{error}") from error


def sizes_of(values: Sequence[ValueInfoProto], feeds: Feeds) -> dict[str, int]:
    """The sizes of the symbolic dims of inputs, by name."""
    found: dict[str, int] = {}
    for value in values:
        shape = getattr(feeds.get(value.name), "shape", ())
        for dim, size in zip(dims_of(value.type) or (), shape, strict=False):
            if isinstance(dim, str):
                found[dim] = size
    return found


def _state(slot: Slot, runs: Sequence[tuple[Mapping[str, int], Array]]) -> State:
    arrays = [_first(slot, array) for _, array in runs]
    shape: list[Size] = []
    for axis, pair in enumerate(zip(*(array.shape for array in arrays), strict=True)):
        if pair[0] == pair[1]:
            shape.append(pair[0])
            continue
        named = [
            name
            for name in runs[0][0]
            if all(s[name] == n for (s, _), n in zip(runs, pair, strict=True))
        ]
        if not named:
            sentence = f"axis {axis} of its state {slot.input!r} has the size of no input's dim"
            raise CannotStream(Reason.INITIAL, sentence, slot.path)
        shape.append(named[0])
    symbolic = [axis for axis, size in enumerate(shape) if isinstance(size, str)]
    dtype = arrays[0].dtype
    state = State(slot.input, slot.output, tuple(shape), dtype.name, node=slot.path)
    state = replace(state, batch_axis=symbolic[0] if symbolic else None)
    plain = [np.unique(array) for array in arrays if array.size]
    if slot.fill is not None or (plain and all(one.size == 1 and one == plain[0] for one in plain)):
        fill = slot.fill if slot.fill is not None else plain[0][0].item()
        return replace(state, fill=fill)
    cut = [
        array[tuple(slice(0, 1) if axis in symbolic else slice(None) for axis in range(array.ndim))]
        for array in arrays
    ]
    if not all(np.array_equal(np.broadcast_to(cut[0], array.shape), array) for array in arrays):
        sentence = f"its state {slot.input!r} starts with other values in each row"
        raise CannotStream(Reason.INITIAL, sentence, slot.path)
    return replace(state, value=cut[0].tolist())


def _first(slot: Slot, array: Array) -> Array:
    """The state in a run, from the value of its source."""
    if slot.fill is None:
        return array
    shape = [*array.shape]
    if slot.frames is not None:
        shape[slot.axis] = slot.frames
    return np.full(shape, slot.fill, array.dtype)
