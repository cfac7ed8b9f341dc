"""LoopForm: one description of Scan-8, Scan-9+ and Loop.

The three operators are three spellings of one thing: carried values, scanned inputs, collected
outputs, a trip count, a condition and a body. Rules about loops are written on LoopForm, so
that each is written once. Sources: the documents of Scan 8, 9, 11, 16 and of Loop 1, 11, 13, 16;
later versions only widen the types.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from onnx import AttributeProto, GraphProto, NodeProto, ValueInfoProto, helper

from passes import scope as scoping
from passes.errors import BadModel
from passes.repeated import replace_all

_BATCH_OPSET = 8  # the only version of Scan that has a batch axis and sequence_lens
_BATCHED_AXIS = 1  # the axis it scans and collects on, the batch included


class Kind(StrEnum):
    """The spelling."""

    SCAN_8 = "Scan-8"
    SCAN = "Scan"
    LOOP = "Loop"


@dataclass(frozen=True)
class Carried:
    """A value that one iteration hands to the next."""

    initial: str
    body_input: str
    body_output: str
    final: str  # empty where the node omits the output


@dataclass(frozen=True)
class Scanned:
    """A tensor that is read one slice an iteration, along `axis`, backwards where `reversed`."""

    tensor: str
    body_input: str
    axis: int = 0
    reversed: bool = False


@dataclass(frozen=True)
class Collected:
    """A value of every iteration, stacked along `axis`, last first where `reversed`."""

    body_output: str
    tensor: str  # empty where the node omits the output
    axis: int = 0
    reversed: bool = False


@dataclass(frozen=True)
class Condition:
    """The condition of a Loop; `initial` is empty where the node omits it."""

    initial: str
    body_input: str
    body_output: str


@dataclass(frozen=True)
class LoopForm:
    """A Scan or Loop node, taken apart.

    Names of `carried`, `scanned`, `collected`, `condition` and `iteration` refer to inputs and
    outputs of `body`, whose own lists also give their types; `constant_inputs` are body inputs
    that name an initializer (IR 3) and that nobody feeds, wherever in the list they stand.
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
        """
        if node.op_type == "Loop":
            return _from_loop(node)
        if node.op_type == "Scan":
            return _from_scan_8(node) if opset <= _BATCH_OPSET else _from_scan(node)
        raise BadModel(f"{node.op_type} is no loop")

    def to_node(self) -> NodeProto:
        """The node this form describes; the source itself, to the byte, where nothing changed.

        Name, documentation, metadata and unknown attributes come from the source.
        """
        node = NodeProto()
        if self.source is not None:
            node.CopyFrom(self.source)
            if self._says(self.source):
                return node
        node.op_type = self.op_type
        replace_all(node.input, self.inputs)
        replace_all(node.output, self.outputs)
        _set_attributes(node, self)
        return node

    def _says(self, node: NodeProto) -> bool:
        """Whether this form is what `node` says."""
        opset = _BATCH_OPSET if self.kind is Kind.SCAN_8 else _BATCH_OPSET + 1
        try:
            return node.op_type == self.op_type and self == LoopForm.from_node(node, opset)
        except BadModel:  # the node is a Scan of the other form
            return False

    @property
    def op_type(self) -> str:
        """The operator."""
        return "Loop" if self.kind is Kind.LOOP else "Scan"

    @property
    def inputs(self) -> list[str]:
        """The node's inputs, in its operator's order."""
        fed = [one.initial for one in self.carried] + [one.tensor for one in self.scanned]
        if self.kind is Kind.LOOP:
            initial = "" if self.condition is None else self.condition.initial
            return [self.trip_count, initial, *fed]
        return [self.lengths, *fed] if self.kind is Kind.SCAN_8 else fed

    @property
    def outputs(self) -> list[str]:
        """The node's outputs: final values, then collected ones."""
        return [one.final for one in self.carried] + [one.tensor for one in self.collected]

    @property
    def body_inputs(self) -> list[str]:
        """Names of the body's inputs, in the operator's order."""
        fed = [one.body_input for one in self.carried] + [one.body_input for one in self.scanned]
        head = [self.iteration, self.condition.body_input] if self.condition else []
        return [*head, *fed, *self.constant_inputs]

    @property
    def body_outputs(self) -> list[str]:
        """Names of the body's outputs, in the operator's order."""
        given = [one.body_output for one in self.carried]
        given += [one.body_output for one in self.collected]
        return [self.condition.body_output, *given] if self.condition else given

    @property
    def captured(self) -> list[str]:
        """Outer values that the body reads, in order of first use."""
        return scoping.captures(self.body)


def _from_loop(node: NodeProto) -> LoopForm:
    body = _body(node)
    if len(node.input) < 2:
        raise BadModel(f"Loop has {len(node.input)} inputs, it needs at least 2 (M and cond)")
    trip_count, initial, *initials = node.input
    inputs, constants = _split_inputs(body, 2 + len(initials), "Loop")
    outputs = scoping.output_names(body)
    _need(len(outputs) > len(initials), "Loop", len(outputs), 1 + len(initials), "at least")
    _need(len(outputs) == 1 + len(node.output), "Loop", len(outputs), 1 + len(node.output))
    count = len(initials)
    return LoopForm(
        kind=Kind.LOOP,
        body=body,
        carried=_carried(initials, inputs[2:], outputs[1:], node.output),
        collected=tuple(map(Collected, outputs[1 + count :], node.output[count:])),
        trip_count=trip_count,
        condition=Condition(initial, inputs[1], outputs[0]),
        iteration=inputs[0],
        constant_inputs=constants,
        source=node,
    )


def _from_scan_8(node: NodeProto) -> LoopForm:
    if len(node.input) < 2:
        raise BadModel(f"Scan-8 has {len(node.input)} inputs, it needs at least 2")
    lengths, *fed = node.input
    parts = _scan_parts(node, fed)
    directions = _flags(node, "directions", len(parts.scanned), [0], "scanned inputs")
    return LoopForm(
        kind=Kind.SCAN_8,
        body=parts.body,
        carried=parts.carried,
        scanned=tuple(
            Scanned(tensor, name, _BATCHED_AXIS, bool(flag))
            for (tensor, name), flag in zip(parts.scanned, directions, strict=True)
        ),
        collected=tuple(Collected(name, out, _BATCHED_AXIS) for name, out in parts.collected),
        lengths=lengths,
        constant_inputs=parts.constants,
        source=node,
    )


def _from_scan(node: NodeProto) -> LoopForm:
    parts = _scan_parts(node, list(node.input))
    scanned, collected = len(parts.scanned), len(parts.collected)
    axes = _flags(node, "scan_input_axes", scanned, None, "scanned inputs")
    backwards = _flags(node, "scan_input_directions", scanned, [0], "scanned inputs")
    out_axes = _flags(node, "scan_output_axes", collected, None, "collected outputs")
    prepends = _flags(node, "scan_output_directions", collected, [0], "collected outputs")
    return LoopForm(
        kind=Kind.SCAN,
        body=parts.body,
        carried=parts.carried,
        scanned=tuple(
            Scanned(tensor, name, axis, bool(flag))
            for (tensor, name), axis, flag in zip(parts.scanned, axes, backwards, strict=True)
        ),
        collected=tuple(
            Collected(name, tensor, axis, bool(flag))
            for (name, tensor), axis, flag in zip(parts.collected, out_axes, prepends, strict=True)
        ),
        constant_inputs=parts.constants,
        source=node,
    )


@dataclass(frozen=True)
class _ScanParts:
    """What every version of Scan has; pairs of (outer name, body name) and the reverse."""

    body: GraphProto
    carried: tuple[Carried, ...]
    scanned: tuple[tuple[str, str], ...]
    collected: tuple[tuple[str, str], ...]
    constants: tuple[str, ...]


def _scan_parts(node: NodeProto, fed: Sequence[str]) -> _ScanParts:
    body = _body(node)
    scanned = next((one.i for one in node.attribute if one.name == "num_scan_inputs"), 0)
    if not 0 < scanned <= len(fed):
        raise BadModel(f"Scan: num_scan_inputs is {scanned}, the node feeds {len(fed)} values")
    inputs, constants = _split_inputs(body, len(fed), "Scan")
    outputs = scoping.output_names(body)
    count = len(fed) - scanned
    _need(len(outputs) >= count, "Scan", len(outputs), count, "at least")
    _need(len(outputs) == len(node.output), "Scan", len(outputs), len(node.output))
    return _ScanParts(
        body,
        _carried(fed[:count], inputs, outputs, node.output),
        tuple(zip(fed[count:], inputs[count:], strict=True)),
        tuple(zip(outputs[count:], node.output[count:], strict=True)),
        constants,
    )


def _carried(
    initials: Sequence[str], inputs: Sequence[str], outputs: Sequence[str], finals: Sequence[str]
) -> tuple[Carried, ...]:
    return tuple(map(Carried, initials, inputs, outputs, finals))


def _body(node: NodeProto) -> GraphProto:
    for attribute in node.attribute:
        if attribute.name == "body" and attribute.type == AttributeProto.GRAPH:
            return attribute.g
    raise BadModel(f"{node.op_type} has no body")


def _need(holds: bool, op: str, has: int, wants: int, how: str = "exactly") -> None:
    if not holds:
        raise BadModel(f"{op}: the body has {has} outputs, the node wants {how} {wants}")


def _split_inputs(body: GraphProto, fed: int, op: str) -> tuple[list[str], tuple[str, ...]]:
    """The inputs that the node feeds, and those that name an initializer (IR 3)."""
    names = scoping.input_names(body)
    initialized = scoping.initializer_names(body)
    taken = [name for name in names if name not in initialized]
    if len(taken) != fed:
        raise BadModel(f"{op}: the body takes {len(taken)} inputs, the node feeds {fed}")
    return taken, tuple(name for name in names if name in initialized)


def _flags(
    node: NodeProto, name: str, count: int, default: list[int] | None, what: str
) -> list[int]:
    """An attribute with one number per value; `default` holds what may be said besides 1."""
    found = next((list(one.ints) for one in node.attribute if one.name == name), None)
    if found is None:
        return [0] * count
    if len(found) != count:
        raise BadModel(f"Scan: {name} has {len(found)} entries, there are {count} {what}")
    if default is not None and any(flag not in (0, 1) for flag in found):
        raise BadModel(f"Scan: {name} is {found}, it may hold 0 and 1 only")
    return found


def _set_attributes(node: NodeProto, form: LoopForm) -> None:
    had = {attribute.name for attribute in node.attribute}
    ours = {"body", "num_scan_inputs", "directions", *_AXES_AND_DIRECTIONS}
    kept = [attribute for attribute in node.attribute if attribute.name not in ours]
    made = [helper.make_attribute("body", _body_graph(form))]
    if form.kind is not Kind.LOOP:
        made.append(helper.make_attribute("num_scan_inputs", len(form.scanned)))
    for name, values in _lists(form).items():
        if values and (any(values) or name in had):
            made.append(helper.make_attribute(name, values))
    del node.attribute[:]
    node.attribute.extend([*made, *kept])


_AXES_AND_DIRECTIONS = (
    "scan_input_axes",
    "scan_input_directions",
    "scan_output_axes",
    "scan_output_directions",
)


def _lists(form: LoopForm) -> dict[str, list[int]]:
    backwards = [int(one.reversed) for one in form.scanned]
    if form.kind is Kind.SCAN_8:
        return {"directions": backwards}
    if form.kind is Kind.LOOP:
        return {}
    prepends = [int(one.reversed) for one in form.collected]
    axes, out_axes = [one.axis for one in form.scanned], [one.axis for one in form.collected]
    values = (axes, backwards, out_axes, prepends)
    return dict(zip(_AXES_AND_DIRECTIONS, values, strict=True))


def _body_graph(form: LoopForm) -> GraphProto:
    """The body, its inputs and outputs listed in the operator's order."""
    inputs = {value.name: value for value in form.body.input}
    outputs = {value.name: value for value in (*form.body.value_info, *form.body.output)}
    outputs = inputs | outputs  # a body may return an input as it is
    graph = GraphProto()
    graph.CopyFrom(form.body)
    del graph.input[:]
    del graph.output[:]
    graph.input.extend(inputs.get(name, ValueInfoProto(name=name)) for name in form.body_inputs)
    graph.output.extend(outputs.get(name, ValueInfoProto(name=name)) for name in form.body_outputs)
    return graph
