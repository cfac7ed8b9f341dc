"""Pairs of models that the prover once took for equal; the comment of each names the inputs that
show the difference. None is proven, unless the verdict names what the difference needs."""

from __future__ import annotations

from pathlib import Path

import onnx
import onnx.parser
import pytest

from passes.ir.model import Model
from passes.proving.assumptions import ALWAYS, CELLS_NOTHING, SCANS_NOTHING
from passes.reports.proof import Proof
from tests.instruments.proven import for_all_sizes as prove

HERE = Path(__file__).parent
FALSE_PROOFS = sorted((HERE / "false_proofs").glob("*.before.onnxtxt"))

#: Pairs that differ only on inputs that an assumption excludes.
ASSUMED = {
    "symbol_scalar": "axes of one name have one size",
    "zero_trip_rows": ALWAYS[-1],
    "scan_over_nothing": SCANS_NOTHING,
    "scan_over_nothing_within": SCANS_NOTHING,
    "cell_over_nothing": CELLS_NOTHING,
}


def proof(before: Path) -> Proof:
    """The proof of the pair of this model before."""
    after = before.with_name(before.name.replace(".before.", ".after."))
    return prove(Model.load(onnx.load(before)), Model.load(onnx.load(after)))


@pytest.mark.filterwarnings("ignore:The onnxtxt format is experimental")
@pytest.mark.parametrize("before", FALSE_PROOFS, ids=lambda path: path.name.partition(".")[0])
def test_what_differs_is_not_proven(before: Path) -> None:
    found = proof(before)
    assert not found.is_proven
    assert found.code
    assert found.detail or found.output


@pytest.mark.filterwarnings("ignore:The onnxtxt format is experimental")
@pytest.mark.parametrize("name", ASSUMED)
def test_what_an_assumption_excludes_is_named(name: str) -> None:
    found = proof(HERE / "under_assumptions" / f"{name}.before.onnxtxt")
    assert not found.is_proven or ASSUMED[name] in found.assumed


def test_a_size_named_like_a_number_is_not_that_number() -> None:
    """`3` is the name of the size before, the size after: x of 1 element differs."""
    text = '<ir_version: 10, opset_import: ["" : 21]> g (float[3] x, float c) => (float y) { @ }'
    gathers = "two = Constant <value_int = 2> () unread = Gather (x, two) y = Neg (c)"
    before = onnx.parser.parse_model(text.replace("@", "y = Neg (c)"))
    before.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "3"
    after = onnx.parser.parse_model(text.replace("@", gathers))
    assert not prove(Model.load(before), Model.load(after)).is_proven
