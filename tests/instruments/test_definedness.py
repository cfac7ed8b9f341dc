"""Mutants of golden outcomes against the prover, a few; all: `python -m
tests.instruments.definedness`."""

from __future__ import annotations

from itertools import islice

import pytest

from passes.verify.reference import ReferenceExecutor
from tests.instruments.definedness.trial import changes, mutants, tried


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The onnxtxt format is experimental")
def test_no_mutant_that_differs_is_proven() -> None:
    found = [tried(mutant, [ReferenceExecutor()]) for mutant in islice(mutants(0), 16)]
    assert not [str(one) for one in found if one.is_false]
    assert sum(one.failure is not None for one in found) >= 4


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The onnxtxt format is experimental")
def test_mutants_are_drawn_alike_and_of_every_kind() -> None:
    drawn = list(islice(mutants(0), 60))
    again = list(islice(mutants(0), 60))
    assert [(one.name, one.text) for one in drawn] == [(one.name, one.text) for one in again]
    assert {one.kind for one in drawn} == {
        change.kind for one in drawn for change in changes(one.equal)
    }
