"""Uses of rules: what is verified once, however often it occurs."""

from __future__ import annotations

from unittest.mock import patch

import numpy as np
import onnx
import pytest
from onnx import ModelProto, helper, numpy_helper

import passes
from passes.engine.rewriting import Engine
from passes.engine.rounds import Round
from passes.ir.model import Model
from passes.rule import rule_named
from passes.verify.rewrites import verifying
from passes.verify.rewrites.uses import MOST_SITES, Use, use_of


def round_of(model: ModelProto | str, target: int = 13) -> Round:
    proto = onnx.parser.parse_model(model) if isinstance(model, str) else model
    return Engine([rule_named("opset")], target).round(Model(proto))


def uses(model: ModelProto | str) -> list[Use | None]:
    outcome = round_of(model)
    return [use_of(outcome, rewrite) for rewrite in outcome.rewritten]


def graph(text: str) -> str:
    return f'<ir_version: 8, opset_import: ["": 8]> g {text}'


def chain(count: int, op: str = "BatchNormalization") -> ModelProto:
    """Nodes in a row, each with weights of its own."""
    constants, nodes, weights = [], [], np.arange(1, 5, dtype=np.float32)
    for index in range(count):
        names = [f"{part}{index}" for part in ("scale", "bias", "mean", "var")]
        constants += [numpy_helper.from_array(weights + index, name) for name in names]
        nodes.append(helper.make_node(op, [f"x{index}", *names], [f"x{index + 1}"]))
    ends = [helper.make_tensor_value_info(name, 1, ["N", 4, "W"]) for name in ("x0", f"x{count}")]
    made = helper.make_graph(nodes, "chain", ends[:1], ends[1:], constants)
    imports = [helper.make_opsetid("", 8)]
    model: ModelProto = helper.make_model(made, opset_imports=imports, ir_version=8)
    return model


def test_names_of_values_and_dims_make_no_difference() -> None:
    one, other = uses(
        graph("""(float[A,2] x, float[B,2] y) => (float[1,A,2] p, float[1,B,2] q)
            { p = Unsqueeze<axes = [0]>(x) q = Unsqueeze<axes = [0]>(y) }""")
    )
    assert one is not None
    assert one == other


@pytest.mark.parametrize(
    ("x", "y", "axes"),
    [
        ("float[A,2]", "float[A,2]", 1),
        ("float[A,2]", "double[A,2]", 0),
        ("float[2]", "float[3]", 0),
    ],
)
def test_types_and_attributes_make_a_difference(x: str, y: str, axes: int) -> None:
    one, other = uses(
        graph(f"""({x} x, {y} y) => (float[] p, double[] q)
            {{ p = Unsqueeze<axes = [0]>(x) q = Unsqueeze<axes = [{axes}]>(y) }}""")
    )
    assert one != other


def test_float_constants_make_another_site_of_one_use() -> None:
    one, other = uses(chain(2))
    assert one is not None
    assert other is not None
    assert one.key == other.key
    assert one.floats != other.floats


def test_large_constants_count_by_type() -> None:
    model = chain(2)
    for tensor in model.graph.initializer:
        size = np.full(1000, float(tensor.name[-1]), np.float32)
        tensor.CopyFrom(numpy_helper.from_array(size, tensor.name))
    for value in (*model.graph.input, *model.graph.output):
        value.type.tensor_type.shape.dim[1].dim_value = 1000
    one, other = uses(model)
    assert one == other


def test_only_the_region_tells_of_bodies_and_unknown_types() -> None:
    typeless = uses(graph("(float[2] x) => (float[1,2] y) { t = com.other(x) y = Softmax(t) }"))
    assert typeless == [None]


def test_a_long_chain_is_verified_as_a_few_regions() -> None:
    with patch.object(verifying, "verify", wraps=verifying.verify) as verify:
        result = passes.upgrade(chain(40), opset=13, executor="reference")
    assert verify.call_count == MOST_SITES + 1  # and the whole model
    assert len(result.report.records) == 40
    assert {record.checked.verdict for record in result.report.records if record.checked} == {
        "verified"
    }
