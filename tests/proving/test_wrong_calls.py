"""Pairs that are wrong with operators of which nothing is modelled: execution tells each apart, and
no proof covers the inputs that do."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import onnx.parser
import pytest
from onnx import ModelProto, TypeProto, helper

from passes.ir.model import Model
from passes.proving.narrowing import prove
from passes.verify.executor import CannotRun, Executor, Feeds, ModelFailed, TookTooLong, Value
from passes.verify.installed import OnnxRuntimeExecutor, executors
from passes.verify.reference import ReferenceExecutor
from tests.instruments.definedness.trial import covers
from tests.proving.wrong_calls import Case
from tests.proving.wrong_calls.bodies import BODIES
from tests.proving.wrong_calls.operands import OPERANDS
from tests.proving.wrong_calls.sequences import SEQUENTIAL
from tests.proving.wrong_calls.whole_bodies import WHOLE
from tests.written import changed

PAIRS = {**OPERANDS, **SEQUENTIAL, **BODIES, **WHOLE}
_BUDGET = 3.0


def sides(case: Case) -> tuple[ModelProto, ModelProto]:
    """The right model and the wrong one."""
    right, wrong, _ = case
    after = wrong if isinstance(wrong, str) else changed(right, wrong)
    return onnx.parser.parse_model(right), onnx.parser.parse_model(after)


def fed(case: Case) -> Feeds:
    """The inputs that tell the models apart."""
    inputs = sides(case)[0].graph.input
    return {one.name: _value(one.type, case[2][one.name]) for one in inputs}


def _value(kind: TypeProto, value: object) -> Value:
    if kind.HasField("sequence_type"):
        assert isinstance(value, list)
        return [_value(kind.sequence_type.elem_type, one) for one in value]
    return np.asarray(value, helper.tensor_dtype_to_np_dtype(kind.tensor_type.elem_type))


def answer(executor: Executor, model: ModelProto, feeds: Feeds) -> list[Value] | None:
    """The outputs of a model; None if it fails or does not end."""
    try:
        return list(executor.run(model, feeds, timeout=0.2).outputs.values())
    except (ModelFailed, TookTooLong):
        return None


def leaves(values: list[Value]) -> Iterator[object]:
    """The shapes and elements of outputs."""
    for value in values:
        if isinstance(value, list):
            yield len(value)
            yield from leaves(value)
        else:
            yield (np.shape(value), np.ravel(value).tolist() if value is not None else None)


#: Pairs that onnxruntime answers alike: it takes a condition that is too long and any flag that is
#: not 0, does not look at the opset of a function, and draws the same numbers in every run.
ALIKE = {
    "a new axis of another number",
    "a mask that may have another length",
    "a function of another opset",
    "a function that takes its opset from itself",
    "random numbers of a body",
}


@pytest.mark.sampled(5)
@pytest.mark.parametrize("name", PAIRS)
def test_no_proof_covers_inputs_on_which_models_differ(name: str) -> None:
    before, after = sides(PAIRS[name])
    feeds = fed(PAIRS[name])
    right, wrong = (answer(ReferenceExecutor(), side, feeds) for side in (before, after))
    assert right is not None
    assert wrong is None or list(leaves(right)) != list(leaves(wrong))
    proof = prove(Model.load(before), Model.load(after), _BUDGET).proof
    assert not proof.is_proven or not covers(proof.scope, before, feeds)


@pytest.mark.slow
@pytest.mark.skipif(not OnnxRuntimeExecutor.available(), reason="onnxruntime is not installed")
@pytest.mark.parametrize("name", [name for name in PAIRS if name not in ALIKE])
def test_onnxruntime_tells_the_models_apart_where_it_runs_both(name: str) -> None:
    feeds = fed(PAIRS[name])
    with executors("onnxruntime") as (runtime,):
        try:
            right, wrong = (answer(runtime, side, feeds) for side in sides(PAIRS[name]))
        except CannotRun as error:
            pytest.skip(str(error))
    if right is None:
        pytest.skip("onnxruntime fails where the documents tell what the original answers")
    assert wrong is None or list(leaves(right)) != list(leaves(wrong))
