"""onnx's backend test cases, taken down to older opsets and up again: the same answers."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import asdict

import pytest
from backend_cases import main_op
from going_down import EVERYWHERE, Gone, cases_of, go_down
from going_down_page import page, rows_of, table
from onnx_cases import Case

from passes.verify.installed import OnnxRuntimeExecutor

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


def test_the_page_counts_cases_by_operator() -> None:
    stopped = "main/topk_0: TopK has no axis | or two [not-constant]"
    found = [
        *(Gone("test_abs", "fed", "main", target) for target in (13, 9)),
        Gone("test_top_k", "fed", "main", 13),
        Gone("test_top_k", "fed", "main", 9, refused=stopped, peer="wrong"),
        Gone("test_top_k", "fed", "if", 13, refused=stopped),
        Gone("test_top_k_expanded_ver11", "fed", "main", 13, refused=stopped),
    ]
    operators = {gone.case: "Abs" if gone.case == "test_abs" else "TopK" for gone in found}
    rows = rows_of(found, operators)
    text = page(found, rows, (13, 9), ("main", "if"))
    assert "| 13 | 2 | 1 | 0 | 0 | 3 | 0 |\n| 9 | 1 | 1 | 0 | 0 | 1 | 1 |" in text
    assert "| if | 0 | 1 | 0 |" in text
    assert "The 1\ncases of function bodies" in text
    assert "reach opset 9: Abs." in text
    assert "| TopK | 13: 1 | TopK has no axis \\| or two [not-constant] |" in text
    read = list(csv.DictReader(table(rows).splitlines()))
    assert read == [asdict(row) for row in rows]
    assert read[1]["in_bodies"] == "if its own: TopK has no axis | or two [not-constant]"


@pytest.mark.slow
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
