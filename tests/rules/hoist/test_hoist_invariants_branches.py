"""hoist-invariants: what the branches of an If have in common."""

from __future__ import annotations

import numpy as np
import pytest
from hoisted_models import hoisted, ops
from onnx import GraphProto, ModelProto, TensorProto, helper, numpy_helper

from passes.analysis.bodies.value_numbers import Numbering
from passes.commands.schedules import SCHEDULES
from passes.engine.outcome import Pass
from passes.session import Session
from passes.testing import as_model


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
    result = Session([Pass(SCHEDULES["hoist-invariants"])], None).run(model)
    assert result.model == model
    assert not result.report.records


def test_sparse_weights_of_the_branches_are_not_taken_for_one() -> None:
    model = if_of("{ t = Mul (h, c) }", "{ e = Mul (h, c) }")
    for number, attribute in enumerate(model.graph.node[0].attribute):
        values = helper.make_tensor("c", TensorProto.FLOAT, [1], [2.0])
        indices = helper.make_tensor("at", TensorProto.INT64, [1], [number])
        attribute.g.sparse_initializer.append(helper.make_sparse_tensor(values, indices, [2]))
    assert Session([Pass(SCHEDULES["hoist-invariants"])], None).run(model).model == model


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
    assert Session([Pass(SCHEDULES["hoist-invariants"])], None).run(model).model == model


def test_a_weight_of_both_branches_moves_only_with_what_reads_it() -> None:
    after = hoisted(
        if_of(
            "<float[2] c = {1, 2}, float[2] d = {3, 4}> { m = Mul (h, c) t = Add (m, d) }",
            "<float[2] k = {1, 2}, float[2] d = {3, 4}> { m = Mul (h, k) e = Sub (m, d) }",
        )
    )
    assert [tensor.name for tensor in after.graph.initializer] == ["c"]
    branches = [attribute.g for attribute in after.graph.node[-1].attribute]
    assert [[tensor.name for tensor in graph.initializer] for graph in branches] == [["d"], ["d"]]


def test_several_outputs_and_omitted_ones_are_matched() -> None:
    split = "{{ l, r = Split <num_outputs = 2> (h) {} = Concat <axis = 0> (r, l) }}"
    assert ops(hoisted(if_of(split.format("t"), split.format("e"))).graph) == [
        "Split",
        "Concat",
        "If",
    ]
