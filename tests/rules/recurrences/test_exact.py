"""A block computes what its iterations do, from any state on: over a finite field, exactly."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest
from exact_arithmetic import drawn, run

import passes
from passes.rules.recurrences import run_in_blocks
from tests.written import changed

GOLDEN = Path(__file__).parents[3] / "golden_models" / "run-in-blocks"
#: Models, and how many iterations they run.
FORMS = {
    "decay_of_rows": "48",
    "log_decay": "48",
    "constant_decay": "48",
    "no_decay": "48",
    "delta_rule": "48",
    "gated_delta_rule": "48",
    "read_before_the_update": "48",
    "normalized": "48",
    "shared_keys": "48",
    "moving_average": "70",
    "constant_average": "300",
    "gated_unit": "T",
    "complex_average": "70",
}


@pytest.mark.parametrize("length", [4, 7, 16])
@pytest.mark.parametrize("name", FORMS)
def test_a_block_is_its_iterations(name: str, length: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_in_blocks, "block_length", lambda *_: length)
    text = (GOLDEN / f"{name}.before.onnxtxt").read_text()
    before = onnx.parser.parse_model(changed(text, {f"[{FORMS[name]},": f"[{length},"}))
    after = passes.optimize(
        before, rules=["run-in-blocks"], allow_reassociation=True, verify=False
    ).model
    inputs = {
        value.name: drawn(
            number,
            [dim.dim_value for dim in value.type.tensor_type.shape.dim],
            logs=value.name == "g" and name == "log_decay",
        )
        for number, value in enumerate(before.graph.input)
    }
    assert "Scan" in {node.op_type for node in after.graph.node}
    assert after.graph != before.graph
    for expected, actual in zip(run(before.graph, inputs), run(after.graph, inputs), strict=True):
        assert expected.shape == actual.shape
        assert (expected == actual).all()
