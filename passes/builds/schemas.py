"""The JSON schemas that the package ships: `python -m passes.builds.schemas` writes them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from passes.builds.config import Build, OverrideTable, Verifying
from passes.builds.report_file import VERSION, ReportFile
from passes.commands.declaring import options_of
from passes.commands.registry import load_commands
from passes.commands.schema import DIALECT, schema_of


def report() -> dict[str, Any]:
    """The schema of the report file."""
    title = f"Report of passes, version {VERSION}"
    return {"$schema": DIALECT, "title": title, **schema_of(ReportFile)}


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
        if "file" in option.says.shown
    }
    return {
        "type": "object",
        "properties": {**own, **(more or {})},
        "additionalProperties": False,
        **({"required": list(required)} if required else {}),
    }


#: What makes each schema, by the name of its file.
SCHEMAS: Mapping[str, Callable[[], dict[str, Any]]] = {
    f"report-{VERSION}.schema.json": report,
    "config.schema.json": config,
}


if __name__ == "__main__":
    for name, made in SCHEMAS.items():
        text = json.dumps(made(), indent=2, ensure_ascii=False)
        Path(__file__).with_name(name).write_text(text + "\n", encoding="utf-8")
