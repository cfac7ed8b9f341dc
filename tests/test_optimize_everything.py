"""Every model of the golden folders, hoisted, simplified and optimized: it answers the same.

Some in every run, all of them with `--slow`.
"""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest
from onnx import ModelProto

from passes.session import Mismatch, NotProduced, NotVerified, Session, Verifying

FOLDER = Path(__file__).parent.parent / "golden_models"
MODELS = sorted(
    [
        *FOLDER.glob("*/*.before.onnxtxt"),
        *FOLDER.glob("*/*.refused.onnxtxt"),
        *FOLDER.glob("*/*.onnx"),
        *FOLDER.glob("exported/*/*.onnx"),
    ]
)
COMMANDS = ("hoist", "simplify", "optimize", "optimize-loop-only")
QUICK = {
    ("simplify", "lower/passes_through"),
    ("hoist", "upgrade/rnn_weights_in_body_ir_3"),
    ("optimize", "raise/while_and_limit"),
    ("optimize-loop-only", "lower/two_lengths"),
    ("optimize", "exported/torch/script_cell"),
    ("optimize", "hoist-invariants/unknown_shape"),
}
UPGRADED_TO = 21  # the opset that a model with a Scan-8 is brought to


def name_of(path: Path) -> str:
    return f"{path.parent.relative_to(FOLDER)}/{path.name.split('.')[0]}"


def cases() -> list[object]:
    pairs = [(command, path) for path in MODELS for command in COMMANDS]
    return [
        pytest.param(
            command,
            path,
            id=f"{command}-{name_of(path)}",
            marks=[] if (command, name_of(path)) in QUICK else [pytest.mark.slow],
        )
        for command, path in pairs
    ]


def assumed(model: ModelProto) -> tuple[str, ...]:
    said = {entry.key: entry.value for entry in model.metadata_props}
    return tuple(filter(None, said.get("option assume", "").split(",")))


@pytest.mark.parametrize(("command", "path"), cases())
def test_answers_the_same(command: str, path: Path) -> None:
    model = onnx.load(path)
    opset = next((one.version for one in model.opset_import if one.domain == ""), 0)
    assume = assumed(model)
    inputs = path.with_name(f"{path.name.split('.')[0]}.inputs.npz")
    verifying = Verifying(budget=20, inputs=str(inputs) if inputs.exists() else None, assume=assume)
    session = Session(command, UPGRADED_TO if opset <= 8 else None, {"assume": assume}, verifying)
    try:
        checked = session.run(model).report.checked
    except NotVerified:
        return  # a model that fails on every input
    except Mismatch:
        raise
    except NotProduced:
        return  # its Scan-8 is refused
    assert checked is None or checked.verdict != "mismatch", str(checked)


def test_the_quick_cases_are_there() -> None:
    assert {name for _, name in QUICK} <= {name_of(path) for path in MODELS}
