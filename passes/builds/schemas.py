"""The JSON schemas that the package ships: `python -m passes.builds.schemas` writes them."""

from __future__ import annotations

import json
import types
import typing
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from enum import StrEnum
from importlib import import_module
from pathlib import Path
from typing import Any

from passes.builds.config import Build, OverrideTable, Verifying
from passes.builds.report_file import VERSION, ReportFile
from passes.commands.declaring import options_of
from passes.commands.registry import Command, load_commands, rewriting_commands
from passes.proving.certificates.certificate import VERSION as CERTIFICATE_VERSION
from passes.proving.certificates.certificate import Certificate


def report() -> dict[str, Any]:
    """The schema of the report file."""
    title = f"Report of passes, version {VERSION}"
    return {"$schema": DIALECT, "title": title, **schema_of(ReportFile)}


def certificate() -> dict[str, Any]:
    """The schema of a certificate."""
    title = f"Certificate of passes, version {CERTIFICATE_VERSION}"
    return {"$schema": DIALECT, "title": title, **schema_of(Certificate)}


def of_command(command: Command) -> tuple[str, dict[str, Any]]:
    """The name and the schema of the file that a command writes with `--json`."""
    form = command.schema
    assert form is not None
    module = import_module(form.module)
    title = f"{form.title}, version {module.VERSION}"
    schema = schema_of(getattr(module, form.name))
    name = f"{command.name}-{module.VERSION}.schema.json"
    return name, {"$schema": DIALECT, "title": title, **schema}


def config() -> dict[str, Any]:
    """The schema of `passes.toml`, as JSON shows it."""
    commands = rewriting_commands()
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


def schemas() -> dict[str, dict[str, Any]]:
    """Each schema, by the name of its file."""
    commands = load_commands().values()
    return {
        f"report-{VERSION}.schema.json": report(),
        f"certificate-{CERTIFICATE_VERSION}.schema.json": certificate(),
        **dict(of_command(one) for one in commands if one.schema is not None),
        "config.schema.json": config(),
    }


if __name__ == "__main__":
    for name, made in schemas().items():
        text = json.dumps(made, indent=2, ensure_ascii=False)
        Path(__file__).with_name(name).write_text(text + "\n", encoding="utf-8")
