"""Every model of the golden folders, hoisted, simplified and optimized: it answers the same.

Some in every run, all of them with `--slow`.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import cycle
from pathlib import Path

import onnx
import pytest
from onnx import ModelProto

from passes.choices import RuleOptions, Verifying
from passes.commands.schedules import SCHEDULES
from passes.engine.outcome import Pass
from passes.errors import Mismatch, NotProduced
from passes.ir.scope import walk_model
from passes.session import Session

pytestmark = pytest.mark.sampled(40)

FOLDER = Path(__file__).parent.parent / "golden_models"


def newest(paths: Iterable[Path]) -> list[Path]:
    """The model of the newest opset of each case."""
    by_opset = sorted(paths, key=lambda path: int(path.stem.partition(".opset")[2]))
    return list({name_of(path): path for path in by_opset}.values())


def name_of(path: Path) -> str:
    return f"{path.parent.relative_to(FOLDER)}/{path.name.split('.')[0]}"


MODELS = sorted(
    [
        *FOLDER.glob("*/*.before.onnxtxt"),
        *FOLDER.glob("*/*.refused.onnxtxt"),
        *FOLDER.glob("*/*.onnx"),
        *FOLDER.glob("exported/jax/*.onnx"),
        *FOLDER.glob("exported/onnxscript/*.onnx"),
        *FOLDER.glob("exported/sklearn/*.onnx"),
        *FOLDER.glob("exported/torch/*.onnx"),
        *newest(FOLDER.glob("exported/tensorflow/*.onnx")),  # of all opsets they take minutes
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


def assumed(model: ModelProto) -> tuple[str, ...]:
    said = {entry.key: entry.value for entry in model.metadata_props}
    return tuple(filter(None, said.get("option assume", "").split(",")))


def verifying(path: Path, assume: tuple[str, ...]) -> Verifying:
    inputs = path.with_name(f"{path.name.split('.')[0]}.inputs.npz")
    return Verifying(budget=3, inputs=str(inputs) if inputs.exists() else None, assume=assume)


def holds_scan_8(model: ModelProto) -> bool:
    opset = next((entry.version for entry in model.opset_import if entry.domain == ""), 0)
    return opset <= 8 and any(one.node.op_type == "Scan" for one in walk_model(model))


def outcome(
    command: str, model: ModelProto, assume: tuple[str, ...], how: Verifying | None = None
) -> ModelProto | None:
    """What a command makes of a model; None where it refuses, or no case can be run."""
    target = UPGRADED_TO if holds_scan_8(model) else None
    try:
        result = Session([Pass(SCHEDULES[command], target, RuleOptions(assume=assume))], how).run(
            model
        )
    except Mismatch:
        raise
    except NotProduced:
        return None  # its Scan-8 is refused, or it fails on every input
    checked = result.report.checked
    assert checked is None or checked.verdict != "mismatch", str(checked)
    return result.model


@pytest.mark.parametrize(
    ("command", "path"),
    [
        pytest.param(command, path, id=f"{command}-{name_of(path)}")
        for path in MODELS
        for command in COMMANDS
        if (command, name_of(path)) in QUICK
    ],
)
def test_answers_the_same(command: str, path: Path) -> None:
    model = onnx.load(path)
    assume = assumed(model)
    outcome(command, model, assume, verifying(path, assume))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("path", "also"),
    [
        pytest.param(path, also, id=name_of(path))
        for path, also in zip(
            MODELS, cycle([one for one in COMMANDS if one != "optimize"]), strict=False
        )
    ],
)
def test_answers_the_same_when_optimized(path: Path, also: str) -> None:
    """By `optimize`, and by one of the others, in turn, if the model is small: no exporter's.

    From what a Scan-8 is upgraded to: the upgrade itself is verified by its own tests.
    """
    model = onnx.load(path)
    assume = assumed(model)
    if holds_scan_8(model):
        upgraded = outcome("upgrade", model, assume)
        if upgraded is None:
            return
        model = upgraded
    verified = {model.SerializeToString(deterministic=True)}
    for command in ("optimize",) if "exported" in path.parts else ("optimize", also):
        after = outcome(command, model, assume)
        said = b"" if after is None else after.SerializeToString(deterministic=True)
        if after is not None and said not in verified:
            verified.add(said)
            outcome(command, model, assume, verifying(path, assume))


def test_the_quick_cases_are_there() -> None:
    assert {name for _, name in QUICK} <= {name_of(path) for path in MODELS}
