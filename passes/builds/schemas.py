"""The JSON schemas that the package ships: `python -m passes.builds.schemas` writes them."""

from __future__ import annotations

import json
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from passes.builds.config import Build, OverrideTable, Verifying
from passes.builds.report_file import VERSION, ReportFile
from passes.commands.declaring import options_of
from passes.commands.registry import load_commands
from passes.inspection.inspection import VERSION as INSPECT_VERSION
from passes.inspection.inspection import Inspection
from passes.proving.certificates.certificate import VERSION as CERTIFICATE_VERSION
from passes.proving.certificates.certificate import Certificate
from passes.support.operators import VERSION as OPERATORS_VERSION
from passes.support.operators import Operators


def report() -> dict[str, Any]:
    """The schema of the report file."""
    title = f"Report of passes, version {VERSION}"
    return {"$schema": DIALECT, "title": title, **schema_of(ReportFile)}


def certificate() -> dict[str, Any]:
    """The schema of a certificate."""
    title = f"Certificate of passes, version {CERTIFICATE_VERSION}"
    return {"$schema": DIALECT, "title": title, **schema_of(Certificate)}


def inspection() -> dict[str, Any]:
    """Return the schema of the file that `inspect --json` writes."""
    title = f"Findings of inspect, version {INSPECT_VERSION}"
    return {"$schema": DIALECT, "title": title, **schema_of(Inspection)}


def operators() -> dict[str, Any]:
    """The schema of the file that `operators --json` writes."""
    title = f"Operators of passes, version {OPERATORS_VERSION}"
    return {"$schema": DIALECT, "title": title, **schema_of(Operators)}


def config() -> dict[str, Any]:
    """The schema of `passes.toml`, as JSON shows it."""
    commands = load_commands()
    step = {
        "anyOf": [
            {"enum": list(commands)},
            *(
                _table(one.options, {"command": {"const": name}}, ("command",))
                for name, one in commands.items()
            ),
        ]
    }
    pipeline = {"type": "array", "items": {"$ref": "#/$defs/step"}, "minItems": 1}
    verify = _table(Verifying)
    tables = {
        "pipelines": {"type": "object", "additionalProperties": pipeline},
        "verify": {"$ref": "#/$defs/verify"},
        "overrides": {
            "type": "array",
            "items": _table(OverrideTable, {"verify": {"$ref": "#/$defs/verify"}}, ("models",)),
        },
    }
    made = _table(Build, tables)
    return {
        "$schema": DIALECT,
        "title": "passes.toml",
        **made,
        "$defs": {"step": step, "verify": verify},
    }


def _table(
    declared: type, more: Mapping[str, Any] | None = None, required: tuple[str, ...] = ()
) -> dict[str, Any]:
    """The schema of a table that holds options."""
    own = {
        option.file_key: option.schema()
        for option in options_of(declared).values()
        if "file" in option.help.shown
    }
    return {
        "type": "object",
        "properties": {**own, **(more or {})},
        "additionalProperties": False,
        **({"required": list(required)} if required else {}),
    }


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


#: What makes each schema, by the name of its file.
SCHEMAS: Mapping[str, Callable[[], dict[str, Any]]] = {
    f"report-{VERSION}.schema.json": report,
    f"certificate-{CERTIFICATE_VERSION}.schema.json": certificate,
    f"inspect-{INSPECT_VERSION}.schema.json": inspection,
    f"operators-{OPERATORS_VERSION}.schema.json": operators,
    "config.schema.json": config,
}


if __name__ == "__main__":
    for name, made in SCHEMAS.items():
        text = json.dumps(made(), indent=2, ensure_ascii=False)
        Path(__file__).with_name(name).write_text(text + "\n", encoding="utf-8")
