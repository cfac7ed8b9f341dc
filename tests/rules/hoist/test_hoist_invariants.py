"""hoist-invariants where a golden model cannot say it, and what holds for all that is hoisted."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import onnx
import pytest
from hoisted_models import body_of, hoisted, loop_in, ops, scan_of
from onnx import ModelProto, TensorProto, helper, numpy_helper

from passes.commands.schedules import SCHEDULES
from passes.engine.outcome import Pass
from passes.session import Session
from passes.testing import options_of


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
    assert [attribute.name for attribute in after.attribute] == [
        attribute.name for attribute in loop.attribute
    ]


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
    assert [value.name for value in body_of(loop_in(graph)).value_info] == ["p"]


def test_how_a_value_is_quantized_goes_along_with_its_scale() -> None:
    model = scan_of("w = MatMul (a, a) p = MatMul (s, w) t = Add (p, n)", "float scale = {1}")
    for name in ("w", "p"):
        entry = onnx.StringStringEntryProto(key="SCALE_TENSOR", value="scale")
        body_of(model.graph.node[0]).quantization_annotation.add(
            tensor_name=name, quant_parameter_tensor_names=[entry]
        )
    graph = hoisted(model).graph
    assert [annotation.tensor_name for annotation in graph.quantization_annotation] == ["w"]
    assert [tensor.name for tensor in graph.initializer] == ["scale"]
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
    after = Session([Pass(SCHEDULES["hoist-invariants"])]).run(tmp_path / "model.onnx")
    (moved,) = after.model.graph.initializer
    assert moved == tensor
    assert after.report.checked is not None
    assert after.report.checked.verdict == "verified"


def test_a_second_time_there_is_nothing_to_do() -> None:
    folder = Path(__file__).parents[3] / "golden_models" / "hoist-invariants"
    for path in sorted(folder.glob("*.after.onnxtxt")):
        model = onnx.load(path)
        options = {entry.key[7:]: entry.value for entry in model.metadata_props}
        result = Session(
            [Pass(SCHEDULES["hoist-invariants"], options=options_of(options))], None
        ).run(model)
        assert result.model == model, path.name


def test_no_name_means_two_things_in_the_outcome() -> None:
    body = "w = Exp (h) u = Tanh (w) p = Mul (s, u) t = Add (p, n)"
    scans = " ".join(
        f"y{i + 1} = Scan <num_scan_inputs = 1, body = b (float[2] s, float[2] n) => (float[2] t)"
        f" {{ {body} }}> (y{i}, x)"
        for i in range(4)
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
    for i in range(size):
        body.initializer.append(numpy_helper.from_array(np.ones(2, np.float32), f"w{i}"))
        body.node.add(op_type="Mul", input=["h", f"w{i}"], output=[f"m{i}"])
        if i % 5 == 0:
            chosen = helper.make_node("If", ["up"], [f"i{i}"], then_branch=then, else_branch=other)
            body.node.append(chosen)
        body.node.add(op_type="Add", input=[previous, f"m{i}"], output=[f"a{i}"])
        previous = f"a{i}"
    body.node.add(op_type="Identity", input=[previous], output=["t"])
    return model


@pytest.mark.slow
def test_many_nodes_branches_and_weights_take_linear_time() -> None:
    seconds = []
    for size in (500, 2000):
        model = many(size)
        start = time.process_time()
        result = Session([Pass(SCHEDULES["hoist-invariants"])], None).run(model)
        seconds.append(time.process_time() - start)
        assert len(body_of(loop_in(result.model.graph)).node) == size + size // 5 + 2
    assert seconds[1] < 4 * 3 * seconds[0], seconds
