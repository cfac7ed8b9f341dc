"""Adds the pages of the documentation that are not in `docs/`, when MkDocs builds it.

`CONTRIBUTING.md` and others are pages, too: links to and from them are made to fit the site.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path

import cases_page
import commands_page
import functions_page
import releases_page
import rule_pages
import schema_page
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[2]
#: Pages by the file outside of `docs/` that they are made of.
OUTSIDE = {
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "benchmarks/README.md": "benchmarks.md",
}
_TABLE = re.compile(r'class="language-console( highlight"(?:(?!</div>).)*┏)', re.DOTALL)
_LINK = re.compile(r"\[([^\]]*)\]\((?![a-z]+:)([^)#\s]+)(#[^)\s]*)?\)")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Put the pages that are made into the navigation, below those that lead to them."""
    below = {"rules.md": [f"rules/{name}.md" for name in rule_pages.names()]}
    if cases_page.TABLE.exists():
        below["opset-down.md"] = [cases_page.NAME]
    for section in config.nav or ():
        for entry in next(iter(section.values())) if isinstance(section, dict) else ():
            for title, name in entry.items() if isinstance(entry, dict) else ():
                entry[title] = [name, *below[name]] if name in below else name
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are made of other files, or take the place of those in `docs/`."""
    made = {
        **{name: (ROOT / source).read_text(encoding="utf-8") for source, name in OUTSIDE.items()},
        **dict(rule_pages.pages()),
        "reference/commands.md": commands_page.page(),
        "reference/configuration.md": schema_page.configuration(),
        "reference/report.md": schema_page.report(),
        "reference/releases.md": releases_page.page(),
    }
    if text := cases_page.page():
        made[cases_page.NAME] = text
    for name, text in made.items():
        if (old := files.get_file_from_path(name)) is not None:
            files.remove(old)
        files.append(File.generated(config, name, content=text))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Let links that are right in the repository be right in the site."""
    uri = page.file.src_uri
    source = {name: path for path, name in OUTSIDE.items()}.get(uri, f"docs/{uri}")

    def mended(link: re.Match[str]) -> str:
        text, path, anchor = link[1], link[2], link[3] or ""
        target = posixpath.normpath(posixpath.join(posixpath.dirname(source), path))
        if target in OUTSIDE:
            place = OUTSIDE[target]
        elif target.startswith("docs/"):
            place = target.removeprefix("docs/")
            if place == "rules.md" and anchor[1:] in rule_pages.names():  # a page of its own here
                place, anchor = f"rules/{anchor[1:]}.md", ""
        else:  # a file of the sources; what is no file at all fails the build
            return f"{text} (`{target}`)" if (ROOT / target).is_file() else link[0]
        return f"[{text}]({posixpath.relpath(place, posixpath.dirname(uri) or '.')}{anchor})"

    return _LINK.sub(mended, functions_page.filled(markdown))


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Mark output that is a table, whose lines must not be wrapped."""
    return _TABLE.sub(r'class="table language-console\1', html)
