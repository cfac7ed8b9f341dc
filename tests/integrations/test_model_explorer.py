"""Node data has the ids that the ONNX adapter of Model Explorer gives to nodes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import onnx
import pytest

import passes

pytest.importorskip("model_explorer")
adapter = pytest.importorskip("model_explorer_onnx.main")
integration = pytest.importorskip("passes.integrations.model_explorer")

TEXT = """<ir_version: 8, opset_import: ["" : 17]>
g (float[3,2] x, float[2] s, float[2,2] w, bool p, int64 n) => (float[2] y, float[2] z, float[2] u)
<int64 trips = {3}>
{
  [static] y = Loop (trips, "", s) <body = b (int64 i, bool c, float[2] h)
    => (bool c2, float[2] h2) {
    c2 = Identity (c)
    r = Gather (x, i)
    h2 = Add (h, r)
  }>
  z = If (p) <
    then_branch = t () => (float[2] t_y) {
      [inner] t_y = Loop (trips, "", s) <body = d (int64 i, bool c, float[2] h)
        => (bool c2, float[2] h2) {
        c2 = Identity (c)
        h2 = Tanh (h)
      }>
    },
    else_branch = e () => (float[2] e_y) { e_y = Neg (s) }
  >
  [dynamic] u = Loop (n, "", s) <body = f (int64 i, bool c, float[2] h)
    => (bool c2, float[2] h2) {
    c2 = Identity (c)
    h2 = Loop (n, "", h) <body = f2 (int64 j, bool k, float[2] v) => (bool k2, float[2] v2) {
      k2 = Identity (k)
      v2 = Sin (v)
    }>
  }>
}"""


def shown(path: Path) -> dict[str, set[str]]:
    """The ids of the nodes of each graph that Model Explorer shows."""
    graphs = adapter.ONNXAdapter().convert(str(path), {})["graphs"]
    return {graph.id: {node.id for node in graph.nodes} for graph in graphs}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """The path of a model with loops in and beside an If, and in a loop."""
    onnx.save(onnx.parser.parse_model(TEXT), tmp_path / "model.onnx")
    return tmp_path / "model.onnx"


def data(path: Path, report: passes.Report) -> dict[str, Any]:
    """The node data of a report, each node of which is shown."""
    found: dict[str, Any] = json.loads(integration.node_data(path, report))
    nodes = shown(path)
    assert all(set(one["results"]) <= nodes[graph] for graph, one in found.items())
    return found


def test_rewrites_and_refusals_are_texts_and_colours(path: Path) -> None:
    found = data(path, passes.unroll(path).report)
    assert found["g"]["name"] == "passes unroll"
    assert found["g"]["results"]["static"] == {"value": "unroll: verified", "bgColor": "#b6e3c2"}
    refused = found["g"]["results"]["dynamic"]
    assert refused["value"].startswith("unroll: trip-count-not-static (")
    assert refused["bgColor"] == "#f4c7c3"


def test_branches_of_an_if_are_in_the_graph_around_it(path: Path) -> None:
    found = data(path, passes.unroll(path).report)
    assert found["g"]["results"]["node/then_branch/inner"]["value"] == "unroll: verified"


def test_a_loop_in_a_body_is_found_in_the_graph_of_the_body(path: Path) -> None:
    found = data(path, passes.unroll(path).report)
    ((node, result),) = found["dynamic/body"]["results"].items()
    assert result["value"].startswith("unroll: trip-count-not-static (")
    assert node in shown(path)["dynamic/body"]


def test_what_was_not_executed_has_a_colour_of_its_own(path: Path) -> None:
    found = data(path, passes.unroll(path, verify=False).report)
    result = found["g"]["results"]["static"]
    assert result == {"value": "unroll: not verified", "bgColor": "#fbe5a3"}


def test_functions_have_graphs_of_their_own(tmp_path: Path) -> None:
    made = onnx.parser.parse_model("""<ir_version: 8, opset_import: ["" : 17, "own" : 1]>
        g (float[2] s) => (float[2] y) { y = own.three (s) }
        <domain: "own", opset_import: ["" : 17]>
        three (a) => (b) {
          n = Constant <value = int64 {3}> ()
          [loop] b = Loop (n, "", a) <body = d (int64 i, bool c, float[2] h)
            => (bool c2, float[2] h2) {
            c2 = Identity (c)
            h2 = Tanh (h)
          }>
        }""")
    path = tmp_path / "model.onnx"
    onnx.save(made, path)
    found = data(path, passes.unroll(path).report)
    assert found["[function]own::three"]["results"]["loop"]["value"] == "unroll: verified"
