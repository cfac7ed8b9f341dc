"""Each model is rewritten as its `after` shows, or refused with the code in its metadata."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest

from passes.rule import load_rules
from passes.testing import as_text, assert_refused, assert_rewrite

MODELS = Path(__file__).parents[1] / "models"
BEFORE = sorted(MODELS.glob("*/*.before.onnxtxt"))
REFUSED = sorted(MODELS.glob("*/*.refused.onnxtxt"))


def case_name(path: Path) -> str:
    return f"{path.parent.name}/{path.name.split('.')[0]}"


def told(model: onnx.ModelProto) -> dict[str, str]:
    """The metadata: options and the refusal code."""
    return {entry.key: entry.value for entry in model.metadata_props}


def options_of(path: Path, model: onnx.ModelProto) -> dict[str, str]:
    given = {key[7:]: value for key, value in told(model).items() if key.startswith("option ")}
    return {"rules": path.parent.name, **given}


@pytest.mark.parametrize("path", BEFORE, ids=case_name)
def test_rewrites_as_the_model_shows(path: Path) -> None:
    model = onnx.load(path)
    after = path.with_name(path.name.replace(".before.", ".after."))
    made = assert_rewrite(model, pipeline="simplify", options=options_of(path, model)).model
    assert as_text(made) + "\n" == after.read_text()


@pytest.mark.parametrize("path", REFUSED, ids=case_name)
def test_refuses_with_the_code(path: Path) -> None:
    model = onnx.load(path)
    options = options_of(path, model)
    assert_refused(model, told(model)["refused"], pipeline="simplify", options=options)


def test_every_refusal_code_has_a_model() -> None:
    shown = {(path.parent.name, told(onnx.load(path))["refused"]) for path in REFUSED}
    rules = [load_rules()[path.name] for path in MODELS.iterdir()]
    assert {(rule.name, code) for rule in rules for code in rule.refusal_codes} <= shown
