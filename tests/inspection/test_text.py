"""How `inspect` shows what it found: transcripts."""

from __future__ import annotations

from onnx import parser

import passes
from passes.choices import RuleOptions
from passes.inspection.inspecting import WantedGroups, inspect_model
from passes.inspection.inspection import Group, Inspection
from passes.inspection.text import text_of
from tests.inspection.test_inspecting import LAYERS


def shown(text: str, *, verbose: bool = False, every_rule: bool = False) -> str:
    model = parser.parse_model(text)
    wanted = WantedGroups(every_rule=every_rule)
    return inspect_model(model, None, RuleOptions(), wanted=wanted).to_text(verbose=verbose)


def test_a_transcript() -> None:
    assert (
        shown(LAYERS) + "\n"
        == """\
model: opset 16, IR 8, 9 nodes, 3 loops of 2 kinds, 1 If
2 x main/layer_*_rnn: Scan-16, T iterations, 1 node in the body
  scans float[2] (axis 0); collects float[2] (axis 0); reads 1 outer value
  rewrites: dissolve-map (all iterations at once); batch-inputs (1 node before the loop)
  refuses: unroll [trip-count-not-static]
main/pick: If-16, 4 nodes in the branches
  reads 2 outer values
    main/pick.then_branch/again: Loop-16, 3 iterations, 2 nodes in the body
      carries float[T,2]
      rewrites: raise-loop (Scan); inline-loop (3 iterations); unroll (3 iterations)
in all, rewrites: 2 x dissolve-map; 2 x batch-inputs; 1 x raise-loop; 1 x inline-loop; 1 x unroll
in all, refuses: 2 x unroll [trip-count-not-static]
"""
    )


def test_a_whole_transcript() -> None:
    assert (
        shown(LAYERS, verbose=True, every_rule=True) + "\n"
        == """\
model: opset 16, IR 8, 9 nodes, 3 loops of 2 kinds, 1 If
2 x main/layer_*_rnn: Scan-16, T iterations, 1 node in the body
  paths: main/layer_0_rnn, main/layer_1_rnn
  scans: e float[2] (axis 0)
  collects: o float[2] (axis 0)
  reads: u float[2]
  dissolve-map: all iterations at once
  batch-inputs: 1 node before the loop, which scans about 8 bytes an iteration (before: 8)
  lower-scan: Loop, T trips
  peel: the first iteration
  unroll: refuses, the loop runs T times, which is known only at run time [trip-count-not-static]
main/pick: If-16, 4 nodes in the branches
  reads: three int64, b float[T,2]
  declare-shapes: 2 values declared
  select-branches: refuses, Loop ['l'] could fail where the branch is not taken [may-fail]
    main/pick.then_branch/again: Loop-16, 3 iterations, 2 nodes in the body
      carries: s float[T,2]
      depend on each other: s
      raise-loop: Scan, 3 trips, 0 tensors scanned, but the iteration number
      inline-loop: 3 iterations
      unroll: 3 iterations
      peel: the first iteration
      unroll-partial: 2 iterations at a time
in all, rewrites: 3 x peel; 2 x dissolve-map; 2 x batch-inputs; 2 x lower-scan; 1 x declare-shapes;
    1 x raise-loop; 1 x inline-loop; 1 x unroll; 1 x unroll-partial
in all, refuses: 2 x unroll [trip-count-not-static]; 1 x select-branches [may-fail]
"""
    )


def test_sixty_layers_fit_a_screen() -> None:
    model = parser.parse_model("""
        <ir_version: 8, opset_import: ["" : 17]>
        encoder (float[T,B,8] x, float[B,8] h, float[8,8] W) => (float[T,B,8] y) {
          last, y = Scan <num_scan_inputs = 1,
            body = step (float[B,8] s, float[B,8] e) => (float[B,8] t, float[B,8] o) {
              p = MatMul (e, W) a = Add (p, s) t = Tanh (a) o = Identity (t)
            }> (h, x)
        }
    """)
    layer = model.graph.node.pop()
    for number in range(60):
        added = model.graph.node.add()
        added.CopyFrom(layer)
        added.name = f"encoder.{number}.rnn"
        added.input[1] = f"y_{number}" if number else "x"
        added.output[:] = [f"last_{number}", f"y_{number + 1}"]
        model.graph.value_info.add(name=f"y_{number + 1}", type=model.graph.output[0].type)
    model.graph.value_info.pop()
    model.graph.output[0].name = "y_60"
    assert passes.inspect(model).to_text().splitlines()[:2] == [
        "model: opset 17, IR 8, 300 nodes, 60 loops of 1 kind",
        "60 x main/encoder.*.rnn: Scan-16, T iterations, 4 nodes in the body",
    ]


def test_square_brackets_in_names_stay() -> None:
    group = Group("main/x[bold]", ["main/x[bold]"], -1, "If", 16, 16, 1, [], [])
    found = Inspection(1, "m.onnx", 16, 8, 2, 0, 0, 1, 0, 0, 0, groups=[group])
    assert "main/x[bold]: If-16, 1 node in the branches" in text_of(found, False, 100)


def test_many_groups_are_a_line_each() -> None:
    paths = [f"main/loop_{number}" for number in range(8)]
    groups = [
        Group(path, [path], -1, "Loop", 16, 16, 3, [], [], trip_counts=["T"]) for path in paths
    ]
    found = Inspection(1, "m.onnx", 16, 8, 33, 9, 9, 0, 0, 0, 0, groups=groups, left_out=1)
    first, *lines, more = found.to_text(width=60).splitlines()
    assert first == "m.onnx: opset 16, IR 8, 33 nodes, 9 loops"
    assert lines[0] == "main/loop_0: Loop-16, T iterations, 3 nodes in the body; ..."
    assert len(lines) == 8
    assert more == "1 more kind: -v shows all, --loop PATTERN some of them"


def test_a_trip_count_that_is_no_bound() -> None:
    """Exporters write the largest int64 where only the condition ends a loop."""
    text = shown(
        """<ir_version: 8, opset_import: ["" : 17]>
        g (float[2] x, bool c) => (float[2] y) <int64 most = {9223372036854775807}>
        {
           y = Loop (most, c, x) <body = step (int64 i, bool go, float[2] s)
              => (bool go_on, float[2] next) {
              next = Neg (s)
              least = ReduceMin <keepdims = 0> (next)
              go_on = IsNaN (least)
           }>
        }"""
    )
    assert "main/loop_0: Loop-16, an unknown number of iterations, 3 nodes in the body" in text
