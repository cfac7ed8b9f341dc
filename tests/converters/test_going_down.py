"""onnx's backend test cases, taken down to older opsets and up again: the same answers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from backend_cases import main_op
from going_down import EVERYWHERE, Gone, cases_of, go_down
from onnx_cases import Case

from passes.verify.onnxruntime.executor import OnnxRuntimeExecutor

#: onnxruntime's Scan asks for the ranks of its outputs, which no Reshape of opset 13 infers from
#: computed sizes; optimized, as users run it, it loads them.
_NO_RANK = "Subgraph must have the shape set for all outputs"


def one_of_each_op() -> list[Case]:
    by_op = {main_op(case): case for case in cases_of(()) if not case.name.endswith("_expanded")}
    return list(by_op.values())


def wrong(found: list[Gone]) -> list[str]:
    return [str(gone) for gone in found if gone.wrong and not is_known(gone)]


def is_known(gone: Gone) -> bool:
    """Whether onnxruntime, not the conversion, is known to answer otherwise."""
    return _NO_RANK in gone.wrong


def same(found: list[Gone]) -> int:
    return sum(bool(gone.executors) and not gone.wrong for gone in found)


@pytest.fixture(scope="module")
def ort() -> Iterator[OnnxRuntimeExecutor]:
    with OnnxRuntimeExecutor(optimize=False) as executor:
        yield executor


def test_one_case_of_every_third_op(ort: OnnxRuntimeExecutor) -> None:
    found = list(go_down(one_of_each_op()[::3], ort, (13, 9)))
    assert wrong(found) == []
    assert same(found) > 100


@pytest.mark.slow
@pytest.mark.parametrize("part", range(2))
def test_every_third_case(part: int, ort: OnnxRuntimeExecutor) -> None:
    """The others where `going_down.py` writes its page."""
    found = list(go_down(cases_of(())[part::6], ort, (17, 13, 9, 7)))
    assert wrong(found) == []
    assert same(found) > 500


@pytest.mark.slow
@pytest.mark.parametrize("place", [place for place in EVERYWHERE if place != "main"])
def test_one_case_of_each_op_elsewhere(place: str, ort: OnnxRuntimeExecutor) -> None:
    found = list(go_down(one_of_each_op(), ort, (13, 9), (place,)))
    assert wrong(found) == []
    assert same(found) > 100
