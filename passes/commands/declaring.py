"""Options declared once: fields of frozen dataclasses, with their help texts and limits."""

from __future__ import annotations

import json
import os
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from enum import StrEnum
from functools import cache, reduce
from math import isfinite
from operator import or_
from typing import TYPE_CHECKING, Any

from passes.errors import nearest
from passes.reports.json_values import schema_of

if TYPE_CHECKING:
    from passes.session import Source as Source
    from passes.verify.executor import Feeds as Feeds
else:  # these are imported with onnx, without which help is quick
    Source = Feeds = Any
Place = str | os.PathLike[str]


@dataclass(frozen=True)
class Help:
    """The declaration of a field besides its type and default: the `text` of its help, the
    words it is `among`, its `least` value, and its spelling on the command line: as `flag`, with a
    `metavar`.

    `shown` names where the option exists: on the command line (`cli`), in a configuration file
    (`file`), as a keyword of the library (`api`). `report`: it is the path of a file that is
    written, and no other file of the command. `refuse` raises WrongValue for what is no value.
    """

    text: str = ""
    among: type[StrEnum] | None = None
    least: float | None = None
    flag: str = ""
    metavar: str | None = None
    shown: frozenset[str] = frozenset({"cli", "file", "api"})
    report: bool = False
    refuse: Callable[[str], None] | None = None


@dataclass(frozen=True)
class Argument(Help):
    """The declaration of a field that is given by its position on the command line."""


def option(default: Any, text: str = "", among: type[StrEnum] | None = None, **more: Any) -> Any:
    """The default of a field, with its declaration; `more` are fields of `Help`."""
    return field(default=default, metadata={Help: Help(text, among, **more)})


def argument(text: str, *, default: Any = MISSING, **more: Any) -> Any:
    """The same of a positional argument."""
    return field(default=default, metadata={Help: Argument(text, **more)})


class WrongOption(Exception):
    """An option has a value that it cannot have; `name` is the option's."""

    def __init__(self, name: str, sentence: str) -> None:
        super().__init__(f"{name} {sentence}")
        self.name, self.sentence = name, sentence


class WrongValue(WrongOption, ValueError):
    """A value of the right type, but not one of the option's."""


class WrongType(WrongOption, TypeError):
    """A value of another type."""


@dataclass(frozen=True)
class ValueKind:
    """A type that an option may have: how a value of it is recognized, stored, and printed in
    reports, where it is distinguished from all others; its schema in files, if it is another one
    than that of the type."""

    sentence: str
    accepts: Callable[[Any], bool]
    stored: Callable[[Any], Any] = lambda value: value
    printed: Callable[[Any], Any] = lambda value: value
    schema: Mapping[str, Any] | None = None


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_integer(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_list(value: Any) -> bool:
    if isinstance(value, str) or not isinstance(value, Sequence):
        return False
    return all(isinstance(item, str) for item in value)


def _is_sizes(value: Any) -> bool:
    if not isinstance(value, Mapping):
        return False
    return all(
        isinstance(name, str)
        and (size >= 0 if _is_integer(size) else isinstance(size, str) and not size.isdecimal())
        for name, size in value.items()
    )


def _is_shapes(value: Any) -> bool:
    if not isinstance(value, Mapping):
        return False
    return all(
        isinstance(name, str)
        and isinstance(shape, Sequence)
        and all(size in (None, "?") or (_is_integer(size) and size >= 0) for size in shape)
        for name, shape in value.items()
    )


def _stored_shapes(value: Mapping[str, Sequence[Any]]) -> dict[str, tuple[int | None, ...]]:
    return {
        name: tuple(None if size == "?" else size for size in shape)
        for name, shape in value.items()
    }


def _stored_values(value: Mapping[str, Any]) -> dict[str, Any]:
    from passes.binding.values import held

    return {name: held(one) for name, one in value.items()}


def _printed_values(value: Mapping[str, Any]) -> dict[str, Any]:
    from passes.binding.values import printed

    return {name: printed(one) for name, one in value.items()}


def _are_two(value: Any) -> bool:
    return isinstance(value, Sequence) and len(value) == 2 and all(map(_is_number, value))


def _are_ranges(value: Any) -> bool:
    ends: Sequence[Any] = list(value.values()) if _is_named(value) else [()]
    return all(_are_two(one) and isfinite(one[1] - one[0]) and one[0] <= one[1] for one in ends)


def _is_named(value: Any) -> bool:
    return isinstance(value, Mapping) and all(isinstance(name, str) for name in value)


_WHOLE = {"type": "integer", "minimum": 0}
#: The kinds of options, by what is written in the declaration (without `| None`).
KINDS: Mapping[Any, ValueKind] = {
    bool: ValueKind("true or false", lambda value: isinstance(value, bool)),
    int: ValueKind("a whole number", _is_integer),
    float: ValueKind("a number", _is_number, float),
    str: ValueKind("a string", lambda value: isinstance(value, str), str),
    Place: ValueKind(
        "a path",
        lambda value: isinstance(value, str | os.PathLike),
        os.fspath,
        schema=schema_of(str),
    ),
    Sequence[str]: ValueKind("a list of strings", _is_list, lambda value: tuple(map(str, value))),
    Mapping[str, int | str]: ValueKind(
        "a mapping from names to sizes, or to other names",
        _is_sizes,
        dict,
        schema={"type": "object", "additionalProperties": {"anyOf": [_WHOLE, schema_of(str)]}},
    ),
    Mapping[str, Sequence[int | None]]: ValueKind(
        "a mapping from names to shapes",
        _is_shapes,
        _stored_shapes,
        schema={
            "type": "object",
            "additionalProperties": {
                "type": "array",
                "items": {"anyOf": [_WHOLE, {"const": "?"}]},
            },
        },
    ),
    Mapping[str, Any]: ValueKind(
        "a mapping from names to values",
        _is_named,
        _stored_values,
        _printed_values,
        {"type": "object"},
    ),
    Mapping[str, tuple[float, float]]: ValueKind(
        "a mapping from names to a least and a largest number",
        _are_ranges,
        lambda value: {name: (float(low), float(high)) for name, (low, high) in value.items()},
        schema={"type": "object", "additionalProperties": {"type": "array", "minItems": 2}},
    ),
    Callable[[str], None]: ValueKind("a function of a string", callable),
    bool | Place: ValueKind(
        "true, false or a path", lambda value: isinstance(value, bool | str | os.PathLike)
    ),
    tuple[str, str]: ValueKind("two strings", lambda v: _is_list(v) and len(v) == 2, tuple),
    Mapping[str, str]: ValueKind(
        "a mapping from names to names",
        lambda value: _is_named(value) and all(isinstance(one, str) for one in value.values()),
        dict,
    ),
    tuple[float, float]: ValueKind("two numbers", _are_two, tuple),
    Any: ValueKind("anything", lambda value: True),
    Sequence[Place]: ValueKind("a list of paths", lambda v: not isinstance(v, str), tuple),
    Sequence[Any]: ValueKind("a list", lambda v: isinstance(v, Sequence), tuple),
}


@dataclass(frozen=True)
class Option:
    """A field of an options class. `kind` is its type without `None`, its value if it is not set
    and has no `default`. `positional`: in Python it may be given by its position."""

    name: str
    annotation: Any
    optional: bool
    default: Any
    help: Help
    positional: bool = False

    @property
    def file_key(self) -> str:
        """Its name in files: with hyphens."""
        return self.name.strip("_").replace("_", "-")

    @property
    def key(self) -> str:
        """Its name on the command line."""
        return self.help.flag or self.file_key

    @property
    def is_argument(self) -> bool:
        """True if it is given by its position on the command line."""
        return isinstance(self.help, Argument)

    @property
    def kind(self) -> ValueKind:
        """The kind of its values."""
        return KINDS[self.annotation]

    def checked(self, value: Any) -> Any:
        """The value as it is stored.

        Raises:
            WrongType: it is of another type.
            WrongValue: it is none of the words, or too small.
        """
        if value is None and self.optional:
            return None
        if not self.kind.accepts(value):
            raise WrongType(self.name, f"is {value!r}, not {self.kind.sentence}")
        try:
            value = self.kind.stored(value)
        except TypeError as error:
            raise WrongType(self.name, f"is wrong: {error}") from error
        among, least = self.help.among, self.help.least
        if among is not None:
            words = (value,) if isinstance(value, str) else value
            if not set(words) <= set(among):
                listed = isinstance(value, tuple)
                shown, how = (list(value), "not among") if listed else (value, "not one of")
                raise WrongValue(self.name, f"is {shown!r}, {how} {', '.join(among)}")
        if least is not None and not value >= least:  # NaN is not
            raise WrongValue(self.name, f"is {value}, it must be {least} or more")
        if self.help.refuse is not None:
            self.help.refuse(value)
        return value

    def printed(self, value: Any) -> Any:
        """The value for reports."""
        return None if value is None else self.kind.printed(value)

    def flags(self, value: Any) -> list[str]:
        """The arguments that give the value on the command line; none for the default."""
        flag = f"--{self.key}"
        if value is None or value == self.default:
            return []
        if isinstance(value, bool):
            return [flag if value else f"--no-{self.key}"]
        if isinstance(value, Mapping):
            entries = [f"{name}={_spelled(one, self.annotation)}" for name, one in value.items()]
            return [word for entry in entries for word in (flag, entry)]
        if isinstance(value, tuple):
            return [word for one in value for word in (flag, one)]
        return [flag, f"{value}"]

    def schema(self) -> dict[str, Any]:
        """The JSON schema of its values."""
        schema = dict(self.kind.schema or schema_of(self.annotation))
        if self.help.among is not None:
            words = {"enum": [str(word) for word in self.help.among]}
            schema = {**schema, "items": words} if "items" in schema else words
        if self.help.least is not None:
            schema["minimum"] = self.help.least
        if self.help.text:
            schema["description"] = self.help.text
        if self.default not in (None, ()):
            listed = isinstance(self.default, tuple)
            schema["default"] = list(map(str, self.default)) if listed else self.default
        return schema


def _spelled(value: Any, kind: Any) -> str:
    """The value of an entry of a mapping on the command line."""
    if kind == Mapping[str, Sequence[int | None]]:
        return ",".join("?" if size is None else f"{size}" for size in value)
    if kind == Mapping[str, tuple[float, float]]:
        return "..".join(map(repr, value))
    # NaN and infinities, too, which no report writes as JSON
    plain = isinstance(value, bool | int | float | tuple)
    return json.dumps(value, ensure_ascii=False) if plain else f"{value}"


def flags_of(options: Declared) -> list[str]:
    """The arguments that give options on the command line, those that have defaults left out."""
    known = options_of(type(options)).items()
    given = [(one, getattr(options, name)) for name, one in known if not one.is_argument]
    return [flag for one, value in given for flag in one.flags(value)]


def options_of(declared: type, shown: str = "") -> Mapping[str, Option]:
    """The options of a class, by the names of its fields, in order; those that are `shown` on the
    command line, in a file or to the library, if that is named."""
    every = _read(declared)
    return {name: one for name, one in every.items() if shown in one.help.shown} if shown else every


@cache
def _read(declared: Any) -> Mapping[str, Option]:
    hints = typing.get_type_hints(declared, include_extras=True)
    found = {}
    for one in fields(declared):
        kind, help_ = hints[one.name], one.metadata.get(Help)
        if help_ is None:  # declared with the type, as several commands share it
            kind, help_ = typing.get_args(kind)[:2]
        union = typing.get_origin(kind) in (types.UnionType, typing.Union)
        parts = [part for part in typing.get_args(kind) if part is not type(None)] if union else []
        optional = union and len(parts) < len(typing.get_args(kind))
        if union:
            kind = Any if Any in parts else reduce(or_, parts)
        found[one.name] = Option(one.name, kind, optional, one.default, help_, not one.kw_only)
    return found


class Declared:
    """Base of frozen dataclasses whose fields are declared by `option` or `argument`, or of a type
    `Annotated[type, Help(...)]` that commands share. Checks each value, and stores it such that
    equal options are equal and can be pickled."""

    def __post_init__(self) -> None:
        for name, option in options_of(type(self)).items():
            object.__setattr__(self, name, option.checked(getattr(self, name)))
        self.check()

    def check(self) -> None:
        """See that the options make sense together.

        Raises:
            ValueError: they do not.
        """


def refuse_unknown(function: str, declared: type, keywords: Mapping[str, Any]) -> None:
    """See that there is an option of each name.

    Raises:
        TypeError: there is none; the sentence names the nearest.
    """
    known = options_of(declared, "api")
    for name in keywords:
        if name not in known:
            what = f"{function}() got an unexpected keyword argument {name!r}"
            raise TypeError(f"{what}; {nearest(name, sorted(known))}")
