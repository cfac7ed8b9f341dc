"""onnx's backend test cases through the reference executor, and through onnxruntime."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from onnx import ModelProto
from onnx_cases import Case, all_cases, control_flow_cases
from ort_process import OrtProcess, OrtRefused, difference, ort_process

from passes.verify.executor import CannotRun, ModelFailed
from passes.verify.reference import ReferenceExecutor

RUN = ReferenceExecutor().run

#: Random results, a preview operator, decoders that need another library, no kernel at all.
NOT_COMPARED = ("test_bernoulli", "test_flexattention", "test_image_decoder", "test_gradient")


@pytest.fixture(scope="module")
def ort() -> Iterator[OrtProcess]:
    with ort_process() as process:
        yield process


def differences(case: Case) -> list[str]:
    """What the executor gives otherwise than stored."""
    try:
        outputs = RUN(case.model, case.feeds, timeout=60).outputs
    except (ModelFailed, CannotRun) as error:
        return [f"{case.name}: {type(error).__name__} {error}"]
    found = []
    for (name, got), expected in zip(outputs.items(), case.expected, strict=True):
        words = difference(got, expected, case.rtol, case.atol)
        found += [f"{case.name}: {name}: {words}"] if words else []
    return found


def test_every_control_flow_case_gives_what_is_stored_and_what_onnxruntime_gives(
    ort: OrtProcess,
) -> None:
    cases = control_flow_cases()
    assert len(cases) >= 38
    stored = [words for case in cases for words in differences(case)]
    assert stored == []
    refusals, other = [], []
    for case in cases:
        answer = ort.run(as_onnxruntime_loads(case.model), case.feeds)
        if isinstance(answer, OrtRefused):
            refusals.append(case.name)
            continue
        outputs = RUN(case.model, case.feeds).outputs
        for got, expected in zip(outputs.values(), answer, strict=True):
            words = difference(got, expected, max(case.rtol, 1e-3), max(case.atol, 1e-5))
            other += [f"{case.name}: {words}"] if words else []
    assert other == []
    # numpy's bfloat16 cannot be fed.
    assert refusals == ["test_range_bfloat16_type_positive_delta_expanded"]


def as_onnxruntime_loads(model: ModelProto) -> ModelProto:
    """The model at opset 26 at most: none of the operators in these cases changed since."""
    copy = ModelProto()
    copy.CopyFrom(model)
    for entry in copy.opset_import:
        if entry.domain == "":
            entry.version = min(entry.version, 26)
    return copy


@pytest.mark.slow
def test_every_case_gives_what_is_stored() -> None:
    cases = [case for case in all_cases() if not case.name.startswith(NOT_COMPARED)]
    assert len(cases) > 1800
    with np.errstate(all="ignore"):
        found = [words for case in cases for words in differences(case)]
    assert found == []
