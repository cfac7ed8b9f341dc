"""Follows the axis of time through a main graph, and writes its nodes for a chunk."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from onnx import NodeProto, helper

from passes.analysis.integers.computed import Computed
from passes.engine.site import Site
from passes.ir import scope as scoping
from passes.ir.attributes import numbers
from passes.ir.model import Model
from passes.ir.names import Names
from passes.ir.operators import Operation, Registry, op_of
from passes.ir.places import path_of
from passes.ir.protos import changed
from passes.operators.cells import RECURRENT
from passes.operators.table import traits_of, where
from passes.operators.traits import Values
from passes.streaming.observed import Observed
from passes.streaming.plan import (
    CannotStream,
    Count,
    Flow,
    Frames,
    Last,
    ReadsLater,
    Reason,
)
from passes.verify.executor import Array
from passes.writing import spelling
from passes.writing.author import Author
from passes.writing.guards import Guard, guard_of

#: Writes a node that reads frames, and returns the flows of its outputs, in order.
Rule = Callable[[NodeProto, "Streamer"], Sequence[Flow]]
RULES: Registry[Rule] = Registry()
streamed = RULES.enter
#: The rule of operators whose traits are by element.
BY_ELEMENT = "by element"
#: The rule of operators that read no frames, but perhaps their number.
BY_COUNT = "by count"


def rule_of(node: Operation) -> Rule | None:
    """The rule of a node that reads frames; None if there is none."""
    return RULES.get(op_of(node)) or (RULES[BY_ELEMENT] if traits_of(node).by_element else None)


@dataclass(frozen=True)
class Slot:
    """A state of a node: the names of its input and its output, and what it starts with.

    The initial value is `source`, or a tensor of `fill` in its shape, with `frames` along `axis`.
    `each` names the value after each frame, if it is wanted.
    """

    input: str
    output: str
    source: str
    path: str
    fill: float | None = None
    frames: int | None = None
    axis: int = 0
    each: str = ""


#: The names of the states that are added, as inputs and as outputs.
NAMING = ("{}", "new_{}")


@dataclass(frozen=True)
class WantedStates:
    """What is wanted of a model: `naming` are the names of new states, as input and as output, with
    `{}` for that of the value. `chunk`: the number of frames of all chunks, if it is fixed. `each`:
    states after each frame become outputs. `initial`: a model of its own may compute what states
    start with."""

    naming: tuple[str, str] = NAMING
    chunk: int = 0
    each: bool = False
    initial: bool = False


class Streamer:
    """Writes the main graph of a model, of whose inputs these have frames, for a chunk.

    `time` is the name of the dim of time, and `seen` what the model does at several sizes of it. A
    chunk has `later` frames of the next one.
    """

    def __init__(
        self,
        model: Model,
        time: str,
        inputs: Mapping[str, Frames],
        seen: Observed,
        wanted: WantedStates,
        later: int = 0,
    ) -> None:
        self.graph, self.seen, self.wanted = model.proto.graph, seen, wanted
        self._index = model.index(self.graph)
        self.later = later
        self.time = time
        self.flows: dict[str, Flow] = dict(inputs)
        self.slots: list[Slot] = []
        self.author = Author(model.opset(), Names(scoping.all_names([self.graph])), "")
        #: The input of the number of frames that are left, once a node reads it.
        self.left = ""
        self._longer: dict[str, str] = {}  # outputs, and what they are with later frames
        #: Values that depend on the number of frames otherwise than their flow tells: they were the
        #: same at all numbers that were tried, or are computed from such values.
        self.counted: set[str] = set()
        self.node, self.path, self.label = NodeProto(), "", ""
        self._scope = next(scoping.scopes(model.proto))
        self._constants = Computed(Site.of_graph(model, self._scope))
        outputs = scoping.output_names(self.graph)
        self._read = scoping.all_reads(self.graph.node) | set(outputs)

    def write(self) -> None:
        """Write every node.

        Raises:
            CannotStream: a node reads more than the frames of a chunk and those before it.
        """
        for index, node in enumerate(self.graph.node):
            self.node, self.path = node, path_of(self._scope, node, index)
            self.label = re.sub(r"\W+", "_", scoping.label(node, index)).strip("_")
            own = op_of(node) in _OWN
            closed = self._align(own)
            ends = {} if own or not self.later else self._lengthened()
            for name, flow in zip(self.node.output, self._written(), strict=False):
                if isinstance(flow, Frames) and name:
                    kept = self.seen.times(name) == [flow.axis] and self.seen.has(name, flow)
                    self.need(kept, Reason.WHOLE, "gives another number of frames")
                    flow = replace(flow, closed=flow.closed or closed)
                self.flows[name] = flow
            for name, longer in ends.items():
                self.author.op("Identity", self.cut(longer), outputs=[name])
                self.flows[name] = self.flows[longer]
                if isinstance(flow := self.flows[name], Frames):
                    self.flows[name] = replace(flow, later=0)

    def _align(self, own: bool) -> bool:
        """Let the node read as many later frames of all its inputs, none if it may read its `own`
        alone; returns whether it can have no more."""
        inputs = [self._longer.get(name, name) for name in self.node.input]
        read = [frames for name in inputs if (frames := self.frames(name))]
        own = own or any(isinstance(self.flows.get(name), Count) for name in inputs)
        later = 0 if own or not read else min(frames.later for frames in read)
        inputs = [self.cut(name, later) for name in inputs]
        if inputs != list(self.node.input):
            self.node = changed(self.node, {}, inputs=inputs)
        return own or any(frames.closed for frames in read)

    def _lengthened(self) -> dict[str, str]:
        """Give outputs of the model that the node computes other names, under which they may have
        later frames."""
        ends = scoping.output_names(self.graph)
        found = {name: self.author.fresh("longer") for name in self.node.output if name in ends}
        if found:
            outputs = [found.get(name, name) for name in self.node.output]
            self.node = changed(self.node, {}, outputs=outputs)
            self._longer |= found
        for name, longer in found.items():
            self.seen.call(name, longer)
        return found

    def _written(self) -> Sequence[Flow]:
        """Write the node; returns the flows of its outputs."""
        node = self.node
        read = [flow for name in scoping.free_names(node) if (flow := self.flows.get(name))]
        last = [flow for flow in read if isinstance(flow, Last)]
        draws = any(traits_of(one).draws for one in (node, *_inner(node)))
        self.need(not draws or op_of(node) == "Dropout", Reason.UNSUPPORTED, "draws random numbers")
        if last and len(last) == len(read):
            states = frozenset[str]().union(*(flow.states for flow in last))
            return self.keep(node, *[Last(states)] * len(node.output))
        both = "reads frames, or their number, and a value after the last frame"
        self.need(not last, Reason.WHOLE, both)
        guard = guard_of(node, self.producer, self.constant, self.seen.shape)
        if guard is not None and self.is_counted(guard.condition):
            return self._without(guard)
        if not any(isinstance(flow, Frames) for flow in read):
            return RULES[BY_COUNT](node, self)
        for name in scoping.free_names(node):
            self.need_known(name)
        rule = rule_of(node)
        if rule is None:
            raise self.refused(Reason.UNSUPPORTED, "reads frames, and has no rule for these")
        return rule(node, self)

    def _without(self, guard: Guard) -> Sequence[Flow]:
        """Write a value without a failure that depends on the number of frames in the whole, which
        no chunk knows."""
        (output,) = self.node.output
        if guard.value in self.counted:
            self.counted.add(output)
        made = helper.make_node("Identity", [guard.value], [output], self.node.name)
        return self.keep(made, self.flows.get(guard.value))

    def count(self, name: str) -> Flow:
        """The flow of what is computed of the number of frames alone."""
        if self.seen.is_steady(name):
            return None
        times = self.seen.times(name)
        filled = len(times) == 1 and self.seen.has(name, Frames(times[0]))
        if filled and op_of(self.node) in _FILLING:
            return Frames(times[0], closed=True)
        return Count.COUNT

    def refused(self, reason: Reason, sentence: str) -> CannotStream:
        """The refusal of the node that is being written."""
        return CannotStream(reason, f"{op_of(self.node)} {sentence}", self.path)

    def need(self, holds: bool, reason: Reason, sentence: str) -> None:
        """Raise CannotStream unless it holds."""
        if not holds:
            raise self.refused(reason, sentence)

    def is_counted(self, name: str) -> bool:
        """Return whether a value depends on the number of frames, and has none."""
        return isinstance(self.flows.get(name), Count) or name in self.counted

    def need_known(self, name: str) -> None:
        """See that a value is the same for every number of frames, or known for each. Raises
        CannotStream."""
        depends = f"reads {name!r}, which may depend on the number of frames"
        self.need(name not in self.counted, Reason.NUMBER, depends)

    # -- what is known ------------------------------------------------------------------------

    def frames(self, name: str) -> Frames | None:
        """The frames of a value; None where it has none."""
        flow = self.flows.get(name)
        return flow if isinstance(flow, Frames) else None

    def only(self) -> Frames:
        """The frames of the first input. Raises CannotStream where it is not the only one."""
        self.fixed(self.node.input[1:], "its parameter")
        found = self.frames(self.node.input[0])
        assert found is not None
        return found

    def rank(self, name: str) -> int:
        """The rank of a value."""
        return len(self.seen.shape(name))

    def constant(self, name: str) -> Array | None:
        """The value of a constant, or of what is computed from constants; None where it is none, or
        omitted."""
        varies = not name or name in self.counted or self.flows.get(name) is not None
        return None if varies else self._constants.value(self._scope, name)

    def numbers(self, position: int, name: str) -> list[int] | None:
        """Whole numbers of the node, an attribute in old opsets, later a constant input."""
        return numbers(self.node, position, name, self.constant)

    def producer(self, name: str) -> NodeProto | None:
        """The node of the original that computes a value."""
        return self._index.producers.get(name)

    def is_read(self, name: str) -> bool:
        """Return whether a node of the original reads a value, or the model returns it."""
        return name in self._read

    def fixed(self, names: Iterable[str], what: str) -> None:
        """See that values are the same for every chunk. Raises CannotStream."""
        for name in names:
            sentence = f"reads {name!r}, which depends on time, as {what}"
            self.need(not name or self.flows.get(name) is None, Reason.WHOLE, sentence)

    # -- what is written ----------------------------------------------------------------------

    def cut(self, name: str, later: int = 0) -> str:
        """A value with no more than so many later frames."""
        frames = self.frames(name)
        if frames is None or frames.later <= later:
            return name
        write, last = self.author, later - frames.later
        key = ("cut", name, later)
        new = write.once(key, lambda: spelling.part(write, name, frames.axis, 0, last))
        self.seen.call(name, new)
        self.flows[new] = replace(frames, later=later)
        return new

    def reading(self, frames: Frames, count: int) -> None:
        """See that a chunk has so many later frames.

        Raises:
            CannotStream: it can have no more of them.
            ReadsLater: it has fewer.
        """
        if count > frames.later:
            sentence = f"reads frames that come later, {count} ahead, of what has a state"
            self.need(not frames.closed, Reason.AHEAD, sentence)
            raise ReadsLater(self.later + (count - frames.later) * frames.every)

    def ended(self, name: str, frames: Frames, fill: float) -> str:
        """A value with `fill` in place of later frames that are none of the sequence."""
        if not frames.later:
            return name
        write = self.author
        self.left = self.left or write.fresh("frames_left")
        left = write.once(
            ("left", frames.every), lambda: write.op("Div", self.left, write.int(frames.every))
        )
        end = write.op("Add", left, write.int(frames.past + frames.ahead))
        if self.wanted.chunk:
            own = self.wanted.chunk // frames.every
            places = write.value(np.arange(frames.past + own + frames.later))
        else:
            places = spelling.arange(write, spelling.size_of_axis(write, name, frames.axis))
        axes = [*range(1, self.rank(name) - frames.axis)]
        within = spelling.unsqueeze_axes(write, write.op("Less", places, end), axes)
        dtype = helper.tensor_dtype_to_np_dtype(self.seen.elem_type(name))
        new = write.op("Where", within, name, write.value(np.full((), fill, dtype)))
        self.seen.call(name, new)
        self.flows[new] = frames
        return new

    def like(self, frames: Frames, name: str) -> Frames:
        """The same frames in an output of the node, on whichever axis it has them.

        Raises:
            CannotStream: it has no axis of time, or several.
        """
        times = self.seen.times(name)
        mixed = "reduces or sums over time" if not times else "combines frames with all others"
        self.need(len(times) == 1, Reason.WHOLE, mixed)
        return replace(frames, axis=times[0])

    def keep(self, node: NodeProto, *flows: Flow) -> Sequence[Flow]:
        """Write a node, as it is or changed, and return the flows of its outputs."""
        self.author.adopt([node])
        return flows

    def slot(
        self,
        name: str,
        source: str,
        output: str = "",
        *,
        fill: float | None = None,
        frames: int | None = None,
        axis: int = 0,
    ) -> Slot:
        """A state of the node, called `name`, or as the input of the model that it starts with.

        `output`: the value that holds it afterwards, if there is one.
        """
        if fill is None:
            self.need_known(source)
        if fill is None and source in scoping.input_names(self.graph):
            name = source
        given, after = (
            self.author.names.fresh(one.replace("{}", name)) for one in self.wanted.naming
        )
        after = output if output in scoping.output_names(self.graph) else after
        each = self.author.names.fresh(f"every_{name}") if self.wanted.each else ""
        slot = Slot(given, after, source, self.path, fill, frames, axis, each)
        self.slots.append(slot)
        return slot

    def windows(self, slot: Slot, joined: str, x: str, frames: Frames) -> None:
        """Write a state after each frame of `x`: so many frames as it has, of those `joined` to it,
        the first time from the second one on."""
        if not slot.each:
            return
        self.need(frames.every == 1, Reason.UNSUPPORTED, "reads fewer frames than the inputs have")
        write, count = self.author, slot.frames or 0
        own = self.cut(x)
        first = spelling.arange(write, spelling.size_of_axis(write, own, slot.axis))
        places = write.value(np.arange(1, 1 + count))
        at = write.op("Add", spelling.unsqueeze(write, first, 1), places)
        rows = write.op("Gather", joined, at, axis=slot.axis)
        others = [axis for axis in range(self.rank(slot.source) + 1) if axis != slot.axis]
        write.op("Transpose", rows, perm=[slot.axis, *others], outputs=[slot.each])

    def hand_on(self, slot: Slot, value: str) -> Last:
        """Write the output of a state, which is `value`, and return its flow."""
        if slot.output != value:
            self.author.op("Identity", value, outputs=[slot.output])
        return Last(frozenset({slot.input}))


#: What reads the frames of a chunk alone: states are computed from these, or numbers of them.
_OWN = (*RECURRENT, *where(lambda row: row.values is Values.SIZES), "Scan", "CumSum")
#: What fills frames that are all alike, if its shape depends on their number.
_FILLING = ("Expand", "ConstantOfShape", "Tile")


def _inner(node: NodeProto) -> Iterator[NodeProto]:
    """The nodes in the bodies of a node, at any depth."""
    for _, graph in scoping.subgraphs(node):
        for owner in scoping.graphs_below(graph):
            yield from owner.node
