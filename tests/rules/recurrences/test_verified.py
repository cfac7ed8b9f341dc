"""What runs in blocks is verified where it does: on decays that ordinary numbers are not."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest

import passes
from passes.rules.recurrences.decays import DecayOfRows

GOLDEN = Path(__file__).parents[3] / "golden_models" / "run-in-blocks"


def test_a_fault_in_what_only_mild_decays_reach_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(self: DecayOfRows, value: str) -> str:
        return value  # not divided by the decay

    monkeypatch.setattr(DecayOfRows, "column", wrong)
    model = onnx.load(GOLDEN / "decay_of_rows.before.onnxtxt")
    with pytest.raises(passes.Mismatch, match="branches: a near one"):
        passes.optimize(model, rules=["run-in-blocks"], allow_reassociation=True)
