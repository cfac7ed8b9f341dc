"""The soak, shortly; the long one is `python -m tests.instruments.soak`."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import onnx
import pytest
from onnx import ModelProto

from passes.commands.schedules import SCHEDULES
from tests.instruments.forked import Death, Limits, forked
from tests.instruments.generate.choices import Choices
from tests.instruments.generate.model import Generated, generate
from tests.instruments.soak.commands import Command, commands, dealt
from tests.instruments.soak.digests import digest, digest_elsewhere
from tests.instruments.soak.examine import Examiner
from tests.instruments.soak.run import Plan, soak
from tests.instruments.tally import Tally


@pytest.mark.slow
def test_a_short_soak_of_every_command_finds_nothing() -> None:
    found = soak(0, 220, 90.0, Plan(small=True, dealing=3))
    assert not found.tally.faults, "\n".join(found.lines())
    assert found.tally.counts["cases"]["reference: equal"] > 100
    tried = {one.partition(" ")[0] for one in found.tally.counts["commands"]}
    assert tried >= set(SCHEDULES)


@pytest.mark.slow
def test_another_hash_seed_writes_the_same_bytes() -> None:
    assert digest(range(3)) == digest_elsewhere(0, 3, 1)


def test_a_crash_and_a_hang_are_seen_and_the_others_go_on() -> None:
    def work(number: int) -> int:
        if number == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        if number == 3:
            time.sleep(60)
        return number * 10

    done = list(forked(range(5), work, Limits(seconds=1), each=3))
    assert done == [(0, 0), (1, Death("crash SIGKILL")), (2, 20), (3, Death("hang")), (4, 40)]


def test_runs_add_up_once(tmp_path: Path) -> None:
    one = Tally(["a"], faults={"wrong": [3]})
    one.count("cases", "equal", 2)
    one.save(tmp_path / "one.json")
    other = Tally(["b"], faults={"wrong": [7]})
    other.count("cases", "equal")
    other.add(Tally.load(tmp_path / "one.json"))
    assert other.counts == {"cases": {"equal": 3}}
    assert other.faults == {"wrong": [7, 3]}
    with pytest.raises(ValueError, match="counted twice: a"):
        other.add(one)


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


@pytest.mark.slow
def test_a_right_outcome_is_not_found_fault_with() -> None:
    examiner = Examiner()
    outcome = examiner.examine(a_loop(), commands(a_loop().model), verify=True)
    examiner.close()
    assert outcome.findings == []
    assert outcome.tally.counts["rewrites"]["unroll"]
    assert set(outcome.tally.counts["the tool says"]) == {"verified"}


def test_every_pipeline_is_run() -> None:
    model = generate(Choices.of_seed(0)).model
    assert {command.pipeline for command in commands(model)} == set(SCHEDULES)


def test_over_many_seeds_every_command_is_dealt() -> None:
    every = commands(generate(Choices.of_seed(0)).model)
    hands = [dealt(every, seed, 2) for seed in range(400)]
    assert {one.label for hand in hands for one in hand} == {one.label for one in every}
    assert any({one.label for one in hand} == {"upgrade to 21", "lower"} for hand in hands)


def test_small_models_are_small_and_made_again_from_their_decisions() -> None:
    small = [generate(Choices.of_seed(seed, small=True), []) for seed in range(50)]
    usual = [generate(Choices.of_seed(seed), []) for seed in range(50)]
    assert 3 * sum(map(_size, small)) < 2 * sum(map(_size, usual))
    for one in small:
        assert generate(Choices(one.drawn), []).model == one.model


def _size(generated: Generated) -> int:
    return int(generated.model.ByteSize())
