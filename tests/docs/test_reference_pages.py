"""The reference pages that are made of the code are complete."""

from __future__ import annotations

import importlib
import json
import re
from pathlib import Path
from typing import Any

import commands_page
import functions_page
import pytest
import refusals
import releases_page
import rule_pages
import schema_page

from passes.commands.declaring import options_of
from passes.commands.registry import load_commands
from passes.onnxruntime.releases import RELEASES
from passes.rule import load_rules

ROOT = Path(__file__).parents[2]


def test_each_command_and_option_is_on_the_page() -> None:
    page = commands_page.page()
    for name, command in load_commands().items():
        anchor = name.replace(" ", "-")
        assert f"## passes {name} {{#{anchor}}}\n" in page
        for option in options_of(command.options).values():
            shown = "cli" in option.help.shown and not option.is_argument
            assert not shown or f"`--{option.key}`" in page, option.name
    assert "| `--batch` `auto` `vectorize` `mask` `nest` `unroll` |" in page


@pytest.mark.parametrize("name", ["config", "report-1"])
def test_each_key_of_a_schema_has_a_row_with_its_meaning(name: str) -> None:
    page = schema_page.configuration() if name == "config" else schema_page.report()
    schema = json.loads((ROOT / f"passes/builds/{name}.schema.json").read_text())
    for key in _keys({key: one for key, one in schema.items() if key != "$defs"}):
        (row, *_) = [line for line in page.splitlines() if line.startswith(f"| `{key}` |")]
        assert not row.endswith("|  |"), row


def _keys(schema: Any) -> set[str]:
    """The keys of all objects in a schema."""
    if isinstance(schema, list):
        return set().union(*map(_keys, schema))
    if not isinstance(schema, dict):
        return set()
    inner = {key: one for key, one in schema.items() if key not in ("properties", "enum")}
    own = schema.get("properties", {})
    return set(own) | set().union(*map(_keys, inner.values()), *map(_keys, own.values()), set())


def test_what_the_page_of_the_library_names_is_there() -> None:
    page = (ROOT / "docs/reference/api.md").read_text()
    for name in re.findall(r"^::: (.*)$", page, re.MULTILINE):
        module, _, own = name.rpartition(".")
        assert hasattr(importlib.import_module(module), own), name
    filled = functions_page.filled(page)
    for name in ("inspect", "compare", "prove", "bisect", "check_target", "known_operators", "run"):
        assert f"### passes.{name}\n" in filled
        assert f"::: passes.{name}\n" not in filled
    assert "- `max_trips`: Promised: no Loop" in filled


def test_each_release_of_onnxruntime_has_a_row() -> None:
    page = releases_page.page()
    for release in RELEASES:
        assert f"| 1.{release.minor} | {release.opset} | {release.ir_version} |" in page
    assert "RoiAlign" in page


def test_a_command_is_that_of_the_folder() -> None:
    folder = ROOT / "golden_models"
    code, words = refusals.command_of(folder / "unroll/another_size.refused.onnxtxt")
    assert code == "not-speculatable"
    assert " ".join(words) == (
        "unroll golden_models/unroll/another_size.refused.onnxtxt --max-trips 3 --bounded select"
    )
    _, words = refusals.command_of(folder / "peel/random.refused.onnxtxt")
    assert words[0] == "unroll"
    assert words[-2:] == ["--peel", "first"]


def test_the_page_of_all_rules_is_up_to_date() -> None:
    page = (ROOT / "docs/rules.md").read_text()
    assert page == rule_pages.document(), "python docs/builder/rule_pages.py docs/rules.md"


@pytest.mark.slow
def test_each_code_of_each_rule_has_an_example_or_a_reason() -> None:
    pages = dict(rule_pages.pages())
    assert set(pages) == {"rules.md", *(f"rules/{name}.md" for name in rule_pages.names())}
    for name, rule in load_rules().items():
        for code in rule.refusal_codes:
            examples = rule_pages.shown(name, code)
            assert bool(examples) != ((name, code) in rule_pages.NOT_SHOWN), (name, code)
            assert f"### {code}\n" in pages[f"rules/{name}.md"]
            assert all(f"code {code}]" in one.line for one in examples)
