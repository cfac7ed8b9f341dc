"""The command that shows the documentation, which is installed with this package."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from passes.commands.declaring import argument
from passes.commands.registry import command
from passes.commands.standalone import Say, Standalone, silent
from passes.errors import WrongUsage, nearest

#: Folders of the documentation that have pages; its other pages are made when the site is built.
_FOLDERS = ("tasks/", "")


@command("docs", short_help="Show a page of the documentation.")
@dataclass(frozen=True)
class Docs(Standalone):
    """Show a page of the documentation in Markdown, or list all pages.

    Words that are no page list the pages that have all of them in their headings. `passes COMMAND
    --help` describes the options of a command, `passes explain NAME` a rule or a code.
    """

    page: str = argument("A page, as build or tasks/npu, or words.", metavar="PAGE", default="")

    def run(self, say: Say = silent) -> str:
        """Return the text of a page, or a list of pages with their titles.

        Raises:
            WrongUsage: no page has this name, or these words in its headings.
        """
        from passes.reports.words import aligned

        texts = pages()
        if (text := texts.get(self.page.removesuffix(".md").removeprefix("docs/"))) is not None:
            return text.rstrip("\n")
        words = self.page.lower().split()
        found = {
            name: headings[0]
            for name, text in texts.items()
            if (headings := _headings(text)) and all(one in _joined(headings) for one in words)
        }
        if not found:
            raise WrongUsage(f"there is no page {self.page!r}; {nearest(self.page, texts)}")
        return "\n".join(aligned([[name, title] for name, title in found.items()], indent=""))


def pages() -> dict[str, str]:
    """The Markdown of each page by its name, tasks first."""
    installed = Path(str(resources.files("passes"))) / "docs"
    folder = installed if installed.is_dir() else Path(__file__).parents[2] / "docs"  # a checkout
    return {
        f"{inner}{path.stem}": path.read_text(encoding="utf-8")
        for inner in _FOLDERS
        for path in sorted((folder / inner).glob("*.md"))
    }


def _headings(text: str) -> list[str]:
    """The headings of a page, its title first."""
    lines = [part for block in text.split("```")[::2] for part in block.splitlines()]
    return [line.lstrip("# ") for line in lines if line.startswith("#")]


def _joined(headings: list[str]) -> str:
    return "\n".join(headings).lower()
