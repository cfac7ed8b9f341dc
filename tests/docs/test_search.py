"""The search of the built site finds options by their names."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.reports.pages.browsing import Opened

ROOT = Path(__file__).parents[2]
PAGES = {
    "index.md": "# Sizes\n\nThe option `--dim batch=1` fixes a dim (`--shape`: those of an input).",
    "library.md": "# Library\n\nThe keyword `max_nodes=5` is `--max-nodes 5` [too-many-nodes].",
    "other.md": "# Other\n\nNo option is named here.",
}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A site of three pages with the settings and scripts of the real one."""
    pytest.importorskip("material")
    from mkdocs.commands.build import build
    from mkdocs.config import load_config

    folder = tmp_path_factory.mktemp("docs")
    for name, text in PAGES.items():
        (folder / name).write_text(text)
    (folder / "assets").mkdir()
    for script in (ROOT / "docs/assets").iterdir():
        (folder / "assets" / script.name).write_bytes(script.read_bytes())
    target = tmp_path_factory.mktemp("site")
    own = {"docs_dir": str(folder), "site_dir": str(target), "nav": [*PAGES], "hooks": []}
    config = load_config(str(ROOT / "mkdocs.yml"), strict=False, **own)
    config.plugins.on_startup(command="build", dirty=False)
    build(config)
    return target


@pytest.mark.sampled(2)  # one of each kind
@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("--dim", ["index.html"]),
        ("dim", ["index.html"]),
        ("max_nodes", ["library.html"]),
        ("--max-nodes", ["library.html"]),
        ("too-many-nodes", ["library.html"]),
        ("--shape", ["index.html"]),
        ("option -batch", ["other.html"]),
    ],
)
def test_an_option_is_found(opened: Opened, site: Path, query: str, expected: list[str]) -> None:
    page = opened(site / "index.html")
    page.set_default_timeout(10_000)
    page.locator("[data-md-component=search-query]").press_sequentially(query)
    page.locator(".md-search-result__meta", has_text="matching document").wait_for()
    results = page.locator(".md-search-result__link")
    addresses = results.evaluate_all("links => links.map(link => link.getAttribute('href'))")
    pages = {address.split("?")[0].split("#")[0].rpartition("/")[2] for address in addresses}
    assert sorted(pages) == expected
