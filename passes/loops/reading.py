"""Reads the parts of a Scan or Loop node, and checks their counts; a mismatch is a BadModel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from onnx import AttributeProto, GraphProto, NodeProto

from passes.errors import BadModel, ChosenByCaller, count
from passes.ir import scope as scoping
from passes.ir.attributes import attribute_proto
from passes.ir.operators import op_of
from passes.loops.parts import Carried


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
    fed, number = given(node, first), len(node.input) - first
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


def given(node: NodeProto, first: int) -> list[str]:
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


def axes(node: NodeProto, name: str, expected: int, noun: str) -> list[int]:
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


def directions(node: NodeProto, name: str, expected: int, noun: str) -> list[bool]:
    """An attribute with the direction of each value: whether it is reversed.

    Raises:
        BadModel: it has another number of entries, or others than 0 and 1.
    """
    found = axes(node, name, expected, noun)
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
