"""The rule `reroll`: what `unroll` and exporters write out becomes a Scan again."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import ModelProto, numpy_helper
from typer.testing import CliRunner

import passes
from passes.__main__ import app
from passes.errors import NOT_PRODUCED
from passes.ir.places import is_loop, walk_model
from passes.testing import as_model, as_text, assert_refused, assert_rewrite
from tests.written import changed

GOLDEN = Path(__file__).parents[3] / "golden_models"

#: Recurrences that `unroll` writes out as a whole; but for one with a mask whose length is a Range.
UNROLLED = [
    path
    for rule in ("recognize-cell", "regroup-sum", "run-in-blocks")
    for path in sorted((GOLDEN / rule).glob("*.before.onnxtxt"))
    if not path.name.startswith("lengths_as_mask_of_any_time")
]

#: Two states, a tensor that is read backwards, columns that are collected.
RECURRENCE = """
<ir_version: 10, opset_import: ["" : 21]>
g (float[2] h, float[2] c, float[9,2] x, float[2,9] v) => (float[2] hn, float[2] cn, float[2,9] y) {
    hn, cn, y = Scan <num_scan_inputs = 2, scan_input_axes = [0, 1], scan_input_directions = [1, 0],
        scan_output_axes = [1],
        body = step (float[2] s, float[2] d, float[2] a, float[2] b)
            => (float[2] t, float[2] e, float[2] o) {
            p = Mul (s, a)
            q = Add (d, b)
            e = Sigmoid (p)
            r = Sub (q, e)
            t = Tanh (r)
            o = Neg (t)
        }> (h, c, x, v)
}
"""

#: The layers of a network, of which each has the state of the one before and the first input.
LAYERS = """
<ir_version: 8, opset_import: ["" : 17]>
g (float[N,2] x) => (float[N,2] y) {
    a0 = Sin (x) b0 = Mul (a0, x)
    a1 = Sin (b0) b1 = Mul (a1, x)
    a2 = Sin (b1) b2 = Mul (a2, x)
    a3 = Sin (b2) b3 = Mul (a3, x)
    y = Neg (b3)
}
"""


LSTM = """
<ir_version: 10, opset_import: ["" : 21]>
g (float[1,8] h, float[1,8] c, float[100,1,8] x, float[8,32] w, float[8,32] r)
    => (float[1,8] hn, float[1,8] cn, float[100,1,8] y) {
    hn, cn, y = Scan <num_scan_inputs = 1,
        body = step (float[1,8] s, float[1,8] d, float[1,8] a)
            => (float[1,8] t, float[1,8] e, float[1,8] o) {
            p = MatMul (s, r)
            q = MatMul (a, w)
            u = Add (p, q)
            i, out, f, g = Split <axis = 1, num_outputs = 4> (u)
            ii = Sigmoid (i)
            oo = Sigmoid (out)
            ff = Sigmoid (f)
            gg = Tanh (g)
            k = Mul (ff, d)
            n = Mul (ii, gg)
            e = Add (k, n)
            th = Tanh (e)
            t = Mul (oo, th)
            o = Identity (t)
        }> (h, c, x)
}
"""


def loops_in(model: ModelProto) -> int:
    return sum(is_loop(place.node) for place in walk_model(model))


def rerolled(model: ModelProto) -> ModelProto:
    return assert_rewrite(model, pipeline="reroll").model


def test_what_unroll_wrote_is_a_scan_again() -> None:
    unrolled = passes.unroll(as_model(RECURRENCE), verify=False).model
    assert len(unrolled.graph.node) > 60
    (scan,) = rerolled(unrolled).graph.node
    axes = {one.name: list(one.ints) for one in scan.attribute if one.name.startswith("scan_")}
    assert axes == {
        "scan_input_axes": [0, 1],
        "scan_input_directions": [1, 0],
        "scan_output_axes": [1],
    }
    (body,) = [one.g for one in scan.attribute if one.name == "body"]
    assert len(body.node) == 6


def test_a_repetition_in_a_repetition_becomes_a_loop_in_a_loop() -> None:
    # the solver of an equation, as traced: four substeps in each of five steps
    text = """
    <ir_version: 10, opset_import: ["" : 21]>
    g (float[2] h, float[2] w, float[5,2] x) => (float[2] y) {
        y = Scan <num_scan_inputs = 1, body = step (float[2] s, float[2] a) => (float[2] t) {
            four = Constant <value_int = 4> ()
            begun = Add (s, a)
            solved = Loop <body = substep (int64 i, bool go, float[2] v) => (bool on, float[2] n) {
                on = Identity (go)
                p = Mul (v, w)
                q = Tanh (p)
                n = Add (q, a)
            }> (four, "", begun)
            t = Sigmoid (solved)
        }> (h, x)
    }"""
    unrolled = passes.unroll(as_model(text), verify=False).model
    assert not loops_in(unrolled)
    (scan,) = rerolled(unrolled).graph.node
    (body,) = [one.g for one in scan.attribute if one.name == "body"]
    assert [node.op_type for node in body.node] == ["Add", "Scan", "Sigmoid"]


def test_the_order_of_the_nodes_does_not_matter() -> None:
    unrolled = passes.unroll(as_model(RECURRENCE), verify=False).model
    # each node before those that do not read it, the last ones first where there is a choice
    pending, ordered, known = list(unrolled.graph.node)[::-1], list[onnx.NodeProto](), set[str]()
    produced = {name for node in pending for name in node.output}
    while pending:
        node = next(one for one in pending if known.issuperset(produced.intersection(one.input)))
        pending.remove(node)
        ordered.append(node)
        known.update(node.output)
    shuffled = onnx.ModelProto()
    shuffled.CopyFrom(unrolled)
    del shuffled.graph.node[:]
    shuffled.graph.node.extend(ordered)
    assert [node.op_type for node in rerolled(shuffled).graph.node] == ["Scan"]


def test_a_copy_that_differs_splits_the_chain() -> None:
    other = changed(LAYERS, {"a3 = Sin (b2)": "a3 = Cos (b2)"})
    graph = rerolled(as_model(other)).graph
    assert [node.op_type for node in graph.node] == ["Scan", "Cos", "Mul", "Neg"]
    middle = changed(LAYERS, {"a2 = Sin (b1)": "a2 = Cos (b1)"})
    assert_refused(middle, "no-repetition", pipeline="reroll")


def test_an_attribute_that_differs_splits_the_chain() -> None:
    leaky = LAYERS.replace("Sin (", "LeakyRelu <alpha = 0.5> (")
    assert loops_in(rerolled(as_model(leaky))) == 1
    other = changed(leaky, {"a2 = LeakyRelu <alpha = 0.5>": "a2 = LeakyRelu <alpha = 0.25>"})
    assert_refused(other, "no-repetition", pipeline="reroll")


def test_an_attribute_as_it_is_by_default_does_not_split_the_chain() -> None:
    leaky = changed(
        LAYERS.replace("Sin (", "LeakyRelu ("), {"a2 = LeakyRelu": "a2 = LeakyRelu <alpha = 0.01>"}
    )
    assert [node.op_type for node in rerolled(as_model(leaky)).graph.node] == ["Scan", "Neg"]


#: Layers with a choice each, in whose branches names differ, and the order of what they read.
CHOICES = """
<ir_version: 8, opset_import: ["" : 17]>
g (float[3] s, float[3] x, bool[4] flags) => (float[3] y)
<int64 zero = {0}, int64 one = {1}, int64 two = {2}> {
    f0 = Gather (flags, zero)
    b0 = If (f0) <then_branch = t () => (float[3] p) { q = Mul (s, x) p = Sin (q) },
                  else_branch = e () => (float[3] r) { r = Mul (x, s) }>
    f1 = Gather (flags, one)
    b1 = If (f1) <then_branch = t1 () => (float[3] p1) { q1 = Mul (b0, x) p1 = Sin (q1) },
                  else_branch = e1 () => (float[3] r1) { r1 = Mul (x, b0) }>
    f2 = Gather (flags, two)
    b2 = If (f2) <then_branch = t2 () => (float[3] p2) { q2 = Mul (b1, x) p2 = Sin (q2) },
                  else_branch = e2 () => (float[3] r2) { r2 = Mul (x, b1) }>
    y = Neg (b2)
}
"""


def test_a_copy_may_have_branches() -> None:
    graph = rerolled(as_model(CHOICES)).graph
    assert [node.op_type for node in graph.node] == ["Slice", "Scan", "Neg"]


def test_a_branch_that_differs_splits_the_chain() -> None:
    other = changed(CHOICES, {"p2 = Sin (q2)": "p2 = Cos (q2)"})
    assert_refused(other, "no-repetition", pipeline="reroll")
    # what the second branch reads is swapped, which a difference would show
    other = changed(
        CHOICES, {"r2 = Mul (x, b1)": "r2 = Sub (b1, x)", "r1 = Mul (x, b0)": "r1 = Sub (x, b0)"}
    )
    assert_refused(other, "no-repetition", pipeline="reroll")


def test_a_row_that_a_node_between_the_copies_reads_keeps_its_place() -> None:
    # `m` reads what the second copy computes, and the fourth copy reads `m`: no loop gives that
    text = changed(LAYERS, {"b3 = Mul (a3, x)": "m = Cos (b1) b3 = Mul (a3, m)"})
    graph = rerolled(as_model(text)).graph
    kinds = sorted(node.op_type for node in graph.node)
    assert kinds == ["Cos", "Gather", "Mul", "Neg", "Scan", "Sin"]


def test_a_batch_that_may_be_empty_stays_one() -> None:
    model = onnx.load(GOLDEN / "exported" / "torch" / "traced_lstm_cell.opset13.onnx")
    kinds = [node.op_type for node in rerolled(model).graph.node if node.op_type != "Constant"]
    assert kinds == ["Scan", "Transpose"]


#: Layers of a transformer, over stacked weights.
STACK = """
<ir_version: 10, opset_import: ["" : 21]>
g (float[4,8] x) => (float[4,8] y) {
    y = Scan <num_scan_inputs = 6, body = layer (float[4,8] s, float[8,8] q, float[8,8] k,
            float[8,8] v, float[8,8] o, float[8,8] up, float[8,8] down) => (float[4,8] t) {
        asks = MatMul (s, q)
        keys = MatMul (s, k)
        values = MatMul (s, v)
        turned = Transpose (keys)
        scores = MatMul (asks, turned)
        shares = Softmax (scores)
        mixed = MatMul (shares, values)
        out = MatMul (mixed, o)
        near = Add (out, s)
        wide = MatMul (near, up)
        kept = Relu (wide)
        narrow = MatMul (kept, down)
        t = Add (narrow, near)
    }> (x, Q, K, V, O, UP, DOWN)
}
"""


def with_own_weights(count: int) -> ModelProto:
    """So many layers of `STACK`, written out, each with weights of its own."""
    model, rng = as_model(STACK), np.random.default_rng(0)
    stacked = {
        name: (rng.normal(size=(count, 8, 8)) / 4).astype(np.float32)
        for name in ("Q", "K", "V", "O", "UP", "DOWN")
    }
    for name, array in stacked.items():
        model.graph.initializer.append(numpy_helper.from_array(array, name))
    unrolled = passes.unroll(model, verify=False).model
    graph, rows, kept = unrolled.graph, dict[str, np.ndarray](), []
    for node in graph.node:
        if node.op_type == "Split":
            rows |= zip(node.output, stacked[node.input[0]], strict=True)
        elif node.op_type == "Squeeze":
            row = numpy_helper.from_array(rows[node.input[0]], node.output[0])
            graph.initializer.append(row)
        else:
            kept.append(node)
    del graph.node[:]
    graph.node.extend(kept)
    return unrolled


def test_24_layers_of_a_transformer_become_a_scan() -> None:
    model = with_own_weights(24)
    assert len(model.graph.node) == 24 * 13
    assert_refused(model, "weights-differ", pipeline="reroll")
    rolled = assert_rewrite(model, pipeline="reroll", options={"stack_weights": True}).model
    assert [node.op_type for node in rolled.graph.node] == ["Scan"]


@pytest.mark.slow
def test_an_lstm_over_many_steps_is_a_loop_again_in_linear_time() -> None:
    nodes, seconds = [], []
    for steps in (100, 500):
        text = changed(LSTM, {"float[100,": f"float[{steps},"})
        unrolled = passes.unroll(as_model(text), verify=False).model
        start = time.process_time()
        rolled = passes.reroll(unrolled, verify=False).model
        seconds.append(time.process_time() - start)
        nodes.append(len(unrolled.graph.node))
        assert [node.op_type for node in rolled.graph.node] == ["Scan"]
    assert nodes[1] / nodes[0] > 4.5
    assert seconds[1] / seconds[0] < 15  # five times as many; a quadratic search takes 25


@pytest.mark.parametrize("name", ["traced_two_cells", "traced_selective_scan"])
def test_what_tracing_wrote_out_becomes_a_scan(name: str) -> None:
    model = onnx.load(GOLDEN / "exported" / "torch" / f"{name}.opset13.onnx")
    after = rerolled(model)
    assert loops_in(after) == 1
    assert len(after.graph.node) < len(model.graph.node) / 2


@pytest.mark.parametrize(
    ("name", "before"),
    [
        ("traced_lstm_from_zeros.opset18", []),
        ("traced_slstm.opset13", []),
        ("traced_liquid_cell.opset13", ["Softplus"] * 4 + ["Mul"] * 2 + ["Add"]),
    ],
)
def test_a_first_step_that_was_computed_in_part_is_a_step_of_the_loop(
    name: str, before: list[str]
) -> None:
    model = onnx.load(GOLDEN / "exported" / "torch" / f"{name}.onnx")
    kinds = [node.op_type for node in rerolled(model).graph.node if node.op_type != "Constant"]
    assert sorted(kinds) == sorted([*before, "Scan"])


@pytest.mark.sampled
@pytest.mark.parametrize("path", UNROLLED, ids=lambda path: path.name.split(".")[0])
def test_recurrences_that_were_unrolled_are_loops_again(path: Path) -> None:
    model = onnx.load(path)
    dims = [dim for value in model.graph.input for dim in value.type.tensor_type.shape.dim]
    sizes = {dim.dim_param: 4 for dim in dims if dim.dim_param}
    unrolled = passes.unroll(model, dims=sizes, verify=False).model
    assert loops_in(rerolled(unrolled)) >= loops_in(model)


def test_strict_fails_where_nothing_is_repeated(tmp_path: Path) -> None:
    model = tmp_path / "model.onnx"
    text = changed(LAYERS, {"a2 = Sin (b1)": "a2 = Cos (b1)"})
    onnx.save(as_model(text), model)
    call = ["reroll", str(model), "-o", str(tmp_path / "new.onnx"), "--strict"]
    outcome = CliRunner().invoke(app, call)
    assert outcome.exit_code == NOT_PRODUCED, outcome.output
    assert "no subgraph is repeated 3 times" in outcome.output


def test_a_model_with_a_loop_may_have_nothing_else_that_is_repeated() -> None:
    assert not passes.reroll(as_model(RECURRENCE), verify=False).report.refusals


def test_a_second_run_finds_nothing() -> None:
    once = rerolled(as_model(LAYERS))
    assert as_text(passes.reroll(once).model) == as_text(once)


#: Five steps of which the last one is written otherwise, so that it stays after the loop.
LAST_DIFFERS = """
<ir_version: 10, opset_import: ["" : 21]>
g (float[1,2] h, float[5,2] x) => (float[5,2] y) {
    r0, r1, r2, r3, r4 = Split <axis = 0, num_outputs = 5> (x)
    a0 = Add (r0, h) b0 = Tanh (a0)
    a1 = Add (r1, b0) b1 = Tanh (a1)
    a2 = Add (r2, b1) b2 = Tanh (a2)
    a3 = Add (r3, b2) b3 = Tanh (a3)
    a4 = Mul (r4, b3) b4 = Sin (a4)
    y = Concat <axis = 0> (b0, b1, b2, b3, b4)
}
"""


def test_what_is_read_after_the_loop_is_still_computed() -> None:
    result = assert_rewrite(LAST_DIFFERS, pipeline="reroll")
    assert loops_in(result.model) == 1


#: Steps of which the last one does not look up the next state, at a place that may not exist.
LOOKED_UP = """
<ir_version: 10, opset_import: ["" : 21]>
g (float[2] d, float[2] x) => (float[2] y, int64[2] i3) {
    s0 = Add (d, x) t0 = Tanh (s0) p0 = Mul (t0, d) i0 = Cast <to = 7> (p0)
    d0 = GatherElements (t0, i0)
    s1 = Add (d0, x) t1 = Tanh (s1) p1 = Mul (t1, d0) i1 = Cast <to = 7> (p1)
    d1 = GatherElements (t1, i1)
    s2 = Add (d1, x) t2 = Tanh (s2) p2 = Mul (t2, d1) i2 = Cast <to = 7> (p2)
    d2 = GatherElements (t2, i2)
    s3 = Add (d2, x) t3 = Tanh (s3) p3 = Mul (t3, d2) i3 = Cast <to = 7> (p3)
    y = Neg (p3)
}
"""


def test_a_last_copy_gets_no_node_that_may_fail() -> None:
    graph = passes.reroll(as_model(LOOKED_UP), verify=False).model.graph
    assert "Tanh" in [node.op_type for node in graph.node]
    old = "d{0} = GatherElements (t{0}, i{0})"
    safe = {old.format(step): f"d{step} = Sub (t{step}, p{step})" for step in range(3)}
    graph = rerolled(as_model(changed(LOOKED_UP, safe))).graph
    assert "Tanh" not in [node.op_type for node in graph.node]
