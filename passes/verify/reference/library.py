"""Model-local functions: found by domain, name and overload; specialised by attributes.

A call fixes the attributes of a function, so a function is copied per distinct set of
attributes with every reference to one replaced by its value. After that no node depends on the
call any more, at any depth.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from onnx import AttributeProto, FunctionProto, NodeProto

from passes.ir.attributes import has_references
from passes.ir.operators import FunctionKey, called_key, function_key
from passes.ir.protos import copied, named
from passes.ir.scope import Key, subgraphs


class Library:
    """The functions of one model, in any order: a function may call one that is listed later."""

    def __init__(self, functions: Iterable[FunctionProto]) -> None:
        self._functions: dict[FunctionKey, FunctionProto] = {}
        for function in functions:
            self._functions.setdefault(function_key(function), function)

    def find(self, node: NodeProto) -> FunctionProto | None:
        """The function that `node` calls, if it calls one."""
        return self._functions.get(called_key(node))

    def key_of(self, function: FunctionProto) -> Key | None:
        """Return the key of a function, or of a copy of it, in its model; None if it has none."""
        for position, known in enumerate(self._functions, start=1):
            if known == function_key(function):
                return (position,)
        return None

    def all(self) -> Sequence[FunctionProto]:
        """Every function of the model."""
        return list(self._functions.values())


def call_attributes(
    node: NodeProto, function: FunctionProto, defaults: Mapping[str, AttributeProto] | None = None
) -> dict[str, AttributeProto]:
    """The attributes a call hands over: its own, then the function's defaults, by name."""
    given = dict(defaults or {})
    given.update({attribute.name: attribute for attribute in function.attribute_proto})
    given.update({attribute.name: attribute for attribute in node.attribute})
    return given


def specialise(function: FunctionProto, given: Mapping[str, AttributeProto]) -> FunctionProto:
    """A copy of `function` in which no attribute refers to one of the call's any more.

    A reference to an attribute that is neither given nor has a default disappears: the
    operator's own default holds then.
    """
    special = copied(function)
    for node in special.node:
        _resolve(node, given)
    return special


def _resolve(node: NodeProto, given: Mapping[str, AttributeProto]) -> None:
    if has_references(node):
        resolved = [_value(attribute, given) for attribute in node.attribute]
        del node.attribute[:]
        node.attribute.extend(attribute for attribute in resolved if attribute is not None)
    for _, graph in subgraphs(node):
        for inner in graph.node:
            _resolve(inner, given)


def _value(attribute: AttributeProto, given: Mapping[str, AttributeProto]) -> AttributeProto | None:
    if not attribute.ref_attr_name:
        return copied(attribute)
    if attribute.ref_attr_name not in given:
        return None
    return named(given[attribute.ref_attr_name], attribute.name)
