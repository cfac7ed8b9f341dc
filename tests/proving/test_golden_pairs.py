"""Golden pairs that are proven stay so; what is not modelled ends with a code."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.instruments.proven import GOLDEN, golden_pairs, proof_of

PROVEN = {
    "lower": 17,
    "batch-outputs": 6,
    "hoist-invariants": 24,
    "unroll/": 30,
    "upgrade": 55,
    "flatten-scan": 7,
    "peel": 17,
    "raise": 40,
    "unroll-partial": 5,
    "expand/": 10,
    "forward-cell": 2,
    "recognize-cell": 6,
}


#: Those that take a second or two.
QUICK = ("lower", "batch-outputs", "forward-cell")


@pytest.mark.parametrize(
    "command",
    [pytest.param(one, marks=[pytest.mark.slow] * (one not in QUICK)) for one in PROVEN],
)
def test_golden_pairs_are_proven(command: str) -> None:
    proofs = [proof_of(path, 20) for path in golden_pairs(command)]
    assert sum(proof.is_proven for proof in proofs) >= PROVEN[command]
    assert all(one.is_proven or (one.code and (one.detail or one.output)) for one in proofs)


def test_the_table_of_the_page_has_every_golden_pair() -> None:
    counted = Counter(path.parent.name for path in golden_pairs())
    told = {name: list(map(int, line.split("|")[2:8])) for name, line in GOLDEN.rows().items()}
    assert {name: numbers[0] for name, numbers in told.items()} == counted
    assert all(first == sum(others) for first, *others in told.values())


@pytest.mark.sampled(3)
@pytest.mark.parametrize("command", ["carry-captures", "regroup-sum", "split-state"])
def test_the_table_of_the_page_is_current(command: str) -> None:
    found = filter(None, map(GOLDEN.found, GOLDEN.pairs(f"/{command}/")))
    assert GOLDEN.rows()[command] in GOLDEN.text(found)
