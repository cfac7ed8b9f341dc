"""The onnxruntime executor: every dtype, failures told apart, crashes and hangs survived."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import ModelProto, TensorProto, helper, parser

from passes.types.dtypes import numpy_dtype
from passes.verify.executor import CannotRun, ModelFailed
from passes.verify.installed import OnnxRuntimeExecutor

pytest.importorskip("onnxruntime")


@pytest.fixture(scope="module")
def executor() -> Iterator[OnnxRuntimeExecutor]:
    with OnnxRuntimeExecutor() as one:
        yield one


def model(text: str, *, ir: int = 10, opset: int = 21) -> ModelProto:
    return parser.parse_model(f'<ir_version: {ir}, opset_import: ["" : {opset}]> g {text}')


IDENTITY = model("(float[N] x) => (float[N] y) { y = Identity(x) }")
ONES = {"x": np.ones(2, np.float32)}

#: A Scan-8 over an empty batch: onnxruntime dereferences a null pointer.
CRASHING = model(
    """(float[B,S] s0, float[B,T,S] x) => (float[B,S] s) {
        s = Scan <num_scan_inputs = 1, body = b (float[S] i, float[S] e) => (float[S] o)
            { o = Add(i, e) }> ("", s0, x)
    }""",
    ir=6,
    opset=8,
)
EMPTY_BATCH = {"s0": np.zeros((0, 2), np.float32), "x": np.zeros((0, 3, 2), np.float32)}

#: Runs for as long as `go` is true, and nothing makes it false.
ENDLESS = model(
    """(bool go, float[N] x) => (float[N] y) {
        y = Loop <body = b (int64 i, bool k, float[N] a) => (bool again, float[N] o)
            { o = Add(a, a)  again = Identity(k) }> ("", go, x)
    }"""
)


def test_outputs_come_by_name_in_the_order_of_the_model(executor: OnnxRuntimeExecutor) -> None:
    two = model("(float[N] x) => (float[N] z, float[N] a) { a = Neg(x) z = Abs(a) }")
    outcome = executor.run(two, ONES)
    assert list(outcome.outputs) == ["z", "a"]
    np.testing.assert_array_equal(outcome.outputs["a"], [-1, -1])


ALL = [kind for kind in TensorProto.DataType.values() if kind != TensorProto.UNDEFINED]
#: What Identity of onnxruntime 1.31 knows; the rest fails to load.
KNOWN = {
    *(TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16, TensorProto.BFLOAT16),
    *(TensorProto.FLOAT8E4M3FN, TensorProto.FLOAT8E4M3FNUZ),
    *(TensorProto.FLOAT8E5M2, TensorProto.FLOAT8E5M2FNUZ),
    *(TensorProto.INT8, TensorProto.INT16, TensorProto.INT32, TensorProto.INT64),
    *(TensorProto.UINT8, TensorProto.UINT16, TensorProto.UINT32, TensorProto.UINT64),
    *(TensorProto.BOOL, TensorProto.STRING),
}


@pytest.mark.parametrize("kind", ALL, ids=TensorProto.DataType.Name)
def test_every_dtype_goes_in_and_comes_out_unchanged_or_is_said_to_be_missing(
    kind: int, executor: OnnxRuntimeExecutor
) -> None:
    typed = model("(float[N,M] x) => (float[N,M] y) { y = Identity(x) }")
    for value in (typed.graph.input[0], typed.graph.output[0]):
        value.type.tensor_type.elem_type = kind
    values = np.array([[0, 1], [1, 0], [1, 1]]).astype(numpy_dtype(kind))
    if kind == TensorProto.STRING:
        values = np.array([["", "é"], ["a\n", "日本"], ["0", "b"]], object)
    if kind not in KNOWN:
        with pytest.raises(CannotRun, match="cannot load"):
            executor.run(typed, {"x": values})
        return
    for array in (values, values.T, values[:0]):
        answer = executor.run(typed, {"x": array}).outputs["y"]
        assert isinstance(answer, np.ndarray)
        assert answer.dtype == array.dtype
        np.testing.assert_array_equal(answer, array)


def test_four_bit_numbers_are_packed_and_unpacked(executor: OnnxRuntimeExecutor) -> None:
    there = model("(float[N] x) => (int4[N] y) { y = Cast <to = 22> (x) }")
    back = model("(int4[N] x) => (float[N] y) { y = Cast <to = 1> (x) }")
    values = np.array([1, -2, 7, -8, 3], np.float32)
    narrow = executor.run(there, {"x": values}).outputs["y"]
    assert isinstance(narrow, np.ndarray)
    np.testing.assert_array_equal(narrow.astype(np.float32), values)
    np.testing.assert_array_equal(executor.run(back, {"x": narrow}).outputs["y"], values)


def test_bfloat16_beside_other_inputs(executor: OnnxRuntimeExecutor) -> None:
    mixed = model(
        "(bfloat16[N] x, int64 k) => (bfloat16[N] y, int64 q) {y = Identity(x) q = Neg(k)}"
    )
    bfloat16 = numpy_dtype(TensorProto.BFLOAT16)
    outputs = executor.run(mixed, {"x": np.ones(2, bfloat16), "k": np.array(3)}).outputs
    assert isinstance(outputs["y"], np.ndarray)
    assert outputs["y"].dtype == bfloat16
    assert outputs["q"] == -3


def test_sequences_are_lists(executor: OnnxRuntimeExecutor) -> None:
    both = model(
        "(seq(float[N]) x, int64 i) => (float[N] y, seq(float[N]) z)"
        "{ y = SequenceAt(x, i) z = Identity(x) }"
    )
    items = [np.ones(2, np.float32), np.zeros(3, np.float32)]
    outputs = executor.run(both, {"x": items, "i": np.array(1)}).outputs
    np.testing.assert_array_equal(outputs["y"], [0, 0, 0])
    assert isinstance(outputs["z"], list)
    assert [item.shape for item in outputs["z"]] == [(2,), (3,)]
    empty = model("(seq(float[N]) x) => (seq(float[N]) y) { y = Identity(x) }")
    assert executor.run(empty, {"x": []}).outputs["y"] == []


def test_an_empty_optional_is_none(executor: OnnxRuntimeExecutor) -> None:
    text = "(optional(float[N]) x) => (optional(float[N]) y, bool b)"
    optional = model(text + "{ y = Identity(x) b = OptionalHasElement(x) }")
    outputs = executor.run(optional, {"x": None}).outputs
    assert outputs["y"] is None
    assert outputs["b"] == np.array(False)
    assert executor.run(optional, ONES).outputs["b"] == np.array(True)


def test_external_data_is_found_in_base_dir(tmp_path: Path, executor: OnnxRuntimeExecutor) -> None:
    text = "(float[300] x) => (float[300] y) <float[300] w> { y = Add(x, w) }"
    weights = np.arange(300, dtype=np.float32)
    saved = model(text)
    saved.graph.initializer.append(onnx.numpy_helper.from_array(weights, "w"))
    (tmp_path / "sub").mkdir()
    path = str(tmp_path / "m.onnx")
    onnx.save(saved, path, save_as_external_data=True, location="sub/w.bin", size_threshold=0)
    by_reference = onnx.load(path, load_external_data=False)
    zeros = {"x": np.zeros(300, np.float32)}
    outcome = executor.run(by_reference, zeros, base_dir=tmp_path)
    np.testing.assert_array_equal(outcome.outputs["y"], weights)
    with pytest.raises(CannotRun, match="cannot load"):
        executor.run(by_reference, zeros)


def test_a_run_that_fails_is_the_models_fault(executor: OnnxRuntimeExecutor) -> None:
    adding = model("(float[N] x, float[M] z) => (float[K] y) { y = Add(x, z) }")
    with pytest.raises(ModelFailed, match="Add"):
        executor.run(adding, {"x": np.ones(2, np.float32), "z": np.ones(3, np.float32)})


@pytest.mark.parametrize(
    ("text", "ir", "opset", "sentence"),
    [
        ("Identity", 10, 99, "opset 99 of ai.onnx, this onnxruntime loads up to"),
        ("Identity", 99, 21, "IR version 99, this onnxruntime loads up to"),
        ("Nonsense", 10, 21, "cannot load"),
    ],
)
def test_a_model_that_does_not_load_says_nothing_of_the_model(
    text: str, ir: int, opset: int, sentence: str, executor: OnnxRuntimeExecutor
) -> None:
    unknown = model(f"(float[N] x) => (float[N] y) {{ y = {text}(x) }}", ir=ir, opset=opset)
    with pytest.raises(CannotRun, match=sentence):
        executor.run(unknown, ONES)


def test_a_crash_is_survived_by_the_process_that_imported_the_runtime(
    executor: OnnxRuntimeExecutor,
) -> None:
    executor.run(IDENTITY, ONES)
    started = executor._worker
    with pytest.raises(CannotRun, match=r"crashed \(SIG"):
        executor.run(CRASHING, EMPTY_BATCH, timeout=30)
    np.testing.assert_array_equal(executor.run(IDENTITY, ONES).outputs["y"], [1, 1])
    assert executor._worker is started


def test_the_processes_end_when_nobody_asks_any_more() -> None:
    worker = ["passes.verify.runtimes.worker", "onnxruntime", "passes.verify.runtimes.onnxruntime"]
    command = [sys.executable, "-P", "-m", *worker]
    ended = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=60)
    assert ended.returncode == 0


def test_a_hang_is_killed(executor: OnnxRuntimeExecutor) -> None:
    executor.run(IDENTITY, ONES)
    started = time.monotonic()
    with pytest.raises(CannotRun, match=r"no answer in 0\.5 s"):
        executor.run(ENDLESS, {"go": np.array(True), **ONES}, timeout=0.5)
    assert time.monotonic() - started < 5
    np.testing.assert_array_equal(executor.run(IDENTITY, ONES).outputs["y"], [1, 1])


def test_an_output_without_value_is_no_empty_optional(executor: OnnxRuntimeExecutor) -> None:
    collecting = model(
        """(float[B,S] s0, float[B,T,S] x) => (float[B,T,S] y) {
            s, y = Scan <num_scan_inputs = 1, body = b (float[S] i, float[S] e) =>
                (float[S] o, float[S] c) { o = Add(i, e) c = Neg(e) }> ("", s0, x)
        }""",
        ir=6,
        opset=8,
    )
    feeds = {"s0": np.zeros((2, 2), np.float32), "x": np.zeros((2, 0, 2), np.float32)}
    with pytest.raises(CannotRun, match="no value"):
        executor.run(collecting, feeds)


def test_more_models_than_the_worker_keeps(executor: OnnxRuntimeExecutor) -> None:
    negated = [model(f"(float[N] x) => (float[N] y{n}) {{ y{n} = Neg(x) }}") for n in range(7)]
    for _ in range(2):
        for one in negated:
            assert list(executor.run(one, ONES).outputs) == [one.graph.output[0].name]


def test_a_loop_that_ran_zero_times_had_to_guess_dims(executor: OnnxRuntimeExecutor) -> None:
    collecting = model(
        """(int64 m, float[K] x) => (float[T,K] y) <bool go = {1}> {
            y = Loop <body = b (int64 i, bool k) => (bool again, float[K] o)
                { o = Neg(x)  again = Identity(k) }> (m, go)
        }"""
    )
    never = executor.run(collecting, {"m": np.array(0), **ONES})
    twice = executor.run(collecting, {"m": np.array(2), **ONES})
    assert (never.guessed_shapes, twice.guessed_shapes) == (True, False)


def test_an_initializer_that_is_an_input_can_be_overridden(executor: OnnxRuntimeExecutor) -> None:
    text = "(float[N] x, float w) => (float[N] y) { y = Add(x, w) }"
    default = model(text)
    default.graph.initializer.append(helper.make_tensor("w", TensorProto.FLOAT, [], [5.0]))
    np.testing.assert_array_equal(executor.run(default, ONES).outputs["y"], [6, 6])
    overridden = {**ONES, "w": np.array(1, np.float32)}
    np.testing.assert_array_equal(executor.run(default, overridden).outputs["y"], [2, 2])


def test_onnxruntime_is_never_imported_into_this_process() -> None:
    program = (
        "import sys\n"
        "from passes.verify.installed import OnnxRuntimeExecutor\n"
        "assert OnnxRuntimeExecutor.available()\n"
        "with OnnxRuntimeExecutor(): pass\n"
        "assert 'onnxruntime' not in sys.modules\n"
    )
    root = Path(__file__).parents[2]
    subprocess.run([sys.executable, "-c", program], check=True, cwd=root)
