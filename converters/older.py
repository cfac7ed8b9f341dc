"""Detects attributes and inputs of a node that an older version of its operator lacks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from onnx import AttributeProto, NodeProto, defs, helper

from passes.converters.writing.conversion import Conversion
from passes.ir.operators import op_of


@dataclass(frozen=True)
class _Difference:
    """The difference between a version of an op and the one before.

    `new` are attributes that came, with their defaults, None where there is none; `default` those
    of which the version before has another default or asks for a value. `inputs` and `outputs` are
    how many the version before takes and gives, `required` inputs that it asks for; `narrower`:
    it asks for more of them, or takes fewer.
    """

    older: int
    new: Mapping[str, Any]
    default: Mapping[str, Any]
    inputs: range
    required: frozenset[int]
    outputs: range
    narrower: bool


def in_older_version(node: NodeProto, ctx: Conversion, version: int) -> NodeProto:
    """Return a node of `version` of its op as one of the version before: itself, or without
    attributes that only repeat what the version before does, or with those that it does not imply.

    Element types are not looked at: what does not take them is told from the signature later.

    Raises:
        Refused: `no-equivalent`: it uses what came with `version`; `attribute-reference`: only
            the callers of the function know whether it does.
    """
    op = op_of(node)
    found = _difference(op, version)
    given = {attribute.name: attribute for attribute in node.attribute}
    dropped = []
    for name in given.keys() & found.new.keys():
        if not _is_default(ctx, node, given[name], found.new[name]):
            value = ctx.attribute(node, name)
            raise ctx.refused(
                "no-equivalent",
                f"{op} has {name} = {value!r}, an attribute that came with opset {version}",
            )
        dropped.append(name)
    _check_arity(node, ctx, version, found)
    added = {name: value for name, value in found.default.items() if name not in given}
    for name, value in added.items():
        if value is None:
            sentence = f"{op}-{found.older} needs its attribute {name!r}, which is not given"
            raise ctx.refused("no-equivalent", sentence)
    if not dropped and not added:
        return node
    return ctx.changed(node, without=dropped, **added)


@cache
def newer_attributes(op: str, version: int) -> frozenset[str] | None:
    """The attributes that came with `version` of an op, where only these tell whether a node uses
    what came with it, but for element types; None where a node has to be looked at closely."""
    found = _difference(op, version)
    return None if found.default or found.narrower else frozenset(found.new)


def _is_default(ctx: Conversion, node: NodeProto, given: AttributeProto, default: Any) -> bool:
    value = ctx.attribute(node, given.name)
    return bool(default is not None and value == default)


def _check_arity(node: NodeProto, ctx: Conversion, version: int, found: _Difference) -> None:
    op = op_of(node)
    for what, names, allowed in (
        ("inputs", node.input, found.inputs),
        ("outputs", node.output, found.outputs),
    ):
        count = max((place for place, name in enumerate(names, start=1) if name), default=0)
        count = max(count, min(len(names), allowed.start))  # the last ones may be left out, as ""
        if count not in allowed:
            most = f"{allowed.start} to {allowed.stop - 1}" if len(allowed) > 1 else allowed.start
            sentence = f"{op} has {count} {what}, {op}-{found.older} {most} before opset {version}"
            raise ctx.refused("no-equivalent", sentence)
    for place in found.required:
        if place < len(node.input) and not node.input[place]:
            sentence = f"{op} leaves out input {place}, which {op}-{found.older} asks for"
            raise ctx.refused("no-equivalent", sentence)


@cache
def _difference(op: str, version: int) -> _Difference:
    new, old = defs.get_schema(op, version), defs.get_schema(op, version - 1)
    defaults = {name: _default(one) for name, one in new.attributes.items()}
    before = {name: _default(one) for name, one in old.attributes.items()}
    implied = {
        name: defaults.get(name)
        for name, one in old.attributes.items()
        if one.required or (defaults.get(name) is not None and defaults[name] != before[name])
    }
    single = defs.OpSchema.FormalParameterOption.Single
    required = {place for place, one in enumerate(old.inputs) if one.option == single}
    asked = {place for place, one in enumerate(new.inputs) if one.option == single}
    counts = zip(_counts(old), _counts(new), strict=True)
    return _Difference(
        older=old.since_version,
        new={name: value for name, value in defaults.items() if name not in before},
        default=implied,
        inputs=range(old.min_input, old.max_input + 1),
        required=frozenset(required),
        outputs=range(old.min_output, old.max_output + 1),
        narrower=not required <= asked or any(fewer < more for fewer, more in counts),
    )


def _counts(schema: defs.OpSchema) -> tuple[int, int, int, int]:
    """The most inputs and outputs, and the fewest, negated: less is narrower."""
    return schema.max_input, schema.max_output, -schema.min_input, -schema.min_output


def _default(attribute: defs.OpSchema.Attribute) -> Any:
    value = attribute.default_value
    if not value.name:
        return None
    found = helper.get_attribute_value(value)
    return found.decode() if isinstance(found, bytes) else found
