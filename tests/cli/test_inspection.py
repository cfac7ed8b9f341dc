"""What `inspect` says of loops: Scan-8, Scan and Loop, as a table and as JSON."""

from __future__ import annotations

import io
import json
from pathlib import Path

import onnx
import pytest
from onnx import ModelProto
from rich.console import Console

from passes.choices import RuleOptions
from passes.cli.inspection import Loop, inspect_model, to_json, to_table
from passes.engine.schedules import SCHEDULES
from passes.errors import BadModel
from passes.session import Session
from tests.written import changed

STEP = "step (float[2] s, float[2] e) => (float[2] t, float[2] o) { t = Add (s, e) o = Neg (t) }"
SCAN_8 = f"""
<ir_version: 3, opset_import: ["" : 8]>
g (int64[B] lens, float[B,2] h, float[B,T,2] x) => (float[B,2] y, float[B,T,2] z)
{{ y, z = Scan <num_scan_inputs = 1, directions = [1], body = {STEP}> (lens, h, x) }}
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


def inspected(model: str | ModelProto, target: int = 16) -> list[Loop]:
    proto = onnx.parser.parse_model(model) if isinstance(model, str) else model
    before = proto.SerializeToString()
    loops = inspect_model(proto, target, RuleOptions(batch="auto"))
    assert proto.SerializeToString() == before
    return loops


def test_scan_8() -> None:
    (loop,) = inspected(SCAN_8)
    assert (loop.path, loop.op) == ("main/scan_0", "Scan-8 with sequence_lens")
    assert loop.carried == ["s"]
    assert loop.scanned == ["e (axis 1, reversed)"]
    assert loop.collected == ["o (axis 1)"]
    assert loop.trip_count == "<= T"
    assert loop.captured == []
    assert loop.recurrences == [["s"]]
    assert any(said.startswith("scan-8: ") for said in loop.rules)


def test_scan_8_without_lengths() -> None:
    (loop,) = inspected(f"""
<ir_version: 3, opset_import: ["" : 8]>
g (float[B,2] h, float[B,T,2] x) => (float[B,2] y, float[B,T,2] z)
{{ y, z = Scan <num_scan_inputs = 1, directions = [1], body = {STEP}> ("", h, x) }}
""")
    assert (loop.op, loop.trip_count) == ("Scan-8", "T")


def test_scan() -> None:
    (loop,) = inspected(SCAN)
    assert (loop.path, loop.op) == ("main/cell", "Scan (opset 16)")
    assert loop.scanned == ["e (axis 1)"]
    assert loop.collected == ["o (axis -1, reversed)"]
    assert loop.trip_count == "7"
    assert loop.captured == ["w"]
    assert loop.invariant_nodes == 1


def test_loop() -> None:
    (loop,) = inspected(LOOP)
    assert (loop.path, loop.op) == ("main/loop_0", "Loop (opset 16)")
    assert loop.carried == ["s"]
    assert loop.scanned == []
    assert loop.collected == ["o (axis 0)"]
    assert loop.trip_count == "dynamic"


def test_a_refusal_is_told_with_its_code() -> None:
    (loop,) = inspect_model(onnx.parser.parse_model(SCAN_8), 9, RuleOptions(batch="unroll"))
    (said,) = [rule for rule in loop.rules if rule.startswith("scan-8")]
    assert said.startswith("scan-8: refuses, ")
    assert said.endswith(" [batch-not-static]")


def test_models_without_loops() -> None:
    """A Loop of another domain is none."""
    for op in ("Neg", "other.Loop"):
        text = f"""
        <ir_version: 8, opset_import: ["" : 16, "other" : 1]>
        g (float x) => (float y) {{ y = {op} (x) }}
        """
        assert inspected(text) == []


def test_loops_in_bodies_and_functions_come_innermost_first() -> None:
    loops = inspected("""
        <ir_version: 8, opset_import: ["" : 16, "local" : 1]>
        g (float[A,B] x) => (float[A,B] y) {
          [outer] y = Scan <num_scan_inputs = 1, body = b (float[B] row) => (float[B] out) {
            [inner] out = Scan <num_scan_inputs = 1,
              body = c (float e) => (float o) { o = Neg (e) }> (row)
          }> (x)
          z = local.f (x)
        }
        <domain: "local", opset_import: ["" : 16]> f (a) => (b) {
          b = Scan <num_scan_inputs = 1, body = d (e) => (o) { o = Neg (e) }> (a)
        }
    """)
    found = [(loop.path, loop.trip_count) for loop in loops]
    assert found == [("main/outer.body/inner", "B"), ("main/outer", "A"), ("local.f/scan_0", "A")]


def test_loops_of_the_same_name_each_have_their_own_rules() -> None:
    """The first has a batch of 1, so `unroll` suits it; the second has not."""
    loops = inspect_model(
        onnx.parser.parse_model(f"""
            <ir_version: 3, opset_import: ["" : 8]>
            g (float[1,2] h, float[1,T,2] x, float[B,2] k, float[B,T,2] v)
              => (float[1,2] y, float[B,2] q) {{
              [twin] y, z = Scan <num_scan_inputs = 1, body = {STEP}> ("", h, x)
              [twin] q, r = Scan <num_scan_inputs = 1, body = {STEP}> ("", k, v)
            }}
        """),
        9,
        RuleOptions(batch="unroll"),
    )
    assert [loop.path for loop in loops] == ["main/twin", "main/twin"]
    said = [[rule for rule in loop.rules if rule.startswith("scan-8")] for loop in loops]
    assert said[0] == ["scan-8: unroll"]
    assert [one.rpartition(" ")[2] for one in said[1]] == ["[batch-not-static]"]


def test_rules_are_asked_about_one_of_equal_loops() -> None:
    """The third multiplies by another constant, which decides nothing here, but is not the same."""
    loops = inspected("""
        <ir_version: 8, opset_import: ["" : 16]>
        g (float[2] x, int64 n) => (float[2] y, float[2] z, float[2] w)
        <float k = {2.0}, float l = {2.0}, float m = {3.0}> {
          [first] y = Loop <body = a (int64 i, bool c, float[2] s) => (bool d, float[2] t) {
            d = Identity (c)
            t = Mul (s, k)
          }> (n, "", x)
          [second] z = Loop <body = b (int64 j, bool e, float[2] u) => (bool f, float[2] v) {
            f = Identity (e)
            v = Mul (u, l)
          }> (n, "", x)
          [third] w = Loop <body = c (int64 o, bool p, float[2] q) => (bool r, float[2] h) {
            r = Identity (p)
            h = Mul (q, m)
          }> (n, "", x)
        }
    """)
    assert [loop.equal_to for loop in loops] == ["", "main/first", ""]
    assert loops[1].rules == []
    assert loops[1].recurrences == [["u"]]
    assert loops[1].captured == ["l"]
    assert loops[0].rules == loops[2].rules
    assert loops[0].rules[0].startswith("raise-loop: Scan")
    text = printed(loops)
    assert "and 1 equal to it" in text
    assert "main/second" not in text


def test_an_invalid_model_is_refused_with_file_and_path(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    broken = onnx.parser.parse_model(SCAN)
    broken.graph.node[0].input.pop()
    path.write_bytes(broken.SerializeToString())
    with pytest.raises(BadModel) as error:
        inspect_model(path, 16, RuleOptions())
    assert str(error.value).startswith(f"{path}: main/cell: ")


def test_json_says_everything() -> None:
    (told,) = json.loads(to_json(inspected(SCAN)))
    assert set(told) == {
        "path",
        "op",
        "carried",
        "scanned",
        "collected",
        "trip_count",
        "captured",
        "recurrences",
        "invariant_nodes",
        "rules",
        "equal_to",
    }
    assert told["path"] == "main/cell"
    assert told["recurrences"] == [["s"]]
    assert to_json(inspected(SCAN)) == to_json(inspected(SCAN))
    assert json.loads(to_json([])) == []


def printed(loops: list[Loop]) -> str:
    console = Console(width=300, file=io.StringIO(), record=True)
    console.print(to_table(loops))
    return console.export_text()


def test_the_table_shows_each_loop() -> None:
    text = printed([*inspected(SCAN), *inspected(LOOP)])
    for word in ("main/cell", "Scan (opset 16)", "7", "e (axis 1)", "o (axis -1, reversed)", "w"):
        assert word in text
    assert "main/loop_0" in text


def test_square_brackets_in_names_and_codes_are_no_markup() -> None:
    odd = Loop(
        "main/x[bold]", "Scan-8", ["s[/]"], [], [], "T", [], [], 0, ["scan-8: refuses [code]"]
    )
    text = printed([odd])
    for word in ("main/x[bold]", "s[/]", "[code]"):
        assert word in text


@pytest.mark.parametrize(
    ("attributes", "call"),
    [
        ("num_scan_inputs: int = @chosen", "1"),
        ("num_scan_inputs = 1, scan_input_axes: ints = @chosen", "[1]"),
        ("num_scan_inputs = 1, scan_output_directions: ints = @chosen", "[1]"),
    ],
)
def test_a_loop_whose_form_callers_choose_is_shown_and_left_alone(
    attributes: str, call: str
) -> None:
    text = """
    <ir_version: 8, opset_import: ["" : 16, "my" : 1]>
    g (float[2] h, float[7,2] x) => (float[2] y, float[7,2] z) { y, z = my.run <chosen = 1> (h, x) }
    <domain: "my", opset_import: ["" : 16]>
    run <chosen> (h, x) => (y, z) {
      y, z = Scan <num_scan_inputs: int = @chosen,
          body = step (float[2] s, float[2] e) => (float[2] t, float[2] o) {
        t = Add (s, e)
        o = Neg (t)
      }> (h, x)
    }
    """
    changes = {"num_scan_inputs: int = @chosen": attributes, "chosen = 1": f"chosen = {call}"}
    if "input_axes" in attributes:
        changes["float[7,2] x"] = "float[2,7] x"
    text = changed(text, changes)
    (loop,) = inspect_model(onnx.parser.parse_model(text), None, RuleOptions())
    assert (loop.path, loop.trip_count) == ("my.run/scan_0", "?")
    assert loop.rules[-1].endswith("of Scan is 'chosen' of the function, which its callers choose")
    for command in ("optimize", "hoist", "raise", "simplify", "unroll"):
        model = onnx.parser.parse_model(text)
        assert Session(SCHEDULES[command], None, RuleOptions(), None).run(model).model == model, (
            command
        )
