"""sink-weights: large weights move into the body that reads them, or right around it."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import GraphProto, ModelProto, TensorProto, numpy_helper

import passes
from passes.commands.schedules import SCHEDULES
from passes.engine.outcome import Pass
from passes.ir import scope as scoping
from passes.session import Session
from passes.testing import as_model, assert_rewrite, options_of
from tests.written import changed

WIDE = 40  # so that its square takes more than 4 KB
SINK = {"rules": ("sink-weights",)}


def with_weights(text: str, **shapes: tuple[int, ...]) -> ModelProto:
    model = as_model(text)
    draw = np.random.default_rng(0)
    for name, shape in shapes.items():
        value = draw.integers(-2, 3, shape).astype(np.float32) / 4
        model.graph.initializer.append(numpy_helper.from_array(value, name))
    return model


#: A recurrence in a branch.
NESTED = """
<ir_version: 8, opset_import: ["" : 18]>
rnn (float[1,40] h0, float[T,1,40] x, bool some) => (float[1,40] h) {
   h = If (some) <
      then_branch = run () => (float[1,40] hT) {
         hT = Scan <num_scan_inputs = 1, body = step (float[1,40] h_in, float[1,40] x_t)
            => (float[1,40] h_out) {
            a = MatMul (h_in, W)
            h_out = Add (a, x_t)
         }> (h0, x)
      },
      else_branch = stay () => (float[1,40] same) { same = Identity (h0) }>
}
"""


def nested() -> ModelProto:
    return with_weights(NESTED, W=(WIDE, WIDE))


def sunk(model: ModelProto) -> ModelProto:
    return assert_rewrite(model, pipeline="optimize", options=SINK).model


def held(model: ModelProto) -> dict[str, list[str]]:
    """The weights that each graph holds, by its path."""
    found = {}
    for place in scoping.walk_model(model):
        for name, graph in scoping.subgraphs(place.node):
            if graph.initializer:
                found[f"{place.path}.{name}"] = [tensor.name for tensor in graph.initializer]
    if model.graph.initializer:
        found["main"] = [tensor.name for tensor in model.graph.initializer]
    return found


def test_a_weight_read_two_levels_below_moves_into_the_branch() -> None:
    assert held(sunk(nested())) == {"main/if_0.then_branch": ["W_1"]}


@pytest.mark.parametrize(
    ("text", "size"),
    [
        (changed(NESTED, {",40]": ",32]"}), 32),  # 4096 bytes
        (changed(NESTED, {"h = If": "other = MatMul (h0, W)  h = If"}), WIDE),
        (changed(NESTED, {"same = Identity (h0)": "same = MatMul (h0, W)"}), WIDE),
    ],
    ids=["small", "read outside of the If", "read in the other branch"],
)
def test_other_weights_stay(text: str, size: int) -> None:
    model = with_weights(text, W=(size, size))
    assert sunk(model) is model


def test_a_weight_that_a_caller_may_give_stays() -> None:
    model = nested()
    model.graph.input.append(
        as_model(
            '<ir_version: 8, opset_import: ["" : 18]> g (float[40,40] W) => () {}'
        ).graph.input[0]
    )
    assert sunk(model) is model


def test_a_quantized_weight_stays() -> None:
    model = nested()
    model.graph.quantization_annotation.add(tensor_name="W")
    assert (
        Session([Pass(SCHEDULES["optimize"], options=options_of(SINK))], None).run(model).model
        is model
    )


def test_external_data_stays() -> None:
    model = nested()
    (weight,) = model.graph.initializer
    weight.ClearField("raw_data")
    weight.data_location = TensorProto.EXTERNAL
    weight.external_data.add(key="location", value="weights.bin")
    assert (
        Session([Pass(SCHEDULES["optimize"], options=options_of(SINK))], None).run(model).model
        is model
    )


def test_a_weight_right_around_its_loop_stays() -> None:
    text = """
<ir_version: 8, opset_import: ["" : 18]>
rnn (float[1,40] h0, float[T,1,40] x, int64 n, bool go0) => (float[1,40] h) {
   h = Loop <body = step (int64 i, bool go, float[1,40] h_in) => (bool on, float[1,40] h_out) {
      on = Identity (go)
      a = MatMul (h_in, W)
      h_out = Tanh (a)
   }> (n, go0, h0)
}
"""
    model = with_weights(text, W=(WIDE, WIDE))
    assert sunk(model) is model


def test_optimize_leaves_weights_where_they_are_found_and_hoist_does_not() -> None:
    once = sunk(nested())
    assert passes.optimize(once, verify=False).model is once
    hoisted = passes.hoist(once, verify=False).model
    assert held(hoisted) == {"main": ["if/W_1"]}


def test_weights_go_as_deep_as_it_takes() -> None:
    inner = nested()
    (node,) = inner.graph.node
    outer = as_model(
        """<ir_version: 8, opset_import: ["" : 18]>
        deep (float[1,40] h0, float[T,1,40] x, bool some, int64 n, bool yes) => (float[1,40] y) {
           y = Loop <body = each (int64 i, bool go, float[1,40] s) => (bool on, float[1,40] h) {
              on = Identity (go)
           }> (n, yes, h0)
        }"""
    )
    body: GraphProto = outer.graph.node[0].attribute[0].g
    body.node.append(node)
    outer.graph.initializer.extend(inner.graph.initializer)
    assert held(sunk(outer)) == {"main/loop_0.body/if_1.then_branch": ["W_1_1"]}
