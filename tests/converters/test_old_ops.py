"""The single nodes at old opsets that the reference executor is held against, upgraded."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import pytest
from old_op_cases import Entry, cases, draw, model_of, positive
from onnx import ModelProto, TypeProto
from steps_taken import proved, recorded

import passes
from passes.ir.versions import OLDEST_OPSET
from passes.verify.compare.compare import compare
from passes.verify.compare.tolerance import BITS, Tolerance
from passes.verify.executor import CannotRun, Executor, Feeds, ModelFailed, Outcome
from passes.verify.installed import OnnxRuntimeExecutor
from passes.verify.reference import ReferenceExecutor

pytestmark = pytest.mark.sampled

#: The newest opset that onnxruntime loads, and the newest of all.
TARGETS = (26, 28)
#: Ops whose versions onnxruntime computes by kernels that round otherwise.
ROUNDED = {"AveragePool", "GlobalAveragePool"}
#: Random numbers with a seed, which both versions draw alike, and what is not among the cases.
MORE: list[Entry] = [
    (7, "y = RandomNormal<shape = [2, 3], seed = 1.0>()", {}),
    (7, "y = RandomUniform<shape = [2, 3], seed = 1.0>()", {}),
    (7, "y = RandomNormalLike<seed = 1.0>(x)", {"x": draw(2, 3)}),
    (7, "y = RandomUniformLike<seed = 1.0>(x)", {"x": draw(2, 3)}),
    (7, "y = Multinomial<sample_size = 5, seed = 1.0>(x)", {"x": positive(2, 3)}),
    (15, "y = Bernoulli<seed = 1.0>(x)", {"x": positive(2, 3) / np.float32(5)}),
    (7, "y = GlobalLpPool(x)", {"x": draw(1, 2, 3, 4)}),
]


@pytest.fixture(scope="module")
def ort() -> Iterator[OnnxRuntimeExecutor]:
    with OnnxRuntimeExecutor(optimize=False) as executor:
        yield executor


def all_entries() -> list[Entry]:
    return [entry for entry in (*cases(), *MORE) if entry[0] >= OLDEST_OPSET]


def wrong(entries: Iterable[Entry], ort: Executor) -> tuple[int, list[str]]:
    """How many were compared in all, and what differs after an upgrade."""
    compared, found = 0, []
    for opset, node, feeds in entries:
        model = model_of(opset, node, feeds)
        for value in model.graph.output:
            value.type.CopyFrom(TypeProto())
        for target in TARGETS:
            with recorded(model, target) as taken:
                after = passes.upgrade(model, opset=target, verify=False).model
            for executor in (ReferenceExecutor(), ort) if target <= 26 else (ReferenceExecutor(),):
                words = difference(executor, model, after, feeds)
                if words:
                    found.append(f"{node} from {opset} to {target}, {executor.name}: {words}")
                elif words is not None:
                    compared += 1
                    proved(taken, executor.name)
    return compared, found


def difference(
    executor: Executor, before: ModelProto, after: ModelProto, feeds: Feeds
) -> str | None:
    """What differs, empty where nothing does; None where the original does not run."""
    one, other = (_run(executor, model, feeds) for model in (before, after))
    if isinstance(one, str):
        return None
    if isinstance(other, str):
        lost = "Could not find an implementation" not in other
        return other if lost else None
    rounded = any(node.op_type in ROUNDED for node in before.graph.node)
    near = rounded and executor.name == "onnxruntime"
    comparison = compare(one, other, Tolerance("near") if near else BITS)
    return "" if comparison.agree else comparison.differences[0].sentence


def _run(executor: Executor, model: ModelProto, feeds: Feeds) -> Outcome | str:
    try:
        return executor.run(model, feeds, timeout=60)
    except (CannotRun, ModelFailed) as error:
        return f"{type(error).__name__}: {error}"


@pytest.mark.slow
def test_some_old_nodes_give_the_same_when_upgraded(ort: OnnxRuntimeExecutor) -> None:
    compared, found = wrong(all_entries()[::15], ort)
    assert found == []
    assert compared > 100


@pytest.mark.slow
def test_every_old_node_gives_the_same_when_upgraded(ort: OnnxRuntimeExecutor) -> None:
    compared, found = wrong(all_entries(), ort)
    assert found == []
    assert compared > 1500
