"""Bodies as deep in one another as a file can hold, and one deeper."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest
from google.protobuf.message import DecodeError
from onnx import GraphProto, ModelProto, TensorProto, TypeProto, helper

from passes.bodies.few_iterations import starts
from passes.commands.schedules import SCHEDULES
from passes.engine.outcome import Pass
from passes.errors import BadModel
from passes.ir.model import Model
from passes.onnxruntime.bodies import MOST, depth_below
from passes.session import Session
from passes.testing import options_of
from tests.written import changed

_DEEPEST = 31


def nested(levels: int, *, sequence: bool = False) -> ModelProto:
    """Loops in one another, each of which hands on what it carries."""
    held = helper.make_tensor_type_proto(TensorProto.FLOAT, [2])
    if sequence:
        held = helper.make_sequence_type_proto(held)
    graph = helper.make_graph(
        [_loop("x", "y", levels, held)],
        "g",
        [
            helper.make_value_info("x", held),
            helper.make_tensor_value_info("m", TensorProto.INT64, []),
        ],
        [helper.make_value_info("y", held)],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def _loop(read: str, made: str, levels: int, held: TypeProto) -> object:
    return helper.make_node("Loop", ["m", "", read], [made], body=_body(levels, held))


def _body(levels: int, held: TypeProto) -> GraphProto:
    number, going, state, handed, result = (
        f"{name}{levels}" for name in ("i", "go", "s", "on", "t")
    )
    nodes = [helper.make_node("Identity", [going], [handed])]
    if levels > 1:
        nodes.append(_loop(state, result, levels - 1, held))
    else:
        nodes.append(helper.make_node("Identity", [state], [result]))
    inputs = [
        helper.make_tensor_value_info(number, TensorProto.INT64, []),
        helper.make_tensor_value_info(going, TensorProto.BOOL, []),
        helper.make_value_info(state, held),
    ]
    outputs = [
        helper.make_tensor_value_info(handed, TensorProto.BOOL, []),
        helper.make_value_info(result, held),
    ]
    return helper.make_graph(nodes, f"body{levels}", inputs, outputs)


@pytest.mark.parametrize(
    ("pipeline", "levels"),
    [("raise", _DEEPEST - 1), pytest.param("optimize", _DEEPEST, marks=pytest.mark.slow)],
)
def test_what_no_file_could_hold_is_refused(pipeline: str, levels: int) -> None:
    """A raised Loop stands in an If of its own; `optimize` raises only those outside of others."""
    result = Session([Pass(SCHEDULES[pipeline])], None).run(nested(levels))
    refused = [refusal for refusal in result.report.refusals if refusal.code == "too-deep"]
    assert refused
    assert "protobuf reads 100 levels of messages" in refused[0].sentence
    ModelProto.FromString(result.model.SerializeToString())


def test_loops_with_room_for_their_ifs_are_raised() -> None:
    report = Session([Pass(SCHEDULES["raise"])], None).run(nested(_DEEPEST // 2)).report
    assert not [refusal for refusal in report.refusals if refusal.code == "too-deep"]


@pytest.mark.parametrize(
    "pipeline",
    ["upgrade", "lower", "unroll", "unroll-partial", "peel", "hoist", "simplify", "optimize"],
)
def test_the_deepest_file_is_taken(pipeline: str, tmp_path: Path) -> None:
    path = tmp_path / "deep.onnx"
    path.write_bytes(nested(_DEEPEST).SerializeToString())
    result = Session([Pass(SCHEDULES[pipeline])], None).run(Model.load(path).proto)
    ModelProto.FromString(result.model.SerializeToString())


@pytest.mark.parametrize("sequence", [False, True])
@pytest.mark.parametrize("levels", [30, 31])
def test_the_depth_is_what_protobuf_counts(levels: int, sequence: bool) -> None:
    model = nested(levels, sequence=sequence)
    try:
        ModelProto.FromString(model.SerializeToString())
    except DecodeError:
        assert 1 + depth_below(model.graph) > MOST
    else:
        assert 1 + depth_below(model.graph) <= MOST


def test_a_file_that_is_deeper_is_no_broken_file(tmp_path: Path) -> None:
    path = tmp_path / "deeper.onnx"
    path.write_bytes(nested(_DEEPEST + 1).SerializeToString())
    with pytest.raises(BadModel, match="bodies are nested too deeply: protobuf reads 100"):
        Model.load(path)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("pipeline", "options"),
    [("peel", {"peel": "first"}), ("peel", {"peel": "last"}), ("unroll-partial", {"factor": 3})],
)
def test_copies_of_copies_are_limited(pipeline: str, options: dict[str, object]) -> None:
    """What is written grows with the depth, and does not double at every level."""
    results = [
        Session([Pass(SCHEDULES[pipeline], options=options_of(options))], None).run(nested(levels))
        for levels in (8, 9)
    ]
    sizes = [result.report.sizes[1].nodes for result in results]
    assert 0 < sizes[1] - sizes[0] < 10
    assert {refusal.code for refusal in results[-1].report.refusals} == {"too-many-nodes"}


def test_counting_the_nodes_of_nested_scans_looks_at_each_once() -> None:
    """Nodes that start once and nodes that start in every iteration, of 30 nested Scans."""
    scan = """t_this = Scan <num_scan_inputs = 1,
        body = b (float s_next, float e_next) => (float t_next) { BODY }> (s_this, x)"""
    text = """
    <ir_version: 8, opset_import: ["" : 17]>
    g (float s0, float[T] x) => (float t0) { BODY }
    """
    for level in range(30):
        names = {"_this": f"{level}", "_next": f"{level + 1}"}
        text = changed(text, {"BODY": changed(scan, names)})
    text = changed(text, {"BODY": "t30 = Add (s30, e30)"})
    model = onnx.parser.parse_model(text)
    deepest = 3**30
    assert starts(model.graph.node, 3) == 6 * sum(3**level for level in range(30)) + deepest
