"""The instrument that counts proofs: pairs of exported models, its table, and its times."""

from __future__ import annotations

from pathlib import Path

import pytest
from onnx import parser

from passes.ir.model import Model
from passes.reports.proof import Proof
from tests.instruments import proven
from tests.instruments.proven import EXPORTED, GOLDEN, OF_EXPORTERS, ExportedPair, Found

LARGEST = """<ir_version: 10, opset_import: ["" : 21]>
g (float[N] x, int64[1] count) => (float[M] values, int64[M] places) {
   [largest] values, places = TopK (x, count)
}"""
BRANCH = EXPORTED / "onnxscript" / "branch.opset15.onnx"


def test_an_outcome_that_differs_is_proven() -> None:
    found = OF_EXPORTERS.found(ExportedPair(BRANCH, "optimize"))
    assert found is not None
    assert found.name == "onnxscript/branch.opset15, optimize"
    assert found.is_proven
    assert found.sentence.startswith("proven for all")
    assert found.proving > 0
    assert found.verifying == 0


def test_an_outcome_that_is_the_model_itself_is_left_out() -> None:
    assert OF_EXPORTERS.found(ExportedPair(BRANCH, "unroll")) is None


def test_golden_pairs_are_proven_in_processes_by_the_same_code() -> None:
    (found,) = proven.results(GOLDEN, GOLDEN.pairs("/carry-captures/"), 1, timed=True)
    assert found.command == "carry-captures"
    assert found.is_proven
    assert found.verifying > 0


def test_every_model_is_paired_with_every_command() -> None:
    pairs = proven.exported_pairs("onnxscript/branch.opset15")
    assert [pair.command for pair in pairs] == list(proven.COMMANDS)
    assert len(proven.exported_pairs()) == 5 * len(list(EXPORTED.glob("*/*.onnx")))


def test_the_table_counts_scopes_by_command_and_obstacles_by_operator() -> None:
    kinds = {"raise": ["all", "sizes"], "unroll": ["budget", "operator TopK", "operator TopK"]}
    found = [Found("m", command, kind, "", 0.1) for command in kinds for kind in kinds[command]]
    assert OF_EXPORTERS.text(found).splitlines()[2:] == [
        "| `raise` | 2 | 1 | 1 | 0 | 0 | 0 |  |",
        "| `unroll` | 3 | 0 | 0 | 0 | 0 | 3 | operator TopK 2, budget 1 |",
        "| **all** | 5 | 1 | 1 | 0 | 0 | 3 | operator TopK 2, budget 1 |",
    ]


def test_the_page_has_a_row_for_every_command() -> None:
    told = {
        name: list(map(int, line.split("|")[2:7])) for name, line in OF_EXPORTERS.rows().items()
    }
    assert list(told) == list(proven.COMMANDS)
    assert all(pairs == sum(others) for pairs, *others in told.values())


def test_an_obstacle_has_the_operator_of_its_node() -> None:
    model = Model.load(parser.parse_model(LARGEST))
    ended = Proof("not-provable", "operator", node="main/largest after")
    assert proven.obstacle_of(ended, model, model) == "operator TopK"
    assert proven.obstacle_of(Proof("unproven", "element"), model, model) == "element"


def test_the_times_are_a_ratio_for_each_pair() -> None:
    found = [
        Found("quick", "raise", "all", "", 0.5, 2.0),
        Found("even", "raise", "all", "", 1.0, 1.0),
        Found("slow", "raise", "sizes", "", 6.0, 2.0),
    ]
    assert proven.times(found) == (
        "proving / verifying: median 1.00x, worst 3.00x (slow); medians 1.00 s and 2.00 s of 3"
    )


def test_writing_leaves_the_rest_of_the_page_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = tmp_path / "trust.md"
    mark = OF_EXPORTERS.mark
    page.write_text(f"before\n<!-- {mark} -->\nold\n<!-- end of {mark} -->\nafter\n")
    monkeypatch.setattr(proven, "PAGE", page)
    OF_EXPORTERS.write("| `raise` | 1 |\n")
    assert page.read_text().splitlines()[1:-1] == [
        f"<!-- {mark} -->",
        "| `raise` | 1 |",
        f"<!-- end of {mark} -->",
    ]
    assert OF_EXPORTERS.rows() == {"raise": "| `raise` | 1 |\n"}
