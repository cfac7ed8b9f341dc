"""Golden pairs that are proven stay so; what is not modelled ends with a code."""

from __future__ import annotations

import pytest

from tests.instruments.proven import golden_pairs, proof_of

PROVEN = {
    "lower": 17,
    "fuse-scans": 6,
    "batch-outputs": 6,
    "hoist-invariants": 24,
    "unroll/": 30,
    "upgrade": 44,
    "expand/": 6,
    "forward-cell": 2,
    "recognize-cell": 6,
}


@pytest.mark.parametrize("command", PROVEN)
def test_golden_pairs_are_proven(command: str) -> None:
    proofs = [proof_of(path) for path in golden_pairs(command)]
    assert sum(proof.is_proven for proof in proofs) >= PROVEN[command]
    assert all(one.is_proven or (one.code and (one.detail or one.output)) for one in proofs)
