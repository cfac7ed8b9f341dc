"""Each rule fires on the model of an exporter, or there is a reason why it is kept."""

from __future__ import annotations

import onnx
import pytest

from passes.ir.operators import op_of
from passes.ir.scope import walk_model
from passes.rule import load_rules
from tests.instruments.fired import FOLDER, READY, alone, commands, fired, models

#: For each rule a model, and the command by which it fires.
FIRES = {
    "batch-inputs": ("torch/scan_hgrn.opset18", "alone"),
    "batch-outputs": ("torch/operator_scanned.opset18", "alone"),
    "bound-loop": ("jax/newton.opset21", "alone"),
    "carry-captures": ("torch/operator_scanned_recurrence.opset18", "alone"),
    "collect-sequence": ("torch/script_list_stacked.opset13", "alone"),
    "count-loop": ("torch/script_for_sum.opset9", "alone"),
    "declare-shapes": ("jax/cell_lstm.opset21", "alone"),
    "dissolve-map": ("sklearn/gaussian_process_matern.opset18", "alone"),
    "drop-copies": ("jax/cell_gru.opset21", "alone"),
    "drop-empty-branch": ("tensorflow/mapped.opset18", "optimize"),
    "drop-reshapes": ("sklearn/mixed_columns.opset11", "alone"),
    "drop-sequences": ("torch/script_list_stacked.opset13", "optimize-no-control-flow"),
    "expand-cell": ("tensorflow/keras_lstm_backwards.opset18", "alone"),
    "flatten-scan": ("tensorflow/mapped_twice.opset18", "raised"),  # which optimize dissolves
    "fold-constants": ("tensorflow/v1_while.opset13", "alone"),
    "hoist-constants": ("onnxscript/for_nested.opset15", "hoist"),
    "hoist-invariants": ("jax/cell_lstm.opset21", "alone"),
    "inline-function": ("onnxscript/calling.opset18", "alone"),
    "inline-if": ("torch/script_while_both.opset11", "alone"),
    "inline-loop": ("torch/operator_while_counted.opset18", "optimize-assumed"),
    "lower-scan": ("sklearn/knn_minkowski.opset18", "alone"),
    "opset": ("torch/cnn.opset9", "upgrade"),
    "peel": ("jax/mapped.opset21", "alone"),
    "prune-if": ("onnxscript/branch.opset15", "optimize"),
    "prune-loop": ("tensorflow/for_rows.opset18", "alone"),
    "raise-loop": ("jax/cell_rnn.opset21", "alone"),
    "recognize-cell": ("jax/cell_rnn.opset21", "optimize"),
    "regroup-sum": ("tensorflow/keras_stacked.opset18", "optimize"),
    "reroll": ("sklearn/polynomial.opset18", "alone"),
    "run-in-blocks": ("torch/scan_rwkv6.opset18", "alone"),
    "scan-8": ("tensorflow/v1_two_states.opset8", "upgrade"),
    "select-branches": ("torch/operator_branch.opset18", "alone"),
    "share-subexpressions": ("onnxscript/changed_operators.opset15", "alone"),
    "split-state": ("torch/recurrence_s4d.opset13", "optimize"),
    "unroll": ("onnxscript/changed_operators.opset15", "alone"),
    "unroll-partial": ("onnxscript/changed_operators.opset15", "alone"),
}
#: Why a rule is kept that fires on the model of no exporter.
NEVER = {
    "element-types": "models of int8 or bfloat16 that go down; the stored ones are of float",
    "expand-attention": "operators of opset 27, which no exporter writes yet; targets lack them",
    "forward-cell": "tract runs a reverse RNN, GRU or LSTM forwards",
    "recognize-attention": "heads of 16 and wider; the stored models have heads of 8",
    "sink-weights": "weights of more than 4 KB; the stored models have smaller ones",
}
#: The operators at which these rules begin, or in whose bodies.
KINDS = ("If", "Loop", "Scan", "RNN", "GRU", "LSTM")


def test_each_rule_has_a_model_or_a_reason() -> None:
    rules = [name for name, rule in load_rules().items() if rule.is_built_in]
    unknown = {*rules}.symmetric_difference([*FIRES, *NEVER])
    assert not unknown, (
        f"{sorted(unknown)}: run `python -m tests.instruments.fired RULE`, and add the model on "
        "which the rule fires to FIRES, or the reason why it is kept to NEVER, or remove the rule"
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", FIRES)
def test_a_rule_fires_on_its_model(name: str) -> None:
    case, label = FIRES[name]
    model = onnx.load(FOLDER / f"{case}.onnx")
    runs = [run for known, run in commands([name]) if known == label]
    assert any(name in fired(run, model) for run in runs), (
        f"{name} fires on {case} no more: `python -m tests.instruments.fired {name}` finds another "
        "model for FIRES; if there is none, remove the rule, or add the reason to keep it to NEVER"
    )


@pytest.mark.slow
@pytest.mark.parametrize("part", range(2))
def test_the_others_fire_on_no_model(part: int) -> None:
    """Quickly: on Scans, where there are loops or cells; the instrument runs all commands."""
    kept = [name for name in NEVER if name != "element-types"]
    for path in models()[part::2]:
        model = onnx.load(path)
        if {op_of(place.node) for place in walk_model(model)}.isdisjoint(KINDS):
            continue
        found = fired(alone(*READY, *kept), model).intersection(kept)
        assert not found, f"{found} on {path.name}: move the rule from NEVER to FIRES"
