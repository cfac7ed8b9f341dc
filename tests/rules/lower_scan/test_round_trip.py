"""raise(lower(s)) is s up to renaming, for the Scans of all golden models."""

from __future__ import annotations

from pathlib import Path

import networkx as nx
import onnx
import pytest
from onnx import ModelProto, NodeProto

from passes.choices import RuleOptions
from passes.commands.schedules import SCHEDULES
from passes.engine.outcome import Pass
from passes.ir import scope as scoping
from passes.loops.form import LoopForm
from passes.session import Result, Session

pytestmark = pytest.mark.sampled

FOLDER = Path(__file__).parents[3] / "golden_models"
CASES = sorted([*FOLDER.glob("lower/*.before.onnxtxt"), *FOLDER.glob("upgrade/*.after.onnxtxt")])
#: What does not come back, and why.
OTHER = {
    "lower/dequantized": "onnxruntime aborts unless the Loop reads the tensor out of a list",
    "lower/int4": "what onnxruntime's Loop lacks goes through a wider type, which stays",
    "lower/float8_state": "the same, of a guard of the shape",
    "lower/scan_8": "rows that may be empty are moved by a Transpose, not by the Scan",
    "upgrade/assumed_lengths_of_a_constant": "the same, where rows may be empty",
    "upgrade/function_in_body": "the same, where rows may be empty",
    "upgrade/fails_without_rows": "the same, where rows may be empty",
    "upgrade/fails_without_rows_inside": "the same, where rows may be empty",
    "upgrade/divided_by_a_gathered_row": "the same, where rows may be empty",
    "upgrade/divided_state": "the same, where rows may be empty",
    "upgrade/lengths_without_time": "the same, where rows may be empty",
    "upgrade/masked_ragged": "the same, where rows may be empty",
    "upgrade/bidirectional": "that two Slices are as long is not proven of a Loop: it is guarded",
    "lower/static_zero": "a Loop that never runs is refused: onnxruntime cannot run such a Scan",
    "lower/float8_and_a_function": "float8 is scanned as float: no Gather takes it",
    "lower/strings": "rows of strings are taken by a mask (no Gather takes them), and stay outside",
    "upgrade/strings": "the same, of strings",
    "upgrade/masked_backwards": "the same, of strings",
}


def case_name(path: Path) -> str:
    return f"{path.parent.name}/{path.name.split('.')[0]}"


@pytest.mark.parametrize(
    "path", [path for path in CASES if case_name(path) not in OTHER], ids=case_name
)
def test_lowered_and_raised_it_is_the_same(path: Path) -> None:
    original = Session([Pass(SCHEDULES["upgrade"], 21)], None).run(onnx.load(path)).model
    lowered = Session([Pass(SCHEDULES["lower"], 21)], None).run(original).model
    result, loops = raised(lowered), raised(original)
    # Loops that stand beside and around the Scans are raised, or refused, on both sides
    assert refused(result) == refused(loops)
    assert isomorphic(loops.model, result.model)


def raised(model: ModelProto) -> Result:
    return Session([Pass(SCHEDULES["raise"], 21, RuleOptions(assume=("non-empty",)))], None).run(
        model
    )


def refused(result: Result) -> list[str]:
    return [record.code for record in result.report.refusals]


def isomorphic(one: ModelProto, other: ModelProto) -> bool:
    """Whether two models are the same but for names and the order of independent nodes.

    Nor do Identities, copies and nodes that nothing reads make a difference, or names for outputs
    that nothing reads (onnxruntime wants them on a Loop), or whether axes are counted from the end.
    """
    both = [told(drawn(model)) for model in (one, other)]
    return bool(nx.vf2pp_is_isomorphic(*both, node_label="label"))


def told(graph: nx.Graph) -> nx.Graph:
    """A graph whose labels tell of neighbours too, so that few pairs come into question."""
    hashes = nx.weisfeiler_lehman_subgraph_hashes(graph, node_attr="label", iterations=12)
    nx.set_node_attributes(graph, {node: found[-1] for node, found in hashes.items()}, "label")
    return graph


def drawn(model: ModelProto) -> nx.Graph:
    """A model as a graph of nodes, values and places, without names."""
    graph = nx.Graph()
    for number, (_, owner) in enumerate(scoping.owners(model)):
        graph.add_node((number,), label=f"owner {number}")
        _draw(graph, owner, (number,), {})
    return graph


def _draw(
    graph: nx.Graph, owner: scoping.Owner, key: tuple[object, ...], outer: dict[str, object]
) -> None:
    values = dict(outer)
    for name in scoping.defined(owner):
        values[name] = (*key, "value", name)
    constants = {tensor.name: tensor for tensor in getattr(owner, "initializer", ())}
    for position, name in enumerate(scoping.input_names(owner)):
        if name not in constants:
            _place(graph, key, values[name], f"input {position}")
    read = needed(owner)
    for index, node in enumerate(owner.node):
        if (source := copied_by(node)) is not None:
            values[node.output[0]] = values[source]
            continue
        if read.isdisjoint(node.output):
            continue
        i = (*key, index)
        graph.add_node(i, label=f"{node.op_type} {told_apart_by(node)}")
        for position, name in enumerate(node.input):
            if name:
                _place(graph, i, values[name], f"reads {position}")
        for position, name in enumerate(node.output):
            if name in read:
                _place(graph, i, values[name], f"writes {position}")
        for part, body in scoping.subgraphs(node):
            graph.add_node((*i, part), label=part)
            graph.add_edge(i, (*i, part))
            _draw(graph, body, (*i, part), values)
    for position, name in enumerate(scoping.output_names(owner)):
        _place(graph, key, values[name], f"output {position}")
    for name, tensor in constants.items():
        if values[name] in graph:  # somebody reads it
            data = onnx.numpy_helper.to_array(tensor)
            graph.nodes[values[name]]["label"] = f"{data.dtype} {data.tolist()}"


def needed(owner: scoping.Owner) -> set[str]:
    """The values that the outputs depend on."""
    read = set(scoping.output_names(owner))
    for node in reversed(owner.node):
        if not read.isdisjoint(node.output):
            source = copied_by(node)
            read.update(scoping.free_names(node) if source is None else [source])
    return read


def copied_by(node: NodeProto) -> str | None:
    """What a node only copies: strings that a Loop collects are copied by Where."""
    if node.op_type == "Identity":
        return str(node.input[0])
    return node.input[1] if node.op_type == "Where" and node.input[1] == node.input[2] else None


def told_apart_by(node: NodeProto) -> list[str]:
    """The attributes of a node, but for the bodies."""
    if node.op_type == "Scan":
        form = LoopForm.from_node(node, 21)
        ranks = {
            value.name: len(value.type.tensor_type.shape.dim)
            for value in (*form.body.input, *form.body.output)
        }
        scanned = [
            (scanned.axis % (1 + ranks[scanned.body_input]), scanned.reversed)
            for scanned in form.scanned
        ]
        collected = [
            (collected.axis % (1 + ranks[collected.body_output]), collected.reversed)
            for collected in form.collected
        ]
        return [str(scanned), str(collected)]
    return sorted(str(attribute) for attribute in node.attribute if not attribute.g.node)


def _place(graph: nx.Graph, i: object, value: object, label: str) -> None:
    """An edge that says which input or output it is."""
    if value not in graph:
        graph.add_node(value, label="value")
    between = (i, value, label)
    graph.add_node(between, label=label)
    graph.add_edge(i, between)
    graph.add_edge(between, value)


def test_what_is_not_the_same_is_told_apart() -> None:
    one = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 13]> g (float[2] x, float[2] y) => (float[2] z) '
        "{ z = Sub (x, y) }"
    )
    other = onnx.ModelProto()
    other.CopyFrom(one)
    other.graph.node[0].input[:] = ["y", "x"]
    assert isomorphic(one, one)
    assert not isomorphic(one, other)
