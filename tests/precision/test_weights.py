"""Weights stored as float16 or int8, which the nodes that read them get as float32."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import ModelProto, TensorProto, numpy_helper, parser

from passes.check import check
from passes.engine.full_check import full_objection
from passes.ir import scope as scoping
from passes.ir.attributes import attribute
from passes.ir.external_data import is_external
from passes.ir.model import Model
from passes.precision import weights
from passes.precision.flow import Flow
from passes.precision.seeds import Reason, Seeds
from passes.precision.weights import stored
from passes.reports.precision import Casting
from tests.written import changed

Array = np.ndarray
DRAW = np.random.default_rng(0)
#: 32 times 32 elements, each column in another range.
W = (DRAW.standard_normal((32, 32)) * np.logspace(-2, 1, 32)).astype(np.float32)
V = DRAW.standard_normal((32, 32)).astype(np.float32)

#: The weight that a Scan and the main graph read.
SHARED = """
<ir_version: 10, opset_import: ["" : 21]>
g (float[3,32] x, float[32] h) => (float[32] last, float[3,32] y)
<float[32,32] w = {0}> {
   last = Scan <num_scan_inputs = 1, body = step (float[32] s, float[32] e) => (float[32] t) {
      m = MatMul (s, w)
      t = Add (m, e)
   }> (h, x)
   y = MatMul (x, w)
}
"""
#: A body has a weight of the name that one of the main graph has.
SAME_NAME = """
<ir_version: 10, opset_import: ["" : 21]>
g (float[3,32] x, float[32] h) => (float[32] last, float[3,32] y)
<float[32,32] w = {0}> {
   last = Scan <num_scan_inputs = 1, body = step (float[32] s, float[32] e) => (float[32] t)
      <float[32,32] w = {1}> {
      m = MatMul (s, w)
      t = Add (m, e)
   }> (h, x)
   y = MatMul (x, w)
}
"""
TWO_LOOPS = """
<ir_version: 10, opset_import: ["" : 21]>
g (float[3,32] x, float[32] h) => (float[32] one, float[32] two)
<float[32,32] w = {0}> {
   one = Scan <num_scan_inputs = 1, body = first (float[32] s, float[32] e) => (float[32] t) {
      m = MatMul (s, w)
      t = Add (m, e)
   }> (h, x)
   two = Scan <num_scan_inputs = 1, body = second (float[32] s, float[32] e) => (float[32] t) {
      m = MatMul (w, s)
      t = Sub (m, e)
   }> (h, x)
}
"""
#: One branch multiplies by a weight of its own, in the loop of a Scan, the other one returns it.
BRANCHES = """
<ir_version: 10, opset_import: ["" : 21]>
g (float[2,32,32] x, bool b) => (float[32,32] y) {
   y = If (b) <
      then_branch = then () => (float[32,32] one)
      <float[32,32] w = {0}> {
         start = Identity (w)
         one = Scan <num_scan_inputs = 1,
            body = step (float[32,32] s, float[32,32] e) => (float[32,32] t) {
            m = MatMul (e, w)
            t = Add (s, m)
         }> (start, x)
      },
      else_branch = else () => (float[32,32] w) <float[32,32] w = {1}> {}
   >
}
"""
MATMUL = """
<ir_version: 10, opset_import: ["" : 21]>
g (float[3,32] x) => (float[3,32] y) <float[32,32] w = {0}> { y = MatMul (x, w) }
"""
#: The weight is read by a product and by an Add.
ADDED = """
<ir_version: 10, opset_import: ["" : 21]>
g (float[32,32] x) => (float[32,32] y) <float[32,32] w = {0}> {
   m = MatMul (x, w)
   y = Add (m, w)
}
"""


def model(text: str, *arrays: Array) -> ModelProto:
    """The model, with the weights that it has at any depth, in order."""
    proto = parser.parse_model(text)
    rest = list(arrays or (W, V))
    for graph in scoping.graphs_below(proto.graph):
        for tensor in graph.initializer:
            if tensor.dims and np.prod(tensor.dims) > 1:
                tensor.CopyFrom(numpy_helper.from_array(rest.pop(0), tensor.name))
    return proto


def run(proto: ModelProto) -> list[Array]:
    """What onnxruntime computes on drawn inputs; it computes in float32."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(proto.SerializeToString(), options)
    draw = np.random.default_rng(1)
    feeds = {
        one.name: np.ones(one.shape, bool)
        if one.type == "tensor(bool)"
        else draw.standard_normal(one.shape).astype(np.float32)
        for one in session.get_inputs()
    }
    return list(session.run(None, feeds))


def kept_by(casting: Casting) -> dict[str, Sequence[str]]:
    return {kept.code: kept.paths for kept in casting.kept}


def operators(graph: scoping.Owner) -> Counter[str]:
    return Counter(node.op_type for node in graph.node)


def checked(proto: ModelProto, how: str, within: float = 0.0) -> tuple[ModelProto, Casting]:
    """Stored, valid, and off by no more than this part of the largest element."""
    before = proto.SerializeToString()
    new, casting = stored(Model(proto), how)
    assert proto.SerializeToString() == before
    check(Model(new))
    assert full_objection(Model(new)) == ""
    bound = within or {"float16": 1e-3, "int8": 2e-2}[how]
    for old, now in zip(run(proto), run(new), strict=True):
        assert np.abs(old - now).max() <= bound * np.abs(old).max()
    return new, casting


def bodies(proto: ModelProto) -> list[scoping.Owner]:
    return list(scoping.graphs_below(proto.graph))[1:]


@pytest.mark.parametrize(
    ("how", "operator", "kinds"),
    [("float16", "Cast", {"w_float16": "float16"}),
     ("int8", "DequantizeLinear", {"w_int8": "int8", "w_scale": "float32"})],
)  # fmt: skip
def test_a_body_captures_the_weight_in_its_own_type(
    how: str, operator: str, kinds: dict[str, str]
) -> None:
    new, casting = checked(model(SHARED), how)
    held = {one.name: str(numpy_helper.to_array(one).dtype) for one in new.graph.initializer}
    assert held == kinds
    assert operators(new.graph)[operator] == 1
    (body,) = bodies(new)
    assert operators(body) == {"MatMul": 1, "Add": 1}
    assert body.node[0].input[1] == new.graph.node[0].output[0] == "w"
    assert (casting.before, casting.after, casting.casts) == ("float32", how, 1)
    assert casting.casts == 1


def test_the_report_has_the_bytes_before_and_after() -> None:
    halved, quantized = (stored(Model(model(SHARED)), how)[1] for how in ("float16", "int8"))
    assert halved.weights == (4096, 2048)
    assert quantized.weights == (4096, 1024 + 32 * 4)


def test_a_weight_of_a_body_gets_a_name_of_its_own() -> None:
    new, casting = checked(model(SAME_NAME), "float16")
    (body,) = bodies(new)
    assert isinstance(body, onnx.GraphProto)
    assert len(body.initializer) == 0
    assert [node.output[0] for node in new.graph.node[:2]] == ["w", "w_1"]
    assert body.node[0].input[1] == "w_1"
    assert casting.casts == 2


def test_two_loops_read_one_weight() -> None:
    new, casting = checked(model(TWO_LOOPS), "int8", within=5e-2)
    assert operators(new.graph) == {"DequantizeLinear": 1, "Scan": 2}
    assert casting.casts == 1


def test_weights_of_branches_are_given_back_before_the_if() -> None:
    new, casting = checked(model(BRANCHES), "float16")
    assert operators(new.graph) == {"Cast": 2, "If": 1}
    assert casting.casts == 2


def test_a_branch_that_returns_a_weight_computes_it() -> None:
    new, _ = checked(model(BRANCHES), "float16")
    *_, branch = (one for one in bodies(new) if isinstance(one, onnx.GraphProto))
    assert [node.op_type for node in branch.node] == ["Identity"]
    assert branch.output[0].name == "w"


def test_constants_are_weights_too() -> None:
    text = changed(SHARED, {"<float[32,32] w = {0}> {": "{ w = Constant <value = float {0}> ()"})
    proto = model(text)
    proto.graph.node[0].attribute[0].t.CopyFrom(numpy_helper.from_array(W))
    new, casting = checked(proto, "float16")
    assert operators(new.graph) == {"Cast": 1, "Scan": 1, "MatMul": 1}
    assert casting.casts == 1


def test_an_output_of_the_model_keeps_its_name() -> None:
    text = changed(MATMUL, {"(float[3,32] y)": "(float[3,32] y, float[32,32] w)"})
    new, _ = checked(model(text), "float16")
    assert [one.name for one in new.graph.output] == ["y", "w"]
    assert kept_by(stored(Model(model(text)), "int8")[1]) == {"no-product": ["main/w"]}


@pytest.mark.parametrize("how", ["float16", "int8"])
def test_the_default_of_an_input_stays(how: str) -> None:
    proto = model(changed(MATMUL, {"(float[3,32] x)": "(float[3,32] x, float[32,32] w)"}))
    new, casting = stored(Model(proto), how)
    assert new == proto
    assert kept_by(casting) == {"overridable": ["main/w"]}


def test_before_ir_4_the_stored_weight_is_listed_as_an_input() -> None:
    text = changed(
        SHARED,
        {
            "ir_version: 10": "ir_version: 3",
            '"" : 21': '"" : 9',
            "float[32] h)": "float[32] h, float[32,32] w)",
        },
    )
    new, _ = checked(model(text), "float16")
    assert [one.name for one in new.graph.input] == ["x", "h", "w_float16"]


def test_constants_that_are_trained_stay() -> None:
    proto = model(MATMUL)
    proto.training_info.add()
    assert kept_by(stored(Model(proto), "float16")[1]) == {"trained": ["main/w"]}


def test_small_tensors_stay() -> None:
    text = changed(
        MATMUL,
        {"<float[32,32] w = {0}>": "<float[32,32] w = {0}, float[32] b = {0}>",
         "y = MatMul (x, w)": "m = MatMul (x, w) y = Add (m, b)"},
    )  # fmt: skip
    _, casting = checked(model(text, W, V[0]), "float16")
    assert kept_by(casting) == {"small": ["main/b"]}
    assert casting.weights == (4096 + 128, 2048 + 128)


def test_a_weight_that_an_add_reads_too_is_no_int8() -> None:
    _, casting = checked(model(ADDED), "float16")
    assert casting.casts == 1
    new, casting = checked(model(ADDED), "int8")
    assert new == model(ADDED)
    assert kept_by(casting) == {"no-product": ["main/w"]}
    assert casting.kept[0].operators == {"MatMul": 1, "Add": 1}


@pytest.mark.parametrize(
    ("product", "axis"),
    [
        ("y = MatMul (x, w)", 1),
        ("y = MatMul (w, x)", 0),
        ("y = Gemm (x, w)", 1),
        ("y = Gemm <transB = 1> (x, w)", 0),
        ("y = Gemm <transA = 1> (w, x)", 1),
        ("i = Cast <to = 7> (x) z = ReduceMax <keepdims = 0> (i) k = Sub (z, z) "
         "l = Unsqueeze (k, k) y = Gather (w, l)", 0),
        ("i = Cast <to = 7> (x) z = ReduceMax <keepdims = 0> (i) k = Sub (z, z) "
         "l = Unsqueeze (k, k) y = Gather <axis = 1> (w, l)", 1),
    ],
)  # fmt: skip
def test_each_channel_has_a_scale(product: str, axis: int) -> None:
    text = changed(
        MATMUL,
        {"float[3,32] x": "float[32,32] x", "float[3,32] y": "float[A,B] y",
         "y = MatMul (x, w)": product},
    )  # fmt: skip
    new, _ = checked(model(text), "int8")
    scale = np.abs(W).max(1 - axis) / 127
    assert attribute(new.graph.node[0], "axis", None) == axis
    np.testing.assert_allclose(numpy_helper.to_array(new.graph.initializer[1]), scale, rtol=1e-6)


def test_a_convolution_has_a_scale_for_each_output_channel() -> None:
    new, _ = checked(
        model(
            """
            <ir_version: 10, opset_import: ["" : 21]>
            g (float[1,8,9,9] x) => (float[A,B,C,D] y) <float[16,8,3,3] w = {0}> {
               y = Conv (x, w)
            }
            """,
            DRAW.standard_normal((16, 8, 3, 3)).astype(np.float32),
        ),
        "int8",
    )
    assert attribute(new.graph.node[0], "axis", None) == 0


def test_the_directions_of_a_cell_share_the_scales_of_their_rows() -> None:
    new, casting = checked(
        model(
            """
            <ir_version: 10, opset_import: ["" : 21]>
            g (float[5,1,16] x) => (float[A,B,C,D] y)
            <float[2,32,16] w = {0}, float[2,32,8] r = {0}> {
               y = LSTM <hidden_size = 8, direction = "bidirectional"> (x, w, r)
            }
            """,
            DRAW.standard_normal((2, 32, 16)).astype(np.float32) / 4,
            DRAW.standard_normal((2, 32, 8)).astype(np.float32) / 4,
        ),
        "int8",
    )
    assert casting.casts == 2
    assert {one.name: list(one.dims) for one in new.graph.initializer} == {
        "w_int8": [2, 32, 16], "w_scale": [32], "r_int8": [2, 32, 8], "r_scale": [32],
    }  # fmt: skip


def test_before_opset_13_there_is_one_scale() -> None:
    new, _ = checked(model(changed(MATMUL, {'"" : 21': '"" : 12'}), V), "int8")
    assert list(new.graph.initializer[1].dims) == []
    assert attribute(new.graph.node[0], "axis", None) is None


def test_before_opset_10_there_is_no_int8() -> None:
    proto = model(changed(MATMUL, {'"" : 21': '"" : 9'}))
    assert kept_by(stored(Model(proto), "int8")[1]) == {"type": ["main/w"]}


def test_weights_in_half_precision_may_be_int8() -> None:
    half = changed(MATMUL, {"float": "float16"})
    new, casting = stored(Model(model(half, W.astype(np.float16))), "int8")
    assert full_objection(Model(new)) == ""
    assert casting.before == "float16"
    assert new.graph.initializer[1].data_type == TensorProto.FLOAT16


#: Elements of a weight that float16 does not hold, and why not.
LOST = {
    "an element is above 65504": [7e4, 1.0],
    "it holds whole numbers that float16 rounds": [2049.0, 1.0],
    "all elements are below 6.1e-05": [3e-5, 1e-6],
}


@pytest.mark.parametrize("sentence", LOST)
def test_what_float16_does_not_hold_stays(sentence: str) -> None:
    weight = np.resize(np.array(LOST[sentence], np.float32), (32, 32))
    _, casting = stored(Model(model(MATMUL, weight)), "float16")
    assert [kept.sentence for kept in casting.kept] == [sentence]


def test_a_few_subnormal_elements_do_not_matter() -> None:
    weight = V.copy()
    weight[3, 4] = 1e-7
    _, casting = checked(model(ADDED, weight), "float16")
    assert casting.casts == 1


def test_infinities_stay_infinite() -> None:
    weight = V.copy()
    weight[0] = -np.inf
    new, _ = stored(Model(model(ADDED, weight)), "float16")
    half = numpy_helper.to_array(new.graph.initializer[0])
    assert np.isneginf(half[0]).all()
    assert kept_by(stored(Model(model(MATMUL, weight)), "int8")[1]) == {"range": ["main/w"]}


def test_a_column_of_zeros_stays_zero() -> None:
    weight = V.copy()
    weight[:, 5] = 0
    new, _ = checked(model(MATMUL, weight), "int8")
    assert not numpy_helper.to_array(new.graph.initializer[0])[:, 5].any()


def test_channels_of_few_elements_stay() -> None:
    text = changed(
        MATMUL, {"[3,32] x": "[3,2] x", "[32,32] w": "[2,512] w", "[3,32] y": "[3,512] y"}
    )
    _, casting = stored(Model(model(text, np.resize(V, (2, 512)))), "int8")
    assert kept_by(casting) == {"few-elements": ["main/w"]}


def test_the_weights_of_nodes_may_be_left_out() -> None:
    asked = Reason("kept", "--keep names it")
    before = Model(model(TWO_LOOPS))
    flow = Flow.of(before)
    product = next(step.number for step in flow.steps if step.op == "MatMul")
    new, casting = stored(before, "int8", Seeds(steps={product: asked}))
    assert new == before.proto
    assert kept_by(casting) == {"kept": ["main/w"]}


def test_external_weights_that_stay_are_not_read(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    onnx.save(model(SAME_NAME, W, V), path, save_as_external_data=True, size_threshold=0)
    before = Model.load(path)
    new, casting = stored(before, "float16")
    assert casting.casts == 2
    assert not any(map(is_external, new.graph.initializer))
    expected = run(model(SAME_NAME, W, V))
    np.testing.assert_allclose(run(new)[1], expected[1], atol=1e-2 * np.abs(expected[1]).max())

    onnx.save(model(ADDED), path, save_as_external_data=True, size_threshold=0)
    new, _ = stored(Model.load(path), "int8")
    assert new == onnx.load(path, load_external_data=False)


def test_a_small_rest_of_external_data_is_taken_in(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    text = changed(
        MATMUL,
        {"<float[32,32] w = {0}>": "<float[32,32] w = {0}, float[32] b = {0}>",
         "y = MatMul (x, w)": "m = MatMul (x, w) y = Add (m, b)"},
    )  # fmt: skip
    before = model(text, W, V[0])
    onnx.save(before, path, save_as_external_data=True, size_threshold=0)
    new, _ = stored(Model.load(path), "int8")
    assert not any(map(is_external, new.graph.initializer))
    held = {one.name: numpy_helper.to_array(one) for one in new.graph.initializer}
    np.testing.assert_array_equal(held["b"], V[0])


def test_external_weights_stay_where_a_file_would_be_too_large(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(weights, "_MOST", 6000)
    path = tmp_path / "model.onnx"
    onnx.save(model(SAME_NAME, W, V), path, save_as_external_data=True, size_threshold=0)
    new, casting = stored(Model.load(path), "float16")
    (kept,) = casting.kept
    assert (kept.code, casting.casts) == ("file-limit", 1)
    assert kept.paths[0] == "main/scan_0.body/w"
    Model(new, path).read(new.graph.node[1].attribute[1].g.initializer[0])
