"""Follows the axis of time through a main graph, and writes its nodes for a chunk."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from onnx import NodeProto

from passes.analysis.integers.affine import Affine
from passes.analysis.integers.integers import Integers
from passes.engine.site import Site
from passes.ir import scope as scoping
from passes.ir.attributes import numbers
from passes.ir.constants import Constants
from passes.ir.model import Model
from passes.ir.names import Names
from passes.ir.operator_traits import traits_of
from passes.ir.operators import op_of
from passes.ir.places import Place, path_of
from passes.streaming.flows import CannotStream, Count, Flow, Frames, Last, Reason
from passes.types.value_types import Dims, dims_of
from passes.verify.executor import Array
from passes.writing.author import Author

#: Writes a node that reads frames, or their number, and returns the flows of its outputs, in order.
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

    `integers` are the numbers that the model computes, and `time` is the number of frames.
    `naming` are the names of new states, as input and as output, with `{}` for that of the value.
    """

    def __init__(self, model: Model, inputs: Mapping[str, Frames], naming: tuple[str, str]) -> None:
        self.model = model
        self.flows: dict[str, Flow] = dict(inputs)
        self.slots: list[Slot] = []
        names = Names(scoping.all_names([model.proto.graph]))
        self.author = Author(model.opset(), names, "")
        self.node, self.path, self.label = NodeProto(), "", ""
        self._scope = next(scoping.scopes(model.proto))
        self._constants = Constants(model, self._scope)
        self._naming = naming
        graph = model.proto.graph
        place = Place(graph.node[0], 0, self._scope)
        opset = model.opset()
        self.integers = Integers(Site(model, place, opset, opset, Names(), model.types))
        (name, frames), *_ = inputs.items()
        self.time = self.integers.size(name, frames.axis) or Affine()
        self._read = scoping.all_reads(graph.node) | set(scoping.output_names(graph))

    def write(self) -> None:
        """Write every node.

        Raises:
            CannotStream: a node reads more than the frames of a chunk and those before it.
        """
        for index, node in enumerate(self.model.proto.graph.node):
            self.node = node
            self.label = re.sub(r"\W+", "_", scoping.label(node, index)).strip("_")
            self.path = path_of(self._scope, node, index)
            self.flows.update(zip(node.output, self._written(), strict=False))

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
        rule = RULES.get(op_of(node))
        if not any(isinstance(flow, Frames) for flow in read) and op_of(node) not in _FILLING:
            return self.keep(node, *map(self.count, node.output))
        if rule is None and traits_of(node).by_element:
            rule = RULES[BY_ELEMENT]
        if rule is None:
            raise self.refused(Reason.UNSUPPORTED, "reads frames, and has no rule for these")
        return rule(node, self)

    def count(self, name: str) -> Flow:
        """The flow of what is computed of numbers that depend on the number of frames."""
        found = self.integers.outside(name) if name else None
        (time, _), *_ = self.time.terms
        steady = found is not None and not any(item.coefficient(time) for item in found.items)
        return None if steady else Count.COUNT

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

    def is_count(self, name: str) -> bool:
        """Return whether a value depends on the number of frames."""
        return isinstance(self.flows.get(name), Count)

    def axis_of_time(self, name: str) -> int | None:
        """The only axis of a value with as many elements as there are frames."""
        dims = self.dims(name)
        sizes = (
            [] if dims is None else [self.integers.size(name, axis) for axis in range(len(dims))]
        )
        return sizes.index(self.time) if sizes.count(self.time) == 1 else None

    def only(self, position: int, what: str) -> Frames:
        """The frames of an input. Raises CannotStream where it has none, or another one has."""
        for place, name in enumerate(self.node.input):
            if place != position:
                self.fixed([name], "its parameter")
        frames = self.frames(self.node.input[position])
        if frames is None:
            raise self.refused(Reason.NUMBER, f"reads the number of frames as {what}")
        return frames

    def dims(self, name: str) -> Dims | None:
        """The dims of a value."""
        return dims_of(self.model.types.of(self._scope, name))

    def rank(self, name: str) -> int:
        """The rank of a value. Raises CannotStream where it is unknown."""
        frames, dims = self.frames(name), self.dims(name)
        if frames is not None:
            return frames.rank
        if dims is None:
            raise self.refused(Reason.UNSUPPORTED, f"reads {name!r}, whose rank is unknown")
        return len(dims)

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
            if name and self.flows.get(name) is not None:
                sentence = f"reads {name!r}, which depends on time, as {what}"
                raise self.refused(Reason.WHOLE, sentence)

    # -- what is written ----------------------------------------------------------------------

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
        graph, fresh = self.model.proto.graph, self.author.names.fresh
        if fill is None and source in scoping.input_names(graph):
            name = source
        given, after = (template.replace("{}", name) for template in self._naming)
        kept = output in scoping.output_names(graph)
        after = output if kept else fresh(after)
        slot = Slot(fresh(given), after, source, self.path, fill, frames, axis)
        self.slots.append(slot)
        return slot

    def hand_on(self, slot: Slot, value: str) -> Last:
        """Write the output of a state, which is `value`, and return its flow."""
        if slot.output != value:
            self.author.op("Identity", value, outputs=[slot.output])
        return Last(frozenset({slot.input}))


#: What makes frames of numbers, if these depend on the number of frames.
_FILLING = ("Expand", "ConstantOfShape")


def _inner(node: NodeProto) -> Iterator[NodeProto]:
    """The nodes in the bodies of a node, at any depth."""
    for _, graph in scoping.subgraphs(node):
        for owner in scoping.graphs_below(graph):
            yield from owner.node
