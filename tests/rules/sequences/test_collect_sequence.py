"""The rule `collect-sequence`: the loops of torch.jit.script that append to lists."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from passes.__main__ import app
from passes.errors import DONE, NOT_PRODUCED
from passes.testing import as_text, assert_refused, assert_rewrite
from tests.written import changed

FLAT = {"flat": True, "bounded": "select"}


#: A Loop that appends to a list; the number of its iterations is unknown, and may be 0.
APPENDING = """
<ir_version: 8, opset_import: ["" : 17]>
loops (float[2,3] x, int64 m, bool c) => (float[A,B,C] y) {
    none = SequenceEmpty <dtype = 1> ()
    found = Loop (m, c, none) <body = step (int64 i, bool go, seq(float[2,3]) held)
        => (bool on, seq(float[2,3]) longer) {
        on = Identity (go)
        e = Neg (x)
        longer = SequenceInsert (held, e)
    }>
    y = ConcatFromSequence <axis = 0, new_axis = 1> (found)
}
"""


@pytest.mark.parametrize("axis", [0, 1, 2, -1, -3])
def test_a_list_is_stacked_on_every_axis(axis: int) -> None:
    text = changed(APPENDING, {"axis = 0,": f"axis = {axis},"})
    result = assert_rewrite(text, pipeline="optimize-no-control-flow", options=FLAT)
    assert "Sequence" not in as_text(result.model)


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_a_list_is_joined_on_every_axis(axis: int) -> None:
    joined = {"axis = 0, new_axis = 1": f"axis = {axis}", "[A,B,C]": "[A,B]"}
    text = changed(APPENDING, joined)
    result = assert_rewrite(text, pipeline="optimize-no-control-flow", options=FLAT)
    assert "Sequence" not in as_text(result.model)


def test_strings_and_bytes_stay_in_a_sequence() -> None:
    for elem, dtype in (("string", 8), ("uint8", 2)):
        typed = {"float": elem, "dtype = 1": f"dtype = {dtype}", "Neg (x)": "Identity (x)"}
        text = changed(APPENDING, typed)
        (sentence,) = assert_refused(text, "no-kernel", pipeline="collect-sequence")
        assert elem.upper() in sentence


def test_strict_fails_where_a_sequence_stays(tmp_path: Path) -> None:
    golden = Path(__file__).parents[3] / "golden_models" / "drop-sequences"
    arguments = ["--target", "no-control-flow", "--strict", "-o", str(tmp_path / "new.onnx")]
    codes = {
        name: CliRunner().invoke(app, ["optimize", str(golden / name), *arguments]).exit_code
        for name in ("computed_position.refused.onnxtxt", "changed.before.onnxtxt")
    }
    assert list(codes.values()) == [NOT_PRODUCED, DONE]
