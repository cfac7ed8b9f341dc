"""hoist-invariants where a golden model cannot say it, and what holds for all that is hoisted."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, helper, numpy_helper

from passes import scope
from passes.rules.value_numbers import Numbering
from passes.session import Session, Verifying
from passes.testing import as_model, assert_refused, assert_rewrite

SCAN = """
<ir_version: 10, opset_import: ["" : 21]>
g (float[2,2] a, float[2] h, float[3,2] x) => (float[2] y) {
   y = Scan <num_scan_inputs = 1, body = step (float[2] s, float[2] n) => (float[2] t) <WEIGHT> {
      NODES
   }> (h, x)
}
"""
LOOP = """
<ir_version: 10, opset_import: ["" : OPSET]>
g (int64 n, KIND[4,2] table, int64 row, KIND[2] h) => (KIND[2] y, KIND[T,2] z) {
   y, z = Loop <body = step (int64 i, bool go, KIND[2] s) => (bool on, KIND[2] t, KIND[2] o) {
      on = Identity (go)
      r = Gather (table, row)
      o = Identity (r)
      t = Identity (s)
   }> (n, "", h)
}
"""


def scan_of(nodes: str, weight: str = "") -> ModelProto:
    text = SCAN.replace("<WEIGHT>", f"<{weight}>" if weight else "")
    return as_model(text.replace("NODES", nodes))


def hoisted(model: ModelProto | str, **options: object) -> ModelProto:
    return assert_rewrite(model, pipeline="hoist-invariants", options=options).model


def loop_in(graph: GraphProto) -> NodeProto:
    return next(node for node in graph.node if node.op_type in ("Loop", "Scan"))


def body_of(node: NodeProto) -> GraphProto:
    return next(one.g for one in node.attribute if one.name == "body")


def ops(graph: GraphProto) -> list[str]:
    return [node.op_type for node in graph.node]


def count(model: ModelProto, op_type: str) -> int:
    return sum(place.node.op_type == op_type for place in scope.walk_model(model))


def run(model: ModelProto, **feeds: object) -> list[np.ndarray]:
    session = onnxruntime.InferenceSession(model.SerializeToString())
    return session.run(None, {name: np.asarray(value) for name, value in feeds.items()})


# -- what is said of nodes and values goes along ----------------------------------------------


def test_a_node_that_moves_is_the_same_to_the_byte() -> None:
    model = scan_of("w = MatMul (a, a) p = MatMul (s, w) t = Add (p, n)")
    node = body_of(model.graph.node[0]).node[0]
    node.name, node.doc_string = "square", "a by itself"
    node.metadata_props.add(key="module", value="cell")
    after = hoisted(model)
    assert after.graph.node[0].SerializeToString() == node.SerializeToString()


def test_the_loop_keeps_its_name_docs_and_attributes() -> None:
    model = scan_of("w = MatMul (a, a) p = MatMul (s, w) t = Add (p, n)")
    loop, body = model.graph.node[0], body_of(model.graph.node[0])
    loop.name, loop.doc_string, body.doc_string = "cell", "steps", "one step"
    loop.attribute.append(helper.make_attribute("scan_input_axes", [0]))
    after = loop_in(hoisted(model).graph)
    assert (after.name, after.doc_string, body_of(after).doc_string) == (
        "cell",
        "steps",
        "one step",
    )
    assert [one.name for one in after.attribute] == [one.name for one in loop.attribute]


def test_types_go_along_but_not_symbols_of_the_body() -> None:
    model = scan_of("w = MatMul (a, a) p = MatMul (s, w) t = Add (p, n)")
    for name in ("w", "p"):
        value = helper.make_tensor_value_info(name, TensorProto.FLOAT, ["in_body"])
        body_of(model.graph.node[0]).value_info.append(value)
    body_of(model.graph.node[0]).value_info[0].type.tensor_type.shape.dim.add(dim_value=2)
    graph = hoisted(model).graph
    (known,) = graph.value_info
    first, second = known.type.tensor_type.shape.dim
    assert (known.name, first.dim_param, second.dim_value) == ("w", "", 2)
    assert [one.name for one in body_of(loop_in(graph)).value_info] == ["p"]


def test_how_a_value_is_quantized_goes_along_with_its_scale() -> None:
    model = scan_of("w = MatMul (a, a) p = MatMul (s, w) t = Add (p, n)", "float scale = {1}")
    for name in ("w", "p"):
        entry = onnx.StringStringEntryProto(key="SCALE_TENSOR", value="scale")
        body_of(model.graph.node[0]).quantization_annotation.add(
            tensor_name=name, quant_parameter_tensor_names=[entry]
        )
    graph = hoisted(model).graph
    assert [one.tensor_name for one in graph.quantization_annotation] == ["w"]
    assert [one.name for one in graph.initializer] == ["scale"]
    body = body_of(loop_in(graph))
    (kept,) = body.quantization_annotation
    assert (kept.tensor_name, kept.quant_parameter_tensor_names[0].value) == ("p", "scale")
    assert not body.initializer


def test_a_sparse_weight_moves_as_a_constant() -> None:
    model = scan_of("w = Mul (a, b) p = MatMul (s, w) t = Add (p, n)")
    values = helper.make_tensor("b", TensorProto.FLOAT, [1], [2.0])
    indices = helper.make_tensor("at", TensorProto.INT64, [1], [1])
    body_of(model.graph.node[0]).sparse_initializer.append(
        helper.make_sparse_tensor(values, indices, [2])
    )
    assert ops(hoisted(model).graph) == ["Constant", "Mul", "Scan"]


def test_external_weights_move_by_reference(tmp_path: Path) -> None:
    model = scan_of("w = Mul (a, b) p = MatMul (s, w) t = Add (p, n)")
    (tmp_path / "weights").write_bytes(np.array([3, 4], np.float32).tobytes())
    tensor = body_of(model.graph.node[0]).initializer.add(name="b", data_type=1, dims=[2])
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="weights")
    onnx.save(model, tmp_path / "model.onnx")
    after = Session("hoist-invariants", None, {}, Verifying()).run(tmp_path / "model.onnx")
    (moved,) = after.model.graph.initializer
    assert moved == tensor
    assert after.report.checked is not None
    assert after.report.checked.verdict == "verified"


# -- loops that may not run -------------------------------------------------------------------


def test_what_fails_fails_only_where_the_loop_runs() -> None:
    after = hoisted(LOOP.replace("KIND", "float").replace("OPSET", "21"))
    feeds = {"table": np.ones((4, 2), np.float32), "h": np.ones(2, np.float32)}
    final, rows = run(after, n=0, row=99, **feeds)
    assert final.tolist() == [1, 1]
    assert rows.shape[0] == 0
    assert run(after, n=2, row=1, **feeds)[1].tolist() == [[1, 1], [1, 1]]
    with pytest.raises(Exception, match="out of data bounds"):
        run(after, n=1, row=99, **feeds)


@pytest.mark.parametrize(
    "kind",
    [
        "float",
        "double",
        "float16",
        "bfloat16",
        "bool",
        "int8",
        "uint16",
        "uint64",
        "int64",
        "string",
    ],
)
def test_every_type_can_stand_behind_a_guard(kind: str) -> None:
    text = LOOP.replace("KIND", kind).replace("OPSET", "21")
    if kind == "string":  # which a Loop that collects some keeps
        text = text.replace("KIND[T,2] z".replace("KIND", kind), "int64[T] z")
        text = text.replace("string[2] o", "int64 o").replace("o = Identity (r)", "o = Neg (i)")
        text = text.replace("t = Identity (s)", "t = Identity (r)")
    after = hoisted(text)
    assert count(after, "If") == 1


@pytest.mark.parametrize("opset", [9, 10, 11, 13, 16, 18, 26])
def test_every_opset_is_spelled(opset: int) -> None:
    text = LOOP.replace("KIND", "float").replace("OPSET", str(opset))
    if opset < 11:
        text = text.replace("t = Identity (s)", "t = Add (s, r)")
    assert count(hoisted(text), "If") == 1


def test_before_opset_9_nothing_asks_for_the_trip_count() -> None:
    text = LOOP.replace("KIND", "float").replace("OPSET", "8").replace("Identity (s)", "Add (s, r)")
    (sentence,) = assert_refused(text, "may-fail", pipeline="hoist-invariants")
    assert "Gather may fail" in sentence


def test_a_trip_count_may_be_a_vector_of_one() -> None:
    text = LOOP.replace("KIND", "float").replace("OPSET", "21")
    after = hoisted(text.replace("int64 n", "int64[1] n"))
    feeds = {"table": np.ones((4, 2), np.float32), "h": np.ones(2, np.float32)}
    assert run(after, n=[0], row=99, **feeds)[1].shape[0] == 0
    assert run(after, n=[3], row=3, **feeds)[1].shape == (3, 2)


def test_nan_and_infinity_of_work_that_is_not_needed_do_not_get_through() -> None:
    after = hoisted("""
<ir_version: 10, opset_import: ["" : 21]>
g (int64 n, float[2] a, float[2] h) => (float[2] y) {
   y = Loop <body = step (int64 i, bool go, float[2] s) => (bool on, float[2] t) {
      on = Identity (go) z = Sub (a, a) w = Div (a, z) t = Mul (s, w) }> (n, "", h)
}
""")
    assert ops(after.graph) == ["Sub", "Div", "Loop"]
    infinite = np.array([np.inf, np.nan], np.float32)
    assert run(after, n=0, a=infinite, h=np.ones(2, np.float32))[0].tolist() == [1, 1]
    assert np.isnan(run(after, n=1, a=infinite, h=np.ones(2, np.float32))[0]).all()


def test_a_static_size_behind_the_trip_count_proves_that_the_loop_runs() -> None:
    after = hoisted("""
<ir_version: 10, opset_import: ["" : 21]>
g (float[3,2] x, float[4,2] table, int64 row, float[2] h) => (float[2] y)
<int64 zero = {0}> {
   shape = Shape (x)
   n = Gather (shape, zero)
   y = Loop <body = step (int64 i, bool go, float[2] s) => (bool on, float[2] t) {
      on = Identity (go) r = Gather (table, row) t = Add (s, r) }> (n, "", h)
}
""")
    assert ops(after.graph) == ["Shape", "Gather", "Gather", "Loop"]


def test_a_loop_that_never_runs_is_left_alone() -> None:
    model = as_model("""
<ir_version: 10, opset_import: ["" : 21]>
g (float[2] a, float[2] h) => (float[2] y) <int64 none = {0}> {
   y = Loop <body = step (int64 i, bool go, float[2] s) => (bool on, float[2] t) {
      on = Identity (go) w = Exp (a) t = Add (s, w) }> (none, "", h)
}
""")
    result = assert_rewrite(model, pipeline="hoist-invariants")
    assert result.model == model
    assert not result.report.records


def test_nested_loops_each_ask_for_their_trip_count() -> None:
    after = hoisted("""
<ir_version: 10, opset_import: ["" : 21]>
g (int64 n, int64 m, float[4,2] table, int64 row, float[2] h) => (float[2] y) {
   y = Loop <body = outer (int64 i, bool go, float[2] p) => (bool on, float[2] q) {
      on = Identity (go)
      q = Loop <body = inner (int64 j, bool go_on, float[2] s) => (bool more, float[2] t) {
         more = Identity (go_on) r = Gather (table, row) t = Add (s, r) }> (m, "", p)
   }> (n, "", h)
}
""")
    assert count(after, "If") == 2
    assert ops(after.graph)[-2:] == ["If", "Loop"]
    feeds = {"table": np.ones((4, 2), np.float32), "h": np.ones(2, np.float32)}
    for n, m in ((0, 3), (3, 0), (0, 0)):
        assert run(after, n=n, m=m, row=99, **feeds)[0].tolist() == [1, 1]
    assert run(after, n=2, m=3, row=0, **feeds)[0].tolist() == [7, 7]


def test_a_captured_value_has_the_type_of_the_outer_one_not_of_what_hid_it() -> None:
    after = hoisted("""
<ir_version: 10, opset_import: ["" : 21]>
g (int64 n, float[M] k, float[2] a, float[2] h) => (float[2] y, float[M] k_end) {
   y, k_end = Loop <body = step (int64 i, bool go, float[2] k, float[M] k_in)
      => (bool on, float[2] t, float[M] k_in) {
      on = Identity (go) ak = Add (a, k_in) m = ReduceSum <keepdims = 0> (ak) t = Add (k, m) }>
      (n, "", h, k)
}
""")
    assert ops(after.graph) == ["Greater", "If", "Loop", "Identity"]


def test_a_function_guards_at_its_top_at_any_ir_version() -> None:
    after = hoisted("""
<ir_version: 8, opset_import: ["" : 17, "local" : 1]>
g (int64 n, float[4,2] table, int64 row, float[2] h) => (float[2] y) {
   y = local.walk (n, table, row, h)
}
<domain: "local", opset_import: ["" : 17]>
walk (n, table, row, h) => (y) {
   y = Loop <body = step (int64 i, bool go, float[2] s) => (bool on, float[2] t) {
      on = Identity (go) r = Gather (table, row) t = Add (s, r) }> (n, "", h)
}
""")
    (function,) = after.functions
    assert [node.op_type for node in function.node] == ["Constant", "Greater", "If", "Loop"]
    assert not function.value_info


def test_up_to_ir_3_a_guard_lists_its_constants() -> None:
    after = hoisted("""
<ir_version: 3, opset_import: ["" : 9]>
g (int64 n, float[4,2] table, int64 row, float[2] h) => (float[2] y) {
   y = Loop <body = step (int64 i, bool go, float[2] s) => (bool on, float[2] t) {
      on = Identity (go) r = Gather (table, row) t = Add (s, r) }> (n, "", h)
}
""")
    assert ops(after.graph) == ["Greater", "If", "Loop"]


# -- what stays -------------------------------------------------------------------------------


def test_random_numbers_are_drawn_as_often_as_before() -> None:
    model = as_model("""
<ir_version: 10, opset_import: ["" : 21]>
g (float[2] a, bool which, float[2] h) => (float[2] y, float[3,2] drawn) <int64 trips = {3}> {
   y, drawn = Loop <body = b (int64 i, bool go, float[2] s) => (bool on, float[2] t, float[2] d) {
      on = Identity (go)
      e = Exp (a)
      r = RandomNormalLike (e)
      rr = Sub (r, r)
      d = If (which) <
         then_branch = yes () => (float[2] u) { v = RandomUniformLike (e) u = Sub (v, v) },
         else_branch = no () => (float[2] o) { v = RandomUniformLike (e) o = Sub (v, v) }>
      p = Add (s, rr)
      t = Add (p, d)
   }> (trips, "", h)
}
""")
    after = hoisted(model)
    assert ops(after.graph) == ["Exp", "Loop"]
    for op_type in ("RandomNormalLike", "RandomUniformLike"):
        inside = body_of(loop_in(after.graph))
        assert count(after, op_type) == count(model, op_type)
        assert op_type not in ops(after.graph)
        assert "If" in ops(inside)


def test_a_function_that_draws_random_numbers_stays() -> None:
    (sentence,) = assert_refused(
        """
<ir_version: 10, opset_import: ["" : 21, "local" : 1]>
g (float[2] a, float[2] h) => (float[2] y) <int64 trips = {3}> {
   y = Loop <body = step (int64 i, bool go, float[2] s) => (bool on, float[2] t) {
      on = Identity (go) r = local.noise (a) t = Add (s, r) }> (trips, "", h)
}
<domain: "local", opset_import: ["" : 21]>
noise (x) => (r) { r = RandomNormalLike (x) }
""",
        "random",
        pipeline="hoist-invariants",
    )
    assert "noise draws random numbers" in sentence


def test_work_leaves_no_branch_of_a_loop_that_runs_once() -> None:
    body = """
    c = Constant <value_float = 0.0> () m = ReduceSum <keepdims = 0> (s) up = Greater (m, c)
    t = If (up) <then_branch = yes () => (float[2] p) { e = Exp (h) p = Add (e, n) },
                 else_branch = no () => (float[2] q) { q = Add (s, n) }>
    """
    once = as_model(
        SCAN.replace("<WEIGHT>", "").replace("NODES", body).replace("float[3,2]", "float[1,2]")
    )
    assert assert_rewrite(once, pipeline="hoist-invariants").model == once
    assert ops(hoisted(scan_of(body)).graph) == ["Exp", "Scan"]


def test_a_sequence_that_is_returned_stays_where_identity_takes_tensors_only() -> None:
    text = """
<ir_version: 8, opset_import: ["" : OPSET]>
g (float[2] a, seq(float[2]) h, int64 n) => (seq(float[2]) y) {
   y = Loop <body = step (int64 i, bool go, seq(float[2]) s) => (bool on, seq(float[2]) t) {
      on = Identity (go) e = Exp (a) t = SequenceConstruct (e, e) }> (n, "", h)
}
"""
    after = hoisted(text.replace("OPSET", "13"))
    assert ops(after.graph) == ["Exp", "Loop"]


def test_a_sequence_that_is_carried_unchanged_is_captured() -> None:
    after = hoisted("""
<ir_version: 10, opset_import: ["" : 21]>
g (float[2] a, float[2] h, int64 n) => (float[2] y, seq(float[2]) q) <int64 first = {0}> {
   q0 = SequenceConstruct (a, a)
   y, q = Loop <body = step (int64 i, bool go, float[2] s, seq(float[2]) q_in)
      => (bool on, float[2] t, seq(float[2]) q_in) {
      on = Identity (go) e = SequenceAt (q_in, first) t = Add (s, e) }> (n, "", h, q0)
}
""")
    assert list(loop_in(after.graph).input) == ["n", "", "h"]
    assert count(after, "If") == 1


def test_what_nobody_reads_stays() -> None:
    model = as_model(LOOP.replace("KIND", "float").replace("OPSET", "21"))
    body = body_of(model.graph.node[0])
    body.node[2].input[0] = "s"
    body.node[3].op_type = "Neg"
    assert assert_rewrite(model, pipeline="hoist-invariants").model == model


def test_sizes_that_are_not_known_count_as_one() -> None:
    model = as_model("""
<ir_version: 10, opset_import: ["" : 21]>
g (float[N,4] a, float[4] h, float[3,4] x) => (float[4] y) {
   y = Scan <num_scan_inputs = 1, body = step (float[4] s, float[4] e) => (float[4] t) {
      w = Exp (a) m = Mul (w, e) p = ReduceSum <keepdims = 0> (m) t = Add (s, p) }> (h, x)
}
""")
    assert ops(hoisted(model, max_bytes=16).graph) == ["Exp", "Scan"]
    assert_refused(model, "over-budget", pipeline="hoist-invariants", options={"max_bytes": 15})


# -- branches ---------------------------------------------------------------------------------


def if_of(then: str, other: str, opset: int = 21) -> ModelProto:
    return as_model(f"""
<ir_version: 10, opset_import: ["" : {opset}]>
g (bool which, float[2,2] a, float[2] h) => (float[2] y) {{
   y = If (which) <then_branch = yes () => (float[2] t) {then},
                   else_branch = no () => (float[2] e) {other}>
}}
""")


def test_what_branches_compute_twice_or_in_other_words_is_one() -> None:
    after = hoisted(
        if_of(
            "{ b = Identity (a) m = MatMul (h, b) k = MatMul (h, a) l = Exp (k) t = Add (m, l) }",
            "{ m = MatMul (h, a) o = Exp (m) e = Sub (o, m) }",
        )
    )
    assert ops(after.graph) == ["Identity", "MatMul", "Exp", "If"]


@pytest.mark.parametrize(
    ("then", "other"),
    [
        (
            "{ m = Softmax <axis = 0> (a) t = MatMul (h, m) }",
            "{ m = Softmax <axis = 1> (a) e = MatMul (h, m) }",
        ),
        ("<float[2] c = {1, 2}> { t = Mul (h, c) }", "<float[2] c = {1, 3}> { e = Mul (h, c) }"),
        (
            "{ n = RandomNormalLike (h) t = Sub (n, n) }",
            "{ n = RandomNormalLike (h) e = Sub (n, n) }",
        ),
        ("{ m = Exp (h) t = Identity (h) }", "{ e = Neg (h) }"),
        ("{ t = Identity (h) }", "{ e = Identity (h) }"),
        ("{ t = Sub (h, h) }", "{ o = Exp (h) e = Sub (h, o) }"),
    ],
)
def test_what_differs_in_the_branches_stays(then: str, other: str) -> None:
    model = if_of(then, other)
    result = Session("hoist-invariants", None, {}, None).run(model)
    assert result.model == model
    assert not result.report.records


def test_sparse_weights_of_the_branches_are_not_taken_for_one() -> None:
    model = if_of("{ t = Mul (h, c) }", "{ e = Mul (h, c) }")
    for number, attribute in enumerate(model.graph.node[0].attribute):
        values = helper.make_tensor("c", TensorProto.FLOAT, [1], [2.0])
        indices = helper.make_tensor("at", TensorProto.INT64, [1], [number])
        attribute.g.sparse_initializer.append(helper.make_sparse_tensor(values, indices, [2]))
    assert Session("hoist-invariants", None, {}, None).run(model).model == model


def test_a_sparse_weight_of_one_branch_is_not_the_outer_value_of_its_name() -> None:
    own, outer = GraphProto(), GraphProto()
    for body in (own, outer):
        body.node.append(helper.make_node("Neg", ["c"], ["t"]))
    values = helper.make_tensor("c", TensorProto.FLOAT, [1], [2.0])
    indices = helper.make_tensor("at", TensorProto.INT64, [1], [0])
    own.sparse_initializer.append(helper.make_sparse_tensor(values, indices, [2]))
    numbers = Numbering(own)
    assert Numbering(outer, beside=numbers).of("t") != numbers.of("t")
    assert Numbering(own, beside=numbers).of("t") != numbers.of("t")
    captured = Numbering(outer)
    assert Numbering(outer, beside=captured).of("t") == captured.of("t")


def test_large_weights_of_the_branches_are_not_taken_for_one() -> None:
    model = if_of("{ s = ReduceSum (c) t = Mul (h, s) }", "{ s = ReduceSum (c) e = Mul (h, s) }")
    for number, attribute in enumerate(model.graph.node[0].attribute):
        weight = np.full(1 << 15, number, np.float32)
        attribute.g.initializer.append(numpy_helper.from_array(weight, "c"))
    assert Session("hoist-invariants", None, {}, None).run(model).model == model


def test_a_weight_of_both_branches_moves_only_with_what_reads_it() -> None:
    after = hoisted(
        if_of(
            "<float[2] c = {1, 2}, float[2] d = {3, 4}> { m = Mul (h, c) t = Add (m, d) }",
            "<float[2] k = {1, 2}, float[2] d = {3, 4}> { m = Mul (h, k) e = Sub (m, d) }",
        )
    )
    assert [one.name for one in after.graph.initializer] == ["c"]
    branches = [one.g for one in after.graph.node[-1].attribute]
    assert [[one.name for one in graph.initializer] for graph in branches] == [["d"], ["d"]]


def test_several_outputs_and_omitted_ones_are_matched() -> None:
    split = "{{ l, r = Split <num_outputs = 2> (h) {} = Concat <axis = 0> (r, l) }}"
    assert ops(hoisted(if_of(split.format("t"), split.format("e"))).graph) == [
        "Split",
        "Concat",
        "If",
    ]


# -- the whole --------------------------------------------------------------------------------


def test_a_second_time_there_is_nothing_to_do() -> None:
    folder = Path(__file__).parent.parent.parent / "golden_models" / "hoist-invariants"
    for path in sorted(folder.glob("*.after.onnxtxt")):
        model = onnx.load(path)
        options = {entry.key[7:]: entry.value for entry in model.metadata_props}
        result = Session("hoist-invariants", None, options, None).run(model)
        assert result.model == model, path.name


def test_no_name_means_two_things_in_the_outcome() -> None:
    body = "w = Exp (h) u = Tanh (w) p = Mul (s, u) t = Add (p, n)"
    scans = " ".join(
        f"y{at + 1} = Scan <num_scan_inputs = 1, body = b (float[2] s, float[2] n) => (float[2] t)"
        f" {{ {body} }}> (y{at}, x)"
        for at in range(4)
    )
    after = hoisted(f"""
<ir_version: 10, opset_import: ["" : 21]>
g (float[2] h, float[3,2] x, float[2] y0) => (float[2] y4) {{ {scans} }}
""")
    outputs = [name for node in after.graph.node for name in node.output]
    assert len(outputs) == len(set(outputs)) == 12


def many(size: int) -> ModelProto:
    """A body with a weight in each fifth node, and an If in each eleventh."""
    model = scan_of("up = Constant <value = bool {1}> () t = Add (s, n)")
    body = body_of(model.graph.node[0])
    body.node.pop()
    then = onnx.parser.parse_graph("b () => (float[2] u) { m = Exp (h) u = Add (m, n) }")
    other = onnx.parser.parse_graph("b () => (float[2] u) { m = Exp (h) u = Sub (m, n) }")
    previous = "s"
    for at in range(size):
        body.initializer.append(numpy_helper.from_array(np.ones(2, np.float32), f"w{at}"))
        body.node.add(op_type="Mul", input=["h", f"w{at}"], output=[f"m{at}"])
        if at % 5 == 0:
            chosen = helper.make_node("If", ["up"], [f"i{at}"], then_branch=then, else_branch=other)
            body.node.append(chosen)
        body.node.add(op_type="Add", input=[previous, f"m{at}"], output=[f"a{at}"])
        previous = f"a{at}"
    body.node.add(op_type="Identity", input=[previous], output=["t"])
    return model


def test_many_nodes_branches_and_weights_take_linear_time() -> None:
    seconds = []
    for size in (500, 2000):
        model = many(size)
        start = time.process_time()
        result = Session("hoist-invariants", None, {}, None).run(model)
        seconds.append(time.process_time() - start)
        assert len(body_of(loop_in(result.model.graph)).node) == size + size // 5 + 2
    assert seconds[1] < 4 * 3 * seconds[0], seconds
