"""onnx's backend test cases, stamped as old as they can be, then upgraded: the same answers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np
import pytest
from backend_cases import NEWEST, TARGET, Stamped, at_oldest_opset, at_own_opset, main_op, ops_of
from onnx import ModelProto
from onnx_cases import Case, all_cases
from ort_process import difference
from steps_taken import proved, recorded

import passes
from passes.verify.compare.compare import compare
from passes.verify.compare.tolerance import BITS, Tolerance
from passes.verify.executor import CannotRun, Executor, Feeds, ModelFailed, Outcome
from passes.verify.installed import OnnxRuntimeExecutor
from passes.verify.reference import ReferenceExecutor

pytestmark = pytest.mark.sampled

#: Random results, a preview op, decoders that need another library, no kernel at all.
NOT_COMPARED = ("test_bernoulli", "test_flexattention", "test_image_decoder", "test_gradient")
#: Ops of which onnxruntime 1.32 has an older version only.
NOT_LOADED = {"RoiAlign", "Swish"}
#: Ops whose versions onnxruntime computes by kernels that round otherwise.
ROUNDED = {"Attention", "AveragePool"}

REFERENCE = ReferenceExecutor()


@pytest.fixture(scope="module")
def ort() -> Iterator[OnnxRuntimeExecutor]:
    with OnnxRuntimeExecutor(optimize=False) as executor:
        yield executor


@dataclass
class Outcomes:
    """What was compared, and each difference in words."""

    reference: int = 0
    onnxruntime: int = 0
    wrong: list[str] = field(default_factory=list)

    def add(self, stamped: Stamped, ort: Executor) -> None:
        """Upgrade a case and hold it against itself and against its stored answers."""
        words = ""
        for target in (NEWEST, stamped.target):
            with recorded(stamped.model, target) as taken:
                after = passes.upgrade(stamped.model, opset=target, verify=False).model
            words = words or _in_reference(stamped, after)
            if not words:
                proved(taken, "reference")
        self.reference += 1
        if not words and stamped.target == TARGET:
            ran, words = _in_onnxruntime(stamped, after, ort)
            self.onnxruntime += ran
            if ran and not words:
                proved(taken, "onnxruntime")
        if words:
            self.wrong.append(f"{stamped}: {words}")


def outcomes(stamped: Iterable[Stamped | None], ort: Executor) -> Outcomes:
    found = Outcomes()
    for one in stamped:
        if one is not None:
            found.add(one, ort)
    return found


def cases() -> list[Case]:
    return [one for one in all_cases() if not one.name.startswith(NOT_COMPARED)]


def test_one_case_of_each_op_at_its_oldest_opset(ort: OnnxRuntimeExecutor) -> None:
    by_op = {main_op(case): case for case in cases() if not case.name.endswith("_expanded")}
    found = outcomes(map(at_oldest_opset, by_op.values()), ort)
    assert found.wrong == []
    assert found.reference > 110
    assert found.onnxruntime > 100


@pytest.mark.slow
@pytest.mark.parametrize("part", range(4))
def test_every_case_at_its_own_opset(part: int, ort: OnnxRuntimeExecutor) -> None:
    found = outcomes(map(at_own_opset, cases()[part::4]), ort)
    assert found.wrong == []
    assert found.reference > 450
    assert found.onnxruntime > 350


@pytest.mark.slow
@pytest.mark.parametrize("part", range(4))
def test_every_case_at_its_oldest_opset(part: int, ort: OnnxRuntimeExecutor) -> None:
    found = outcomes(map(at_oldest_opset, cases()[part::4]), ort)
    assert found.wrong == []
    assert found.reference > 280
    assert found.onnxruntime > 250


def _in_reference(stamped: Stamped, after: ModelProto) -> str:
    """What the reference executor gives otherwise, before and after, or than stored."""
    before_ran, after_ran = (_run(REFERENCE, one, stamped.case) for one in (stamped.model, after))
    for ran in (before_ran, after_ran):
        if isinstance(ran, str):
            return ran
    assert isinstance(before_ran, Outcome)
    assert isinstance(after_ran, Outcome)
    comparison = compare(before_ran, after_ran, BITS)
    if not comparison.agree:
        return comparison.differences[0].sentence
    return _otherwise_than_stored(after_ran, stamped.case)


def _in_onnxruntime(stamped: Stamped, after: ModelProto, ort: Executor) -> tuple[bool, str]:
    """Whether onnxruntime runs the upgraded model, and what it gives otherwise than before.

    Where it does not run the original, the stored answers count.
    """
    before_ran, after_ran = (_run(ort, one, stamped.case) for one in (stamped.model, after))
    if isinstance(after_ran, str):
        lost = isinstance(before_ran, Outcome) and not NOT_LOADED & ops_of(after)
        return False, after_ran if lost else ""
    if isinstance(before_ran, str):
        return True, _otherwise_than_stored(after_ran, stamped.case)
    tolerance = Tolerance("near", units=16.0, floor=1.0) if ROUNDED & ops_of(after) else BITS
    comparison = compare(before_ran, after_ran, tolerance)
    if comparison.agree or _mends(before_ran, after_ran, stamped.case):
        return True, ""
    return True, f"onnxruntime: {comparison.differences[0].sentence}"


def _mends(before: Outcome, after: Outcome, case: Case) -> bool:
    """Whether only the new version of an op has a kernel that gives the stored answers: of
    Attention, that of 23 masks with the lowest float, and that of 24 with -inf."""
    return bool(_otherwise_than_stored(before, case)) and not _otherwise_than_stored(after, case)


def _run(executor: Executor, model: ModelProto, case: Case) -> Outcome | str:
    feeds: Feeds = {
        name: np.asarray(value) if np.isscalar(value) else value
        for name, value in case.feeds.items()
    }
    try:
        return executor.run(model, feeds, timeout=60)
    except (CannotRun, ModelFailed) as error:
        return f"{executor.name}: {error}"


def _otherwise_than_stored(outcome: Outcome, case: Case) -> str:
    for (name, got), expected in zip(outcome.outputs.items(), case.expected, strict=True):
        if words := difference(got, expected, case.rtol, case.atol):
            return f"{name}: {words}"
    return ""
