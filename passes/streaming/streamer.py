"""Follows the axis of time through a main graph, and writes its nodes for a chunk."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from onnx import NodeProto

from passes.ir import scope as scoping
from passes.ir.attributes import numbers
from passes.ir.constants import Constants
from passes.ir.model import Model
from passes.ir.names import Names
from passes.ir.operator_traits import traits_of
from passes.ir.operators import op_of
from passes.ir.places import path_of
from passes.streaming.observed import Observed
from passes.streaming.plan import CannotStream, Count, Flow, Frames, Last, Reason
from passes.verify.executor import Array
from passes.writing.author import Author

#: Writes a node that reads frames, and returns the flows of its outputs, in order.
Rule = Callable[[NodeProto, "Streamer"], Sequence[Flow]]
RULES: dict[str, Rule] = {}
#: The rule of operators whose traits are by element.
BY_ELEMENT = "by element"


def streamed(*ops: str) -> Callable[[Rule], Rule]:
    """Register the rule of some operators."""

    def enter(rule: Rule) -> Rule:
        RULES.update(dict.fromkeys(ops, rule))
        return rule

    return enter


@dataclass(frozen=True)
class Slot:
    """A state of a node: the names of its input and its output, and what it starts with.

    That is the value `source` of the original, or, where `fill` is given, a tensor of that number,
    shaped as `source` is, but for `axis`, along which it has so many `frames`, if that is given.
    """

    input: str
    output: str
    source: str
    path: str
    fill: float | None = None
    frames: int | None = None
    axis: int = 0


class Streamer:
    """Writes the main graph of a model, of whose inputs these have frames, for a chunk.

    `time` is the name of the dim of time, and `seen` what the model does at several sizes of it.
    `naming` are the names of new states, as input and as output, with `{}` for that of the value.
    """

    def __init__(
        self,
        model: Model,
        time: str,
        inputs: Mapping[str, Frames],
        seen: Observed,
        naming: tuple[str, str],
    ) -> None:
        self.graph, self.seen, self._naming = model.proto.graph, seen, naming
        self.time = time
        self.flows: dict[str, Flow] = dict(inputs)
        self.slots: list[Slot] = []
        self.author = Author(model.opset(), Names(scoping.all_names([self.graph])), "")
        self.node, self.path, self.label = NodeProto(), "", ""
        self._scope = next(scoping.scopes(model.proto))
        self._constants = Constants(model, self._scope)
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
            for name, flow in zip(node.output, self._written(), strict=False):
                self.flows[name] = flow
                if isinstance(flow, Frames) and name:
                    kept = self.seen.times(name) == [flow.axis] and self.seen.has(name, flow)
                    self.need(kept, Reason.WHOLE, "gives another number of frames")

    def _written(self) -> Sequence[Flow]:
        """Write the node; returns the flows of its outputs."""
        node = self.node
        read = [flow for name in scoping.free_names(node) if (flow := self.flows.get(name))]
        last = [flow for flow in read if isinstance(flow, Last)]
        draws = any(traits_of(one).draws for one in (node, *_inner(node)))
        self.need(not draws or op_of(node) == "Dropout", Reason.UNSUPPORTED, "draws random numbers")
        if len(last) == len(read):
            states = frozenset[str]().union(*(flow.states for flow in last))
            return self.keep(node, *[Last(states) if last else None] * len(node.output))
        both = "reads frames, or their number, and a value after the last frame"
        self.need(not last, Reason.WHOLE, both)
        if not any(isinstance(flow, Frames) for flow in read):
            return self.keep(node, *map(self.count, node.output))
        rule = RULES.get(op_of(node)) or (RULES[BY_ELEMENT] if traits_of(node).by_element else None)
        if rule is None:
            raise self.refused(Reason.UNSUPPORTED, "reads frames, and has no rule for these")
        return rule(node, self)

    def count(self, name: str) -> Flow:
        """The flow of what is computed of the number of frames alone."""
        if self.seen.is_steady(name):
            return None
        times = self.seen.times(name)
        filled = len(times) == 1 and self.seen.has(name, Frames(times[0]))
        return Frames(times[0]) if filled and op_of(self.node) in _FILLING else Count.COUNT

    def refused(self, reason: Reason, sentence: str) -> CannotStream:
        """The refusal of the node that is being written."""
        return CannotStream(reason, f"{op_of(self.node)} {sentence}", self.path)

    def need(self, holds: bool, reason: Reason, sentence: str) -> None:
        """Raise CannotStream unless it holds."""
        if not holds:
            raise self.refused(reason, sentence)

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
        """The value of a constant; None where it is none, or omitted."""
        return self._constants.value(name) if name else None

    def numbers(self, position: int, name: str) -> list[int] | None:
        """Whole numbers of the node, an attribute in old opsets, later a constant input."""
        return numbers(self.node, position, name, self.constant)

    def is_read(self, name: str) -> bool:
        """Return whether a node of the original reads a value, or the model returns it."""
        return name in self._read

    def fixed(self, names: Iterable[str], what: str) -> None:
        """See that values are the same for every chunk. Raises CannotStream."""
        for name in names:
            sentence = f"reads {name!r}, which depends on time, as {what}"
            self.need(not name or self.flows.get(name) is None, Reason.WHOLE, sentence)

    # -- what is written ----------------------------------------------------------------------

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
        if fill is None and source in scoping.input_names(self.graph):
            name = source
        given, after = (self.author.names.fresh(one.replace("{}", name)) for one in self._naming)
        after = output if output in scoping.output_names(self.graph) else after
        slot = Slot(given, after, source, self.path, fill, frames, axis)
        self.slots.append(slot)
        return slot

    def hand_on(self, slot: Slot, value: str) -> Last:
        """Write the output of a state, which is `value`, and return its flow."""
        if slot.output != value:
            self.author.op("Identity", value, outputs=[slot.output])
        return Last(frozenset({slot.input}))


#: What fills frames that are all alike, if its shape depends on their number.
_FILLING = ("Expand", "ConstantOfShape", "Tile")


def _inner(node: NodeProto) -> Iterator[NodeProto]:
    """The nodes in the bodies of a node, at any depth."""
    for _, graph in scoping.subgraphs(node):
        for owner in scoping.graphs_below(graph):
            yield from owner.node
