"""`close`: a loop over time around a model that runs one step."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from onnx import GraphProto, ModelProto, TensorProto, TypeProto, ValueInfoProto, helper

from passes.check import check_outcome
from passes.errors import WrongUsage, nearest
from passes.ir import scope as scoping
from passes.ir.model import Model
from passes.ir.names import Names
from passes.ir.protos import copied, replace_all
from passes.ir.versions import SCAN_8
from passes.loops.form import Carried, Collected, Condition, Kind, LoopForm, Scanned
from passes.session import Source, loaded
from passes.streaming.chunks import Judge, Streamed
from passes.streaming.plan import KEY, Plan, Port, State
from passes.streaming.states import given_state
from passes.types.value_types import Dim, dims_of, elem_type_of, tensor_type
from passes.values import as_array, held
from passes.verify import signature
from passes.verify.executor import Array
from passes.writing.author import Author
from passes.writing.spelling import joined, size_of_axis, squeeze, unsqueeze


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


def close(
    model: Source,
    axis: str,
    *,
    states: Mapping[str, str] | None = None,
    same: Sequence[str] = (),
    trips: str = "",
    initial: Mapping[str, Any] | None = None,
    judge: Judge | None = None,
) -> Streamed:
    """Return a Scan over time of a model of one step.

    `states` are the outputs that return states, by the inputs that hold them; by default those that
    `stream` described in the model. `axis` is the name of the dim of time: that of inputs which
    have it, or else of a new first axis of the inputs, but for the states and those that are the
    `same` in every step. `trips`: no input has frames, and a new input of this name is the number
    of steps of a Loop. `initial` are numbers, or arrays, that states start with: these are no
    inputs any more.

    Raises:
        BadModel: the input is no valid model.
        NotSame, NotCompared: the outcome was not shown to be right.
        WrongUsage: there is no input or output of a name, or nothing that the loop could count.
    """
    step = _step(loaded(model)[0], axis, states, same, trips, dict(initial or {}))
    proto = _closed(step)
    whole = Model(proto, step.model.path)
    check_outcome(whole)
    found = (judge or Judge()).compare(
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
    if model.opset() <= SCAN_8:
        raise WrongUsage("a Scan over time needs opset 9 or newer: `passes upgrade` comes first")
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
    if bool(scanned) == bool(trips):
        what = f"{scanned[0].name!r} has frames" if trips else "no input has frames"
        raise WrongUsage(f"{what}: --trips is for a model without, and needed there")
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
    found = [json.loads(one.value) for one in proto.metadata_props if one.key == KEY]
    return {state["input"]: state["output"] for one in found for state in one["states"]}


def _with_value(state: State, value: Any, kind: TypeProto) -> State:
    """A state that starts with a number or an array. Raises WrongUsage where it does not fit."""
    try:
        array = as_array(held(value), kind)
        fixed = [size if isinstance(size, int) else 1 for size in state.shape]
        np.broadcast_to(array, np.broadcast_shapes(array.shape, tuple(fixed)))
    except ValueError as error:
        raise WrongUsage(f"the state {state.input!r} {error}") from error
    return replace(state, value=array.tolist())


def _closed(step: _Step) -> ModelProto:
    """The model with the loop."""
    proto = copied(step.model.proto)
    graph, plan = proto.graph, step.plan
    names = Names(scoping.all_names([graph]))
    author = Author(step.model.opset(), names, "")
    form = _loop(step, names)
    starts = [_start(author, state, step) for state in plan.states]
    carried = [replace(one, initial=start) for one, start in zip(form.carried, starts, strict=True)]
    form = replace(form, carried=tuple(carried))
    author.adopt([form.to_node()])
    replace_all(graph.node, author.nodes)
    graph.initializer.extend(author.constants)
    replace_all(graph.value_info, [])
    kept = [value for value in graph.input if value.name not in _started(plan)]
    if step.squeezed:
        for value in (*kept, *graph.output):
            if value.name in step.frames:
                dims = (plan.axis, *(dims_of(value.type) or ()))
                value.type.CopyFrom(tensor_type(elem_type_of(value.type), dims))
    if step.trips:
        kept.append(helper.make_tensor_value_info(step.trips, TensorProto.INT64, []))
    replace_all(graph.input, kept)
    replace_all(proto.metadata_props, [one for one in proto.metadata_props if one.key != KEY])
    return proto


def _started(plan: Plan) -> set[str]:
    """The states that are no inputs."""
    return {state.input for state in plan.states if state.value is not None}


def _loop(step: _Step, names: Names) -> LoopForm:
    """The loop, whose states start with inputs of their names; its body has names of its own."""
    graph, plan = step.model.proto.graph, step.plan
    inputs = {value.name: value.type for value in graph.input}
    outputs = {value.name: value.type for value in graph.output}
    states = {state.input: state.output for state in plan.states}
    inner = Author(step.model.opset(), names, "")
    bare = GraphProto(name="step", node=graph.node)
    bare.input.extend(ValueInfoProto(name=name) for name in (*states, *_names(plan.inputs)))
    new = scoping.rename_all(bare, names.fresh)
    fed: dict[str, str] = {}
    for port in plan.inputs:
        fed[port.name] = new[port.name]
        if not step.squeezed:
            fed[port.name] = names.fresh(f"{port.name}_t")
            unsqueeze(inner, fed[port.name], port.time_axis, [new[port.name]])
    inner.adopt(bare.node)
    results: dict[str, str] = {}
    for name in (*states.values(), *_names(plan.outputs)):
        if name in step.frames and not step.squeezed:
            results[name] = squeeze(inner, new.get(name, name), step.frames[name])
        else:  # what a body returns needs a node of its own
            results[name] = inner.op("Identity", new.get(name, name))
    head: dict[str, str] = {}
    if step.trips:
        head = {one: names.fresh(one) for one in ("iteration", "go_on", "goes_on")}
        inner.op("Identity", head["go_on"], outputs=[head["goes_on"]])
    body_inputs = [
        *(helper.make_tensor_value_info(head[one], kind, []) for one, kind in _HEAD if head),
        *(_value(new[name], inputs[name]) for name in states),
        *(_slice(fed[port.name], inputs[port.name], port, step) for port in plan.inputs),
    ]
    body_outputs = [
        *([helper.make_tensor_value_info(head["goes_on"], TensorProto.BOOL, [])] if head else []),
        *(_value(results[name], outputs[name]) for name in states.values()),
        *(_slice(results[port.name], outputs[port.name], port, step) for port in plan.outputs),
    ]
    body = inner.graph("step", body_inputs, body_outputs)
    return LoopForm(
        Kind.LOOP if step.trips else Kind.SCAN,
        body,
        tuple(Carried(name, new[name], results[end], end) for name, end in states.items()),
        tuple(Scanned(port.name, fed[port.name], port.time_axis) for port in plan.inputs),
        tuple(Collected(results[p.name], p.name, p.time_axis) for p in plan.outputs),
        trip_count=step.trips,
        condition=Condition("", head["go_on"], head["goes_on"]) if head else None,
        iteration=head.get("iteration", ""),
    )


#: The first inputs of the body of a Loop.
_HEAD = (("iteration", TensorProto.INT64), ("go_on", TensorProto.BOOL))


def _names(ports: Iterable[Port]) -> list[str]:
    return [port.name for port in ports]


def _value(name: str, kind: TypeProto) -> ValueInfoProto:
    return ValueInfoProto(name=name, type=kind)


def _slice(name: str, kind: TypeProto, port: Port, step: _Step) -> ValueInfoProto:
    """The type of a value of one step in the body."""
    dims: list[Dim] = [*(dims_of(kind) or ())]
    if not step.squeezed:
        del dims[port.time_axis]
    return _value(name, tensor_type(elem_type_of(kind), tuple(dims)))


def _start(author: Author, state: State, step: _Step) -> str:
    """The value that a state starts with: an input, or what is written."""
    if state.value is None:
        return state.input
    kinds = {value.name: value.type for value in step.model.proto.graph.input}
    value: Array = np.array(state.value, np.dtype(state.type))
    static = [size for size in state.shape if isinstance(size, int)]
    if len(static) == len(state.shape):
        return author.value(np.array(np.broadcast_to(value, static)), state.input)
    sizes = []
    for size in state.shape:
        if isinstance(size, int):
            sizes.append(author.ints(size))
            continue
        readers = [
            (name, (dims_of(kinds[name]) or ()).index(size))
            for name in kinds
            if name not in _started(step.plan) and size in (dims_of(kinds[name]) or ())
        ]
        if not readers:
            raise WrongUsage(f"the dim {size!r} of the state {state.input!r} is that of no input")
        name, axis = readers[0]
        moved = step.squeezed and name in step.frames
        sizes.append(size_of_axis(author, name, axis + moved))
    return author.op("Expand", author.value(value), joined(author, sizes))
