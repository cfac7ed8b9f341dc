"""The soak of casts, shortly; the long one is `python -m tests.instruments.soak --cast`."""

from __future__ import annotations

from collections.abc import Iterator

import onnx
import pytest
from onnx import ModelProto, TensorProto, helper

from passes.choices import Half, Retyping, Signature
from tests.instruments.generate.model import Generated
from tests.instruments.soak.casts import CastExaminer, casts, dealt_cast
from tests.instruments.soak.commands import Command
from tests.instruments.soak.run import Plan, soak

COUNTS = """
    <ir_version: 8, opset_import: ["" : 16]>
    counts (float[2] x) => (float[2] y) {
        two = Constant <value = int64 {2}> ()
        y = Loop (two, "", x) <body = step (int64 i, bool go, float[2] s)
            => (bool go_out, float[2] s_out) {
            s_out = Tanh (s)
            go_out = Identity (go)
        }>
    }
"""


@pytest.fixture
def examiner() -> Iterator[CastExaminer]:
    examiner = CastExaminer()
    yield examiner
    examiner.close()


def counting() -> Generated:
    return Generated(onnx.parser.parse_model(COUNTS), {}, [])


def returning(monkeypatch: pytest.MonkeyPatch, elem_type: int) -> None:
    """Let every cast end in a Cast of the output to a type, which is declared."""
    usual = Command.run

    def wrong(self: Command, model: ModelProto, *, verify: bool = False) -> object:
        result = usual(self, model, verify=verify)
        graph = result.model.graph
        kept = next(node for node in graph.node if "y" in node.output)
        kept.output[0] = "y_as_it_was"
        graph.node.append(helper.make_node("Cast", ["y_as_it_was"], ["y"], to=elem_type))
        return result

    monkeypatch.setattr(Command, "run", wrong)


@pytest.mark.slow
def test_a_short_soak_of_casts_finds_nothing() -> None:
    found = soak(0, 120, 90.0, Plan(small=True, cast=True, verified=10**6))
    assert not found.tally.faults, "\n".join(found.lines())
    assert found.tally.counts["outcomes"]["written"] > 60


def test_a_right_outcome_is_not_found_fault_with(examiner: CastExaminer) -> None:
    outcome = examiner.examine(counting(), casts())
    assert outcome.findings == []
    assert outcome.tally.counts["cases"]["within: 0.001"]


def test_an_invalid_outcome_is_found(
    examiner: CastExaminer, monkeypatch: pytest.MonkeyPatch
) -> None:
    returning(monkeypatch, TensorProto.DOUBLE)
    command = Command("cast", options={"retyping": Retyping(to=Half.float16)})
    outcome = examiner.examine(counting(), [command])
    assert [one.kind for one in outcome.findings] == ["invalid"]


def test_over_many_seeds_every_cast_is_dealt() -> None:
    dealt = {one.label for seed in range(400) for one in dealt_cast(seed)}
    assert dealt == {one.label for one in casts()}
    assert {Signature.keep, Signature.cast} == {one.options["retyping"].io for one in casts()}
