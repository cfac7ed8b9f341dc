"""Reads plain data, as TOML gives it, into frozen dataclasses: every key and type is checked."""

from __future__ import annotations

import types
import typing
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from typing import Any

from passes.errors import nearest

_WORDS: Mapping[Any, str] = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "a string",
}


class Unreadable(ValueError):
    """Data that is not what it should be; `where` is the path of the key, `sentence` what is
    wrong with it."""

    def __init__(self, where: Sequence[str | int], sentence: str) -> None:
        super().__init__(": ".join(filter(None, (".".join(map(str, where)), sentence))))
        self.where, self.sentence = tuple(where), sentence


def read(kind: Any, value: Any, where: tuple[str | int, ...] = ()) -> Any:
    """Return the value converted to a type; hyphens in keys correspond to underscores in names of
    fields.

    Raises:
        Unreadable: a key is unknown or missing, or a value is of another type.
    """
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if kind is Any:
        return value
    if origin in (types.UnionType, typing.Union):
        return _one_of(arguments, value, where)
    if origin is typing.Literal:
        if value not in arguments:
            raise Unreadable(where, f"is {value!r}, not one of {', '.join(map(str, arguments))}")
        return value
    if origin is Mapping:
        _check(isinstance(value, dict), value, "a table", where)
        return {key: read(arguments[1], one, (*where, key)) for key, one in value.items()}
    if origin is Sequence:
        _check(isinstance(value, list), value, "a list", where)
        return tuple(read(arguments[0], one, (*where, at)) for at, one in enumerate(value))
    if is_dataclass(kind):
        return _object(kind, value, where)
    plain = isinstance(value, int | float) if kind is float else isinstance(value, kind)
    _check(plain and (kind is bool or not isinstance(value, bool)), value, _WORDS[kind], where)
    return kind(value)


def _one_of(kinds: Sequence[Any], value: Any, where: tuple[str | int, ...]) -> Any:
    for kind in kinds:
        if kind is type(None):
            continue
        try:
            return read(kind, value, where)
        except Unreadable as error:
            last = error
    raise last


def _object(kind: Any, value: Any, where: tuple[str | int, ...]) -> Any:
    _check(isinstance(value, dict), value, "a table", where)
    hints = typing.get_type_hints(kind)
    known = {field.name.strip("_").replace("_", "-"): field for field in fields(kind)}
    values = {}
    for key, one in value.items():
        if key not in known:
            near = nearest(key, sorted(known))
            raise Unreadable((*where, key), f"there is no key {key!r}; {near}")
        name = known[key].name
        values[name] = read(hints[name], one, (*where, key))
    for key, field in known.items():
        required = field.default is MISSING and field.default_factory is MISSING
        if required and field.name not in values:
            raise Unreadable(where, f"has no {key!r}")
    return kind(**values)


def _check(right: bool, value: Any, words: str, where: tuple[str | int, ...]) -> None:
    if not right:
        raise Unreadable(where, f"is {value!r}, not {words}")
