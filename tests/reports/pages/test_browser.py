"""Pages in a browser: nothing fails, the keyboard and both themes work, many loops are quick."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import onnx
import pytest

from passes.builds.batch import Batch, local
from passes.builds.pool import Limits
from passes.commands.pipeline import Pipeline
from passes.commands.task import Task
from passes.reports.pages.page import page_of
from passes.reports.pages.writing import as_html, write
from passes.reports.report_file import ReportFile
from passes.testing import as_model
from tests.reports.pages.browsing import Opened
from tests.reports.pages.looking import PROJECTION, UNKNOWN_TRIPS, chain, page_after
from tests.reports.pages.test_page import FAST, HOSTILE

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

#: Seconds of work for a browser to open a page and draw a lane; a shared machine is slow.
QUICK = 2.0 if not os.environ.get("CI") else 6.0


@pytest.fixture(scope="module")
def rewritten(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of a loop that was optimized."""
    folder = tmp_path_factory.mktemp("rewritten")
    write(folder / "r.html", as_html(page_after(as_model(PROJECTION), folder, ("optimize", FAST))))
    return folder / "r.html"


def of_loops(model: onnx.ModelProto, folder: Path) -> Path:
    """A page that shows the loops of a model, to which nothing was done."""
    onnx.save(model, folder / "m.onnx")
    report = ReportFile.of_findings(folder / "m.onnx", "fits", (), ())
    write(folder / "loops.html", as_html(page_of(report)))
    return folder / "loops.html"


def test_both_sides_of_a_loop_are_drawn(opened: Opened, rewritten: Path) -> None:
    page = opened(rewritten)
    page.wait_for_selector(".graph svg")
    assert page.title().startswith("Written and verified: ")
    assert page.locator(".graph svg").count() == 2
    assert page.locator(".back").count() == 2
    assert page.locator("[data-side=before] .mark.moved").count() == 1
    page.locator("[data-side=before] .mark.moved").hover()
    assert page.locator("[data-side=after] .mark.lit.moved").count() == 1
    name = page.locator("[data-side=before] svg").get_attribute("aria-label")
    assert name is not None
    assert name.endswith("5 nodes")


def test_cells_tell_their_case_on_focus_and_hover(opened: Opened, rewritten: Path) -> None:
    page = opened(rewritten)
    cells = page.locator(".strip .cell")
    cells.nth(2).hover()
    assert page.locator("#tip").is_visible()
    cells.first.focus()
    told = page.locator("#tip").inner_text()
    assert "compared" in told
    assert "h0: float32[" in told
    page.keyboard.press("ArrowRight")
    assert page.evaluate("document.activeElement.getAttribute('aria-label')") == cells.nth(
        1
    ).get_attribute("aria-label")
    page.keyboard.press("Escape")
    assert not page.locator("#tip").is_visible()


def test_dark_and_light(browser: Browser, rewritten: Path) -> None:
    def colour(page: Page) -> str:
        return str(page.evaluate("getComputedStyle(document.body).backgroundColor"))

    page = browser.new_page(color_scheme="dark")
    page.goto(rewritten.as_uri())
    dark = colour(page)
    page.get_by_role("button", name="Switch between dark and light").click()
    light = colour(page)
    page.reload()
    assert colour(page) == light != dark  # the choice is kept
    page.close()


def test_on_paper(opened: Opened, rewritten: Path) -> None:
    page = opened(rewritten)
    page.set_viewport_size({"width": 700, "height": 1000})  # an A4 page without its margins
    page.evaluate("document.documentElement.dataset.theme = 'dark'")
    page.get_by_role("button", name="main/scan_0").click()
    assert not page.locator(".sides").is_visible()
    page.emulate_media(media="print", color_scheme="dark")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    style = "getComputedStyle(document.body)"
    assert page.evaluate(f"{style}.backgroundColor") == "rgb(255, 255, 255)"
    assert page.evaluate(f"{style}.color") == "rgb(29, 33, 38)"
    assert not page.locator(".top").is_visible()
    assert not page.get_by_role("button", name="Zoom in").first.is_visible()
    assert page.locator(".sides").is_visible()
    for graph in page.locator(".graph").all():
        assert graph.evaluate("graph => graph.scrollWidth <= graph.clientWidth")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_a_graph_scrolls_and_zooms(opened: Opened, rewritten: Path) -> None:
    page = opened(rewritten)
    page.set_viewport_size({"width": 400, "height": 800})
    graph = page.locator("[data-side=before]")
    drawing = graph.locator("svg")

    def width() -> float:
        return float(drawing.evaluate("svg => svg.getBoundingClientRect().width"))

    fitting = width()
    for _ in range(4):
        page.get_by_role("button", name="Zoom in").first.click()
    assert width() == pytest.approx(fitting * 1.3**4, rel=0.01)
    assert graph.evaluate("graph => graph.scrollWidth > graph.clientWidth")
    assert page.evaluate("document.documentElement.scrollWidth") == 400
    graph.focus()
    page.keyboard.press("-")
    assert width() == pytest.approx(fitting * 1.3**3, rel=0.01)
    page.keyboard.press("0")
    assert width() == pytest.approx(fitting)
    graph.hover()
    page.keyboard.down("Control")
    page.mouse.wheel(0, -100)
    page.keyboard.up("Control")
    page.wait_for_function(f"document.querySelector('.graph svg').clientWidth > {fitting}")


def test_the_keyboard(opened: Opened, tmp_path: Path) -> None:
    page = opened(of_loops(chain(20, kinds=20), tmp_path))
    focused = "document.activeElement.querySelector('.path')?.textContent"
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.id") == "filter"
    page.keyboard.type("layers.1")
    assert page.locator(".lane:visible").count() == 11
    page.keyboard.press("ArrowDown")
    assert page.evaluate(focused) == "main/layers.1/rnn"
    page.keyboard.press("ArrowDown")
    assert page.evaluate(focused) == "main/layers.10/rnn"
    page.keyboard.press("Enter")
    page.wait_for_selector(".lane:nth-of-type(11) svg")
    page.keyboard.press("Escape")
    assert page.evaluate("document.activeElement.getAttribute('aria-expanded')") == "false"
    page.keyboard.press("Home")
    assert page.evaluate(focused) == "main/layers.1/rnn"
    page.keyboard.press("/")
    page.keyboard.type("0")
    assert page.locator(".lane:visible").count() == 1
    page.keyboard.type(" nothing")
    assert page.get_by_text("No loop matches “layers.10 nothing”.").is_visible()
    page.keyboard.press("Escape")
    assert page.locator(".lane:visible").count() == 20


def test_a_thousand_loops(opened: Opened, tmp_path: Path) -> None:
    path = of_loops(chain(1000, kinds=1000), tmp_path)
    page = opened(path)
    page.wait_for_selector(".graph svg")
    page.keyboard.press("/")
    page.keyboard.type("layers.777/")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.wait_for_selector(".lane:nth-of-type(778) svg")
    assert 0.0 < opened.work_of(page) < QUICK
    assert page.locator(".graph svg").count() < 10  # what is not open is not drawn


def test_a_large_body_is_cut(opened: Opened, tmp_path: Path) -> None:
    page = opened(of_loops(chain(1, length=5000), tmp_path))
    page.wait_for_selector(".graph svg")
    assert page.get_by_text("150 of 5,002 nodes are drawn").is_visible()
    assert 0.0 < opened.work_of(page) < QUICK


@pytest.mark.sampled(4)  # a script and a long name in each run
@pytest.mark.parametrize("name", HOSTILE, ids=["script", "quote", "template", "unicode", "long"])
def test_hostile_names(name: str, opened: Opened, tmp_path: Path) -> None:
    path = tmp_path / "r.html"
    write(path, as_html(page_after(chain(2, name=name), tmp_path, ("lower", FAST))))
    page = opened(path)
    page.on("dialog", lambda dialog: pytest.fail("a script of the model ran"))
    page.wait_for_selector(".graph svg")
    assert page.locator("img").count() == 0
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_a_batch(opened: Opened, tmp_path: Path) -> None:
    texts = {"moved": as_model(PROJECTION), "unknown": as_model(UNKNOWN_TRIPS), "chain": chain(9)}
    pipeline = Pipeline([("unroll", FAST)])
    tasks = []
    for name, model in texts.items():
        onnx.save(model, tmp_path / f"{name}.onnx")
        output = tmp_path / "out" / f"{name}.onnx"
        own = Pipeline([("lower", FAST)]) if name == "chain" else pipeline
        tasks.append(Task(str(tmp_path / f"{name}.onnx"), own, str(output), strict=True))
    (tmp_path / "broken.onnx").write_bytes(b"none")
    tasks.append(Task(str(tmp_path / "broken.onnx"), pipeline, str(tmp_path / "out" / "b.onnx")))
    place = tmp_path / "all.html"
    Batch([(task, Limits(120)) for task in tasks], local(1), html=place).run()

    page = opened(place)
    assert page.get_by_role("heading", level=1).inner_text() == "3 of 4 models failed"

    def column(number: int) -> list[str]:
        return [
            row.strip() for row in page.locator(f"tr.row > :nth-child({number})").all_inner_texts()
        ]

    page.get_by_role("button", name="nodes before").click()
    assert column(4) == ["\N{EN DASH}", "3", "6", "36"]
    page.get_by_role("button", name="nodes before").click()
    assert column(4) == ["36", "6", "3", "\N{EN DASH}"]
    page.get_by_role("combobox", name="Outcome").select_option("invalid")
    assert page.locator("tr.row:visible").count() == 1
    page.keyboard.press("/")
    page.keyboard.type("chain")
    assert page.locator("tr.row:visible").count() == 0
    assert page.get_by_text("No model matches “chain” and “invalid”.").is_visible()
    page.set_viewport_size({"width": 400, "height": 800})
    page.get_by_role("button", name="Show all models").click()
    assert page.locator("tr.row:visible").count() == 4
    assert page.evaluate("document.documentElement.scrollWidth") == 400
    for cell in page.locator("tr.row > *").all():  # nothing is cut, nor a word to a line
        box = cell.bounding_box()
        assert box is not None
        assert box["x"] + box["width"] <= 400
        assert box["height"] < 120
    page.keyboard.press("/")
    page.keyboard.type("unknown")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.wait_for_selector("#refusals")
    assert page.get_by_role("heading", level=1).inner_text() == "Incomplete"
    page.get_by_role("link", name="All models").click()
    page.wait_for_selector("#models")
