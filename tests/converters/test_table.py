"""The table of steps against the operator documents of the installed onnx."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import onnx
import pytest
from onnx.defs import OpSchema

from passes.converters import table
from passes.converters.opset import considers, rewrite
from passes.converters.steps import (
    STEPS,
    STEPS_DOWN,
    Adapter,
    ByRule,
    Expanded,
    Identical,
    Refusal,
    StepDown,
)
from passes.rule import RULES

pytestmark = pytest.mark.sampled

#: Steps up to this version are complete.
COMPLETE_TO = 28
_MISSING = "add a step to converters/adapters; CONTRIBUTING.md, 'A new operator'"


def _histories() -> dict[str, list[OpSchema]]:
    found: dict[str, list[OpSchema]] = {}
    for schema in onnx.defs.get_all_schemas_with_history():
        if schema.domain == "":
            found.setdefault(schema.name, []).append(schema)
    return {op: sorted(all_, key=lambda one: one.since_version) for op, all_ in found.items()}


def _steps_of_onnx() -> Iterator[tuple[OpSchema, OpSchema]]:
    for history in _histories().values():
        for old, new in pairwise(history):
            if new.since_version > table.OLDEST_OPSET:
                yield old, new


PAIRS = {(new.name, new.since_version): (old, new) for old, new in _steps_of_onnx()}


def test_every_step_that_onnx_knows_has_an_entry() -> None:
    missing = [key for key in PAIRS if key not in STEPS and key[1] <= COMPLETE_TO]
    assert missing == [], _MISSING


def test_every_entry_is_a_step_that_onnx_knows() -> None:
    assert [key for key in STEPS if key not in PAIRS] == []


def test_every_step_down_that_onnx_knows_has_an_entry() -> None:
    missing = [key for key in table.known_versions() if _is_missing(table.step_down(*key))]
    assert missing == [], _MISSING


def _is_missing(step: StepDown) -> bool:
    return isinstance(step, Refusal) and (step.op, step.version) not in STEPS_DOWN


def test_every_entry_of_the_way_down_is_a_version_that_onnx_knows() -> None:
    assert [key for key in STEPS_DOWN if key not in table.known_versions()] == []


def test_what_is_expanded_has_a_function_body() -> None:
    for op, version in (key for key, one in STEPS_DOWN.items() if isinstance(one, Expanded)):
        schema = onnx.defs.get_schema(op, version)
        assert schema.has_function or schema.has_context_dependent_function, op


def _signature(schema: OpSchema) -> tuple[object, ...]:
    """Attributes, inputs and outputs; not the types, which a new version may widen."""
    attributes = {
        name: (one.type, one.required, one.default_value.SerializeToString())
        for name, one in schema.attributes.items()
    }
    inputs, outputs = (
        [(one.option, one.is_homogeneous) for one in formal]
        for formal in (schema.inputs, schema.outputs)
    )
    counts = (schema.min_input, schema.max_input, schema.min_output, schema.max_output)
    return attributes, inputs, outputs, counts, schema.deprecated


IDENTICAL = [step for step in STEPS.values() if isinstance(step, Identical)]


@pytest.mark.parametrize("step", IDENTICAL, ids=lambda step: f"{step.op}-{step.version}")
def test_an_identical_step_keeps_the_signature_or_says_why(step: Identical) -> None:
    old, new = PAIRS[step.op, step.version]
    assert step.because or _signature(old) == _signature(new)


@pytest.mark.parametrize("step", IDENTICAL, ids=lambda step: f"{step.op}-{step.version}")
def test_an_identical_step_allows_every_type_that_was_allowed(step: Identical) -> None:
    old, new = PAIRS[step.op, step.version]
    for was, now in zip((*old.inputs, *old.outputs), _same_places(old, new), strict=True):
        assert set(was.types) <= set(now.types), was.name


def _same_places(old: OpSchema, new: OpSchema) -> list[OpSchema.FormalParameter]:
    return [*new.inputs[: len(old.inputs)], *new.outputs[: len(old.outputs)]]


def test_every_adapter_says_what_changed() -> None:
    both = [*STEPS.values(), *STEPS_DOWN.values()]
    adapters = [step for step in both if isinstance(step, Adapter)]
    assert adapters
    assert [step for step in adapters if not (step.adapt.__doc__ or "").strip()] == []


def test_refusals_use_the_codes_that_the_rule_documents() -> None:
    both = [*STEPS.values(), *STEPS_DOWN.values()]
    codes = {step.code for step in both if isinstance(step, Refusal)}
    assert codes <= set(RULES["opset"].refusal_codes)


def test_the_rule_is_registered_with_its_codes() -> None:
    assert RULES["opset"].rewrite is rewrite
    assert {"no-step", "unknown-op", "no-equivalent"} <= set(RULES["opset"].refusal_codes)


def test_a_step_without_an_entry_is_a_refusal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(STEPS, ("MatMul", 9))
    (step,) = table.steps.__wrapped__("MatMul", 7, 9)
    assert isinstance(step, Refusal)
    assert (step.code, step.sentence) == ("no-step", "there is no step of MatMul to version 9 yet")


def test_an_older_opset_than_the_table_knows_is_a_refusal() -> None:
    step, *_ = table.steps("BatchNormalization", 6, 9)
    assert isinstance(step, Refusal)
    assert step.sentence == "BatchNormalization changed in opset 7; conversion starts at opset 7"


def test_an_op_that_onnx_does_not_know_is_a_refusal() -> None:
    (step,) = table.steps("Mish", 8, 9)  # it came in opset 18
    assert step == Refusal("Mish", 8, "unknown-op", "onnx knows no Mish at opset 8")


def test_the_rule_considers_only_what_changes() -> None:
    upsample, relu = onnx.NodeProto(op_type="Upsample"), onnx.NodeProto(op_type="Relu")
    assert considers(upsample, 7, 9)
    assert not considers(upsample, 9, 9)
    assert not considers(relu, 7, 9)
    assert considers(onnx.NodeProto(op_type="Upsample", domain="ai.onnx"), 7, 9)
    assert not considers(onnx.NodeProto(op_type="Upsample", domain="com.example"), 7, 9)


def test_a_scan_of_opset_8_is_left_to_its_own_rule() -> None:
    assert STEPS["Scan", 9] == ByRule("Scan", 9, "scan-8")
    assert not considers(onnx.NodeProto(op_type="Scan"), 8, 9)


def test_there_are_no_versions_towards_an_older_opset() -> None:
    assert table.versions_between("Trilu", 21, 13) == ()
