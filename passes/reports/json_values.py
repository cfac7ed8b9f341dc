"""JSON of plain values and dataclasses, written and read."""

from __future__ import annotations

import json
import types
import typing
from collections.abc import Mapping, Sequence
from dataclasses import is_dataclass
from enum import StrEnum
from typing import Any


def as_json(value: Any, indent: int | None = None) -> str:
    """The JSON of plain values, tuples, paths and words."""
    return json.dumps(value, indent=indent, ensure_ascii=False, allow_nan=False, default=str)


def read_as(kind: Any, value: Any) -> Any:
    """The value of a type that JSON holds, dataclasses with their fields.

    Raises:
        TypeError: it is of another form.
    """
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin in (types.UnionType, typing.Union):
        fits = [one for one in arguments if one is type(value)]
        return value if fits else read_as(arguments[0], value)
    if origin is typing.Literal:
        if value not in arguments:
            raise TypeError(f"{value!r} is none of {', '.join(map(repr, arguments))}")
        return value
    if origin in (tuple, list, Sequence) and not isinstance(value, list | tuple):
        raise TypeError(f"{value!r} is no list")
    if origin is tuple and arguments[-1] is not Ellipsis:
        return tuple(read_as(one, part) for one, part in zip(arguments, value, strict=True))
    if origin in (tuple, list, Sequence):
        return [read_as(arguments[0], part) for part in value]
    if origin in (dict, Mapping):
        return {name: read_as(arguments[1], part) for name, part in value.items()}
    if is_dataclass(kind):
        hints = typing.get_type_hints(kind)
        made: Any = kind
        return made(**{name: read_as(hints[name], part) for name, part in value.items()})
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        return kind(value)
    if kind in (str, int, bool) and type(value) is not kind:
        raise TypeError(f"{value!r} is no {kind.__name__}")
    return value
