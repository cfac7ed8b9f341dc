"""LoopForm: one description of Scan-8, Scan-9+ and Loop.

The three operators are three spellings of one thing: carried values, scanned inputs, collected
outputs, a trip count, a condition and a body. Rules about loops are written on LoopForm, so
that each is written once. Sources: the documents of Scan 8, 9, 11, 16 and of Loop 1, 11, 13, 16;
later versions only widen the types.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy.typing as npt
from onnx import GraphProto, NodeProto, TensorProto, TypeProto

from passes.errors import BadModel, count
from passes.ir import scope as scoping
from passes.ir.graph_index import GraphIndex
from passes.ir.operators import op_of
from passes.ir.protos import copied, replace_all
from passes.ir.versions import SCAN_8
from passes.loops.parts import (
    Carried,
    Collected,
    Condition,
    Kind,
    Scanned,
    ScanParts,
    all_carried,
    conjuncts,
    fed_and_constant,
    graph_of,
    inputs_from,
    is_true,
    need_fed,
    need_finals,
    read_axes,
    read_directions,
    relisted,
    scan_parts,
    set_attributes,
)
from passes.types.value_types import tensor_type

__all__ = ["Carried", "Collected", "Condition", "Kind", "LoopForm", "Scanned"]

_BATCHED_AXIS = 1  # the axis it scans and collects on, the batch included


@dataclass(frozen=True)
class LoopForm:
    """A Scan or Loop node, taken apart.

    Names of `carried`, `scanned`, `collected`, `condition` and `iteration` refer to inputs and
    outputs of `body`, whose own lists also give their types; `constant_inputs` are body inputs
    that name an initializer (IR 3) and are not fed, at any position of the list.
    `lengths` is the sequence_lens input of a Scan-8, `trip_count` the M of a Loop; empty where
    omitted. On a Scan-8 the axes count the batch axis, which is 0: they are all 1.
    """

    kind: Kind
    body: GraphProto
    carried: tuple[Carried, ...] = ()
    scanned: tuple[Scanned, ...] = ()
    collected: tuple[Collected, ...] = ()
    lengths: str = ""
    trip_count: str = ""
    condition: Condition | None = None
    iteration: str = ""
    constant_inputs: tuple[str, ...] = ()
    source: NodeProto | None = field(default=None, compare=False, repr=False)

    @classmethod
    def from_node(cls, node: NodeProto, opset: int) -> LoopForm:
        """Take a Scan or Loop of the given opset apart.

        Raises:
            BadModel: the body is missing, or the counts of inputs, outputs, axes or directions
                do not fit; both sides are named.
            ChosenByCaller: one of these is an attribute of the function around.
        """
        if op_of(node) == "Loop":
            return _from_loop(node)
        if op_of(node) == "Scan":
            return _from_scan_8(node) if opset <= SCAN_8 else _from_scan(node)
        raise BadModel(f"{op_of(node)} is no loop")

    def to_node(self) -> NodeProto:
        """The node this form describes; the source itself, to the byte, where nothing changed.

        Name, documentation, metadata and unknown attributes come from the source.
        """
        node = NodeProto() if self.source is None else copied(self.source)
        if self.source is not None and self._describes(self.source):
            return node
        node.op_type = self.operator
        replace_all(node.input, self.inputs)
        replace_all(node.output, self.outputs)
        body = relisted(self.body, self.body_inputs, self.body_outputs)
        set_attributes(node, self.kind, body, self.scanned, self.collected)
        return node

    def with_all_outputs(self, fresh: Callable[[str], str]) -> LoopForm:
        """The same loop, omitting no output: onnxruntime crashes on a Loop that omits one."""
        return replace(
            self,
            carried=tuple(replace(one, final=one.final or fresh("unused")) for one in self.carried),
            collected=tuple(
                replace(one, tensor=one.tensor or fresh("unused")) for one in self.collected
            ),
        )

    def renamed(self, names: Mapping[str, str]) -> LoopForm:
        """The same loop, the values of whose body have other names there already."""

        def new(name: str) -> str:
            return names.get(name, name)

        return replace(
            self,
            carried=tuple(
                replace(one, body_input=new(one.body_input), body_output=new(one.body_output))
                for one in self.carried
            ),
            scanned=tuple(replace(one, body_input=new(one.body_input)) for one in self.scanned),
            collected=tuple(
                replace(one, body_output=new(one.body_output)) for one in self.collected
            ),
        )

    def _describes(self, node: NodeProto) -> bool:
        """Return whether this form describes `node` as it is."""
        opset = SCAN_8 if self.kind is Kind.SCAN_8 else SCAN_8 + 1
        try:
            return op_of(node) == self.operator and self == LoopForm.from_node(node, opset)
        except BadModel:  # the node is a Scan of the other form
            return False

    @property
    def operator(self) -> str:
        """The operator."""
        return "Loop" if self.kind is Kind.LOOP else "Scan"

    @property
    def inputs(self) -> list[str]:
        """The node's inputs, in its operator's order."""
        fed = [carried.initial for carried in self.carried] + [
            scanned.tensor for scanned in self.scanned
        ]
        if self.kind is Kind.LOOP:
            initial = "" if self.condition is None else self.condition.initial
            return [self.trip_count, initial, *fed]
        return [self.lengths, *fed] if self.kind is Kind.SCAN_8 else fed

    @property
    def outputs(self) -> list[str]:
        """The node's outputs: final values, then collected ones."""
        return [carried.final for carried in self.carried] + [
            collected.tensor for collected in self.collected
        ]

    @property
    def body_inputs(self) -> list[str]:
        """Names of the body's inputs, in the operator's order."""
        fed = [carried.body_input for carried in self.carried]
        fed += [scanned.body_input for scanned in self.scanned]
        head = [self.iteration, self.condition.body_input] if self.condition else []
        return [*head, *fed, *self.constant_inputs]

    @property
    def body_outputs(self) -> list[str]:
        """Names of the body's outputs, in the operator's order."""
        returned = [carried.body_output for carried in self.carried]
        returned += [collected.body_output for collected in self.collected]
        return [self.condition.body_output, *returned] if self.condition else returned

    @property
    def width(self) -> int:
        """The number of values that the loop carries, scans and collects."""
        return len(self.carried) + len(self.scanned) + len(self.collected)

    @property
    def iteration_rank(self) -> int:
        """The rank, 0 or 1, that the body of a Loop declares for the iteration number."""
        return self._declared_rank(self.iteration)

    @property
    def condition_rank(self) -> int:
        """The rank, 0 or 1, that the body of a Loop declares for the condition it gets."""
        return self._declared_rank(self.condition.body_input if self.condition else "")

    @property
    def head_types(self) -> tuple[TypeProto, TypeProto]:
        """The types of the iteration number and the condition that the body of a Loop gets: one
        element each, whatever other shape it declares."""
        number, condition = (1,) * self.iteration_rank, (1,) * self.condition_rank
        return tensor_type(TensorProto.INT64, number), tensor_type(TensorProto.BOOL, condition)

    def _declared_rank(self, name: str) -> int:
        declared = (value.type.tensor_type.shape for value in self.body.input if value.name == name)
        return min(1, max((len(shape.dim) for shape in declared), default=0))

    def goes_on(self, constant: Callable[[str], npt.NDArray[Any] | None]) -> bool:
        """Return whether the body never ends the loop: it returns the condition it got, which is
        true wherever it runs, or a constant that is true.

        `constant` returns the values of constants, as seen from the body.
        """
        if self.condition is None:
            return True
        received = self.condition.body_input
        parts = conjuncts(self.condition.body_output, self.index.producers.get)
        return all(name == received or is_true(constant(name)) for _, name in parts)

    @cached_property
    def index(self) -> GraphIndex:
        """The definitions and readers of values in the body, which must not change any more."""
        return GraphIndex(self.body)

    @cached_property
    def unchanged(self) -> dict[str, Carried]:
        """The carried values, by body input, that every iteration passes on unchanged."""
        source = self.index.source
        return {
            carried.body_input: carried
            for carried in self.carried
            if source(carried.body_output) == carried.body_input
        }

    @property
    def captured(self) -> list[str]:
        """Outer values that the body reads, in order of first use."""
        return scoping.captures(self.body)


def _from_loop(node: NodeProto) -> LoopForm:
    body = graph_of(node, "body")
    if len(node.input) < 2:
        raise BadModel(
            f"Loop has {count(len(node.input), 'input')}, but takes at least 2, trip count and "
            "condition (an empty name leaves one out)"
        )
    initials = inputs_from(node, 2)
    inputs, constants = fed_and_constant(body)
    meaning = " (iteration number, condition and carried values)"
    need_fed(inputs, len(node.input), meaning)
    outputs, number = scoping.output_names(body), len(node.output)
    if len(outputs) != number + 1:
        rest = f" and the {count(number, 'output')} of the node" if number else ""
        raise BadModel(
            f"the body returns {count(len(outputs), 'value')}, but must return {number + 1}: the "
            f"condition{rest}"
        )
    carried = len(initials)
    need_finals(node, carried)
    return LoopForm(
        kind=Kind.LOOP,
        body=body,
        carried=all_carried(initials, inputs[2:], outputs[1:], node.output),
        collected=tuple(map(Collected, outputs[1 + carried :], node.output[carried:])),
        trip_count=node.input[0],
        condition=Condition(node.input[1], inputs[1], outputs[0]),
        iteration=inputs[0],
        constant_inputs=constants,
        source=node,
    )


def _from_scan_8(node: NodeProto) -> LoopForm:
    parts = scan_parts(node, 1)
    directions = read_directions(node, "directions", len(parts.scanned), "scanned input")
    read = [(_BATCHED_AXIS, back) for back in directions]
    written = [(_BATCHED_AXIS, False) for _ in parts.collected]
    return _scan_form(node, Kind.SCAN_8, parts, read, written, node.input[0])


def _from_scan(node: NodeProto) -> LoopForm:
    parts = scan_parts(node, 0)
    of_scanned = (len(parts.scanned), "scanned input")
    of_collected = (len(parts.collected), "collected output")
    axes = read_axes(node, "scan_input_axes", *of_scanned)
    out_axes = read_axes(node, "scan_output_axes", *of_collected)
    backwards = read_directions(node, "scan_input_directions", *of_scanned)
    prepends = read_directions(node, "scan_output_directions", *of_collected)
    read, written = zip(axes, backwards, strict=True), zip(out_axes, prepends, strict=True)
    return _scan_form(node, Kind.SCAN, parts, read, written)


def _scan_form(
    node: NodeProto,
    kind: Kind,
    parts: ScanParts,
    read: Iterable[tuple[int, bool]],
    written: Iterable[tuple[int, bool]],
    lengths: str = "",
) -> LoopForm:
    """The form of a Scan; `read` and `written` are the axes and directions of what it scans and
    collects."""
    scanned = zip(parts.scanned, read, strict=True)
    collected = zip(parts.collected, written, strict=True)
    return LoopForm(
        kind=kind,
        body=parts.body,
        carried=parts.carried,
        scanned=tuple(Scanned(tensor, name, *how) for (tensor, name), how in scanned),
        collected=tuple(Collected(name, tensor, *how) for (name, tensor), how in collected),
        lengths=lengths,
        constant_inputs=parts.constants,
        source=node,
    )
