"""Drafts of nodes: copied, renamed and dropped before there is a message."""

from __future__ import annotations

import onnx
from onnx import NodeProto

from passes.ir.draft import ITERATION_KEY, Draft, Pattern, drafts_of, nodes_of
from passes.ir.names import Names

BODY = """
<ir_version: 10, opset_import: ["" : 21]>
g (bool c, float[2] x, float[2] w) => (float[2] y) {
   [first] a = LeakyRelu <alpha = 0.5> (x)
   y = If (c) <then_branch = yes () => (float[2] p) { p = Add (a, w) },
               else_branch = no () => (float[2] q) { q = Sub (a, w) }>
}
"""


def body() -> list[NodeProto]:
    return list(onnx.parser.parse_model(BODY).graph.node)


def printed(drafts: list[Draft]) -> list[str]:
    return [" ".join(onnx.printer.to_text(node).split()) for node in nodes_of(drafts)]


def copies(tag: str, names: Names) -> list[Draft]:
    """Both nodes for an iteration, in which x is called h."""
    mapping = {"x": "h"}
    return [Pattern.of(node).copied(mapping, names.fresh, tag) for node in body()]


def test_a_copy_reads_and_writes_what_its_iteration_does_at_every_depth() -> None:
    relu, choice = printed(copies("it0", Names()))
    assert relu == '["first/it0"] "a/it0" = LeakyRelu <alpha: float = 0.5> (h)'
    assert '"y/it0" = If (c)' in choice
    assert 'p = Add ("a/it0", w)' in choice
    assert 'q = Sub ("a/it0", w)' in choice


def test_a_copy_says_for_which_iteration_it_was_written_also_beside_another() -> None:
    names = Names()
    pattern = Pattern.of(body()[0])
    drafts = [pattern.copied({}, names.fresh, tag) for tag in ("it0", "it1")]
    told = [
        [(entry.key, entry.value) for entry in node.metadata_props] for node in nodes_of(drafts)
    ]
    assert told == [[(ITERATION_KEY, "it0")], [(ITERATION_KEY, "it1")]]


def test_what_a_draft_reads_is_renamed_in_its_bodies_too() -> None:
    drafts = copies("it0", Names())
    for draft in drafts:
        draft.rename({"h": "start", "w": "weights", "c": "chosen"})
    relu, choice = printed(drafts)
    assert relu.endswith("(start)")
    assert "If (chosen)" in choice
    assert choice.count("weights") == 2
    assert drafts[1].reads() == ["chosen", "a/it0", "weights"]


def test_a_node_that_is_there_is_changed_in_place_once_it_is_to_stay() -> None:
    nodes = body()
    drafts = drafts_of(nodes)
    drafts[0].rename({"x": "h"})
    drafts[0].output = ["b"]
    assert list(nodes[0].input) == ["x"]
    assert nodes_of(drafts)[0] is nodes[0]
    assert (list(nodes[0].input), list(nodes[0].output)) == (["h"], ["b"])
    assert nodes[0].name == "first"
