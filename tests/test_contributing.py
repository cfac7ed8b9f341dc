"""The examples of CONTRIBUTING.md run, and what they show of the code stands there."""

from __future__ import annotations

import re
from pathlib import Path

import onnx
import pytest

from passes import rule as rules
from passes.rule import load_rules

ROOT = Path(__file__).parent.parent
BLOCK = re.compile(r"<!-- (.*?) -->\n```python\n(.*?)```", re.DOTALL)
SHOWN = dict(BLOCK.findall((ROOT / "CONTRIBUTING.md").read_text()))


def run(title: str) -> None:
    exec(compile(SHOWN[title], f"CONTRIBUTING.md: {title}", "exec"), {"__name__": title})


def test_the_rule_rewrites_what_it_says() -> None:
    load_rules()
    try:
        run("rule")
        assert set(rules.RULES["drop-double-neg"].refusal_codes) == {"outer-value"}
        run("rule test")
    finally:
        rules.RULES.pop("drop-double-neg", None)


def test_the_step_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = onnx.parser.parse_model("""
        <ir_version: 8, opset_import: ["" : 17]>
        g (float[1,4,1] x) => (float[1,4,2] y) { y = DFT <axis = 1> (x) }
    """)
    onnx.save(model, tmp_path / "dft.onnx")
    monkeypatch.chdir(tmp_path)
    run("step test")


def test_the_parts_follow_from_the_row() -> None:
    run("operator test")


def test_the_vectorised_operator_is_right() -> None:
    run("vectorisation test")


@pytest.mark.parametrize("title", [title for title in SHOWN if ": " in title])
def test_what_is_shown_of_a_file_stands_in_it(title: str) -> None:
    _, _, file = title.partition(": ")
    assert SHOWN[title] in (ROOT / file).read_text()
