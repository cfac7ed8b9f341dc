"""JSON schemas (2020-12) of dataclasses, made of their fields."""

from __future__ import annotations

import types
import typing
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from enum import StrEnum
from typing import Any

DIALECT = "https://json-schema.org/draft/2020-12/schema"
_PLAIN: Mapping[Any, str] = {bool: "boolean", int: "integer", float: "number", str: "string"}


def schema_of(kind: Any) -> dict[str, Any]:
    """The schema of what JSON holds for a value of a type.

    Raises:
        TypeError: there is no rule for the type.
    """
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if kind is Any:
        return {}
    if origin in (types.UnionType, typing.Union):
        return {"anyOf": [schema_of(one) for one in arguments]}
    if kind is type(None):
        return {"type": "null"}
    if origin is typing.Literal:
        return {"enum": list(arguments)}
    if origin is tuple and arguments[-1] is not Ellipsis:
        items = [schema_of(one) for one in arguments]
        return {"type": "array", "prefixItems": items, "items": False}
    if origin in (tuple, list, Sequence):
        return {"type": "array", "items": schema_of(arguments[0])}
    if origin in (dict, Mapping):
        return {"type": "object", "additionalProperties": schema_of(arguments[1])}
    if kind in _PLAIN:
        return {"type": _PLAIN[kind]}
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        return {"enum": [str(word) for word in kind]}
    if is_dataclass(kind):
        return _object(kind)
    raise TypeError(f"there is no schema of {kind!r}")


def _object(kind: Any) -> dict[str, Any]:
    hints = typing.get_type_hints(kind)
    own = fields(kind)
    required = [
        one.name for one in own if one.default is MISSING and one.default_factory is MISSING
    ]
    return {
        "type": "object",
        "properties": {one.name: schema_of(hints[one.name]) for one in own},
        "required": required,
        "additionalProperties": False,
    }
