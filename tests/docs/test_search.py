"""The search of the site finds tasks by the words of their users, and options by their names."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import site_pages

from tests.reports.pages.browsing import Opened

#: The page that a query finds first.
FIRST = {
    "install": "index.html",
    "streaming": "streaming.html",
    "chunk by chunk": "streaming.html",
    "plugin": "tasks/own-rule.html",
    "custom rule": "tasks/own-rule.html",
    "pytest": "tasks/own-rule.html",
    "quantize": "precision.html",
    "half precision": "tasks/half-precision.html",
    "float16": "tasks/half-precision.html",
    "fp16": "tasks/half-precision.html",
    "opset": "tasks/opset.html",
    "convert opset": "tasks/opset.html",
    "downgrade": "tasks/opset.html",
    "upgrade": "tasks/scan-8.html",
    "Scan-8": "tasks/scan-8.html",
    "TensorRT": "targets.html",
    "NPU": "tasks/npu.html",
    "remove loops": "tasks/npu.html",
    "control flow": "tasks/npu.html",
    "dynamic shapes": "tasks/npu.html",
    "unroll a loop": "tasks/loops.html",
    "while loop": "raising.html",
    "LSTM to scan": "expand.html",
    "recurrent cell": "cells.html",
    "faster": "tasks/measure.html",
    "benchmark": "benchmarks.html",
    "many models": "tasks/build.html",
    "CI": "tasks/build.html",
    "passes.toml": "reference/configuration.html",
    "library": "tasks/library.html",
    "python api": "reference/api.html",
    "html report": "report.html",
    "json report": "reference/report.html",
    "mismatch": "tasks/mismatch.html",
    "compare two models": "tasks/mismatch.html",
    "bisect": "bisect.html",
    "proof": "proof.html",
    "exit code": "reference/exit-codes.html",
    "onnxruntime version": "reference/releases.html",
}
#: A page that is among those that a name finds.
AMONG = {
    "--max-nodes": "rules/unroll.html",
    "max_nodes": "reference/api.html",
    "--dim": "tasks/npu.html",
    "--target openvino": "targets.html",
    "trip-count-not-static": "rules/unroll.html",
}


@pytest.fixture
def search(opened: Opened, tmp_path: Path) -> Callable[[str], list[str]]:
    """What the site, opened as a file, finds: the addresses of its pages, best first."""
    pytest.importorskip("zensical")
    settings = site_pages.write(tmp_path)
    build = [sys.executable, "-m", "zensical", "build", "--strict", "--config-file", str(settings)]
    outcome = subprocess.run(build, capture_output=True, text=True, check=False)
    assert outcome.returncode == 0, outcome.stdout + outcome.stderr
    page = opened(tmp_path / "site" / "index.html")
    page.set_default_timeout(20_000)
    page.get_by_role("button", name="Search").click()
    box, option = page.get_by_role("combobox", name="Search"), page.get_by_role("option")

    def found(query: str) -> list[str]:
        box.fill("qqqqqqqq")  # on no page: what is found next is of the query
        option.first.wait_for(state="detached")
        box.fill(query)
        option.first.wait_for()
        addresses = option.evaluate_all("links => links.map(link => link.href)")
        paths = [Path(urlsplit(address).path) for address in addresses]
        return list(dict.fromkeys(f"{path.relative_to(tmp_path / 'site')}" for path in paths))

    return found


@pytest.mark.slow
def test_a_task_is_found_by_the_words_of_its_users(search: Callable[[str], list[str]]) -> None:
    assert {query: search(query)[0] for query in FIRST} == FIRST
    assert [name for name, page in AMONG.items() if page not in search(name)] == []
