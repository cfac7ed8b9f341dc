"""Broken input, a little of it; more by `python -m tests.instruments.broken`."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.instruments.broken import damaged_bytes, damaged_models
from tests.instruments.broken.run import run
from tests.instruments.broken.trial import trial
from tests.instruments.generate.choices import Choices
from tests.instruments.generate.model import generate


@pytest.mark.slow
def test_broken_files_are_refused_in_a_sentence() -> None:
    tally = run(0, 6, 60.0)
    assert not tally.faults
    assert tally.number("mutants by exit code") == 6


@pytest.mark.slow
def test_many_broken_files_are_refused_in_a_sentence() -> None:
    tally = run(100, 400, 100.0)
    assert not tally.faults, "\n".join(tally.lines())
    assert tally.number("mutants by exit code") > 100


@pytest.mark.parametrize("damage", damaged_models.DAMAGES, ids=lambda one: one.__name__)
def test_every_damage_does_something(damage: damaged_models.Damage) -> None:
    for seed in range(20):
        model = generate(Choices.of_seed(seed)).model
        before = model.SerializeToString()
        damage(random.Random(seed), model)
        if model.SerializeToString() != before:
            return
    raise AssertionError("no model was changed")


@pytest.mark.parametrize("damage", damaged_bytes.DAMAGES, ids=lambda one: one.__name__)
def test_every_damage_to_bytes_does_something(damage: damaged_bytes.Damage) -> None:
    data = bytearray(generate(Choices.of_seed(1)).model.SerializeToString())
    before = bytes(data)
    damage(random.Random(3), data)
    assert bytes(data) != before


def test_the_same_seed_makes_the_same_mutant(tmp_path: Path) -> None:
    for seed in range(20):
        one, other = trial(seed, tmp_path / f"a{seed}"), trial(seed, tmp_path / f"b{seed}")
        assert one.damage == other.damage
        assert one.command == other.command
        if one.path.is_file() and other.path.is_file() and "link" not in one.damage:
            assert one.path.read_bytes() == other.path.read_bytes()
