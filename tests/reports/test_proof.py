"""The verdict of a proof in the first line of a report: its scope, or the obstacle."""

from __future__ import annotations

import pytest

from passes.reports.proof import Proof, Scope

PROMISED = "--max-trips 2: no Loop of unknown trip count runs over 2 iterations"


@pytest.mark.parametrize(
    ("proof", "told"),
    [
        (Proof("proven"), "proven for all sizes"),
        (Proof("proven", promised=[PROMISED]), "proven for all sizes, under --max-trips 2"),
        (Proof("proven", scope=Scope("terms", static=True)), "proven for all inputs"),
        (
            Proof("unproven", "element", output="'y'[i]", before="Exp(x[i])", after="x[i]"),
            "not proven: output 'y'[i] is not shown to be equal",
        ),
        (
            Proof("not-provable", "operator", "Resize is not modelled", node="main/x before"),
            "not proven: main/x before: Resize is not modelled",
        ),
        (
            Proof("not-provable", "decision", "a size depends on an index: ArgMax(x[i] + y[i])"),
            "not proven: decision: a size depends on an index",
        ),
        (
            Proof("not-provable", "sparse", node="main/x after"),
            "not proven: main/x after: a sparse initializer is not modelled",
        ),
    ],
)
def test_the_verdict_is_one_sentence_without_formulas(proof: Proof, told: str) -> None:
    assert proof.short == told
