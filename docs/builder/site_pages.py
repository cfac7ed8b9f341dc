"""The pages of the site as they are built: those of `docs/`, and those that are made of the code.

`CONTRIBUTING.md` and others are pages, too: links to and from them are made to fit the site.
"""

from __future__ import annotations

import json
import posixpath
import re
import shutil
import tomllib
from pathlib import Path
from typing import Any

import cases_page
import commands_page
import functions_page
import releases_page
import rule_pages
import schema_page

ROOT = Path(__file__).parents[2]
#: Pages by the file outside of `docs/` that they are made of.
OUTSIDE = {
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "benchmarks/README.md": "benchmarks.md",
}
#: Folders of `docs/` that have no pages.
_NO_PAGES = ("builder", "examples")
_CONSOLE = re.compile(r"^```console\n((?:(?!^```$).*\n)*?.*┏)", re.MULTILINE)
_LINK = re.compile(r"\[([^\]]*)\]\((?![a-z]+:)([^)#\s]+)(#[^)\s]*)?\)")


def pages() -> dict[str, str]:
    """The Markdown of each page by its path in the site."""
    docs = ROOT / "docs"
    written = (path for path in sorted(docs.rglob("*.md")) if path.parts[-2] not in _NO_PAGES)
    found = {path.relative_to(docs).as_posix(): path for path in written}
    found = {name: path for name, path in found.items() if not name.startswith(_NO_PAGES)}
    found |= {name: ROOT / source for source, name in OUTSIDE.items()}
    made = {
        **{name: path.read_text(encoding="utf-8") for name, path in found.items()},
        **dict(rule_pages.pages()),
        "reference/commands.md": commands_page.page(),
        "reference/configuration.md": schema_page.configuration(),
        "reference/report.md": schema_page.report(),
        "reference/releases.md": releases_page.page(),
    }
    if text := cases_page.page():
        made[cases_page.NAME] = text
    return {name: _fitted(name, text) for name, text in made.items()}


def settings() -> dict[str, Any]:
    """The settings of `zensical.toml`, with the pages that are made in the navigation, below those
    that lead to them."""
    project: dict[str, Any] = tomllib.loads((ROOT / "zensical.toml").read_text())["project"]
    below = {"rules.md": [f"rules/{name}.md" for name in rule_pages.names()]}
    if cases_page.TABLE.exists():
        below["opset-down.md"] = [cases_page.NAME]
    project["nav"] = _with(below, project["nav"])
    return project


def write(folder: Path) -> Path:
    """Write the pages, the assets and the settings to a folder; return the file of the settings."""
    shutil.rmtree(folder, ignore_errors=True)
    for name, text in pages().items():
        path = folder / "docs" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    shutil.copytree(ROOT / "docs/assets", folder / "docs/assets")
    for image in (ROOT / "docs").glob("*.png"):
        shutil.copy(image, folder / "docs")
    file = folder / "mkdocs.yml"  # JSON is YAML; Python writes no TOML
    file.write_text(json.dumps(settings(), indent=1), encoding="utf-8")
    return file


def _with(below: dict[str, list[str]], entries: list[Any]) -> list[Any]:
    """Entries of the navigation, where a page with others below it becomes a section."""
    named = (entry if isinstance(entry, dict) else {None: entry} for entry in entries)
    pairs = [pair for entry in named for pair in entry.items()]
    return [
        {title: _with(below, inner)}
        if isinstance(inner, list)
        else {title: [inner, *below[inner]]}
        if inner in below
        else ({title: inner} if title else inner)
        for title, inner in pairs
    ]


def _fitted(name: str, markdown: str) -> str:
    """A page with the links that are right in the site, and its tables marked."""
    source = {page: path for path, page in OUTSIDE.items()}.get(name, f"docs/{name}")

    def mended(link: re.Match[str]) -> str:
        text, path, anchor = link[1], link[2], link[3] or ""
        target = posixpath.normpath(posixpath.join(posixpath.dirname(source), path))
        if target in OUTSIDE:
            place = OUTSIDE[target]
        elif target.startswith("docs/") and not target.startswith("docs/examples/"):
            place = target.removeprefix("docs/")
            if place == "rules.md" and anchor[1:] in rule_pages.names():  # a page of its own here
                place, anchor = f"rules/{anchor[1:]}.md", ""
        else:  # a file of the sources; what is no file at all fails the build
            return f"{text} (`{target}`)" if (ROOT / target).is_file() else link[0]
        return f"[{text}]({posixpath.relpath(place, posixpath.dirname(name) or '.')}{anchor})"

    # output that is a table, whose lines must not be wrapped
    markdown = _CONSOLE.sub(r"``` {.console .table}\n\1", functions_page.filled(markdown))
    return _LINK.sub(mended, markdown)
