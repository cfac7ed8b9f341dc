"""JSON and TOML of plain values and dataclasses: written, read, and described by a schema."""

from __future__ import annotations

import json
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, Field, asdict, fields, is_dataclass
from enum import StrEnum
from typing import Any

from passes.errors import nearest

#: Plain types, by their names in schemas and in sentences.
_PLAIN: Mapping[Any, tuple[str, str]] = {
    bool: ("boolean", "true or false"),
    int: ("integer", "a whole number"),
    float: ("number", "a number"),
    str: ("string", "a string"),
}
_UNIONS = (types.UnionType, typing.Union)
_LISTS = (tuple, list, Sequence)


def as_json(value: Any, indent: int | None = None, *, sort_keys: bool = False) -> str:
    """The JSON of plain values, tuples, paths and words."""
    more: dict[str, Any] = {"ensure_ascii": False, "allow_nan": False, "default": str}
    return json.dumps(value, indent=indent, sort_keys=sort_keys, **more)


def document(value: Any) -> str:
    """The contents of a JSON file with a value or dataclass."""
    whole = asdict(value) if is_dataclass(value) and not isinstance(value, type) else value
    return as_json(whole, indent=2) + "\n"


class Unreadable(ValueError):
    """Data that is not what it should be; `where` is the path of the key, which `joint` joins to
    the sentence."""

    def __init__(self, where: Sequence[str | int], sentence: str, joint: str = ": ") -> None:
        super().__init__(joint.join(filter(None, (".".join(map(str, where)), sentence))))
        self.where = tuple(where)


def read_as(
    kind: Any,
    value: Any,
    where: tuple[str | int, ...] = (),
    spelled: Callable[[str], str] = str,
) -> Any:
    """The value of a type that JSON or TOML holds; `spelled` gives the key of a field by its name.

    Raises:
        Unreadable: a key is unknown or missing, or a value is of another type.
    """

    def part(kind: Any, value: Any, *key: str | int) -> Any:
        return read_as(kind, value, (*where, *key), spelled)

    def check(right: bool, words: str) -> None:
        if not right:
            raise Unreadable(where, f"is {value!r}, not {words}")

    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if kind is Any or (value is None and type(None) in arguments):
        return value
    if origin in _UNIONS:
        return _first_of([one for one in arguments if one is not type(None)], value, part)
    if origin is typing.Literal:
        check(value in arguments, f"one of {', '.join(map(str, arguments))}")
        return value
    if origin in (dict, Mapping):
        check(isinstance(value, dict), "a table")
        return {key: part(arguments[1], one, key) for key, one in value.items()}
    if origin in _LISTS:
        check(isinstance(value, list | tuple), "a list")
        if origin is tuple and arguments[-1] is not Ellipsis:
            check(len(value) == len(arguments), f"{len(arguments)} values")
            return tuple(part(arguments[at], one, at) for at, one in enumerate(value))
        return [part(arguments[0], one, at) for at, one in enumerate(value)]
    if is_dataclass(kind):
        check(isinstance(value, dict), "a table")
        return _object(kind, value, where, {spelled(one.name): one for one in fields(kind)}, part)
    if issubclass(kind, StrEnum):
        check(value in [*kind], f"one of {', '.join(kind)}")
    else:
        plain = isinstance(value, int | float) if kind is float else isinstance(value, kind)
        check(plain and (kind is bool or not isinstance(value, bool)), _PLAIN[kind][1])
    return kind(value)


def _first_of(kinds: Sequence[Any], value: Any, part: Callable[..., Any]) -> Any:
    for kind in kinds:
        try:
            return part(kind, value)
        except Unreadable as error:
            last = error
    raise last


def _object(
    kind: Any,
    value: Mapping[str, Any],
    where: tuple[str | int, ...],
    known: Mapping[str, Field[Any]],
    part: Callable[..., Any],
) -> Any:
    hints = typing.get_type_hints(kind)
    values = {}
    for key, one in value.items():
        if key not in known:
            near = nearest(key, sorted(known))
            raise Unreadable((*where, key), f"there is no key {key!r}; {near}")
        name = known[key].name
        values[name] = part(hints[name], one, key)
    for key, field in known.items():
        if _is_required(field) and field.name not in values:
            raise Unreadable(where, f"has no {key!r}")
    return kind(**values)


def _is_required(field: Field[Any]) -> bool:
    return field.default is MISSING and field.default_factory is MISSING


def schema_of(kind: Any) -> dict[str, Any]:
    """The schema of what JSON holds for a value of a type.

    Raises:
        TypeError: there is no rule for the type.
    """
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if kind is Any:
        return {}
    if origin in _UNIONS:
        return {"anyOf": [schema_of(one) for one in arguments]}
    if kind is type(None):
        return {"type": "null"}
    if origin is typing.Literal:
        return {"enum": list(arguments)}
    if origin is tuple and arguments[-1] is not Ellipsis:
        items = [schema_of(one) for one in arguments]
        return {"type": "array", "prefixItems": items, "items": False}
    if origin in _LISTS:
        return {"type": "array", "items": schema_of(arguments[0])}
    if origin in (dict, Mapping):
        return {"type": "object", "additionalProperties": schema_of(arguments[1])}
    if kind in _PLAIN:
        return {"type": _PLAIN[kind][0]}
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        return {"enum": [str(word) for word in kind]}
    if is_dataclass(kind):
        hints = typing.get_type_hints(kind)
        return {
            "type": "object",
            "properties": {one.name: schema_of(hints[one.name]) for one in fields(kind)},
            "required": [one.name for one in fields(kind) if _is_required(one)],
            "additionalProperties": False,
        }
    raise TypeError(f"there is no schema of {kind!r}")
