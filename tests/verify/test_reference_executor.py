"""What goes into a run of the reference executor, and what comes out of it."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper, parser

from passes.verify.executor import CannotRun, ModelFailed
from passes.verify.reference import ReferenceExecutor

RUN = ReferenceExecutor().run
F32 = np.float32


def add(initializer: str = "", ir: int = 8) -> ModelProto:
    return parser.parse_model(f"""
    <ir_version: {ir}, opset_import: ["": 16]>
    g (float[2] x, float[2] w) => (float[2] y) {initializer} {{ y = Add (x, w) }}""")


X = np.array([1, 2], F32)


def test_a_range_that_takes_gigabytes_is_not_made() -> None:
    model = parser.parse_model("""
        <ir_version: 7, opset_import: ["" : 11]>
        g (int64 n) => (int64[K] y) <int64 zero = {0}, int64 one = {1}> { y = Range (zero, n, one) }
    """)
    with pytest.raises(CannotRun, match="Range, \\[1000000000\\], is too large"):
        ReferenceExecutor().run(model, {"n": np.array(10**9)})
    short = ReferenceExecutor().run(model, {"n": np.array(3)}).outputs["y"]
    np.testing.assert_array_equal(np.asarray(short), [0, 1, 2])


def test_what_an_expand_makes_is_no_larger_than_there_is_room_for() -> None:
    model = parser.parse_model("""
        <ir_version: 8, opset_import: ["" : 18]>
        g (float x) => (float y) {
            sizes = Constant <value_ints = [65536, 65536]> ()
            wide = Expand (x, sizes)
            y = ReduceSum <keepdims = 0> (wide)
        }
    """)
    with pytest.raises(CannotRun, match="Expand, \\[65536, 65536\\], is too large"):
        RUN(model, {"x": F32(1)})


def test_matrices_without_a_product_fail_with_infinities_too() -> None:
    model = parser.parse_model("""
        <ir_version: 8, opset_import: ["" : 18]>
        g (float[N,3] x, float[1,1] w) => (float[N,M] y) { y = MatMul (x, w) }
    """)
    with pytest.raises(ModelFailed, match="have no product"):
        RUN(model, {"x": np.full((2, 3), np.inf, F32), "w": np.ones((1, 1), F32)})


def test_a_cut_of_a_pad_reaches_what_is_added_at_the_other_end() -> None:
    model = parser.parse_model("""
        <ir_version: 8, opset_import: ["" : 18]>
        g (float[N] x, int64[2] widths) => (float[M] y) { y = Pad (x, widths) }
    """)
    feeds = {"x": np.array([5, 6], F32), "widths": np.array([3, -4])}
    np.testing.assert_array_equal(RUN(model, feeds).outputs["y"], [0])


def test_a_cell_says_which_operand_has_another_rank() -> None:
    model = parser.parse_model("""
        <ir_version: 8, opset_import: ["" : 18]>
        g (float[T,B,2] x, float[1,3,2] w, float[1,3,1] r) => (float[T,1,B,1] y) {
            size = Constant <value_ints = [-1]> ()
            flat = Reshape (x, size)
            y = GRU <hidden_size = 1> (flat, w, r)
        }
    """)
    feeds = {"x": np.ones((2, 1, 2)), "w": np.ones((1, 3, 2)), "r": np.ones((1, 3, 1))}
    with pytest.raises(ModelFailed, match="X has 1 axes, not 3"):
        RUN(model, {name: value.astype(F32) for name, value in feeds.items()})


def test_a_missing_an_unknown_and_an_unfitting_feed_fail() -> None:
    with pytest.raises(ModelFailed, match="the input 'w' is not fed"):
        RUN(add(), {"x": X})
    with pytest.raises(ModelFailed, match="'v' is no input of the model"):
        RUN(add(), {"x": X, "w": X, "v": X})
    with pytest.raises(ModelFailed, match="'w' is float32, not float64"):
        RUN(add(), {"x": X, "w": X.astype(np.float64)})
    with pytest.raises(ModelFailed, match=r"'w' has shape \[2\], not \(3,\)"):
        RUN(add(), {"x": X, "w": np.zeros(3, F32)})


def test_from_ir_4_an_initializer_that_is_an_input_is_a_default() -> None:
    model = add("<float[2] w = {10, 20}>")
    assert RUN(model, {"x": X}).outputs["y"].tolist() == [11, 22]
    assert RUN(model, {"x": X, "w": X}).outputs["y"].tolist() == [2, 4]


def test_with_ir_3_it_is_a_constant() -> None:
    model = add("<float[2] w = {10, 20}>", ir=3)
    assert RUN(model, {"x": X}).outputs["y"].tolist() == [11, 22]
    with pytest.raises(ModelFailed, match="'w' is no input of the model"):
        RUN(model, {"x": X, "w": X})


@pytest.mark.parametrize("indices", [[1, 5], [[0, 1], [1, 2]]])
def test_sparse_initializers_are_filled_with_zeros(indices: Any) -> None:
    model = parser.parse_model("""
    <ir_version: 8, opset_import: ["": 16]>
    g (float[2, 3] x) => (y) { y = Add (x, w) }""")
    sparse = model.graph.sparse_initializer.add()
    sparse.values.CopyFrom(numpy_helper.from_array(np.array([7, 8], F32), "w"))
    sparse.indices.CopyFrom(numpy_helper.from_array(np.array(indices, np.int64)))
    sparse.dims.extend([2, 3])
    outputs = RUN(model, {"x": np.zeros((2, 3), F32)}).outputs
    assert outputs["y"].tolist() == [[0, 7, 0], [0, 0, 8]]


def external(**entries: str) -> ModelProto:
    model = add("<float[2] w = {0, 0}>")
    tensor = model.graph.initializer[0]
    tensor.Clear()
    tensor.name, tensor.data_type = "w", TensorProto.FLOAT
    tensor.dims.append(2)
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in {"location": "weights.bin", **entries}.items():
        tensor.external_data.add(key=key, value=value)
    return model


def test_external_data_is_read_at_its_offset(tmp_path: Path) -> None:
    (tmp_path / "weights.bin").write_bytes(np.arange(8, dtype=F32).tobytes())
    outputs = RUN(external(offset="12", length="8"), {"x": X}, base_dir=tmp_path).outputs
    assert outputs["y"].tolist() == [4, 6]
    assert RUN(external(), {"x": X}, base_dir=tmp_path).outputs["y"].tolist() == [1, 3]


@pytest.mark.parametrize(
    ("entries", "words"),
    [
        ({"location": "gone.bin"}, "gone.bin is missing, 8 are needed"),
        ({"offset": "28"}, "has 4 bytes after offset 28, 8 are needed"),
        ({"length": "4"}, "4 bytes are given, 8 are needed"),
        ({"location": "../weights.bin"}, "lies outside of"),
    ],
)
def test_missing_external_data_is_no_word_on_the_model(
    tmp_path: Path, entries: dict[str, str], words: str
) -> None:
    (tmp_path / "weights.bin").write_bytes(np.arange(8, dtype=F32).tobytes())
    with pytest.raises(CannotRun, match=words):
        RUN(external(**entries), {"x": X}, base_dir=tmp_path)


def test_external_data_needs_a_directory() -> None:
    with pytest.raises(CannotRun, match="no directory was given"):
        RUN(external(), {"x": X})


@pytest.mark.parametrize("kind", [TensorProto.BFLOAT16, TensorProto.INT4])
def test_external_data_of_small_types(tmp_path: Path, kind: int) -> None:
    model = parser.parse_model("""
    <ir_version: 10, opset_import: ["": 21]> g () => (y) { y = Cast <to = 1> (w) }""")
    tensor = helper.make_tensor("w", kind, [3], [1, 2, 3])
    (tmp_path / "w.bin").write_bytes(numpy_helper.from_array(
        numpy_helper.to_array(tensor)).raw_data)  # fmt: skip
    outside = TensorProto(name="w", data_type=kind, dims=[3])
    outside.data_location = TensorProto.EXTERNAL
    outside.external_data.add(key="location", value="w.bin")
    model.graph.initializer.append(outside)
    assert RUN(model, {}, base_dir=tmp_path).outputs["y"].tolist() == [1, 2, 3]


def test_sequences_and_optionals_as_inputs_and_outputs() -> None:
    model = parser.parse_model("""
    <ir_version: 8, opset_import: ["": 16]>
    g (seq(float[N]) s, optional(float[N]) o) => (seq(float[N]) s2, optional(float[N]) o2, h) {
      s2 = Identity (s)  o2 = Identity (o)  h = OptionalHasElement (o)
    }""")
    outputs = RUN(model, {"s": [X, X + 1], "o": None}).outputs
    assert [value.tolist() for value in outputs["s2"]] == [[1, 2], [2, 3]]
    assert outputs["o2"] is None
    assert not outputs["h"]
    assert RUN(model, {"s": [], "o": X}).outputs["o2"].tolist() == [1, 2]


WATCHED = """
<ir_version: 8, opset_import: ["": 16, "own": 1]>
g (int64 m, float x) => (y, z) {
  w = Neg (x)
  y = Loop <body = body (int64 i, bool c, float x) => (bool d, float b) {
    d = Identity (c)
    [grow] b = Add (x, x)
  }> (m, , x)
  [grow] z = own.f (x)
}
<domain: "own", opset_import: ["": 16]>
f (a) => (b) { [inner] b = Exp (a) }
"""


def test_the_watch_sees_what_a_name_means_where_the_node_stands() -> None:
    model = parser.parse_model(WATCHED)
    values = {"m": np.array(2), "x": np.array(3, F32)}
    watch = {"grow": ["x", "w", "gone", "i"], "inner": ["a", "x"]}
    seen = RUN(model, values, watch=watch).seen
    # In the body x is the carried value, w is seen though the body does not read it.
    spelled = [{name: float(v) for name, v in run.items()} for run in seen["grow"]]
    assert spelled == [{"x": 3, "w": -3, "i": 0}, {"x": 6, "w": -3, "i": 1}, {"x": 3, "w": -3}]
    # A function sees nothing of its caller.
    assert [set(run) for run in seen["inner"]] == [{"a"}]


def test_the_watch_keeps_the_first_16_runs() -> None:
    values = {"m": np.array(100), "x": np.array(3, F32)}
    seen = RUN(parser.parse_model(WATCHED), values, watch={"grow": ["i"]}).seen
    assert [int(run["i"]) for run in seen["grow"]] == list(range(16))


def test_random_numbers_differ_from_draw_to_draw_but_not_from_run_to_run() -> None:
    model = parser.parse_model("""
    <ir_version: 8, opset_import: ["": 16]>
    g (int64 m) => (y, z) {
      y = Loop <body = body (int64 i, bool c) => (bool d, float[4] r) {
        d = Identity (c)  r = RandomNormal <shape = [4]> ()
      }> (m, )
      t = Constant <value = bool {1}> ()
      x = Constant <value = float[4] {1, 2, 3, 4}> ()
      half = Constant <value_float = 0.5> ()
      z = Dropout (x, half, t)
    }""")
    first = RUN(model, {"m": np.array(3)}).outputs
    again = RUN(model, {"m": np.array(3)}).outputs
    assert len({tuple(row) for row in first["y"].tolist()}) == 3
    np.testing.assert_array_equal(first["y"], again["y"])
    np.testing.assert_array_equal(first["z"], again["z"])


def test_a_kernel_that_fails_names_node_and_reason() -> None:
    model = parser.parse_model("""
    <ir_version: 8, opset_import: ["": 16]>
    g (float[N] x, float[M] w) => (y) { [join] y = Add (x, w) }""")
    with pytest.raises(ModelFailed, match="Add 'join' failed: operands could not be broadcast"):
        RUN(model, {"x": X, "w": np.zeros(3, F32)})


def test_numpy_does_not_warn_of_the_mean_of_nothing() -> None:
    model = parser.parse_model("""
    <ir_version: 8, opset_import: ["": 16]>
    g (float[1, 1, N] x) => (y) { y = GlobalAveragePool (x) }""")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        outcome = RUN(model, {"x": np.zeros((1, 1, 0), F32)})
    assert np.isnan(outcome.outputs["y"]).all()


def test_an_empty_value_that_is_read_only_is_not_written_to() -> None:
    empty = np.zeros((0, 2), F32)
    empty.flags.writeable = False
    model = parser.parse_model("""
    <ir_version: 8, opset_import: ["": 16]>
    g (float[N,2] x) => (float[N,2] y) { y = LogSoftmax (x) }""")
    assert np.asarray(RUN(model, {"x": empty}).outputs["y"]).shape == (0, 2)


def test_an_operator_without_kernel_is_no_word_on_the_model() -> None:
    model = parser.parse_model("""
    <ir_version: 8, opset_import: ["": 16, "elsewhere": 1]>
    g (float[N] x) => (y) { y = elsewhere.Secret (x) }""")
    with pytest.raises(CannotRun, match=r"no kernel for elsewhere\.Secret at opset 1"):
        RUN(model, {"x": X})


def test_training_that_nobody_implements_is_no_word_on_the_model() -> None:
    model = parser.parse_model("""
    <ir_version: 8, opset_import: ["": 9]>
    g (float[N,2] x, float[2] c) => (float[N,2] y) {
        y, mean, var, saved_mean, saved_var = BatchNormalization (x, c, c, c, c) }""")
    feeds = {"x": np.ones((3, 2), F32), "c": np.ones(2, F32)}
    words = "BatchNormalization 'y': training below opset 14 is not implemented"
    with pytest.raises(CannotRun, match=words):
        RUN(model, feeds)


def chain(length: int) -> ModelProto:
    nodes = [helper.make_node("Add", [f"v{i}", "x"], [f"v{i + 1}"]) for i in range(length)]
    ends = [helper.make_tensor_value_info(name, 1, [2]) for name in ("v0", "x", f"v{length}")]
    graph = helper.make_graph(nodes, "g", ends[:2], ends[2:])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.mark.slow
def test_a_chain_of_20000_nodes() -> None:
    model = chain(20_000)
    outputs = RUN(model, {"v0": X, "x": np.ones(2, F32)}).outputs
    assert outputs["v20000"].tolist() == [20001, 20002]


@pytest.mark.slow
def test_10000_iterations_next_to_thousands_of_weights() -> None:
    model = parser.parse_model("""
    <ir_version: 8, opset_import: ["": 16]>
    g (int64 m, float[2] x) => (y, n) {
      y, n = Loop <body = body (int64 i, bool c, float[2] a) => (bool d, float[2] b, int64 j) {
        d = Identity (c)  b = Add (a, w7)  j = Identity (i)
      }> (m, , x)
    }""")
    for index in range(5000):
        model.graph.initializer.append(numpy_helper.from_array(np.ones(2, F32), f"w{index}"))
    outputs = RUN(model, {"m": np.array(10_000), "x": X}).outputs
    assert outputs["y"].tolist() == [10001, 10002]
    assert outputs["n"].shape == (10_000,)


def test_the_time_is_looked_at_between_nodes() -> None:
    with pytest.raises(CannotRun, match="took longer than 0 s"):
        RUN(chain(10), {"v0": X, "x": X}, timeout=0)


def test_a_model_that_is_kept_answers_the_same_again() -> None:
    """Random draws, the clock and what was seen start anew with every run."""
    model = parser.parse_model("""<ir_version: 8, opset_import: ["": 18]>
        g (float[2] x) => (float[2] y, float[3] r)
        { r = RandomNormal<shape = [3]>() y = Add(x, x) }""")
    kept, fresh = ReferenceExecutor(keep=1), ReferenceExecutor()
    for scale in (1, 2, 3):
        feeds = {"x": np.array([scale, -scale], np.float32)}
        one, other = (executor.run(model, feeds, timeout=60) for executor in (kept, fresh))
        for name, value in other.outputs.items():
            np.testing.assert_array_equal(one.outputs[name], value)


@pytest.mark.parametrize("op", ["RNN", "GRU", "LSTM"])
@pytest.mark.parametrize(("steps", "batch"), [(2, 1), (0, 1), (2, 0)])
def test_a_recurrent_operator_that_reads_no_element_is_noted(
    op: str, steps: int, batch: int
) -> None:
    """onnxruntime answers what its memory held."""
    gates = {"RNN": 1, "GRU": 3, "LSTM": 4}[op]
    model = parser.parse_model(f"""
        <ir_version: 8, opset_import: ["" : 17]>
        g (float[T,B,2] x, float[1,G,2] w, float[1,G,3] r) => (float[1,B,3] h) {{
            y, h = {op} <hidden_size = 3> (x, w, r)
        }}""")
    feeds = {
        "x": np.ones((steps, batch, 2), np.float32),
        "w": np.ones((1, gates * 3, 2), np.float32),
        "r": np.ones((1, gates * 3, 3), np.float32),
    }
    outcome = ReferenceExecutor().run(model, feeds)
    assert outcome.idle_cell == (steps * batch == 0)
