"""Attributes of a node, read with the default that its document declares."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy.typing as npt
from onnx import AttributeProto, NodeProto

_Default = TypeVar("_Default", int, None)


def attribute_proto(node: NodeProto, name: str) -> AttributeProto | None:
    """An attribute as it is given, None where it is left out."""
    return next((one for one in node.attribute if one.name == name), None)


def attribute(node: NodeProto, name: str, default: _Default) -> int | _Default:
    """An int attribute."""
    given = attribute_proto(node, name)
    return default if given is None else given.i


def number(node: NodeProto, name: str, default: float) -> float:
    """A float attribute."""
    given = attribute_proto(node, name)
    return default if given is None else given.f


def attributes(node: NodeProto, name: str) -> list[int] | None:
    """An attribute of ints, None where it is left out."""
    given = attribute_proto(node, name)
    return None if given is None else list(given.ints)


def text(node: NodeProto, name: str, default: str) -> str:
    """A string attribute."""
    given = attribute_proto(node, name)
    return default if given is None else given.s.decode()


def has(node: NodeProto, name: str) -> bool:
    """Return whether an attribute is given."""
    return attribute_proto(node, name) is not None


def has_references(node: NodeProto) -> bool:
    """Return whether a node has attributes that the callers of a function choose."""
    return any(one.ref_attr_name for one in node.attribute)


def numbers(
    node: NodeProto,
    position: int,
    name: str,
    constant: Callable[[str], npt.NDArray[Any] | None],
) -> list[int] | None:
    """Whole numbers, an attribute in old opsets, later a constant input; None where there is
    neither."""
    if has(node, name):
        return attributes(node, name)
    given = node.input[position] if position < len(node.input) else ""
    value = constant(given) if given else None
    return None if value is None else [int(number) for number in value.reshape(-1)]
