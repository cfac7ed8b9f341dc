"""The JSON schemas that the package ships: `python -m passes.builds.schemas` writes them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from passes.builds.config import Build, OverrideTable, Verifying
from passes.commands.declaring import options_of
from passes.commands.registry import load_commands
from passes.inspection.inspection import VERSION as INSPECT_VERSION
from passes.inspection.inspection import Inspection
from passes.proving.certificates.certificate import VERSION as CERTIFICATE_VERSION
from passes.proving.certificates.certificate import Certificate
from passes.reports.json_values import document, schema_of
from passes.reports.report_file import VERSION, ReportFile
from passes.support.operators import VERSION as OPERATORS_VERSION
from passes.support.operators import Operators

DIALECT = "https://json-schema.org/draft/2020-12/schema"


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


def _file(kind: type, title: str, version: int) -> dict[str, Any]:
    """The schema of a file that holds a dataclass."""
    return {"$schema": DIALECT, "title": f"{title}, version {version}", **schema_of(kind)}


#: The dataclass in each file of a version, and its title.
_FILES = {
    "report": (ReportFile, "Report of passes", VERSION),
    "certificate": (Certificate, "Certificate of passes", CERTIFICATE_VERSION),
    "inspect": (Inspection, "Findings of inspect", INSPECT_VERSION),
    "operators": (Operators, "Operators of passes", OPERATORS_VERSION),
}
#: What makes each schema, by the name of its file.
SCHEMAS: Mapping[str, Callable[[], dict[str, Any]]] = {
    **{f"{name}-{row[2]}.schema.json": partial(_file, *row) for name, row in _FILES.items()},
    "config.schema.json": config,
}


if __name__ == "__main__":
    for name, made in SCHEMAS.items():
        Path(__file__).with_name(name).write_text(document(made()), encoding="utf-8")
