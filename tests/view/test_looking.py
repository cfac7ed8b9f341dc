"""What the page is told of a model: its loops, drawings of its graphs, its nodes and values."""

from __future__ import annotations

import pytest

from passes.ir.model import Model
from passes.testing import as_model
from passes.view.looking import Look, NotThere
from tests.reports.pages.looking import PROJECTION, UNKNOWN_TRIPS, chain
from tests.view.served import LSTM
from tests.written import changed

BRANCHES = """<ir_version: 8, opset_import: ["" : 18]>
    g (bool c, float[2] x) => (float[2] y) {
        y = If (c) <
            then_branch = a () => (float[2] p) { p = Neg (x) },
            else_branch = b () => (float[2] q) { q = Abs (x) }
        >
    }"""


def look(text: str) -> Look:
    return Look(Model.load(as_model(text)))


def test_the_loops_with_the_key_of_the_first_of_each_kind() -> None:
    found = look(PROJECTION).overview()
    assert (found["loops"], found["nodes"], found["keys"]) == (1, 6, ["0/0"])
    assert found["inputs"] == ["float[B,3] h0", "float[T,B,2] x"]
    alike = Look(Model.load(chain(5))).overview()
    assert [len(group["paths"]) for group in alike["groups"]] == [5]
    assert alike["keys"] == ["0/0"]


def test_what_each_rule_would_do_and_what_is_next() -> None:
    model = look(PROJECTION)
    assert model.inspection.groups[0].answers == ()  # nobody asked
    by_rule = {one["rule"]: one for one in model.answers("0/0")}
    assert by_rule["batch-inputs"]["outcome"] == "rewrites"
    assert by_rule["unroll"]["code"] == "trip-count-not-static"
    assert model.answers("0/0") == [*by_rule.values()]


@pytest.mark.parametrize(
    ("asked", "operators"),
    [
        ({"graph": "0", "at": "0/0"}, ["MatMul", "MatMul", "Add", "Tanh", "Identity"]),
        ({"graph": "0"}, ["Scan (5 inside)"]),
        ({"graph": "0", "near": "hs"}, ["Scan (5 inside)"]),
        ({"graph": "0/0/body"}, ["MatMul", "MatMul", "Add", "Tanh", "Identity"]),
    ],
    ids=["a loop", "folded", "around it", "a body"],
)
def test_drawings(asked: dict[str, str], operators: list[str]) -> None:
    drawing = look(PROJECTION).drawing(**asked)
    assert [mark[1] for mark in drawing["marks"] if mark[0] == "node"] == operators


def test_of_a_large_graph_what_is_nearest_is_drawn() -> None:
    drawing = Look(Model.load(chain(1, length=500))).drawing("0/0/body", near="v250")
    assert drawing["cut"] == "40 of 502 nodes are drawn, those nearest to it"
    assert "v250" in [mark[2] for mark in drawing["marks"]]


def test_nodes_are_found_by_operator_path_and_value() -> None:
    model = look(PROJECTION)
    assert [one["op"] for one in model.nodes("matmul")["nodes"]] == ["MatMul", "MatMul"]
    assert [one["path"] for one in model.nodes("body/tanh")["nodes"]] == ["main/scan_0.body/tanh_3"]
    assert model.nodes("h_all")["total"] == 1
    assert model.nodes("nowhere") == {"total": 0, "nodes": []}
    add = changed(
        PROJECTION, {"b = MatMul (h_in, R)": "added = MatMul (h_in, R)", "(a, b)": "(a, added)"}
    )
    assert [one["op"] for one in look(add).nodes("add")["nodes"]] == ["Add", "MatMul"]


def test_a_node_with_its_weights() -> None:
    found = look(LSTM).value("0", "y")
    _, w, r = found["node"]["inputs"]
    assert w["type"] == "float[1,4,2]"
    assert r["weights"] == "[1, 0, 1, -0.5]"
    assert found["node"]["attributes"] == ["hidden_size = 1"]
    assert found["readers"] == 1


def test_a_value_of_a_branch_is_found_from_outside() -> None:
    found = look(BRANCHES).value("0", "q")
    assert (found["graph"], found["in"]) == ("0/0/else_branch", "main/if_0.else_branch")
    node = look(BRANCHES).value("0", "y")["node"]
    assert [body[0] for body in node["bodies"]] == ["then_branch", "else_branch"]


@pytest.mark.parametrize("graph", ["", "1", "0/0", "0/0/none", "-1"])
def test_what_is_not_there(graph: str) -> None:
    with pytest.raises(NotThere, match="the model has no graph"):
        look(UNKNOWN_TRIPS).drawing(graph)
