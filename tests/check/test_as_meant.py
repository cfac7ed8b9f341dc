"""Models that are invalid by the letter, which onnxruntime runs: taken as they are meant."""

from __future__ import annotations

import onnx
import pytest
from onnx import ModelProto

import passes
from passes.errors import BadModel
from tests.written import changed

OUT_OF_ORDER = """<ir_version: 8, opset_import: ["" : 8]>
g (float[B,T,3] x, float[B,3] h) => (float[B,3] last)
{
   last = Scan <num_scan_inputs = 1, body = b (float[3] s, float[3] e) => (float[3] t) {
      t = Add (s, e)
   }> ("", first, x)
   first = Relu (h)
}"""
WITHOUT_IMPORT = """<ir_version: 8, opset_import: ["" : 13]>
g (float[T,3] x, float[3] h) => (float[3] last)
{
   first = com.microsoft.Gelu (h)
   last = Scan <num_scan_inputs = 1, body = b (float[3] s, float[3] e) => (float[3] t) {
      t = Add (s, e)
   }> (first, x)
}"""


def upgraded(text: str) -> tuple[ModelProto, tuple[str, ...]]:
    result = passes.upgrade(onnx.parser.parse_model(text))
    assert result.report.checked is not None
    assert result.report.checked.verdict == "verified"
    onnx.checker.check_model(result.model)
    return result.model, tuple(result.report.notes)


def test_nodes_of_the_main_graph_out_of_order_are_sorted() -> None:
    model, notes = upgraded(OUT_OF_ORDER)
    assert [node.op_type for node in model.graph.node] == ["Relu", "Scan"]
    assert notes == (
        "the nodes of the main graph are not in order and were sorted, as onnxruntime does",
    )


def test_onnxruntimes_own_operators_need_no_import() -> None:
    model, notes = upgraded(WITHOUT_IMPORT)
    assert ("com.microsoft", 1) in {(entry.domain, entry.version) for entry in model.opset_import}
    assert notes == ("there is no opset import for domain 'com.microsoft'; version 1 was taken",)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (changed(OUT_OF_ORDER, {"Relu (h)": "Relu (last)"}), "the nodes form a cycle"),
        (changed(OUT_OF_ORDER, {"t = Add (s, e)": "t = Add (u, e) u = Neg (s)"}), "is used before"),
        (changed(WITHOUT_IMPORT, {"com.microsoft": "com.other"}), "there is no opset import"),
    ],
)
def test_what_runs_nowhere_is_refused(text: str, sentence: str) -> None:
    with pytest.raises(BadModel, match=sentence):
        passes.upgrade(onnx.parser.parse_model(text))
