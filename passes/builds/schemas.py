"""The JSON schemas that the package ships: `python -m passes.builds.schemas` writes them."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from passes.builds.config import Build, OverrideTable, Verifying
from passes.commands.declaring import options_of
from passes.commands.registry import Command, load_commands, rewriting_commands
from passes.proving.certificate import VERSION as CERTIFICATE_VERSION
from passes.proving.certificate import Certificate
from passes.reports.json_values import document, schema_of
from passes.reports.report_file import VERSION, ReportFile

DIALECT = "https://json-schema.org/draft/2020-12/schema"


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
    own = {option.file_key: option.schema() for option in options_of(declared, "file").values()}
    return {
        "type": "object",
        "properties": {**own, **(more or {})},
        "additionalProperties": False,
        **({"required": list(required)} if required else {}),
    }


def _file(name: str, kind: type, title: str, version: int) -> tuple[str, dict[str, Any]]:
    """The name and the schema of a file that holds a dataclass."""
    schema = {"$schema": DIALECT, "title": f"{title}, version {version}", **schema_of(kind)}
    return f"{name}-{version}.schema.json", schema


def of_command(command: Command) -> tuple[str, dict[str, Any]]:
    """The name and the schema of the file that a command writes with `--json`."""
    form = command.schema
    assert form is not None
    module = import_module(form.module)
    return _file(command.name, getattr(module, form.name), form.title, module.VERSION)


def schemas() -> dict[str, dict[str, Any]]:
    """Each schema, by the name of its file."""
    commands = [one for one in load_commands().values() if one.schema is not None]
    return dict(
        [
            _file("report", ReportFile, "Report of passes", VERSION),
            _file("certificate", Certificate, "Certificate of passes", CERTIFICATE_VERSION),
            *map(of_command, commands),
            ("config.schema.json", config()),
        ]
    )


if __name__ == "__main__":
    for name, made in schemas().items():
        Path(__file__).with_name(name).write_text(document(made), encoding="utf-8")
