"""Every operator at every opset at which it means something else, against onnxruntime."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator

import pytest
from edge_op_cases import edges
from old_op_cases import Entry, cases, model_of
from ort_process import OrtProcess, OrtRefused, difference, ort_process
from refused_op_cases import refused

from passes.verify.executor import CannotRun, ModelFailed
from passes.verify.reference import ReferenceExecutor

pytestmark = pytest.mark.sampled

RUN = ReferenceExecutor().run


@pytest.fixture(scope="module")
def ort() -> Iterator[OrtProcess]:
    with ort_process() as process:
        yield process


def by_operator(entries: Iterable[Entry]) -> dict[str, list[Entry]]:
    table: dict[str, list[Entry]] = defaultdict(list)
    for entry in entries:
        found = re.search(r"= *(\w+)", entry[1])
        assert found, entry[1]
        table[found[1]].append(entry)
    return dict(table)


def disagreements(ort: OrtProcess, entries: list[Entry]) -> list[str]:
    """What onnxruntime gives otherwise, or refuses."""
    found = []
    for opset, node, feeds in entries:
        model = model_of(opset, node, feeds)
        expected = ort.run(model, feeds)
        try:
            outputs = RUN(model, feeds).outputs
        except (ModelFailed, CannotRun) as error:
            found.append(f"{node} at {opset}: {error}")
            continue
        if isinstance(expected, OrtRefused):
            found.append(f"{node} at {opset}: onnxruntime refuses: {expected.sentence}")
            continue
        for got, wanted in zip(outputs.values(), expected, strict=True):
            words = difference(got, wanted, atol=1e-6)
            found += [f"{node} at {opset}: {words}"] if words else []
    return found


CASES = by_operator(cases())
EDGES = by_operator(edges())


@pytest.mark.parametrize("operator", CASES)
def test_an_operator_agrees_with_onnxruntime_at_its_old_versions(
    ort: OrtProcess, operator: str
) -> None:
    assert disagreements(ort, CASES[operator]) == []


@pytest.mark.parametrize("operator", EDGES)
def test_an_operator_agrees_with_onnxruntime_on_nothing_and_nan(
    ort: OrtProcess, operator: str
) -> None:
    assert disagreements(ort, EDGES[operator]) == []


@pytest.mark.parametrize(
    ("opset", "node", "feeds"), [pytest.param(*entry, id=entry[1]) for entry in refused()]
)
def test_operands_that_do_not_fit_make_the_model_fail(
    ort: OrtProcess, opset: int, node: str, feeds: dict[str, object]
) -> None:
    model = model_of(opset, node, feeds)
    for value in model.graph.input:
        # Without static shapes onnxruntime too finds out when it runs.
        for place, dim in enumerate(value.type.tensor_type.shape.dim):
            dim.dim_param = f"{value.name}{place}"
    assert isinstance(ort.run(model, feeds), OrtRefused)
    with pytest.raises(ModelFailed) as caught:
        RUN(model, feeds)
    assert str(caught.value).count("\n") == 0
