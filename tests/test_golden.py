"""Golden models: every case is rewritten and compared with its file.

What a file shows was executed before and after when `--update-golden` wrote it. All cases are
executed anew with `--slow`, of which every fortieth is not slow.

`golden_models/<pipeline>/<case>.before.onnxtxt` becomes `<case>.after.onnxtxt`;
`<case>.refused.onnxtxt` is refused. Options and the expected code stand in the model's metadata:
`"option batch": "unroll"`, `"option values": "rate=16000; fast=true"`, `"refused": "may-fail"`.
"""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest

from passes.commands.schedules import SCHEDULES
from passes.engine.outcome import Pass
from passes.ir.model import Model
from passes.ir.versions import SCAN_8
from passes.rule import load_rules
from passes.session import Result, Session
from passes.testing import NO_NAME, as_text, assert_refused, assert_rewrite
from passes.testing import options_of as typed

FOLDER = Path(__file__).parent.parent / "golden_models"
BEFORE = sorted(FOLDER.glob("*/*.before.onnxtxt"))
REFUSED = sorted(FOLDER.glob("*/*.refused.onnxtxt"))


def case_name(path: Path) -> str:
    return f"{path.parent.name}/{path.name.split('.')[0]}"


def target_of(path: Path) -> int | None:
    """The opset that a Scan-8 is upgraded to, as the case says; else a model keeps its own."""
    model = onnx.load(path)
    for entry in model.metadata_props:
        if entry.key == "opset":
            return int(entry.value)
    if path.parent.name == "lower" and Model(model).opset() > SCAN_8:
        return None
    return {"upgrade": 9, "lower": 21}.get(path.parent.name)


def options_of(model: onnx.ModelProto) -> dict[str, str]:
    said = {entry.key: entry.value for entry in model.metadata_props}
    return {key[7:]: value for key, value in said.items() if key.startswith("option ")}


def verified(path: Path) -> Result:
    model = onnx.load(path)
    options = options_of(model)
    return assert_rewrite(model, pipeline=path.parent.name, opset=target_of(path), options=options)


@pytest.mark.parametrize("path", BEFORE, ids=case_name)
def test_rewrites_as_the_golden_model_says(path: Path, request: pytest.FixtureRequest) -> None:
    after = path.with_name(path.name.replace(".before.", ".after."))
    if request.config.getoption("--update-golden"):
        after.write_text(as_text(verified(path).model) + "\n")
    model = onnx.load(path)
    session = Session(
        [Pass(SCHEDULES[path.parent.name], target_of(path), typed(options_of(model)))], None
    )
    assert as_text(session.run(model).model) + "\n" == after.read_text().replace(NO_NAME, "")


@pytest.mark.sampled(40)
@pytest.mark.parametrize("path", BEFORE, ids=case_name)
def test_answers_as_before(path: Path) -> None:
    verified(path)


@pytest.mark.sampled(40)
@pytest.mark.parametrize(
    "path", [path for path in BEFORE if path.parent.name == "upgrade"], ids=case_name
)
@pytest.mark.parametrize("opset", [13, 21])
def test_rewrites_at_newer_opsets(path: Path, opset: int) -> None:
    before = onnx.load(path)
    options = options_of(before)
    assert_rewrite(before, pipeline=path.parent.name, opset=opset, options=options)


@pytest.mark.parametrize("path", REFUSED, ids=case_name)
def test_refuses_as_the_golden_model_says(path: Path) -> None:
    model = onnx.load(path)
    options = options_of(model)
    (code,) = [entry.value for entry in model.metadata_props if entry.key == "refused"]
    assert_refused(model, code, pipeline=path.parent.name, opset=target_of(path), options=options)


def test_every_refusal_code_of_a_loop_rule_has_a_golden_model() -> None:
    shown = {
        entry.value
        for path in REFUSED
        for entry in onnx.load(path).metadata_props
        if entry.key == "refused"
    }
    documented = {
        code
        for name, rule in load_rules().items()
        if name != "opset"  # its codes are shown by tests/converters
        for code in rule.refusal_codes
    }
    assert documented <= shown
