"""What other converters get wrong: each of those cases comes out right here."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from unittest.mock import patch

import numpy as np
import onnx
import pytest
from onnx import ModelProto, TensorProto, helper
from proving import drawn, run

import passes
from passes.ir import scope as scoping
from passes.ir.model import Model
from passes.testing import assert_rewrite

pytestmark = pytest.mark.sampled


def parsed(text: str) -> ModelProto:
    model: ModelProto = onnx.parser.parse_model(text)
    onnx.checker.check_model(model, full_check=True)
    return model


def upgraded(
    model: ModelProto, feeds: Mapping[str, np.ndarray] | None = None, *, full_check: bool = True
) -> ModelProto:
    """The model at opset 26; it is valid, looks the same, and answers the same."""
    after = passes.upgrade(model, opset=26, verify=False).model
    onnx.checker.check_model(after, full_check=full_check)
    assert list(after.graph.input) == list(model.graph.input)
    assert list(after.graph.output) == list(model.graph.output)
    given = {**drawn(model), **(feeds or {})}
    for expected, actual in zip(run(model, given), run(after, given), strict=True):
        np.testing.assert_array_equal(actual, expected)
    return after


# -- single ops ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "node",
    [
        (8, 'y = Upsample<mode = "linear", scales = [1.0, 1.0, 1.0, 2.0]>(x)', ""),
        (9, 'y = Upsample<mode = "linear">(x, s)', "<float[4] s = {1, 1, 1, 2}>"),
        (10, 'y = Resize<mode = "linear">(x, s)', "<float[4] s = {1, 1, 1, 2}>"),
    ],
    ids=lambda node: str(node[0]),
)
def test_linear_resizing_keeps_its_positions(node: tuple[int, str, str]) -> None:
    """Position i / 2, so 0, 0.5, 1, 1.5: the C++ converter reads a quarter before."""
    opset, call, constants = node
    model = parsed(f"""<ir_version: 8, opset_import: ["": {opset}]>
        g (float[1,1,1,2] x) => (float[1,1,1,4] y) {constants} {{ {call} }}""")
    x = np.array([10, 20], np.float32).reshape(1, 1, 1, 2)
    (y,) = run(upgraded(model, {"x": x}), {"x": x})
    assert y.ravel().tolist() == [10, 15, 20, 20]


@pytest.mark.parametrize("channels", ["4", "C"])
def test_group_normalization_gets_a_scale_for_each_channel(channels: str) -> None:
    """onnx's checker takes no GroupNormalization-18, since it is deprecated."""
    model = onnx.parser.parse_model(f"""<ir_version: 8, opset_import: ["": 18]>
        g (float[2,{channels},3] x) => (float[2,{channels},3] y)
        <float[2] s = {{1, 2}}, float[2] b = {{3, 4}}>
        {{ y = GroupNormalization<num_groups = 2>(x, s, b) }}""")
    upgraded(model, {"x": np.arange(24, dtype=np.float32).reshape(2, 4, 3)})


# -- attributes that become inputs, outside and in a body --------------------------------------

#: Ops with attributes that newer versions have as inputs, on a tensor of 2 x 1 x 3 x 4.
BECOME_INPUTS = {
    "Squeeze": ("Squeeze<axes = [1]>", 8, "2,3,4"),
    "Unsqueeze": ("Unsqueeze<axes = [0]>", 8, "1,2,1,3,4"),
    "ReduceSum": ("ReduceSum<axes = [2], keepdims = 1>", 8, "2,1,1,4"),
    "ReduceMax": ("ReduceMax<axes = [3], keepdims = 0>", 13, "2,1,3"),
    "Slice": ("Slice<axes = [3], starts = [1], ends = [3]>", 8, "2,1,3,2"),
    "Pad": ("Pad<pads = [0, 0, 0, 1, 0, 0, 0, 2], value = 5.0>", 8, "2,1,3,7"),
    "Clip": ("Clip<min = -1.0, max = 1.0>", 8, "2,1,3,4"),
    "Upsample": ("Upsample<scales = [1.0, 1.0, 2.0, 1.0]>", 8, "2,1,6,4"),
}
BODIES = {
    "If": """y = If (flag) <then_branch = then () => (float[{dims}] a) {{ a = {op}(x) }},
        else_branch = otherwise () => (float[{dims}] b) {{ b = {op}(t) }}>""",
    "Loop": """n, y = Loop (m, , start) <body = body (int64 i, bool go, float s)
        => (bool on, float u, float[{dims}] a)
        {{ on = Identity(go) u = Identity(s) a = {op}(t) }}>""",
    "Scan": """y = Scan<num_scan_inputs = 1, body = body (float[3] e) => (float[{dims}] a)
        {{ a = {op}(t) }}>(rows)""",
}


@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize("name", BECOME_INPUTS)
def test_attributes_become_inputs_outside_and_in_a_body(name: str, body: str) -> None:
    """Of these 24, the C++ converter gives one name to both values in 7."""
    op, opset, dims = BECOME_INPUTS[name]
    if body == "Scan" and name == "Upsample":
        op, dims = "Dropout<ratio = 0.25>", "2,1,3,4"  # Upsample has an attribute up to 8 only
    opset = max(opset, 9) if body == "Scan" else opset
    stacked = dims if body == "If" else f"K,{dims}"
    model = parsed(f"""<ir_version: 8, opset_import: ["": {opset}]>
        g (float[2,1,3,4] x, bool flag, int64 m, float start, float[2,3] rows)
        => (float[{dims}] z, float[{stacked}] y)
        {{ t = Neg(x) z = {op}(x) {BODIES[body].format(op=op, dims=dims)} }}""")
    after = upgraded(model, {"m": np.array(2), "start": np.array(0, np.float32)})
    assert _each_name_means_one_value(after)


def _each_name_means_one_value(model: ModelProto) -> bool:
    names = [
        name
        for graph in scoping.graphs_below(model.graph)
        for name in (
            *scoping.initializer_names(graph),
            *(one for node in graph.node for one in node.output if one),
        )
    ]
    return len(set(names)) == len(names)


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_a_softmax_that_a_body_captures(axis: int) -> None:
    model = parsed(f"""<ir_version: 8, opset_import: ["": 8]>
        g (float[2,3,4] x, bool flag) => (float[2,3,4] y) {{
            s = Softmax<axis = {axis}>(x)
            y = If (flag) <then_branch = then () => (float[2,3,4] a) {{ a = Relu(s) }},
                else_branch = otherwise () => (float[2,3,4] b) {{ b = Softmax<axis = 1>(s) }}>
        }}""")
    for flag in (True, False):
        upgraded(model, {"flag": np.array(flag)})


# -- model-local functions ---------------------------------------------------------------------


def test_functions_are_kept_and_converted() -> None:
    """Own opset imports, attribute references, overloads, one name in two domains."""
    model = parsed("""<ir_version: 10, opset_import: ["": 12, "here": 1, "there": 1]>
        g (float[2,3,4] x) => (float[2,3,4] y, float[2,3,4] z, float[2,3,4] v) {
            y = here.F<by = 0.5>(x)
            z = there.F(x)
            v = here.F:other(x)
        }
        <domain: "here", opset_import: ["": 12]>
        F <by> (a) => (b) { c = LeakyRelu<alpha: float = @by>(a) b = Softmax<axis = 1>(c) }
        <domain: "there", opset_import: ["": 12, "here": 1]>
        F (a) => (b) { c = here.F<by = 0.25>(a) b = Clip(c) }
        <domain: "here", overload: "other", opset_import: ["": 12]>
        F (a) => (b) { s = ReduceSum<axes = [1]>(a) b = Sub(a, s) }""")
    after = upgraded(model)
    called = [(one.domain, one.name, one.overload) for one in after.functions]
    assert called == [("here", "F", ""), ("there", "F", ""), ("here", "F", "other")]
    imports = [
        {entry.domain: entry.version for entry in one.opset_import} for one in after.functions
    ]
    assert imports == [{"": 26}, {"": 26, "here": 1}, {"": 26}]
    assert after.functions[0].node[0].attribute[0].ref_attr_name == "by"


# -- what a conversion must not lose -----------------------------------------------------------


def _sparse(name: str) -> onnx.SparseTensorProto:
    values = helper.make_tensor(name, TensorProto.FLOAT, [2], [3.0, 4.0])
    places = helper.make_tensor(f"{name}_places", TensorProto.INT64, [2], [0, 5])
    return helper.make_sparse_tensor(values, places, [2, 3])


def test_sparse_initializers() -> None:
    """onnx's inference does not take them, so the full check stops."""
    model = parsed("""<ir_version: 8, opset_import: ["": 12]>
        g (float[2,3] x) => (float[2] y)
        { s = Add(x, x) y = ReduceSum<axes = [1], keepdims = 0>(s) }""")
    model.graph.node[0].input[1] = "w"
    model.graph.sparse_initializer.append(_sparse("w"))
    after = upgraded(model, full_check=False)
    assert list(after.graph.sparse_initializer) == list(model.graph.sparse_initializer)


def test_docs_metadata_and_annotations_stay_to_the_byte() -> None:
    model = parsed("""<ir_version: 10, opset_import: ["": 12], producer_name: "producer",
            doc_string: "of the model", metadata_props: ["a": "b"]>
        g (float[2,3] x, bool flag) => (float[2,3] y) <float scale = {1.0}> {
            s = Softmax(x)
            r = Unsqueeze<axes = [0]>(s)
            q = Squeeze<axes = [0]>(r)
            y = If (flag) <then_branch = then () => (float[2,3] a) { a = Relu(q) },
                else_branch = otherwise () => (float[2,3] b) { b = Clip(q) }>
        }""")
    model.graph.doc_string = "of the graph"
    _describe(model)
    annotation = model.graph.quantization_annotation.add(tensor_name="q")
    annotation.quant_parameter_tensor_names.add(key="SCALE_TENSOR", value="scale")
    model.graph.value_info.append(helper.make_tensor_value_info("q", TensorProto.FLOAT, [2, 3]))
    after = upgraded(model)
    assert (after.producer_name, after.doc_string) == (model.producer_name, model.doc_string)
    for one in ("metadata_props",):
        assert list(getattr(after, one)) == list(getattr(model, one))
    for one in ("doc_string", "metadata_props", "quantization_annotation", "value_info", "input"):
        assert getattr(after.graph, one) == getattr(model.graph, one)
    assert _described(after) == _described(model)


def _describe(model: ModelProto) -> None:
    for number, place in enumerate(scoping.walk_model(model)):
        place.node.name = f"node {number}"
        place.node.doc_string = f"of node {number}"
        place.node.metadata_props.add(key="from", value=f"layer {number}")
    for graph in scoping.graphs_below(model.graph):
        assert isinstance(graph, onnx.GraphProto)
        graph.metadata_props.add(key="graph", value=graph.name)


def _described(model: ModelProto) -> dict[str, tuple[object, ...]]:
    nodes = (place.node for place in scoping.walk_model(model))
    found: dict[str, tuple[object, ...]] = {
        node.name: (node.doc_string, *(one.value for one in node.metadata_props))
        for node in nodes
        if node.name
    }
    for graph in scoping.graphs_below(model.graph):
        assert isinstance(graph, onnx.GraphProto)
        found[f"graph {graph.name}"] = tuple(one.value for one in graph.metadata_props)
    return found


@pytest.mark.slow
def test_three_gigabytes_are_converted_without_reading_a_weight(tmp_path: Path) -> None:
    """The file of the weights is all holes, so it takes no room on the disk."""
    size = 3 << 30
    model = onnx.parser.parse_model("""<ir_version: 8, opset_import: ["": 12]>
        g (float[2,3] x) => (float[2,3] y)
        { s = Softmax(x) m = ReduceSum<axes = [0]>(w) y = Add(s, m) }""")
    tensor = model.graph.initializer.add(name="w", data_type=TensorProto.FLOAT)
    tensor.dims.append(size // 4)
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="weights")
    with open(tmp_path / "weights", "wb") as file:
        file.truncate(size)
    (tmp_path / "model.onnx").write_bytes(model.SerializeToString())
    seen = (tmp_path / "weights").stat().st_atime_ns
    with patch.object(Model, "read", side_effect=AssertionError("a weight was read")):
        result = passes.upgrade(tmp_path / "model.onnx", opset=26, verify=False)
    assert Model(result.model).opset() == 26
    assert result.model.graph.initializer[0] == tensor
    assert result.model.ByteSize() < 10_000
    assert (tmp_path / "weights").stat().st_atime_ns == seen


# -- Scan-8 ------------------------------------------------------------------------------------

SUM = """body (float[2] s, float[2] e) => (float[2] t, float[2] c)
    { t = Add(s, e) c = Identity(t) }"""


@pytest.mark.parametrize(
    "graph",
    [
        f"""(float[B,2] h, float[B,T,2] x) => (float[B,2] y, float[B,T,2] z)
        {{ y, z = Scan<num_scan_inputs = 1, body = {SUM}>(, h, x) }}""",
        f"""(float[B,2] h, float[B,T,2] x) => (float[B,2] y, float[B,T,2] z)
        {{ g = Neg(h) v = Abs(x)
           u, w = Scan<num_scan_inputs = 1, body = {SUM}>(, g, v) y = Relu(u) z = Neg(w) }}""",
        f"""(int64[B] n, float[B,2] h, float[B,T,2] x) => (float[B,2] y, float[B,T,2] z)
        {{ y, z = Scan<num_scan_inputs = 1, body = {SUM}>(n, h, x) }}""",
    ],
    ids=["fed by graph inputs", "between other ops", "with sequence_lens"],
)
def test_scan_8_keeps_its_batch(graph: str) -> None:
    model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["": 8]> g {graph}')
    result = assert_rewrite(model, opset=26)
    assert result.report.checked is not None
    assert result.report.checked.compared["reference"] > 5
