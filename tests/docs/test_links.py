"""Each link of a page leads to a file of the repository, and to a heading of it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), ROOT / "benchmarks/README.md"]
_FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\[[^\]]*\]\((?![a-z]+:)([^)#\s]*)(?:#([^)\s]*))?\)")
_HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)


def anchors(page: Path) -> set[str]:
    """The names of a page's headings in links."""
    headings = _HEADING.findall(_FENCE.sub("", page.read_text()))
    return {re.sub(r"[^\w\- ]", "", one.lower()).replace(" ", "-") for one in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: f"{page.relative_to(ROOT)}")
def test_each_link_of_a_page_leads_somewhere(page: Path) -> None:
    for path, anchor in _LINK.findall(_FENCE.sub("", page.read_text())):
        target = page.parent / path if path else page
        assert target.exists(), path
        made = target.parent.name == "reference" and "`python docs/builder`" in target.read_text()
        assert not anchor or made or anchor in anchors(target), f"{path}#{anchor}"
