"""`close`: a loop over time around a model that runs one step."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Any

import numpy as np
from onnx import GraphProto, ModelProto, TensorProto, TypeProto, ValueInfoProto, helper

from passes.binding.values import as_array, held
from passes.check import check_outcome
from passes.errors import BadModel, WrongUsage, nearest
from passes.ir import scope as scoping
from passes.ir.model import Model
from passes.ir.names import Names
from passes.ir.protos import copied, replace_all, set_metadata
from passes.ir.versions import SCAN_8
from passes.loops.form import Carried, Collected, Kind, LoopForm, Scanned
from passes.session import Source, loaded
from passes.streaming.chunks import Judge, Streamed
from passes.streaming.plan import KEY, Plan, Port, State
from passes.streaming.states import given_state
from passes.types import signature
from passes.types.value_types import dims_of, elem_type_of, tensor_type
from passes.verify.executor import Array
from passes.writing.author import Author
from passes.writing.spelling import count_to, joined, size_of_axis, squeeze, unsqueeze

#: The opset that a Range, and with it a number of steps, needs.
_RANGE = 11


@dataclass(frozen=True)
class _Step:
    """The model of one step, and what is to become of its inputs and outputs.

    `squeezed`: no frame has an axis of time, so one is made before the others. `frames` are the
    axes of time of inputs and outputs with frames, by name; the other inputs are the same in every
    step.
    """

    model: Model
    plan: Plan
    squeezed: bool
    trips: str = ""

    @property
    def frames(self) -> dict[str, int]:
        ports = (*self.plan.inputs, *self.plan.outputs)
        return {port.name: port.time_axis for port in ports}


def closed(
    model: Source,
    axis: str,
    states: Mapping[str, str] | None,
    same: Sequence[str],
    trips: str,
    initial: dict[str, Any],
    judge: Judge,
) -> Streamed:
    """A Scan over time of a model of one step.

    The arguments are the options of the command `close`. Raises what its `run` raises.
    """
    step = _step(loaded(model)[0], axis, states, same, trips, initial)
    proto = _closed(step)
    whole = Model(proto, step.model.path)
    check_outcome(whole)
    found = judge.compare(
        whole, step.model.proto, step.plan, single=True, squeezed=step.squeezed, trips=trips
    )
    return Streamed(proto, step.plan, found, step.model.base_dir)


def _step(
    model: Model,
    axis: str,
    states: Mapping[str, str] | None,
    same: Sequence[str],
    trips: str,
    initial: dict[str, Any],
) -> _Step:
    graph = model.proto.graph
    inputs = {value.name: value.type for value in signature.inputs(graph)}
    outputs = {value.name: value.type for value in graph.output}
    states = states or _described(model.proto)
    for given, known in ((states, inputs), (states.values(), outputs), (same, inputs)):
        _refuse_unknown(given, known, "input" if known is inputs else "output")
    _refuse_unknown(initial, dict.fromkeys(states), "state")
    if not states:
        raise WrongUsage("name a state: --state IN=OUT")
    if model.opset() < (least := _RANGE if trips else SCAN_8 + 1):
        raise WrongUsage(f"the loop needs opset {least} or newer: `passes upgrade` comes first")
    found = []
    for name, end in states.items():
        one, other = dims_of(inputs[name]) or (), dims_of(outputs[end]) or ()
        if elem_type_of(inputs[name]) != elem_type_of(outputs[end]) or len(one) != len(other):
            both = [signature.describe_type(kind) for kind in (inputs[name], outputs[end])]
            raise WrongUsage(f"the state {name!r} is {both[0]}, and {end!r} is {both[1]}")
        state = given_state(inputs[name], name, end)
        if name in initial:
            state = _with_value(state, initial[name], inputs[name])
        found.append(state)
    others = {name: kind for name, kind in inputs.items() if name not in {*states, *same}}
    timed = {name: dims_of(kind) or () for name, kind in others.items()}
    timed = {name: dims for name, dims in timed.items() if axis in dims}
    squeezed = not timed
    scanned = [Port(name, dims.index(axis)) for name, dims in timed.items()]
    if squeezed and not trips:
        scanned = [Port(name, 0) for name in others]
    if trips in scoping.all_names([graph]):
        raise WrongUsage(f"--trips names a new input, and there is a value {trips!r} already")
    if bool(scanned) == bool(trips):
        what = f"{scanned[0].name!r} has frames" if trips else "no input has frames"
        raise WrongUsage(f"{what}, and --trips is {'given' if trips else 'not given'}")
    collected = []
    for name, kind in outputs.items():
        if name not in states.values():
            dims = dims_of(kind) or ()
            if not squeezed and axis not in dims:
                raise WrongUsage(f"the output {name!r} has no dim {axis!r}")
            collected.append(Port(name, 0 if squeezed else dims.index(axis)))
    return _Step(model, Plan(axis, scanned, collected, found), squeezed, trips)


def _refuse_unknown(names: Iterable[str], known: Mapping[str, object], kind: str) -> None:
    for name in names:
        if name not in known:
            raise WrongUsage(f"the model has no {kind} {name!r}; {nearest(name, known)}")


def _described(proto: ModelProto) -> dict[str, str]:
    """The states that `stream` described in a model."""
    try:
        found = [json.loads(one.value) for one in proto.metadata_props if one.key == KEY]
        return {state["input"]: state["output"] for one in found for state in one["states"]}
    except (ValueError, TypeError, KeyError) as error:
        raise BadModel(f"{KEY!r} of its metadata describes no states") from error


def _with_value(state: State, value: Any, kind: TypeProto) -> State:
    """A state that starts with a number or an array. Raises WrongUsage where it does not fit."""
    try:
        array = as_array(held(value), kind)
        pairs = list(zip_longest(reversed(array.shape), reversed(state.shape), fillvalue=1))
        fixed = all(one in (1, size) for one, size in pairs if isinstance(size, int))
        if array.ndim > len(state.shape) or not fixed:
            given = ",".join(map(str, array.shape))
            raise ValueError(
                f"is {signature.describe_type(kind)}, a value of shape [{given}] is given"
            )
    except ValueError as error:
        raise WrongUsage(f"the state {state.input!r} {error}") from error
    plain = array.size == 1 and array.ndim == 0
    return replace(state, fill=array.item()) if plain else replace(state, value=array.tolist())


def _closed(step: _Step) -> ModelProto:
    """The model with the loop."""
    proto = copied(step.model.proto)
    graph, plan = proto.graph, step.plan
    names = Names(scoping.all_names([graph]))
    author = Author(step.model.opset(), names, "")
    form = _loop(step, names, author)
    starts = [_start(author, state, step) for state in plan.states]
    carried = [replace(one, initial=start) for one, start in zip(form.carried, starts, strict=True)]
    form = replace(form, carried=tuple(carried))
    author.adopt([form.to_node()])
    replace_all(graph.node, author.nodes)
    graph.initializer.extend(author.constants)
    replace_all(graph.value_info, [])
    started = {state.input for state in plan.states if not state.is_given}
    kept = [value for value in graph.input if value.name not in started]
    if step.squeezed:
        for value in (*kept, *graph.output):
            if value.name in step.frames:
                dims = (plan.axis, *(dims_of(value.type) or ()))
                value.type.CopyFrom(tensor_type(elem_type_of(value.type), dims))
    if step.trips:
        kept.append(helper.make_tensor_value_info(step.trips, TensorProto.INT64, []))
    replace_all(graph.input, kept)
    set_metadata(proto, KEY, None)
    return proto


def _loop(step: _Step, names: Names, author: Author) -> LoopForm:
    """The loop, whose states start with inputs of their names; its body has names of its own."""
    graph, plan = step.model.proto.graph, step.plan
    kinds = {value.name: value.type for value in (*graph.input, *graph.output)}
    states = {state.input: state.output for state in plan.states}
    inner = Author(step.model.opset(), names, "")
    bare = GraphProto(name="step", node=graph.node)
    read = [*states, *(port.name for port in plan.inputs)]
    bare.input.extend(ValueInfoProto(name=name) for name in read)
    new = scoping.rename_all(bare, names.fresh)
    fed = {name: new[name] for name in read}
    for port in plan.inputs if not step.squeezed else ():
        fed[port.name] = names.fresh(f"{port.name}_t")
        unsqueeze(inner, fed[port.name], port.time_axis, [new[port.name]])
    inner.adopt(bare.node)
    made = {}
    for name in (*states.values(), *(port.name for port in plan.outputs)):
        cut = name in step.frames and not step.squeezed
        # what a body returns needs a node of its own
        value = new.get(name, name)
        made[name] = (
            squeeze(inner, value, step.frames[name]) if cut else inner.op("Identity", value)
        )
    inputs = [_slice(fed[name], kinds[name], name, step) for name in read]
    scanned = [Scanned(port.name, fed[port.name], port.time_axis) for port in plan.inputs]
    if step.trips:
        scanned = [Scanned(count_to(author, step.trips), names.fresh("step"))]
        inputs.append(helper.make_tensor_value_info(scanned[0].body_input, TensorProto.INT64, []))
    outputs = [_slice(value, kinds[name], name, step) for name, value in made.items()]
    return LoopForm(
        Kind.SCAN,
        inner.graph("step", inputs, outputs),
        tuple(Carried(name, new[name], made[end], end) for name, end in states.items()),
        tuple(scanned),
        tuple(Collected(made[port.name], port.name, port.time_axis) for port in plan.outputs),
    )


def _slice(new: str, kind: TypeProto, name: str, step: _Step) -> ValueInfoProto:
    """The type of a value of one step in the body, by its new and its old name."""
    dims = [*(dims_of(kind) or ())]
    if name in step.frames and not step.squeezed:
        del dims[step.frames[name]]
    return ValueInfoProto(name=new, type=tensor_type(elem_type_of(kind), tuple(dims)))


def _start(author: Author, state: State, step: _Step) -> str:
    """The value that a state starts with: an input, or what is written."""
    if state.is_given:
        return state.input
    kinds = {value.name: value.type for value in step.model.proto.graph.input}
    value: Array = np.array(
        state.fill if state.value is None else state.value, np.dtype(state.type)
    )
    static = [size for size in state.shape if isinstance(size, int)]
    if len(static) == len(state.shape):
        return author.value(np.array(np.broadcast_to(value, static)), state.input)
    places = [
        (dim, name, axis + (step.squeezed and name in step.frames))
        for name, kind in kinds.items()
        for axis, dim in enumerate(dims_of(kind) or ())
        if name not in {one.input for one in step.plan.states if not one.is_given}
    ]
    sizes = []
    for size in state.shape:
        found = [place[1:] for place in places if place[0] == size]
        if isinstance(size, int):
            sizes.append(author.ints(size))
        elif found:
            sizes.append(size_of_axis(author, *found[0]))
        else:
            raise WrongUsage(f"the dim {size!r} of the state {state.input!r} is that of no input")
    return author.op("Expand", author.value(value), joined(author, sizes))
