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
_LINK = re.compile(r"\[([^\]]*)\]\((?![a-z]+:)([^)#\s]+)(#[^)\s]*)?\)")


def pages() -> dict[str, str]:
    """The Markdown of each page by its path in the site."""
    docs = ROOT / "docs"
    written = {path.relative_to(docs): path for path in sorted(docs.rglob("*.md"))}
    found = {one.as_posix(): path for one, path in written.items() if one.parts[0] not in _NO_PAGES}
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


def write(folder: Path) -> Path:
    """Write all that the site is built of to a folder; return the file of its settings.

    Raises:
        SystemExit: The navigation lacks a page, or has one that does not exist.
    """
    found, nav = pages(), navigation()
    if apart := found.keys() ^ set(_listed(nav)):
        raise SystemExit(f"zensical.toml: pages that do not exist, or not in nav: {sorted(apart)}")
    shutil.rmtree(folder, ignore_errors=True)
    for name, text in found.items():
        path = folder / "docs" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    shutil.copytree(ROOT / "docs/assets", folder / "docs/assets")
    for image in (ROOT / "docs").glob("*.png"):
        shutil.copy(image, folder / "docs")
    project = _project() | {"nav": nav}
    project["plugins"]["mkdocstrings"]["handlers"]["python"]["paths"] = [str(ROOT)]
    file = folder / "mkdocs.yml"  # JSON is YAML; Python writes no TOML
    file.write_text(json.dumps(project, indent=1), encoding="utf-8")
    return file


def navigation() -> list[Any]:
    """The navigation of `zensical.toml`; pages that are made are below those that lead to them."""
    below: dict[str, list[Any]] = {
        "rules.md": [{name: f"rules/{name}.md"} for name in rule_pages.names()]
    }
    if cases_page.TABLE.exists():
        below["opset-down.md"] = [cases_page.NAME]
    return _with(below, _project()["nav"])


def _project() -> dict[str, Any]:
    text = (ROOT / "zensical.toml").read_text(encoding="utf-8")
    project: dict[str, Any] = tomllib.loads(text)["project"]
    return project


def _with(below: dict[str, list[Any]], entries: list[Any]) -> list[Any]:
    """Entries of the navigation, where a page with others below it becomes a section."""
    return [
        entry
        if isinstance(entry, str)
        else {
            title: _with(below, inner)
            if isinstance(inner, list)
            else [inner, *below[inner]]
            if inner in below
            else inner
            for title, inner in entry.items()
        }
        for entry in entries
    ]


def _listed(entries: list[Any]) -> list[str]:
    """The pages of a navigation, in order."""
    inner = (
        one for entry in entries for one in ([entry] if isinstance(entry, str) else entry.values())
    )
    return [page for one in inner for page in (_listed(one) if isinstance(one, list) else [one])]


def _fitted(name: str, markdown: str) -> str:
    """A page with the links that are right in the site."""
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

    return _LINK.sub(mended, functions_page.filled(markdown))
