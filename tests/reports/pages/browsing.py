"""A browser for tests, which are skipped where playwright or chromium is missing; where
PASSES_BROWSER=required, they fail."""

from __future__ import annotations

import importlib.util
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, CDPSession, Page

CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), ""
)
MISSING = [
    name
    for name, found in (
        ("playwright", importlib.util.find_spec("playwright")),
        ("chromium", CHROMIUM),
    )
    if not found
]


@dataclass(frozen=True)
class Opened:
    """Opens files in a browser, and notes what pages complain about, or ask of a network."""

    context: BrowserContext
    complaints: list[str] = field(default_factory=list)
    sessions: dict[Page, CDPSession] = field(default_factory=dict)

    def __call__(self, path: Path) -> Page:
        page = self.context.new_page()
        self.sessions[page] = self.context.new_cdp_session(page)
        self.sessions[page].send("Performance.enable", {"timeDomain": "threadTicks"})
        page.on("console", lambda message: self.complaints.append(message.text))
        page.on("pageerror", lambda error: self.complaints.append(f"{error}"))
        page.on("request", lambda request: self._asked(request.url))
        page.goto(path.as_uri())
        return page

    def work_of(self, page: Page) -> float:
        """Seconds of processor time that a page took so far, to read, lay out, draw and run."""
        metrics = self.sessions[page].send("Performance.getMetrics")["metrics"]
        return float(next(one["value"] for one in metrics if one["name"] == "TaskDuration"))

    def _asked(self, url: str) -> None:
        if not url.startswith(("file:", "data:")):
            self.complaints.append(url)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    if MISSING:
        reason = f"{' and '.join(MISSING)} cannot be found"
        if os.environ.get("PASSES_BROWSER") == "required":
            pytest.fail(reason)
        pytest.skip(reason)
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def opened(browser: Browser) -> Iterator[Opened]:
    """Opens files; at the end, nothing was complained about."""
    context = browser.new_context(viewport={"width": 1300, "height": 900})
    opened = Opened(context)
    yield opened
    context.close()
    assert not opened.complaints
