"""What `inspect` finds in loops and Ifs: Scan-8, Scan, Loop and If, as data and as JSON."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import onnx
import pytest
from onnx import ModelProto, parser

import passes
from passes import Inspection
from passes.choices import RuleOptions
from passes.engine.schedules import SCHEDULES
from passes.errors import BadModel
from passes.inspection.inspecting import WantedGroups, inspect_model
from passes.inspection.inspection import Answer, Group, Slice, Value
from passes.ir.selection import NothingMatches
from passes.reports.json_values import schema_of
from passes.session import Session
from passes.testing import as_model

SCAN_8 = """
    <ir_version: 3, opset_import: ["" : 8]>
    g (int64[B] lens, float[B,2] h, float[B,T,2] x) => (float[B,2] y, float[B,T,2] z) {
      y, z = Scan <num_scan_inputs = 1, directions = [1],
        body = step (float[2] s, float[2] e) => (float[2] t, float[2] o)
          { t = Add (s, e) o = Neg (t) }> (lens, h, x)
    }
"""
SCAN = """
    <ir_version: 8, opset_import: ["" : 16]>
    g (float[2] h, float[2,7] x, float[2] w) => (float[2] y, float[2,7] z) {
      [cell] y, z = Scan <num_scan_inputs = 1, scan_input_axes = [1], scan_output_axes = [-1],
        scan_output_directions = [1], body = b (float[2] s, float[2] e) => (float[2] t, float[2] o)
          { a = Neg (w) p = Mul (a, e) t = Add (s, p) o = Neg (t) }> (h, x)
    }
"""
LOOP = """
    <ir_version: 8, opset_import: ["" : 16]>
    g (int64 n, bool c, float[2] h) => (float[2] y, float[N,2] z) {
      y, z = Loop <body = b (int64 i, bool go, float[2] s) => (bool on, float[2] t, float[2] o)
        { on = Identity (go) t = Neg (s) o = Abs (s) }> (n, c, h)
    }
"""
LAYERS = """
    <ir_version: 8, opset_import: ["" : 16]>
    g (float[T,2] x, bool c) => (float[T,2] y)
      <float[2] u = {0.5, 2}, float[2] v = {3, 4}, int64 three = {3}> {
      [layer_0_rnn] a = Scan <num_scan_inputs = 1,
        body = s (float[2] e) => (float[2] o) { o = Mul (e, u) }> (x)
      [layer_1_rnn] b = Scan <num_scan_inputs = 1,
        body = s (float[2] e) => (float[2] o) { o = Mul (e, v) }> (a)
      [pick] y = If (c) <
        then_branch = t () => (float[T,2] l) {
          [again] l = Loop <body = r (int64 i, bool d, float[T,2] s) => (bool f, float[T,2] q)
            { f = Identity (d) q = Neg (s) }> (three, "", b)
        },
        else_branch = e () => (float[T,2] m) { m = Identity (b) }>
    }
"""


def inspected(
    model: ModelProto | str, opset: int | None = 16, wanted: WantedGroups | None = None
) -> Inspection:
    proto = as_model(model)
    before = proto.SerializeToString()
    found = inspect_model(proto, opset, RuleOptions(), wanted=wanted)
    assert proto.SerializeToString() == before
    jsonschema.validate(json.loads(found.to_json()), schema_of(Inspection))
    return found


def only(model: ModelProto | str, opset: int | None = 16) -> Group:
    (group,) = inspected(model, opset).groups
    return group


def test_scan_8() -> None:
    loop = only(SCAN_8)
    assert (loop.paths, loop.op, loop.version, loop.lengths) == (("main/scan_0",), "Scan", 8, True)
    assert loop.carried == (Value("s", "float[2]"),)
    assert loop.scanned == (Slice("e", "float[2]", axis=1, reversed=True),)
    assert loop.collected == (Slice("o", "float[2]", axis=1, reversed=False),)
    assert loop.trip_counts == ("<= T",)
    assert loop.captured == ()
    assert loop.recurrences == (("s",),)
    assert [(one.rule, one.outcome) for one in loop.answers] == [("scan-8", "rewrites")]


def test_scan_8_without_lengths() -> None:
    loop = only(SCAN_8.replace("(lens, h, x)", '("", h, x)'))
    assert (loop.lengths, loop.trip_counts) == (False, ("T",))


def test_scan() -> None:
    loop = only(SCAN)
    assert (loop.pattern, loop.op, loop.version, loop.opset) == ("main/cell", "Scan", 16, 16)
    assert loop.scanned == (Slice("e", "float[2]", axis=1, reversed=False),)
    assert loop.collected == (Slice("o", "float[2]", axis=-1, reversed=True),)
    assert loop.trip_counts == ("7",)
    assert loop.captured == (Value("w", "float[2]"),)
    assert (loop.nodes, loop.invariant_nodes) == (4, 1)


def test_loop() -> None:
    loop = only(LOOP)
    assert (loop.pattern, loop.op, loop.version) == ("main/loop_0", "Loop", 16)
    assert (loop.carried, loop.scanned) == ((Value("s", "float[2]"),), ())
    assert loop.collected == (Slice("o", "float[2]", axis=0, reversed=False),)
    assert loop.trip_counts == ("dynamic",)


def test_the_tree_and_its_numbers() -> None:
    found = inspected(LAYERS)
    assert (found.loops, found.loop_kinds, found.ifs, found.nodes) == (3, 2, 1, 9)
    assert [(group.pattern, group.above) for group in found.groups] == [
        ("main/layer_*_rnn", -1),
        ("main/pick", -1),
        ("main/pick.then_branch/again", 1),
    ]
    layers, branch, inner = found.groups
    assert layers.paths == ("main/layer_0_rnn", "main/layer_1_rnn")
    assert (branch.op, branch.trip_counts, branch.nodes) == ("If", (), 4)
    assert inner.trip_counts == ("3",)
    assert Answer("unroll", "rewrites", note="3 iterations") in inner.answers


def test_a_refusal_has_its_code_and_sentence() -> None:
    found = passes.inspect(parser.parse_model(SCAN_8), opset=9, batch="unroll")
    (answer,) = found.groups[0].answers
    assert (answer.rule, answer.outcome, answer.code) == ("scan-8", "refuses", "batch-not-static")
    assert answer.sentence.startswith("`unroll` needs a static batch size")


def test_bodies_are_upgraded_before_their_scan_8() -> None:
    """The Split of opset 8 has its sizes as an attribute: it is vectorized as that of opset 16."""
    loop = only("""
        <ir_version: 3, opset_import: ["" : 8]>
        g (float[B,2] h, float[B,T,2] x) => (float[B,2] y) {
          y = Scan <num_scan_inputs = 1, body = step (float[2] s, float[2] e) => (float[2] t) {
            a, b = Split <axis = 0, split = [1, 1]> (e)
            c = Concat <axis = 0> (b, a)
            t = Add (s, c)
          }> ("", h, x)
        }
    """)
    assert loop.answers == (Answer("scan-8", "rewrites", note="vectorize"),)


@pytest.mark.parametrize("op", ["Neg", "other.Loop"])
def test_models_without_loops(op: str) -> None:
    """A Loop of another domain is none."""
    found = inspected(
        """
        <ir_version: 8, opset_import: ["" : 16, "other" : 1]>
        g (float x) => (float y) { y = OP (x) }
        """.replace("OP", op)
    )
    assert (found.loops, found.groups) == (0, ())
    assert found.to_text() == "model: opset 16, IR 8, 1 node, no loops"


def test_loops_of_the_same_name_each_have_their_own_answers() -> None:
    """The first has a batch of 1, so `unroll` suits it; the second has not."""
    found = passes.inspect(
        parser.parse_model("""
            <ir_version: 3, opset_import: ["" : 8]>
            g (float[1,2] h, float[1,T,2] x, float[B,2] k, float[B,T,2] v)
              => (float[1,2] y, float[B,2] q) {
              [twin] y = Scan <num_scan_inputs = 1,
                body = s (float[2] s, float[2] e) => (float[2] t) { t = Add (s, e) }> ("", h, x)
              [twin] q = Scan <num_scan_inputs = 1,
                body = s (float[2] s, float[2] e) => (float[2] t) { t = Add (s, e) }> ("", k, v)
            }
        """),
        opset=9,
        batch="unroll",
    )
    assert [group.pattern for group in found.groups] == ["main/twin", "main/twin"]
    assert [[(one.note, one.code) for one in group.answers] for group in found.groups] == [
        [("unroll", "")],
        [("", "batch-not-static")],
    ]


def test_filters() -> None:
    def patterns(wanted: WantedGroups) -> list[tuple[str, int]]:
        return [(one.pattern, one.above) for one in inspected(LAYERS, wanted=wanted).groups]

    assert patterns(WantedGroups(loops=["main/layer_1*"])) == [("main/layer_1_rnn", -1)]
    assert patterns(WantedGroups(op="Loop")) == [("main/pick.then_branch/again", -1)]
    assert patterns(WantedGroups(depth=1)) == [("main/layer_*_rnn", -1), ("main/pick", -1)]
    assert patterns(WantedGroups(code="trip-count-not-static")) == [("main/layer_*_rnn", -1)]
    found = inspected(LAYERS, wanted=WantedGroups(rule="unroll"))
    assert [[one.rule for one in group.answers] for group in found.groups] == [["unroll"]] * 2
    found = inspected(LAYERS, wanted=WantedGroups(most=1))
    assert (len(found.groups), found.left_out) == (1, 2)
    with pytest.raises(NothingMatches, match="no loop or If has a path that matches 'main/x'"):
        inspected(LAYERS, wanted=WantedGroups(loops=["main/x"]))


@pytest.mark.parametrize(
    ("model", "command"),
    [
        (SCAN_8, "passes upgrade 'a model.onnx'"),
        (SCAN, "passes optimize 'a model.onnx'"),
        (LOOP.replace("Neg (s)", "Sin (s)"), "passes optimize 'a model.onnx'"),
    ],
)
def test_the_next_command_rewrites_something(model: str, command: str, tmp_path: Path) -> None:
    path = tmp_path / "a model.onnx"
    onnx.save(parser.parse_model(model), path)
    found = passes.inspect(path)
    assert found.next.replace(f"{tmp_path}/", "") == command
    result = (passes.upgrade if "upgrade" in command else passes.optimize)(path)
    assert any(record.outcome == "rewritten" for record in result.report.records)


def test_the_next_command_names_what_was_asked_for(tmp_path: Path) -> None:
    onnx.save(parser.parse_model(SCAN_8), tmp_path / "m.onnx")
    found = passes.inspect(tmp_path / "m.onnx", opset=9, batch="nest")
    assert found.next == f"passes upgrade {tmp_path}/m.onnx --opset 9 --batch nest"
    found = passes.inspect(tmp_path / "m.onnx", opset=9, batch="unroll")
    assert found.next == "passes explain batch-not-static"


def test_an_invalid_model_is_refused_with_file_and_path(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    broken = parser.parse_model(SCAN)
    broken.graph.node[0].input.pop()
    path.write_bytes(broken.SerializeToString())
    with pytest.raises(BadModel) as error:
        passes.inspect(path)
    assert str(error.value).startswith(f"{path}: main/cell: ")


@pytest.mark.parametrize(
    "attributes",
    ["num_scan_inputs : int = @chosen", "num_scan_inputs = 1, scan_input_axes : ints = @chosen"],
)
def test_a_loop_whose_form_callers_choose_is_shown_and_left_alone(attributes: str) -> None:
    """Its callers say how many tensors it scans, or along which axis."""
    text = """
        <ir_version: 8, opset_import: ["" : 16, "my" : 1]>
        g (float[2] h, float[7,2] x) => (float[2] y, float[7,2] z) {
          y, z = my.run <chosen = CHOSEN> (h, x) }
        <domain: "my", opset_import: ["" : 16]>
        run <chosen> (h, x) => (y, z) {
          y, z = Scan <ATTRIBUTES, body = s (float[2] s, float[2] e) => (float[2] t, float[2] o)
            { t = Add (s, e) o = Neg (t) }> (h, x)
        }
    """
    text = text.replace("ATTRIBUTES", attributes)
    model = parser.parse_model(text.replace("CHOSEN", "[0]" if "axes" in attributes else "1"))
    loop = only(model, None)
    assert (loop.pattern, loop.trip_counts) == ("my.run/scan_0", ("?",))
    assert loop.unreadable.endswith("of Scan is 'chosen' of the function, which its callers choose")
    for command in ("optimize", "hoist", "raise", "simplify", "unroll"):
        result = Session(SCHEDULES[command], None, RuleOptions(), None).run(model)
        assert result.model == model, command
