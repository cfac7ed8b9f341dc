"""The parts of a loop, read from a Scan or Loop node and written: carried, scanned and collected
values, and the condition to continue."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy.typing as npt
from onnx import AttributeProto, GraphProto, NodeProto, TensorProto, ValueInfoProto, helper

from passes.errors import BadModel, ChosenByCaller, count
from passes.ir import scope as scoping
from passes.ir.attributes import attribute, attribute_proto
from passes.ir.operators import op_of
from passes.ir.protos import copied, replace_all
from passes.operators.table import traits_of


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
    """A value of every iteration, stacked along `axis`, in reverse where `reversed`."""

    body_output: str
    tensor: str  # empty where the node omits the output
    axis: int = 0
    reversed: bool = False


@dataclass(frozen=True)
class Condition:
    """The condition of a Loop; `initial` is empty where the node omits it, which means true: what
    the body returns counts in either case."""

    initial: str
    body_input: str
    body_output: str


@dataclass(frozen=True)
class ScanParts:
    """The parts common to every version of Scan; pairs of (outer name, body name) and the
    reverse."""

    body: GraphProto
    carried: tuple[Carried, ...]
    scanned: tuple[tuple[str, str], ...]
    collected: tuple[tuple[str, str], ...]
    constants: tuple[str, ...]


def scan_parts(node: NodeProto, first: int) -> ScanParts:
    """Take apart a Scan that feeds its inputs from `first` on to its body.

    Raises:
        BadModel: it has no body, an input is empty, or the counts do not fit.
    """
    body = graph_of(node, "body")
    fed, number = inputs_from(node, first), len(node.input) - first
    inputs, constants = fed_and_constant(body)
    meaning = ""
    if first:
        meaning = " beside sequence_lens"
        meaning += ", which a Scan-9 does not have" if len(inputs) == number + 1 else ""
    elif len(inputs) == number - 1:
        meaning = ", as a Scan-8 with sequence_lens would"
    need_fed(inputs, number, meaning)
    declared = _attribute(node, "num_scan_inputs")
    if declared is None:
        raise BadModel("Scan has no num_scan_inputs")
    if declared.i < 1:
        raise BadModel(f"num_scan_inputs is {declared.i}, but a Scan needs at least 1")
    if declared.i > number:
        raise BadModel(
            f"num_scan_inputs is {declared.i}, but the node has {count(number, 'input')}"
        )
    outputs, carried = scoping.output_names(body), number - declared.i
    if len(outputs) != len(node.output):
        raise BadModel(
            f"the body returns {count(len(outputs), 'value')}, but the node has "
            f"{count(len(node.output), 'output')}"
        )
    need_finals(node, carried)
    return ScanParts(
        body,
        all_carried(fed[:carried], inputs, outputs, node.output),
        tuple(zip(fed[carried:], inputs[carried:], strict=True)),
        tuple(zip(outputs[carried:], node.output[carried:], strict=True)),
        constants,
    )


def all_carried(
    initials: Sequence[str], inputs: Sequence[str], outputs: Sequence[str], finals: Sequence[str]
) -> tuple[Carried, ...]:
    """One carried value for each initial one; the other lists may be longer."""
    return tuple(map(Carried, initials, inputs, outputs, finals))


def graph_of(node: NodeProto, name: str) -> GraphProto:
    """A body of a loop or If.

    Raises:
        BadModel: it has none of this name.
    """
    attribute = _attribute(node, name)
    if attribute is None:
        raise BadModel(f"{op_of(node)} has no {name}")
    if attribute.type != AttributeProto.GRAPH:
        raise BadModel(f"attribute {name} of {op_of(node)} holds no graph")
    return attribute.g


def inputs_from(node: NodeProto, first: int) -> list[str]:
    """The inputs from `first` on.

    Raises:
        BadModel: one is empty.
    """
    for position, name in enumerate(node.input[first:], first):
        if not name:
            raise BadModel(f"input {position} of {op_of(node)} is empty, but not optional")
    return list(node.input[first:])


def fed_and_constant(body: GraphProto) -> tuple[list[str], tuple[str, ...]]:
    """The inputs that the node feeds, and those that name an initializer (IR 3)."""
    names = scoping.input_names(body)
    initialized = scoping.initializer_names(body)
    taken = [name for name in names if name not in initialized]
    return taken, tuple(name for name in names if name in initialized)


def need_fed(taken: Sequence[str], fed: int, meaning: str = "") -> None:
    """Check that a body takes as many values as the node feeds; `meaning` tells which these are.

    Raises:
        BadModel: it takes another number of values.
    """
    if len(taken) != fed:
        feeds = f"the node feeds {max(fed, 0) or 'none'}{meaning}"
        raise BadModel(f"the body takes {count(len(taken), 'input')}, but {feeds}")


def need_finals(node: NodeProto, carried: int) -> None:
    """Check that a node has an output for each carried value.

    Raises:
        BadModel: it has fewer.
    """
    if len(node.output) < carried:
        raise BadModel(
            f"the node has {count(len(node.output), 'output')}, but "
            f"{count(carried, 'carried value')}"
        )


def read_axes(node: NodeProto, name: str, expected: int, noun: str) -> list[int]:
    """An attribute with the axis of each value, 0 by default.

    Raises:
        BadModel: it has another number of entries.
    """
    attribute = _attribute(node, name)
    if attribute is None:
        return [0] * expected
    found = list(attribute.ints)
    if len(found) != expected:
        entries = "1 entry" if len(found) == 1 else f"{len(found) or 'no'} entries"
        raise BadModel(f"{name} has {entries}, but the node has {count(expected, noun)}")
    return found


def read_directions(node: NodeProto, name: str, expected: int, noun: str) -> list[bool]:
    """An attribute with the direction of each value: whether it is reversed.

    Raises:
        BadModel: it has another number of entries, or others than 0 and 1.
    """
    found = read_axes(node, name, expected, noun)
    for position, flag in enumerate(found):
        if flag not in (0, 1):
            raise BadModel(f"{name}[{position}] is {flag}, but must be 0 (forward) or 1 (reverse)")
    return [bool(flag) for flag in found]


def _attribute(node: NodeProto, name: str) -> AttributeProto | None:
    """An attribute of a loop, None where it has none of that name.

    Raises:
        ChosenByCaller: the callers of the function choose it.
    """
    given = attribute_proto(node, name)
    if given is not None and given.ref_attr_name:
        raise ChosenByCaller(
            f"{name} of {op_of(node)} is {given.ref_attr_name!r} of the function, which its "
            "callers choose"
        )
    return given


AXES_AND_DIRECTIONS = (
    "scan_input_axes",
    "scan_input_directions",
    "scan_output_axes",
    "scan_output_directions",
)
_OURS = {"body", "num_scan_inputs", "directions", *AXES_AND_DIRECTIONS}


def set_attributes(
    node: NodeProto,
    kind: Kind,
    body: GraphProto,
    scanned: Sequence[Scanned],
    collected: Sequence[Collected],
) -> None:
    """Give a node the attributes of a loop, in place; those that no loop knows stay.

    Axes and directions with default values are written only where the node had them.
    """
    had = {attribute.name for attribute in node.attribute}
    kept = [attribute for attribute in node.attribute if attribute.name not in _OURS]
    attributes = [helper.make_attribute("body", body)]
    if kind is not Kind.LOOP:
        attributes.append(helper.make_attribute("num_scan_inputs", len(scanned)))
    for name, values in _lists(kind, scanned, collected).items():
        if values and (any(values) or name in had):
            attributes.append(helper.make_attribute(name, values))
    replace_all(node.attribute, [*attributes, *kept])


def _lists(
    kind: Kind, scanned: Sequence[Scanned], collected: Sequence[Collected]
) -> dict[str, list[int]]:
    backwards = [int(scan.reversed) for scan in scanned]
    if kind is Kind.SCAN_8:
        return {"directions": backwards}
    if kind is Kind.LOOP:
        return {}
    prepends = [int(collect.reversed) for collect in collected]
    axes = [scan.axis for scan in scanned]
    out_axes = [collect.axis for collect in collected]
    values = (axes, backwards, out_axes, prepends)
    return dict(zip(AXES_AND_DIRECTIONS, values, strict=True))


def relisted(body: GraphProto, inputs: Sequence[str], outputs: Sequence[str]) -> GraphProto:
    """A copy of a body that lists these inputs and outputs, with the types that it knows."""
    known_inputs = {value.name: value for value in body.input}
    known = {value.name: value for value in (*body.value_info, *body.output)}
    known = known_inputs | known  # a body may return an input as it is
    graph = copied(body)
    del graph.input[:]
    del graph.output[:]
    graph.input.extend(known_inputs.get(name, ValueInfoProto(name=name)) for name in inputs)
    graph.output.extend(known.get(name, ValueInfoProto(name=name)) for name in outputs)
    return graph


def conjuncts(
    name: str, producer: Callable[[str], NodeProto | None]
) -> Iterator[tuple[NodeProto | None, str]]:
    """The parts that must hold for a condition to hold: the producer of each, and its name.

    Nothing for an omitted condition.
    """
    if not name:
        return
    node, name = plain(name, producer)
    if node is not None and op_of(node) == "And":
        for part in node.input:
            yield from conjuncts(part, producer)
    else:
        yield node, name


def plain(name: str, producer: Callable[[str], NodeProto | None]) -> tuple[NodeProto | None, str]:
    """Return the producer and the name of a condition before casts and copies."""
    node = producer(name)
    while node is not None and _keeps_truth(node):
        name = node.input[0]
        node = producer(name)
    return node, name


def is_true(value: npt.NDArray[Any] | None) -> bool:
    """Return whether a constant is a condition that holds."""
    if value is None or value.size != 1 or value.dtype.kind not in "biuf":
        return False  # a string that is cast may say 0
    return bool(value.item())


def _keeps_truth(node: NodeProto) -> bool:
    to_bool = op_of(node) == "Cast" and attribute(node, "to", 0) == TensorProto.BOOL
    return to_bool or traits_of(node).hands_on
