"""The states of a model that runs in chunks: those that it had before, and those that are added."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from onnx import TypeProto, helper

from passes.errors import WrongUsage, nearest
from passes.ir import scope as scoping
from passes.ir.model import Model
from passes.ir.operators import op_of
from passes.streaming.observed import Observed
from passes.streaming.plan import CannotStream, Last, Reason, State
from passes.streaming.streamer import NodeState, Streamer
from passes.types.value_types import dims_of, elem_type_of
from passes.writing import spelling


def states_of(
    whole: Model, streamer: Streamer, declared: Mapping[str, str]
) -> tuple[list[State], dict[str, str]]:
    """The states, and by which values of the original inputs that were written are replaced.

    An input of the original and an output that returns just the states that start with it are a
    state, and so are those that are `declared`.

    Raises:
        CannotStream: an initial state depends on what inputs hold, and no output returns it.
        WrongUsage: there is no input or output of a name that is declared.
    """
    graph = whole.proto.graph
    types = {value.name: value.type for value in graph.input}
    ends = {value.name: value.type for value in graph.output}
    for name, end in declared.items():
        for given, known, kind in ((name, types, "input"), (end, ends, "output")):
            if given not in known:
                raise WrongUsage(f"the model has no {kind} {given!r}; {nearest(given, known)}")
    reads = {
        slot.input: inputs_of(whole, [slot.source] if slot.fill is None else [])
        for slot in streamer.slots
    }
    pairs = dict(declared)
    for name in dict.fromkeys(name for read in reads.values() for name in sorted(read)):
        own = frozenset(slot for slot, read in reads.items() if name in read)
        fits = [end for end in ends if streamer.flows.get(end) == Last(own)]
        fits = [end for end in fits if end not in pairs.values() and _alike(types[name], ends[end])]
        if name not in pairs and fits:
            pairs[name] = fits[0]
    states = [given_state(types[name], name, end) for name, end in pairs.items()]
    replaced, new = {}, []
    for slot in streamer.slots:
        if not reads[slot.input]:
            new.append(slot)
            continue
        replaced[slot.input] = slot.source
        if reads[slot.input] <= set(pairs):
            continue
        if slot.source not in types or slot.source in {state.input for state in states}:
            started = f"its initial state is computed from the input {min(reads[slot.input])!r}"
            if streamer.wanted.initial:
                del replaced[slot.input]
                states.append(_computed(slot, streamer.seen))
                continue
            started += ", which no output returns; --state IN=OUT declares one that does"
            sentence = f"{started}, or --initial FILE writes a model that computes it"
            raise CannotStream(Reason.INITIAL, sentence, slot.path)
        states.append(given_state(types[slot.source], slot.source, slot.output, slot.path))
    states += [_first(slot, streamer) for slot in new]
    each = streamer.wanted.each
    return [_with_each(one, whole, streamer) if each else one for one in states], replaced


def _with_each(state: State, whole: Model, streamer: Streamer) -> State:
    """A state with what holds it after each frame, in its own shape.

    Raises:
        CannotStream: nothing does.
    """
    for slot in streamer.slots:
        if state.input in (slot.input, slot.source):
            return replace(state, each=slot.each)
        if slot.fill is None and _is_shaped(whole, slot.source, state.input):
            write = streamer.author
            own = spelling.size_of_axis(write, slot.each, 0)
            shape = spelling.joined(write, [own, spelling.shape_of(write, state.input)])
            each = write.fresh(f"every_{state.input}")
            return replace(state, each=spelling.reshaped(write, slot.each, shape, [each]))
    sentence = f"no value holds the state {state.input!r} after each frame"
    raise CannotStream(Reason.UNSUPPORTED, sentence, state.node)


def _is_shaped(whole: Model, name: str, source: str) -> bool:
    """Return whether a value has just the elements of another one."""
    while name != source:
        node = whole.producer(whole.proto.graph, name)
        if node is None or op_of(node) not in ("Squeeze", "Unsqueeze", "Reshape", "Identity"):
            return False
        name = node.input[0]
    return True


def _alike(one: TypeProto, other: TypeProto) -> bool:
    """Return whether two types may be that of one state."""
    dims, others = dims_of(one), dims_of(other)
    ranks = dims is None or others is None or len(dims) == len(others)
    return elem_type_of(one) == elem_type_of(other) and ranks


def given_state(kind: TypeProto, name: str, end: str, path: str = "") -> State:
    """A state that the caller chooses before the first chunk."""
    dims = tuple("?" if dim is None else dim for dim in dims_of(kind) or ())
    symbolic = [axis for axis, dim in enumerate(dims) if isinstance(dim, str)]
    dtype = helper.tensor_dtype_to_np_dtype(elem_type_of(kind)).name
    return State(name, end, dims, dtype, batch_axis=next(iter(symbolic), None), node=path)


def inputs_of(whole: Model, sources: Sequence[str]) -> frozenset[str]:
    """The inputs of the model on whose elements values of the main graph depend."""
    graph, found, pending = whole.proto.graph, set[str](), list(sources)
    inputs = set(scoping.input_names(graph)) - scoping.initializer_names(graph)
    seen = set(pending)
    while pending:
        name = pending.pop()
        node = whole.producer(graph, name)
        if name in inputs:
            found.add(name)
        elif node is not None and op_of(node) not in ("Shape", "Size"):
            more = [read for read in scoping.free_names(node) if read not in seen]
            pending += more
            seen.update(more)
    return frozenset(found)


def _shape(
    slot: NodeState, seen: Observed, shapes: Sequence[Sequence[int]]
) -> tuple[int | str, ...]:
    """The shape of a state, by the names of inputs' dims, in runs at two sizes of all dims.

    Raises:
        CannotStream: a size is that of no dim.
    """
    found: list[int | str] = []
    for axis, pair in enumerate(zip(*shapes, strict=True)):
        named = [dim for dim in seen.sizes[0] if (seen.sizes[0][dim], seen.sizes[2][dim]) == pair]
        if pair[0] != pair[1] and not named:
            sentence = f"axis {axis} of its state {slot.input!r} has the size of no input's dim"
            raise CannotStream(Reason.INITIAL, sentence, slot.path)
        found.append(pair[0] if pair[0] == pair[1] else named[0])
    return tuple(found)


def _computed(slot: NodeState, seen: Observed) -> State:
    """A state that starts with what the initial model computes."""
    arrays = [seen.values[run][slot.source] for run in (0, 2)]
    shape = _shape(slot, seen, [array.shape for array in arrays])
    symbolic = [axis for axis, size in enumerate(shape) if isinstance(size, str)]
    state = State(slot.input, slot.output, shape, arrays[0].dtype.name, node=slot.path)
    return replace(state, batch_axis=next(iter(symbolic), None), computed=True)


def _first(slot: NodeState, streamer: Streamer) -> State:
    """A state that depends on sizes alone, as it was in runs at two sizes of all dims.

    Raises:
        CannotStream: its size is that of no dim, or its rows start with different values.
    """
    seen = streamer.seen
    arrays = [seen.values[run][slot.source] for run in (0, 2)]
    if slot.fill is not None:
        shapes = [[*array.shape] for array in arrays]
        for shape in shapes if slot.frames is not None else ():
            shape[slot.axis] = slot.frames or 0
        types = [array.dtype for array in arrays]
        arrays = [
            np.full(shape, slot.fill, kind) for shape, kind in zip(shapes, types, strict=True)
        ]
    shape_ = _shape(slot, seen, [array.shape for array in arrays])
    open_ = [axis for axis, size in enumerate(shape_) if isinstance(size, str)]
    row = arrays[0][
        tuple(slice(1) if axis in open_ else slice(None) for axis in range(len(shape_)))
    ]
    if not all(np.array_equal(np.broadcast_to(row, array.shape), array) for array in arrays):
        if slot.fill is None and streamer.wanted.initial:
            return _computed(slot, seen)
        sentence = f"its state {slot.input!r} starts with different values in each row"
        raise CannotStream(Reason.INITIAL, sentence, slot.path)
    state = State(slot.input, slot.output, shape_, row.dtype.name, node=slot.path)
    state = replace(state, batch_axis=next(iter(open_), None))
    if row.size and (row == row.reshape(-1)[0]).all():
        return replace(state, fill=row.reshape(-1)[0].item())
    return replace(state, value=row.tolist())
