"""`stream`: a model that runs a sequence chunk by chunk."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np
from onnx import ModelProto, NodeProto, TensorProto, TensorShapeProto, ValueInfoProto, helper

from passes.chain import Chain
from passes.check import check_outcome
from passes.choices import Assumption, RuleOptions, Verifying
from passes.engine.finish import drop_unread
from passes.engine.schedules import SCHEDULES
from passes.errors import WrongUsage, nearest
from passes.ir import scope as scoping
from passes.ir.attributes import attribute
from passes.ir.live import live
from passes.ir.model import Model
from passes.ir.names import Names
from passes.ir.operators import op_of
from passes.ir.places import path_of
from passes.ir.protos import copied, replace_all, set_metadata
from passes.ir.versions import FREE_INITIALIZERS, SCAN_8
from passes.loops.form import LoopForm
from passes.operators.cells import RECURRENT
from passes.session import Session, Source, loaded
from passes.streaming import frame_by_frame, frames_counted, with_states
from passes.streaming.chunks import Judge, Streamed
from passes.streaming.observed import observe
from passes.streaming.plan import (
    KEY,
    CannotStream,
    Count,
    Frames,
    Last,
    Plan,
    Port,
    ReadsLater,
    Reason,
    State,
)
from passes.streaming.states import inputs_of, states_of
from passes.streaming.streamer import Streamer, WantedStates
from passes.types.value_types import dims_of

assert frame_by_frame  # it registers the rules of operators, as with_states does
assert frames_counted
_Dim = TensorShapeProto.Dimension


def streamed(
    model: Source,
    axis: str,
    loop: str,
    states: Mapping[str, str],
    wanted: WantedStates,
    judge: Judge,
) -> Streamed:
    """A model that runs a chunk of any number of frames, whose states are inputs and outputs.

    The arguments are the options of the command `stream`. Raises what its `run` raises.
    """
    whole = _with_scans(model, judge, each=wanted.each)
    whole, time = _with_time(whole, _axes_of(whole, loop) if loop else axis, alone=bool(loop))
    flows = _flows(whole, time)
    seen, streamer, later = observe(whole, time), None, 0
    while streamer is None:
        inputs = {name: replace(flow, later=later) for name, flow in flows.items()}
        streamer = Streamer(whole, time, inputs, seen, wanted, later)
        try:
            streamer.write()
        except ReadsLater as more:
            streamer, later = None, more.frames
    outputs, chunk = _ports(whole, streamer), wanted.chunk
    found, replaced = states_of(whole, streamer, states)
    own = {state.output for state in found}
    ends = scoping.output_names(whole.proto.graph)
    last = [one for one in ends if isinstance(streamer.flows.get(one), Last) and one not in own]
    if not found and not outputs:
        raise CannotStream(Reason.WHOLE, "no output depends on time")
    multiple = int(np.lcm.reduce([port.every for port in outputs] or [1]))
    if chunk % multiple:
        raise WrongUsage(f"a chunk of {chunk} frames is no multiple of {multiple}")
    plan = Plan(
        time,
        [Port(name, flow.axis) for name, flow in flows.items()],
        outputs,
        found,
        last,
        multiple,
        chunk,
        look_ahead=later,
        frames_left=streamer.left,
    )
    proto, first = _proto(whole, streamer, plan, replaced), _initial(whole, streamer, plan)
    if first is not None:
        check_outcome(Model(first, whole.path))
        _without_unread(proto, set(scoping.input_names(first.graph)) - set(flows))
    if chunk:
        proto = _fixed(proto, plan)
    check_outcome(Model(proto, whole.path))
    compared = judge.compare(whole, proto, plan, initial=first)
    return Streamed(proto, plan, compared, whole.base_dir, first)


def _with_scans(source: Source, judge: Judge, *, each: bool) -> Model:
    """The model with Scans in place of Loops and of Scan-8, where that is proven, and verified, and
    without Ifs that ask for a frame; and with Scans in place of recurrent operators of two states
    if `each` of these is wanted, of which they return the last one alone."""
    model, _ = loaded(source)
    kinds = {op_of(node) for node in model.proto.graph.node}
    control = not kinds.isdisjoint(("If", "Loop"))
    names = ["raise", "simplify"] if control or model.opset() <= SCAN_8 else []
    if each and any(len(RECURRENT[op].states) > 1 for op in kinds & RECURRENT.keys()):
        names.insert(0, "expand")
    if not names:
        return model
    assume = (Assumption.non_empty,)  # a chunk has a frame
    verifying = Verifying(judge.executor, budget=judge.budget, seed=judge.seed, assume=assume)
    # what a loop carries unchanged is no state
    commands = [
        Session(SCHEDULES[name], options=RuleOptions(assume=assume), verifying=verifying)
        for name in names
    ]
    return Model(Chain(commands).run(source).model, model.path)


def _axes_of(model: Model, path: str) -> str:
    """The axes of inputs along which a loop runs, as `x=1,y=0`.

    Raises:
        WrongUsage: there is no such loop, or it runs along the dim of no input.
    """
    graph, scope = model.proto.graph, next(scoping.scopes(model.proto))
    loops = {
        path_of(scope, node, index): node
        for index, node in enumerate(graph.node)
        if op_of(node) in ("Scan", *RECURRENT)
    }
    if path not in loops:
        raise WrongUsage(
            f"the model has no Scan or recurrent operator {path!r}; {nearest(path, loops)}"
        )
    node = loops[path]
    read = [(node.input[0], attribute(node, "layout", 0))]
    if op_of(node) == "Scan":
        form = LoopForm.from_node(node, model.opset())
        read = [(scanned.tensor, scanned.axis) for scanned in form.scanned]
    known = [(dims_of(model.types.of(scope, name)) or (), axis) for name, axis in read]
    sizes = {dims[axis] for dims, axis in known if -len(dims) <= axis < len(dims)}
    times = {size for size in sizes if isinstance(size, str)}
    sources = inputs_of(model, [name for name, _ in read])
    places = [
        f"{value.name}={axis}"
        for value in graph.input
        for axis, dim in enumerate(dims_of(value.type) or ())
        if value.name in sources and dim in times
    ]
    if not places:
        raise WrongUsage(f"{path} runs along the dim of no input (--axis names one)")
    return ",".join(places)


def _with_time(model: Model, axis: str, *, alone: bool) -> tuple[Model, str]:
    """The model with a dim of time that has a name, which is returned, too; without what no output
    depends on, and with every output of its recurrent operators. `alone`: other inputs have another
    time."""
    proto = copied(model.proto)
    graph = proto.graph
    named = {value.name: value.type.tensor_type.shape.dim for value in graph.input}
    symbols = {dim.dim_param for dims in named.values() for dim in dims if dim.dim_param}
    if "=" not in axis and axis not in symbols:
        raise WrongUsage(f"no input has a dim {axis!r}; {nearest(axis, sorted(symbols))}")
    dims = _named_axes(axis, named) if "=" in axis else []
    kept = (dim.dim_param for dim in dims if dim.dim_param)
    fresh = Names(symbols).fresh("time")
    time = next(kept, fresh) if dims else axis
    every = [dim.dim_param for known in named.values() for dim in known]
    if alone and every.count(time) > sum(dim.dim_param == time for dim in dims):
        time = fresh
    sizes = {dim.dim_value for dim in dims} - {0}
    for dim in dims:
        dim.dim_param = time
    if sizes:  # what is declared of other values may be the number of frames
        replace_all(graph.value_info, [])
    for value in graph.output:
        for dim in value.type.tensor_type.shape.dim:
            if dim.dim_value in sizes:
                dim.Clear()
    ends = scoping.output_names(graph)
    replace_all(graph.node, live(graph.node, ends, scoping.free_names)[0])
    names = Names(scoping.all_names([graph]))
    for node in graph.node:
        if op_of(node) in RECURRENT:
            replace_all(node.output, with_states.with_all_outputs(node, names.fresh))
    return Model(proto, model.path), time


def _named_axes(text: str, named: Mapping[str, Sequence[_Dim]]) -> list[_Dim]:
    """The dims of inputs that `x=1,y=0` names. Raises WrongUsage where there is none."""
    found = []
    for one in text.split(","):
        name, _, place = one.rpartition("=")
        if name not in named:
            raise WrongUsage(f"the model has no input {name!r}; {nearest(name, named)}")
        if not place.isdecimal() or int(place) >= len(named[name]):
            axes = f"has {len(named[name])} axes, none of them is {place!r}"
            raise WrongUsage(f"the input {name!r} {axes}")
        found.append(named[name][int(place)])
    return found


def _flows(whole: Model, time: str) -> dict[str, Frames]:
    """How inputs have time. Raises CannotStream where one has it twice."""
    found = {}
    for value in whole.proto.graph.input:
        dims = dims_of(value.type) or ()
        if dims.count(time) > 1:
            raise CannotStream(Reason.WHOLE, f"the input {value.name!r} has time on two axes")
        if time in dims:
            found[value.name] = Frames(dims.index(time))
    return found


def _ports(whole: Model, streamer: Streamer) -> list[Port]:
    """The outputs with frames. Raises CannotStream where the whole has others than chunks."""
    ports = []
    for name in scoping.output_names(whole.proto.graph):
        flow = streamer.flows.get(name)
        if isinstance(flow, Count) or name in streamer.counted:
            sentence = f"the output {name!r} depends on the number of frames"
            raise CannotStream(Reason.NUMBER, sentence)
        if isinstance(flow, Frames):
            if (flow.past, flow.ahead) != (0, 0):
                padded = f"{flow.past} before the first frame, {flow.ahead} after the last"
                sentence = f"the output {name!r} has frames of padding: {padded}"
                raise CannotStream(Reason.AHEAD, sentence)
            ports.append(Port(name, flow.axis, flow.every))
    return ports


def _proto(whole: Model, streamer: Streamer, plan: Plan, replaced: Mapping[str, str]) -> ModelProto:
    """The model that runs a chunk."""
    proto = copied(whole.proto)
    graph, nodes = proto.graph, streamer.author.nodes
    for node in nodes:
        scoping.rename_free(node, replaced)
    inputs, outputs = scoping.input_names(graph), scoping.output_names(graph)
    if plan.frames_left:
        graph.input.append(helper.make_tensor_value_info(plan.frames_left, TensorProto.INT64, []))
    each = [state for state in plan.states if state.each]
    graph.output.extend(_declared(state.each, state, ("",)) for state in each)
    added = [state for state in plan.states if state.output not in outputs]
    graph.input.extend(
        _declared(state.input, state) for state in plan.states if state.input not in inputs
    )
    graph.output.extend(_declared(state.output, state) for state in added)
    kept = live(nodes, scoping.output_names(graph), scoping.free_names)[0]
    replace_all(graph.node, kept)
    graph.initializer.extend(streamer.author.constants)
    axes = {port.name: port for port in plan.outputs}
    for value in graph.output:
        dims = value.type.tensor_type.shape.dim
        if value.name in axes and len(dims) > axes[value.name].time_axis:
            dim = dims[axes[value.name].time_axis]
            if axes[value.name].every == 1 and not plan.look_ahead:
                dim.dim_param = plan.axis
            elif dim.dim_value or plan.look_ahead:
                dim.Clear()
    # what is declared of values may be the number of frames, which padding makes another one
    made = {name for node in kept for name in node.output}
    replace_all(graph.value_info, [value for value in graph.value_info if value.name not in made])
    _drop_others(proto, kept)
    set_metadata(proto, KEY, plan.to_json())
    return proto


def _initial(whole: Model, streamer: Streamer, plan: Plan) -> ModelProto | None:
    """The model that computes what states start with, if one does; each has its state's name."""
    computed = {state.input: state for state in plan.states if state.computed}
    if not computed:
        return None
    sources = {slot.input: slot.source for slot in streamer.slots}
    proto = copied(whole.proto)
    graph = proto.graph
    ends = [helper.make_node("Identity", [sources[name]], [name]) for name in computed]
    kept = [*live(graph.node, [sources[name] for name in computed], scoping.free_names)[0], *ends]
    replace_all(graph.node, kept)
    replace_all(graph.output, [_declared(name, state) for name, state in computed.items()])
    made = {name for node in kept for name in node.output}
    replace_all(graph.value_info, [value for value in graph.value_info if value.name in made])
    _drop_others(proto, kept)
    _without_unread(proto, set(scoping.input_names(graph)))
    return proto


def _drop_others(proto: ModelProto, kept: Iterable[NodeProto]) -> None:
    """Drop the initializers that none of these nodes reads, and an older description of states."""
    unread = scoping.initializer_names(proto.graph) - scoping.all_reads(kept)
    drop_unread(proto.graph, unread, proto.ir_version < FREE_INITIALIZERS)
    set_metadata(proto, KEY, None)


def _without_unread(proto: ModelProto, names: Collection[str]) -> None:
    """Remove those of the inputs with these names that nothing reads."""
    graph = proto.graph
    read = scoping.all_reads(graph.node).union(scoping.output_names(graph))
    kept = [value for value in graph.input if value.name not in names or value.name in read]
    replace_all(graph.input, kept)


def _fixed(proto: ModelProto, plan: Plan) -> ModelProto:
    """The model of a chunk whose number of frames is fixed, without loops of one iteration."""
    ports = {port.name: port for port in (*plan.inputs, *plan.outputs)}
    for value in (*proto.graph.input, *proto.graph.output):
        dims = value.type.tensor_type.shape.dim
        if (port := ports.get(value.name)) and len(dims) > port.time_axis:
            later = plan.look_ahead if port in plan.inputs else 0
            dims[port.time_axis].dim_value = plan.chunk // port.every + later
    # what it does is compared with the whole afterwards
    options = RuleOptions(assume=tuple(Assumption))
    return Session(SCHEDULES["simplify"], options=options, verifying=None).run(proto).model


def _declared(name: str, state: State, before: Sequence[str] = ()) -> ValueInfoProto:
    """The type of a state, as an input or an output, with axes before those of its own."""
    dims = [None if dim in ("", "?") else dim for dim in (*before, *state.shape)]
    return helper.make_tensor_value_info(name, state.elem_type, dims)
