"""Finds what a target does not take of a node without bodies: operator, version, types, ..."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import onnx.defs
from onnx import AttributeProto, NodeProto, TensorProto, helper

from passes.ir.attributes import text
from passes.ir.constants import Constants
from passes.ir.model import Model
from passes.ir.operators import HOLDERS, op_of
from passes.ir.scope import Place
from passes.operators.cells import RECURRENT
from passes.operators.element_types import signature
from passes.reports.report import Finding
from passes.targets.profile import NO_KERNELS, OperatorSupport, Profile, elements
from passes.types.value_types import elem_type_of, element

#: Operators that pass values on, or give them another type.
_PASS_ON = NO_KERNELS | {"Cast", "CastLike"}
#: The types of sizes, indices and parameters.
_COUNTING = (TensorProto.INT32, TensorProto.INT64)


def findings(model: Model, place: Place, profile: Profile) -> Iterator[Finding]:
    """Yield the findings at a node."""
    node = place.node
    if kind := _refused_type(model, place, profile):
        yield Finding("type", place.path, op_of(node), f"the element type {kind} is not taken")
        return
    if found := unlisted(op_of(node), profile):
        yield Finding("operator", place.path, op_of(node), found)
    elif (operator := profile.listing(op_of(node))) is not None:
        yield from _of_operator(model, place, operator, profile)


def unlisted(op: str, profile: Profile) -> str:
    """The sentence about an operator that a target lacks, empty if it has it."""
    if not profile.lacks(op):
        return ""
    refused = op in HOLDERS or op in profile.refused
    return f"the operator is not {'taken' if refused else 'listed'}"


def other_version(version: int, operator: OperatorSupport, profile: Profile) -> str:
    """The sentence about a version of an operator that a target does not take, empty if it does."""
    if not operator.versions or not version or _is_taken(version, operator, profile):
        return ""
    known = ", ".join(map(_span, operator.versions))
    return f"version {version} is not taken, but {known}"


def _of_operator(
    model: Model, place: Place, operator: OperatorSupport, profile: Profile
) -> Iterator[Finding]:
    node, sure = place.node, operator.confidence
    name = op_of(node)
    version = _version(model, place)
    if sentence := other_version(version, operator, profile):
        yield Finding("operator-version", place.path, name, sentence, sure)
    number = _element_type(model, place)
    if operator.types and number and number not in elements(operator.types):
        sentence = f"the element type {element(number)} is not taken"
        yield Finding("type", place.path, name, sentence, sure)
    constants = Constants(model, place.scope)
    for position in operator.constant_inputs:
        read = node.input[position] if position < len(node.input) else ""
        if read and constants.tensor(read) is None:
            sentence = f"input {position} is no constant"
            yield Finding("constant-input", place.path, name, sentence, sure)
    for attribute, value in _attributes(node, version):
        taken, wrong = operator.attributes.get(attribute), operator.wrong.get(attribute, ())
        if value in wrong:
            sentence = f"with {attribute}={value} it answers wrongly"
            yield Finding("attribute", place.path, name, sentence, sure, "answers wrongly")
        elif taken is not None and value not in taken:
            sentence = f"{attribute}={value} is not taken, but {', '.join(map(str, taken))}"
            yield Finding("attribute", place.path, name, sentence, sure)
    given = {one.name for one in node.attribute if not _is_default(node, one)}
    if operator.one_direction and _differ(node):
        sentence = "activations of the second direction are ignored without a word"
        yield Finding("attribute", place.path, name, sentence, sure, "answers wrongly")
    for ignored in operator.ignored:
        there = ignored in given
        if isinstance(ignored, int):
            there = ignored < len(node.input) and bool(node.input[ignored])
        if there:
            what = f"input {ignored}" if isinstance(ignored, int) else ignored
            sentence = f"{what} is ignored without a word"
            yield Finding("attribute", place.path, name, sentence, sure, "answers wrongly")


def _is_default(node: NodeProto, given: AttributeProto) -> bool:
    """Return whether an attribute lists the activations that a recurrent operator has without
    it."""
    cell = RECURRENT.get(op_of(node))
    default = [one.encode() for one in cell.activations] if cell else []
    return given.name == "activations" and list(given.strings) in (default, 2 * default)


def _differ(node: NodeProto) -> bool:
    """Return whether the two directions of a recurrent operator have activations of their own."""
    (names,) = [list(one.strings) for one in node.attribute if one.name == "activations"] or [[]]
    half = len(names) // 2 if text(node, "direction", "") == "bidirectional" else len(names)
    return names[:half] != (names[half:] or names)


def _named(node: NodeProto) -> tuple[str, str]:
    """The domain and the name of an operator."""
    domain, _, name = op_of(node).rpartition("::")
    return domain, name


def _is_taken(version: int, operator: OperatorSupport, profile: Profile) -> bool:
    for first, *rest in operator.versions:
        last = rest[0] if rest else (first if profile.match == "exact" else None)
        if first <= version and (last is None or version <= last):
            return True
    return False


def _span(versions: Sequence[int]) -> str:
    first, *rest = versions
    return f"{first}" if not rest or rest[0] == first else f"{first} to {rest[0]}"


def _version(model: Model, place: Place) -> int:
    """The version of the operator at the opset that the node is read with; 0 if there is none."""
    node = place.node
    opset = model.opset_at(place.scope, node.domain)
    try:
        domain, name = _named(node)
        schema = onnx.defs.get_schema(name, opset, domain)
    except onnx.defs.SchemaError:
        return 0
    return int(schema.since_version)


def _attributes(node: NodeProto, version: int) -> Iterator[tuple[str, str | int]]:
    """Words and numbers that attributes are given, each of a list once, or have by default."""
    values: dict[str, object] = {}
    try:
        domain, name = _named(node)
        schema = onnx.defs.get_schema(name, version or 1, domain)
        for name, declared in schema.attributes.items():
            values[name] = helper.get_attribute_value(declared.default_value)
    except (onnx.defs.SchemaError, ValueError):
        pass  # an operator without a document has no defaults
    for given in node.attribute:  # None: callers of the function choose it
        values[given.name] = None if given.ref_attr_name else helper.get_attribute_value(given)
    for name, value in values.items():
        listed = isinstance(value, list) and all(isinstance(one, bytes) for one in value)
        for one in dict.fromkeys(value) if isinstance(value, list) and listed else [value]:
            if isinstance(one, bytes | int):
                yield name, one.decode() if isinstance(one, bytes) else one


def _refused_type(model: Model, place: Place, profile: Profile) -> str:
    """The first element type among the values of a node that the target refuses; empty if there is
    none. Nodes that only pass a value on, or give it another type, have none: what computes the
    value has it, or is a caller. Nor has a slot for sizes, indices and parameters that an operator
    has in one type only."""
    node, op = place.node, op_of(place.node)
    refused = elements(profile.refused_types)
    if not refused or op in _PASS_ON:
        return ""
    known = signature(op, model.opset_at(place.scope, node.domain))
    constants = Constants(model, place.scope)
    for names, formal in ((node.input, "input"), (node.output, "output")):
        for position, name in enumerate(names):
            number = elem_type_of(model.types.of(place.scope, name)) if name else 0
            if number not in refused:
                continue
            slot = getattr(known, formal)(position) if known else None
            only = slot is not None and slot.valid == {number}
            if not only or not (number in _COUNTING or constants.tensor(name)):
                return element(number)
    return ""


def _element_type(model: Model, place: Place) -> int:
    """The element type of the first value that a node reads, or else writes; 0 if unknown."""
    names = [*filter(None, place.node.input)][:1] or list(place.node.output[:1])
    return elem_type_of(model.types.of(place.scope, names[0])) if names else 0
