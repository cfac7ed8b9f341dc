"""Reads the parts of a Scan or Loop node, and checks their counts; a mismatch is a BadModel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from onnx import AttributeProto, GraphProto, NodeProto

from passes.errors import BadModel, ChosenByCaller
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


def scan_parts(node: NodeProto, fed: Sequence[str]) -> ScanParts:
    """Take apart a Scan that feeds these values to its body.

    Raises:
        BadModel: it has no body, or the counts do not fit.
    """
    body = body_of(node)
    declared = _attribute(node, "num_scan_inputs")
    scanned = 0 if declared is None else declared.i
    if not 0 < scanned <= len(fed):
        raise BadModel(f"Scan: num_scan_inputs is {scanned}, the node feeds {len(fed)} values")
    inputs, constants = fed_and_constant(body, len(fed), "Scan")
    outputs = scoping.output_names(body)
    count = len(fed) - scanned
    need(len(outputs) >= count, "Scan", len(outputs), count, "at least")
    need(len(outputs) == len(node.output), "Scan", len(outputs), len(node.output))
    return ScanParts(
        body,
        all_carried(fed[:count], inputs, outputs, node.output),
        tuple(zip(fed[count:], inputs[count:], strict=True)),
        tuple(zip(outputs[count:], node.output[count:], strict=True)),
        constants,
    )


def all_carried(
    initials: Sequence[str], inputs: Sequence[str], outputs: Sequence[str], finals: Sequence[str]
) -> tuple[Carried, ...]:
    """One carried value for each initial one; the other lists may be longer."""
    return tuple(map(Carried, initials, inputs, outputs, finals))


def body_of(node: NodeProto) -> GraphProto:
    """The body of a loop.

    Raises:
        BadModel: it has none.
    """
    attribute = _attribute(node, "body")
    if attribute is None or attribute.type != AttributeProto.GRAPH:
        raise BadModel(f"{op_of(node)} has no body")
    return attribute.g


def need(holds: bool, op: str, has: int, wants: int, how: str = "exactly") -> None:
    """Check that the number of a body's outputs is what the node requires.

    Raises:
        BadModel: `holds` is false.
    """
    if not holds:
        raise BadModel(f"{op}: the body has {has} outputs, the node wants {how} {wants}")


def fed_and_constant(body: GraphProto, fed: int, op: str) -> tuple[list[str], tuple[str, ...]]:
    """The inputs that the node feeds, and those that name an initializer (IR 3).

    Raises:
        BadModel: the node feeds another number of values.
    """
    names = scoping.input_names(body)
    initialized = scoping.initializer_names(body)
    taken = [name for name in names if name not in initialized]
    if len(taken) != fed:
        raise BadModel(f"{op}: the body takes {len(taken)} inputs, the node feeds {fed}")
    return taken, tuple(name for name in names if name in initialized)


def axes(node: NodeProto, name: str, count: int, what: str) -> list[int]:
    """An attribute with the axis of each value, 0 by default.

    Raises:
        BadModel: it has another number of entries.
    """
    attribute = _attribute(node, name)
    if attribute is None:
        return [0] * count
    found = list(attribute.ints)
    if len(found) != count:
        raise BadModel(f"Scan: {name} has {len(found)} entries, there are {count} {what}")
    return found


def directions(node: NodeProto, name: str, count: int, what: str) -> list[bool]:
    """An attribute with the direction of each value: whether it is reversed.

    Raises:
        BadModel: it has another number of entries, or others than 0 and 1.
    """
    found = axes(node, name, count, what)
    if any(flag not in (0, 1) for flag in found):
        raise BadModel(f"Scan: {name} is {found}, it may hold 0 and 1 only")
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
