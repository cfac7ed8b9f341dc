"""The page of `view` in a browser: by keyboard alone, in a narrow window, dark and light, and where
something is wrong."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import onnx
import pytest

from passes.testing import as_model
from tests.reports.pages.looking import PROJECTION, UNKNOWN_TRIPS, chain
from tests.view.served import wrong_rules

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.slow  # each starts a server, its processes and a page
#: Milliseconds for what a process does; a shared machine is slow.
LONG = 90_000
FOCUSED = "document.activeElement.{}"


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a page with a model, whose server ends when it is interrupted."""
    pytest.importorskip("uvicorn", reason="the extra `view` is not installed")
    folder = tmp_path_factory.mktemp("view")
    onnx.save(as_model(PROJECTION), folder / "rnn.onnx")
    wrong_rules(folder)
    command = [sys.executable, "-m", "passes", "view", "rnn.onnx", "--no-browser"]
    paths = os.pathsep.join([str(folder), *filter(None, sys.path)])
    with subprocess.Popen(
        command,
        cwd=folder,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": paths},
    ) as server:
        assert server.stdout is not None
        yield server.stdout.readline().strip()
        server.send_signal(signal.SIGINT)
        assert server.wait(20) == 0


@pytest.fixture
def page(browser: Browser, address: str) -> Iterator[Page]:
    """The page with its model; at the end no script failed, and nothing was asked of others."""
    context = browser.new_context(viewport={"width": 1300, "height": 900})
    page = context.new_page()
    wrong: list[str] = []
    page.on("pageerror", lambda error: wrong.append(f"{error}"))
    page.on(
        "request",
        lambda request: (
            None if request.url.startswith((address, "data:")) else wrong.append(request.url)
        ),
    )
    page.set_default_timeout(LONG)
    page.goto(address)
    page.wait_for_selector("#lanes svg")
    yield page
    context.close()
    assert not wrong


def titled(page: Page, title: str) -> None:
    """Wait until the page shows a model."""
    from playwright.sync_api import expect

    expect(page).to_have_title(title, timeout=LONG)


def given(page: Page, content: bytes, name: str) -> None:
    """Open a file in a page."""
    page.locator("#file").set_input_files(
        {"name": name, "mimeType": "application/octet-stream", "buffer": content}
    )


def test_a_loop_is_shown_with_what_the_rules_would_do(page: Page) -> None:
    assert page.get_by_role("heading", level=1).first.inner_text() == "rnn.onnx: 1 loop, 6 nodes"
    page.wait_for_selector("#next code")
    assert page.locator("#next").inner_text().startswith("Next: passes optimize rnn.onnx")
    rules = page.locator(".answers").inner_text()
    assert "batch-inputs would rewrite it" in rules
    assert "unroll refuses: " in rules
    page.locator('.mark[aria-label="MatMul b"]').click()
    details = page.locator("#details")
    details.get_by_text("R", exact=True).wait_for()
    assert "float[3,3]" in details.inner_text()
    assert "0.5, 0, ...], -1 to 1, mean" in details.inner_text()


def test_by_keyboard_alone(page: Page) -> None:
    page.wait_for_selector("#next code")
    page.keyboard.press("/")
    page.keyboard.type("tanh")
    page.wait_for_selector(".hit")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.locator("#details h2").wait_for()
    assert page.locator("#details h2").inner_text() == "Tanh"
    assert page.evaluate(FOCUSED.format("id")) == "details"
    page.keyboard.press("Escape")
    assert not page.locator("#details").is_visible()
    page.locator(".lane").first.locator(".mark").first.focus()
    for _ in range(3):
        page.keyboard.press("ArrowDown")
    assert "mark" in page.evaluate(FOCUSED.format("getAttribute('class')"))
    wide = "document.querySelector('.lane svg').getBoundingClientRect().width"
    before = page.evaluate(wide)
    page.keyboard.press("+")
    assert page.evaluate(wide) > before
    page.locator("#commands").focus()
    page.keyboard.type("low")
    page.locator("#line").get_by_text("passes lower rnn.onnx").wait_for()
    page.locator("#start").focus()
    page.keyboard.press("Enter")
    page.locator(".run .banner h1").wait_for()
    assert page.locator(".run .banner h1").inner_text() == "Written and verified"
    assert page.evaluate(FOCUSED.format("className")) == "run card"  # where the run was
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    assert page.evaluate(FOCUSED.format("textContent")) == "Save rnn.lowered.onnx"
    with page.expect_download() as download:
        page.keyboard.press("Enter")
    assert onnx.load(download.value.path()).graph.node[0].op_type


def test_before_and_after_side_by_side(page: Page) -> None:
    page.locator("#start").click()
    page.get_by_role("button", name="Before and after, side by side").click()
    report = page.frame_locator("iframe")
    report.locator(".graph svg").nth(1).wait_for()
    assert report.locator("h1").inner_text() == "Written and verified"
    with page.context.expect_page() as other:
        page.get_by_role("button", name="Look at the outcome").click()
    titled(other.value, "rnn.optimized.onnx")
    assert page.title() == "rnn.onnx"


def test_a_target_and_what_clears_it(page: Page) -> None:
    page.locator("#targets").select_option("no-control-flow")
    page.locator("#findings .banner").wait_for()
    assert "In the way" in page.locator("#findings").inner_text()
    assert "enter what you know of the inputs" in page.locator("#findings").inner_text()
    page.locator("#f-dims").fill("T=3")
    page.get_by_role("button", name="Clear it: after this it fits").click()
    page.locator(".run .banner h1").wait_for()
    assert page.locator(".run .line code").inner_text() == (
        "passes check rnn.onnx --dim T=3 --target no-control-flow --fix"
    )
    page.get_by_role("link", name="Save rnn.no-control-flow.onnx").wait_for()


@pytest.mark.parametrize("scheme", ["dark", "light"])
def test_a_narrow_window(scheme: str, browser: Browser, address: str) -> None:
    colors = {"dark": "rgb(20, 23, 27)", "light": "rgb(247, 247, 245)"}
    page = browser.new_page(viewport={"width": 400, "height": 800}, color_scheme=scheme)  # type: ignore[arg-type]
    page.goto(address)
    page.wait_for_selector("#lanes svg", timeout=LONG)
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == colors[scheme]
    assert page.evaluate("document.documentElement.scrollWidth") <= 400
    page.locator(".mark.node").first.click()
    page.locator("#details h2").wait_for()
    assert page.evaluate("document.documentElement.scrollWidth") <= 400
    page.get_by_role("button", name="Close the details").click()
    page.get_by_role("button", name="Switch between dark and light").click()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != colors[scheme]
    page.close()


def test_a_broken_model(page: Page) -> None:
    given(page, b"none", "broken.onnx")
    page.locator("#problem .banner").wait_for()
    told = page.locator("#problem").inner_text()
    assert "broken.onnx: is no ONNX model" in told
    assert "Next: open another model" in told
    assert not page.locator("#work").is_visible()
    given(page, as_model(UNKNOWN_TRIPS).SerializeToString(), "count.onnx")
    page.wait_for_selector("#lanes svg")
    assert not page.locator("#problem .banner").is_visible()


def test_a_refusal_and_an_option_that_is_wrong(page: Page) -> None:
    given(page, as_model(UNKNOWN_TRIPS).SerializeToString(), "count.onnx")
    titled(page, "count.onnx")
    page.locator("#commands").select_option("unroll")
    page.locator("#o-max_nodes").fill("many")
    page.get_by_text("--max-nodes is 'many', not a whole number").wait_for()
    assert page.locator("#start").is_disabled()
    page.locator("#o-max_nodes").fill("")
    page.locator("#strict").check()
    page.locator("#start:enabled").wait_for()
    page.locator("#start").click()
    page.locator(".run .banner.refused").wait_for()
    assert "main/loop_0 stays [trip-count-not-static]" in page.locator(".run").inner_text()
    assert page.get_by_role("link", name="Save").count() == 0


def test_a_mismatch(page: Page) -> None:
    page.locator("#commands").select_option("simplify")
    page.locator("#o-rules").fill("wrong-add")
    page.locator("#line").get_by_text("--rule wrong-add").wait_for()
    page.locator("#start").click()
    page.locator(".run .banner.bad").wait_for()
    assert page.locator(".run h1").inner_text() == "Mismatch"
    page.get_by_role("link", name="Save the reproducer").wait_for()


def test_a_run_is_ended(page: Page) -> None:
    page.locator("#start").click()
    page.get_by_role("button", name="End it").click()
    page.locator(".run .banner.bad").wait_for()
    assert page.locator(".run .banner p").inner_text() == "The run was ended on request."


def test_two_windows(page: Page, address: str) -> None:
    other = page.context.new_page()
    other.goto(address)
    given(other, chain(3, kinds=3).SerializeToString(), "chain.onnx")
    titled(other, "chain.onnx")
    assert page.title() == "rnn.onnx"
    other.reload()
    titled(other, "chain.onnx")  # it is kept


@pytest.mark.parametrize("name", ["<img src=x onerror=alert(1)>", "a'\"`b", "x" * 3000])
def test_hostile_names(name: str, page: Page) -> None:
    page.on("dialog", lambda dialog: pytest.fail("a script of the model ran"))
    given(page, chain(2, name=name).SerializeToString(), "chain.onnx")
    titled(page, "chain.onnx")
    page.wait_for_selector("#lanes svg")
    assert page.locator("img").count() == 0
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_twenty_thousand_nodes(page: Page) -> None:
    given(page, chain(40, kinds=40, length=500).SerializeToString(), "large.onnx")
    titled(page, "large.onnx")
    page.wait_for_selector("#lanes svg")
    assert page.locator("#lanes svg").count() == 1  # what is not open is not drawn
    page.locator("#find").fill("layers.33/rnn.body/tanh_2")
    page.locator(".hit").first.click()
    page.locator("#details h2").wait_for()
    assert page.locator(".mark.lit").get_attribute("aria-label") == "Tanh v1"
    assert page.get_by_text("40 of 507 nodes are drawn").is_visible()
