"""The pages of the documentation are true: a reader who follows one literally sees what it shows.

In an empty folder, block by block: one with a `title` is a file, `console` is run and its output is
compared, `python` is run. `text` only illustrates; any other block is preceded by a comment
`<!-- not run: REASON -->`, or `<!-- needs: MODULE -->` if it is run where a module is installed.
`--update-golden` writes the output of commands anew (with `--slow`, of all pages).
"""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.transcripts import Shell, timeless

DOCS = Path(__file__).parents[2] / "docs"
PAGES = sorted(page for page in DOCS.rglob("*.md") if "```" in page.read_text())
#: Pages whose commands take seconds.
LONG = {
    "bisect",
    "build",
    "half-precision",
    "integrations",
    "loops",
    "mismatch",
    "npu",
    "opset",
    "own-rule",
    "proof",
    "reroll",
    "scan-8",
    "streaming",
    "tutorial",
}
BLOCK = re.compile(
    r"(?P<mark><!-- (?:not run: .+?|needs: (?P<needs>[\w ]+)) -->\n)?"
    r'^```(?P<language>\w*)(?: title="(?P<title>[^"]+)")?\n'
    r"(?P<body>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)


def play(page: Path, folder: Path) -> str:
    """The text of a page with the real output of its commands, run in a folder."""
    shell = Shell(folder)
    names: dict[str, object] = {"__name__": page.stem}

    def played(block: re.Match[str]) -> str:
        language, body = block["language"], block["body"]
        needs = (block["needs"] or "").split()
        runs = all(map(find_spec, needs)) if needs else not block["mark"]
        if block["title"]:
            file = folder / block["title"]
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(body)
        elif not runs or language == "text":
            pass
        elif language == "python":
            exec(compile(body, f"{page.name}: {body[:40]!r}", "exec"), names)
        else:
            assert language == "console", f"a block of {language!r} without a title or a reason"
            start, end = block.start("body") - block.start(), block.end("body") - block.start()
            return block[0][:start] + shell.replay(body) + block[0][end:]
        return block[0]

    return BLOCK.sub(played, page.read_text())


@pytest.mark.parametrize(
    "page",
    [pytest.param(page, marks=[pytest.mark.slow] * (page.stem in LONG)) for page in PAGES],
    ids=[f"{page.relative_to(DOCS)}" for page in PAGES],
)
def test_a_reader_sees_what_the_page_shows(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    monkeypatch.chdir(tmp_path)
    shown, played = page.read_text(), play(page, tmp_path)
    if timeless(shown) != timeless(played) and request.config.getoption("--update-golden"):
        page.write_text(played)
    else:
        assert timeless(played) == timeless(shown)


def test_every_fence_is_read() -> None:
    """A block that the pattern does not match would not be tried."""
    for page in PAGES:
        fences = sum(line.startswith("```") for line in page.read_text().splitlines())
        assert fences == 2 * len(BLOCK.findall(page.read_text())), page
