"""The soak, shortly; the long one is `python -m tests.soak`."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest
from onnx import ModelProto

from tests.generate.choices import Choices
from tests.generate.model import Generated, generate
from tests.soak.commands import Command, commands
from tests.soak.digests import digest, digest_elsewhere
from tests.soak.examine import Examiner
from tests.soak.run import soak

PIPELINES = ("upgrade", "lower", "raise", "unroll", "unroll-partial")


@pytest.mark.slow
def test_a_short_soak_finds_nothing(tmp_path: Path) -> None:
    found = soak(range(20), 75.0, tmp_path, only=PIPELINES)
    assert not found.faults, "\n".join(found.lines())
    assert found.tally["reference: equal"] > 100


@pytest.mark.slow
def test_another_hash_seed_writes_the_same_bytes() -> None:
    assert digest(range(3)) == digest_elsewhere(0, 3, 1)


def a_loop() -> Generated:
    model = onnx.parser.parse_model("""
        <ir_version: 8, opset_import: ["" : 16]>
        counts (float[2] x) => (float[2] y) {
            two = Constant <value = int64 {2}> ()
            y = Loop (two, "", x) <body = step (int64 i, bool go, float[2] s)
                => (bool go_out, float[2] s_out) {
                s_out = Add (s, x)
                go_out = Identity (go)
            }>
        }""")
    return Generated(model, {}, [])


def test_a_wrong_outcome_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The soak has its own eyes: a result that is changed behind verification's back shows."""
    usual = Command.run

    def wrong(self: Command, model: ModelProto, *, verify: bool = False) -> object:
        result = usual(self, model, verify=verify)
        for node in result.model.graph.node:
            if node.op_type == "Add":
                node.op_type = "Sub"
        return result

    monkeypatch.setattr(Command, "run", wrong)
    examiner = Examiner()
    outcome = examiner.examine(a_loop(), [Command("unroll")], verify=False)
    examiner.close()
    assert {one.kind for one in outcome.findings} == {"wrong"}


def test_a_right_outcome_is_not_found_fault_with() -> None:
    examiner = Examiner()
    outcome = examiner.examine(a_loop())
    examiner.close()
    assert outcome.findings == []
    assert outcome.tally["rewritten by unroll"]


def test_every_pipeline_is_run() -> None:
    from passes.pipelines import PIPELINES

    model = generate(Choices.of_seed(0)).model
    assert {one.pipeline for one in commands(model)} == set(PIPELINES)
