"""Makes the picture of a report: `python -m tests.reports.pages.screenshot docs/report.png`."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import onnx
from playwright.sync_api import sync_playwright

from passes.reports.pages.writing import as_html, write
from tests.reports.pages.browsing import CHROMIUM
from tests.reports.pages.looking import page_after

MODEL = Path("golden_models/binary/gru.onnx")
STEP = {"opset": 21, "assume": ["valid-inputs", "non-empty"]}


def shoot(picture: Path) -> None:
    """Take a picture of the page of a GRU that is upgraded and optimized."""
    with tempfile.TemporaryDirectory() as made, sync_playwright() as playwright:
        folder = Path(made)
        text = as_html(page_after(onnx.load(MODEL), folder, ("optimize", STEP)))
        for name, said in (("model.onnx", str(MODEL)), ("outcome.onnx", "gru.opset21.onnx")):
            text = text.replace(str(folder / name), said)
        write(folder / "report.html", text)
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1140, "height": 1420})
        page.goto((folder / "report.html").as_uri())
        page.wait_for_selector(".graph svg")
        page.screenshot(path=picture)
        browser.close()


if __name__ == "__main__":
    shoot(Path(sys.argv[1]))
