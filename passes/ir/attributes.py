"""Attributes of a node, read with the default that its document declares."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy.typing as npt
from onnx import NodeProto

_Default = TypeVar("_Default", int, None)


def attribute(node: NodeProto, name: str, default: _Default) -> int | _Default:
    """An int attribute."""
    return next((attribute.i for attribute in node.attribute if attribute.name == name), default)


def attributes(node: NodeProto, name: str) -> list[int] | None:
    """An attribute of ints, None where it is left out."""
    return next(
        (list(attribute.ints) for attribute in node.attribute if attribute.name == name), None
    )


def text(node: NodeProto, name: str, default: str) -> str:
    """A string attribute."""
    return next(
        (attribute.s.decode() for attribute in node.attribute if attribute.name == name), default
    )


def has(node: NodeProto, name: str) -> bool:
    """Whether an attribute is given."""
    return any(attribute.name == name for attribute in node.attribute)


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
